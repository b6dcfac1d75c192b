//! The shape of 0.8.0-beta-1 alone: `acp_sessions(session_id, workspace_dir, …)` without an agent,
//! `acp_messages(id, session_id, message_json, created_at)`.
//!
//! A message is `{"type": T, "data": …}`: `Chat` has a role and a content, `AssistantToolCalls` a text,
//! calls and perhaps reasoning, `ToolResults` a list of results. The owner is found by the fallback rule.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use zeroclaw::model::ToolArtifactKind;

use super::super::super::rows::{Found, Table, each_row};
use super::super::super::sqlite::{LegacyDb, Values};
use super::super::super::{Batcher, ReadError, Sink};
use super::event::{Chain, Given};
use super::session::{Opened, Told, open};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, event_id};

const SESSION: [&str; 4] = ["session_id", "workspace_dir", "created_at", "last_activity"];
const MESSAGE: [&str; 4] = ["id", "session_id", "message_json", "created_at"];

/// Streams the sessions and messages of such a store.
pub(super) async fn read<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let mut out = Batcher::new(sink);
    let (mut sessions, sessions_damage) = sessions(db, owners, &mut out).await?;
    let table = Table {
        name: "acp_messages",
        wanted: &MESSAGE,
        order: "session_id, id",
    };
    let mut current: Option<(String, Opened, Chain)> = None;
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::MESSAGE, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let key = values.hint(1).unwrap_or_default();
        if current.as_ref().is_none_or(|(id, ..)| *id != key) {
            current = match sessions.remove(&key) {
                Some(mut opened) => {
                    begin(&mut opened, &mut out).await?;
                    let chain = Chain::new(key.clone(), opened.created_at_ms);
                    Some((key, opened, chain))
                }
                None => None,
            };
        }
        message(&values, &mut current, &mut out).await
    });
    let damage = damage.await?;
    for mut opened in sessions.into_values() {
        begin(&mut opened, &mut out).await?;
    }
    for (name, damage) in [("acp_sessions", sessions_damage), ("acp_messages", damage)] {
        if let Some(reason) = damage {
            let place = format!("table {name}");
            out.push(Item::Damage { place, reason }, 0).await?;
        }
    }
    out.flush().await
}

async fn sessions<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(BTreeMap<String, Opened>, Option<String>), ReadError> {
    let table = Table {
        name: "acp_sessions",
        wanted: &SESSION,
        order: "session_id",
    };
    let mut all = BTreeMap::new();
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::SESSION, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let place = format!("table acp_sessions, row {}", values.rowid);
        let Some(session_id) = values.hint(0) else {
            let refusal = Refusal {
                kind: kind::SESSION,
                place,
                reason: "its session_id is missing or not UTF-8".to_owned(),
                raw: values.json(&SESSION, &[]).into_bytes(),
            };
            return out.push(Item::Refused(refusal), 256).await;
        };
        let time = |column| {
            values
                .hint(column)
                .and_then(|text| LegacyTime::parse(&text))
                .map(LegacyTime::ms)
        };
        let created_at_ms = time(2).or_else(|| time(3)).unwrap_or(0);
        let told = Told {
            session_id: session_id.clone(),
            alias: None,
            workspace_dir: values.hint(1).unwrap_or_default(),
            token_count: 0,
            killed_at_ms: None,
            created_at_ms,
            last_activity_ms: time(3).unwrap_or(created_at_ms),
            entry_json: values.json(&SESSION, &[]),
        };
        all.insert(
            session_id,
            open(told, place, owners.of_alias(None), out).await?,
        );
        Ok(())
    });
    let damage = damage.await?;
    Ok((all, damage))
}

async fn begin<S: Sink>(opened: &mut Opened, out: &mut Batcher<'_, S>) -> Result<(), ReadError> {
    let Some((tier, session)) = opened.tier.clone().zip(opened.session.take()) else {
        return Ok(());
    };
    let record = Record::Session(session);
    out.push(Item::Record { tier, record }, 256).await
}

async fn message<S: Sink>(
    values: &Values,
    current: &mut Option<(String, Opened, Chain)>,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let place = format!("table acp_messages, row {}", values.rowid);
    let parsed = values
        .text(2)
        .ok()
        .flatten()
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .and_then(|message| given(&message));
    let tier = current
        .as_ref()
        .and_then(|(_, opened, _)| opened.tier.clone());
    let (Some(tier), Some(parsed), Some((id, _, chain))) = (&tier, &parsed, current.as_mut())
    else {
        let reason = match (&tier, &parsed) {
            (None, _) => "its session is not there or cannot be taken",
            _ => "its message_json is of no known shape",
        };
        let refusal = Refusal {
            kind: kind::MESSAGE,
            place,
            reason: reason.to_owned(),
            raw: values.json(&MESSAGE, &[]).into_bytes(),
        };
        return out.push(Item::Refused(refusal), 512).await;
    };
    let at_ms = values
        .hint(3)
        .and_then(|text| LegacyTime::parse(&text))
        .map(LegacyTime::ms);
    for (ordinal, given) in parsed.iter().enumerate() {
        let event_id = event_id(&[
            id.as_bytes(),
            b"old message",
            values.bytes(0).unwrap_or_default(),
            values.bytes(2).unwrap_or_default(),
            &ordinal.to_le_bytes(),
        ]);
        let given = given.clone();
        chain
            .give(tier.clone(), event_id, at_ms, given, place.clone(), out)
            .await?;
    }
    Ok(())
}

/// What a message says; `None` when it is of no known shape.
fn given(message: &Value) -> Option<Vec<Given>> {
    let data = &message["data"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match message["type"].as_str()? {
        "Chat" => Some(vec![Given::message(
            text(&data["role"])?,
            text(&data["content"])?,
            None,
        )]),
        "AssistantToolCalls" => {
            let said = text(&data["text"]).unwrap_or_default();
            let reasoning = data["reasoning_content"].as_str();
            let mut all = vec![Given::message("assistant".to_owned(), said, reasoning)];
            for call in data["tool_calls"].as_array()? {
                let mut more = Map::new();
                more.insert("tool_call_id".to_owned(), call["id"].clone());
                more.insert("tool_name".to_owned(), call["name"].clone());
                let payload = plain(&call["arguments"]);
                all.push(Given::tool(ToolArtifactKind::Arguments, payload, more));
            }
            Some(all)
        }
        "ToolResults" => {
            let result = |result: &Value| {
                let mut more = Map::new();
                more.insert("tool_call_id".to_owned(), result["tool_call_id"].clone());
                Given::tool(ToolArtifactKind::Result, plain(&result["content"]), more)
            };
            Some(data.as_array()?.iter().map(result).collect())
        }
        _ => None,
    }
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
