//! `state/runtime-trace.jsonl` and its rotated parts: what the runtime did, 0.1 to now.
//!
//! Since 0.8:
//!
//! ```json
//! {"id":"<uuid>","@timestamp":"2026-08-22T21:44:00.123Z","severity_number":9,"severity_text":"INFO",
//!  "event":{"category":"channel","action":"inbound","outcome":"success"},"service":{"name":"zeroclaw","version":"0.8.4"},
//!  "trace_id":"t","zeroclaw":{"agent_alias":"atlas","duration_ms":10},"message":"…","attributes":{},"schema_version":2}
//! ```
//!
//! Before:
//!
//! ```json
//! {"id":"<uuid>","timestamp":"2026-01-05T10:00:00.000Z","event_type":"tool_call","channel":"telegram.main",
//!  "provider":"anthropic","model":"m","turn_id":"t","success":true,"message":"…","payload":{}}
//! ```
//!
//! 0.8 rewrote old lines in the new form at its start and lost their `provider` on the way; lines that it had not met
//! yet are taken as they are, provider and all. Each event is kept whole as its payload.
//!
//! Known faults: lines that are not JSON are carried along by the old program; a last line cut off by a crash; the file
//! is replaced while it is read, where only the last events are kept.

use std::path::Path;

use serde_json::value::RawValue;
use zeroclaw::model::{DiagnosticEvent, DiagnosticLevel, Tier};

use super::super::lines::Lines;
use super::super::objects::{ObjectFields, Piece, pieces};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::rows::RUNTIME_SCOPE;
use crate::doctor::units::{LegacyTime, stable_id};

/// Parts of the runtime, as the newest form names them; kinds of old events begin with one.
const CATEGORIES: [&str; 9] = [
    "agent", "channel", "cron", "memory", "tool", "provider", "session", "system", "internal",
];

/// Streams the events of a file.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let mut out = Batcher::new(sink);
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        let sequence = i64::try_from(line.number).unwrap_or(i64::MAX);
        let is_event = |json: &RawValue| event(json, 0, owners).is_ok();
        for piece in pieces(&line, is_event) {
            match piece {
                Piece::Whole { place, json } => {
                    let bytes = json.get().len();
                    let item = match event(json, sequence, owners) {
                        Ok(event) => Item::Record {
                            tier: Tier::Global,
                            record: event.into(),
                        },
                        Err(reason) => refused(place, reason, json.get().as_bytes()),
                    };
                    out.push(item, bytes).await?;
                }
                Piece::Broken {
                    place,
                    raw,
                    is_tail: true,
                    ..
                } => {
                    let (bytes, raw) = (raw.len(), raw.to_vec());
                    out.push(Item::PartialTail { place, raw }, bytes).await?;
                }
                Piece::Broken {
                    place, raw, reason, ..
                } => out.push(refused(place, reason, raw), raw.len()).await?,
            }
        }
    }
    out.flush().await
}

fn refused(place: String, reason: &str, raw: &[u8]) -> Item {
    Item::Refused(Refusal {
        kind: kind::LOG_EVENT,
        place,
        reason: reason.to_owned(),
        raw: raw.to_vec(),
    })
}

fn event(json: &RawValue, sequence: i64, owners: &Owners) -> Result<DiagnosticEvent, &'static str> {
    let mut fields = ObjectFields::of(json).ok_or("no object")?;
    let is_new = fields.has("@timestamp");
    let time = fields.text(if is_new { "@timestamp" } else { "timestamp" });
    let time = time.ok_or("it has no time")?;
    let created_at_ms = LegacyTime::parse(&time)
        .ok_or("its time cannot be read")?
        .ms();
    // Without a name of its own, an event is known by what it says.
    let event_key = fields
        .text("id")
        .unwrap_or_else(|| stable_id(&[b"trace", json.get().as_bytes()]));
    let told = if is_new {
        told_now(&mut fields, owners)
    } else {
        told_before(&mut fields)
    };
    Ok(DiagnosticEvent {
        scope: RUNTIME_SCOPE.to_owned(),
        event_key,
        created_at_ms,
        sequence,
        level: told.level,
        category: told.category,
        action: told.action,
        outcome: told.outcome,
        agent_id: told.agent_id,
        payload_json: json.get().to_owned(),
    })
}

/// What columns of its own hold of an event.
struct Told {
    level: DiagnosticLevel,
    category: Option<String>,
    action: Option<String>,
    outcome: Option<String>,
    agent_id: Option<zeroclaw::model::AgentId>,
}

fn told_now(fields: &mut ObjectFields<'_>, owners: &Owners) -> Told {
    let by_word = fields
        .text("severity_text")
        .and_then(|word| DiagnosticLevel::parse(&word.to_ascii_lowercase()));
    let number = fields.take("severity_number");
    let number = number.and_then(|json| json.get().parse().ok());
    let mut event = fields.take("event").and_then(ObjectFields::of);
    let mut text = |key| event.as_mut().and_then(|event| event.text(key));
    let (category, action, outcome) = (text("category"), text("action"), text("outcome"));
    let mut whose = fields.take("zeroclaw").and_then(ObjectFields::of);
    let alias = whose.as_mut().and_then(|whose| whose.text("agent_alias"));
    Told {
        level: by_word
            .or(number.map(level_of))
            .unwrap_or(DiagnosticLevel::Info),
        category,
        action,
        outcome,
        // A name that none can have here stands in the payload.
        agent_id: alias.and_then(|alias| owners.named(&alias).ok()),
    }
}

/// By the bounds of OpenTelemetry's severity numbers.
fn level_of(number: i64) -> DiagnosticLevel {
    match number {
        ..5 => DiagnosticLevel::Trace,
        5..9 => DiagnosticLevel::Debug,
        9..13 => DiagnosticLevel::Info,
        13..17 => DiagnosticLevel::Warn,
        17.. => DiagnosticLevel::Error,
    }
}

/// Old events had no level; one that did not succeed is an error.
fn told_before(fields: &mut ObjectFields<'_>) -> Told {
    let success = fields.take("success").map(RawValue::get);
    let action = fields.text("event_type");
    let category = action.as_deref().and_then(|action| {
        let first = action.split(['_', '.']).next().unwrap_or(action);
        CATEGORIES.into_iter().find(|category| *category == first)
    });
    let (level, outcome) = match success {
        Some("true") => (DiagnosticLevel::Info, Some("success")),
        Some("false") => (DiagnosticLevel::Error, Some("failure")),
        _ => (DiagnosticLevel::Info, None),
    };
    Told {
        level,
        category: category.map(str::to_owned),
        action,
        outcome: outcome.map(str::to_owned),
        agent_id: None,
    }
}
