//! `sessions/acp-sessions.db`: sessions of editors, since 0.8.0-beta-1.
//!
//! `acp_sessions` has one row a session, known to its client by `session_uuid`; `acp_messages` hang on
//! it, `acp_tool_calls` on a message, `acp_session_events` on the session again; order is `id`
//! everywhere. `killed_at` came with 0.8.0 and `plan_json` with 0.8.3, both by ALTER, so columns are
//! read by name. A call has `event_kind` `in` and its arguments as payload, its result `out`; a result
//! hangs on the last message of the assistant. `workspace_dir` is a folder of the client, kept as
//! text. The first beta had another shape, read in [`old`]: no later release reads it.
//!
//! Known faults: results without a call, payloads of megabytes, rows whose session or message is gone.

use std::collections::BTreeMap;

use zeroclaw::model::Tier;

use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, event_id};

mod beside;
mod event;
mod old;
pub(super) mod session;

use beside::Beside;
use event::{Chain, Given};
use session::Opened;

const NO_SESSION: &str = "what it belongs to is not there or cannot be taken";

const MESSAGE: [&str; 6] = [
    "id",
    "session_id",
    "role",
    "content",
    "reasoning_content",
    "created_at",
];

/// Streams a store's sessions, what was said in them and what tools did.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("acp_sessions").await?;
    if columns.is_empty() {
        let reason = "it has no table acp_sessions".to_owned();
        return Err(ReadError::Format { reason });
    }
    if !columns.iter().any(|column| column == "session_uuid") {
        return old::read(db, owners, sink).await;
    }
    let mut out = Batcher::new(sink);
    let (sessions, sessions_damage) = session::read_all(db, owners, &mut out).await?;
    let mut reader = Reader {
        sessions,
        beside: Beside::open(db).await?,
        out,
        current: None,
    };
    let table = Table {
        name: "acp_messages",
        wanted: &MESSAGE,
        order: "session_id, id",
    };
    let damage = each_row(db, table, async |found| match found {
        Found::Row(values) => reader.message(values).await,
        Found::Lost { rowid } => reader.lost(rowid).await,
    });
    let damage = damage.await?;
    reader.open_up_to(None).await?;
    reader.strays().await?;
    let Reader {
        mut out, beside, ..
    } = reader;
    let damaged = [("acp_sessions", sessions_damage), ("acp_messages", damage)];
    let damaged = damaged.into_iter().chain(beside.close().await);
    for (name, damage) in damaged {
        if let Some(reason) = damage {
            let place = format!("table {name}");
            out.push(Item::Damage { place, reason }, 0).await?;
        }
    }
    out.flush().await
}

/// The session whose messages are being read.
struct Current {
    id: i64,
    /// `None` when the session cannot be taken.
    tier: Option<Tier>,
    chain: Chain,
}

struct Reader<'r, S> {
    /// Those that have not come up yet, by their number in the store.
    sessions: BTreeMap<i64, Opened>,
    beside: Beside,
    out: Batcher<'r, S>,
    current: Option<Current>,
}

impl<S: Sink> Reader<'_, S> {
    async fn message(&mut self, values: Values) -> Result<(), ReadError> {
        let place = format!("table acp_messages, row {}", values.rowid);
        let id = values.integer(0).unwrap_or(values.rowid);
        let session = values.integer(1);
        if let Some(session) = session
            && self
                .current
                .as_ref()
                .is_none_or(|current| current.id != session)
        {
            self.open_up_to(Some(session)).await?;
        }
        let current = self
            .current
            .as_ref()
            .filter(|current| Some(current.id) == session && current.tier.is_some());
        if current.is_none() {
            let reason = NO_SESSION;
            self.refuse(kind::MESSAGE, place, reason, &values, &MESSAGE)
                .await?;
            return self.tool_calls(id).await;
        }
        let whole = |column| values.text(column).ok().flatten().map(str::to_owned);
        let (Some(role), Some(text)) = (whole(2), whole(3)) else {
            let reason = "its role or content is missing or not UTF-8";
            self.refuse(kind::MESSAGE, place, reason, &values, &MESSAGE)
                .await?;
            return self.tool_calls(id).await;
        };
        let at = values.hint(5).unwrap_or_default();
        let at_ms = LegacyTime::parse(&at).map(LegacyTime::ms);
        if let Some(at_ms) = at_ms {
            self.events_until(Some(at_ms)).await?;
        }
        let reasoning = values.hint(4);
        let id_parts = [
            id.to_string().into_bytes(),
            at.into_bytes(),
            role.clone().into_bytes(),
            text.clone().into_bytes(),
        ];
        let given = Given::message(role, text, reasoning.as_deref());
        self.give(b"message", &id_parts, at_ms, given, place)
            .await?;
        self.tool_calls(id).await
    }

    /// Names a message on a damaged page, and what hangs on it.
    async fn lost(&mut self, rowid: i64) -> Result<(), ReadError> {
        let lost = Refusal::lost(kind::MESSAGE, "acp_messages", rowid);
        self.out.push(Item::Refused(lost), 0).await?;
        let current = self.current.take();
        self.tool_calls(rowid).await?;
        self.current = current;
        Ok(())
    }

    /// Gives sessions without messages up to `wanted`, and opens that one; `None` gives all.
    async fn open_up_to(&mut self, wanted: Option<i64>) -> Result<(), ReadError> {
        self.events_until(None).await?;
        self.current = None;
        while let Some(entry) = self.sessions.first_entry() {
            if wanted.is_some_and(|wanted| *entry.key() > wanted) {
                return Ok(());
            }
            let id = *entry.key();
            let opened = entry.remove();
            self.open(id, opened).await?;
            if Some(id) == wanted {
                return Ok(());
            }
            self.events_until(None).await?;
        }
        Ok(())
    }

    async fn open(&mut self, id: i64, opened: Opened) -> Result<(), ReadError> {
        self.beside.begin();
        self.current = Some(Current {
            id,
            tier: opened.tier.clone(),
            chain: Chain::new(opened.session_id, opened.created_at_ms),
        });
        let Some((tier, session)) = opened.tier.zip(opened.session) else {
            return Ok(());
        };
        let bytes = session.entry_json.as_ref().map_or(0, String::len);
        let record = Record::Session(session);
        self.out.push(Item::Record { tier, record }, bytes).await
    }

    /// Gives the current session's events from before `at_ms`; all that are left for `None`.
    async fn events_until(&mut self, at_ms: Option<i64>) -> Result<(), ReadError> {
        let Some(session) = self.current.as_ref().map(|current| current.id) else {
            return Ok(());
        };
        while let Some(found) = self.beside.event_before(session, at_ms).await? {
            let place = format!("table acp_session_events, row {}", found.rowid);
            let Some(given) = Given::session_event(&found) else {
                let reason = "its action or payload is not UTF-8";
                self.refuse(kind::EVENT, place, reason, &found, &beside::EVENT)
                    .await?;
                continue;
            };
            self.give_row(b"event", &found, 5, given, place, &beside::EVENT)
                .await?;
        }
        Ok(())
    }

    /// Gives what tools did for a message.
    async fn tool_calls(&mut self, message: i64) -> Result<(), ReadError> {
        let mut after = None;
        while let Some(found) = self.beside.tool_call_after(message, after).await? {
            after = Some(found.integer(0).unwrap_or(found.rowid));
            let place = format!("table acp_tool_calls, row {}", found.rowid);
            let Some(given) = Given::tool_call(&found) else {
                let reason = "its payload is missing or not UTF-8";
                self.refuse(kind::EVENT, place, reason, &found, &beside::TOOL_CALL)
                    .await?;
                continue;
            };
            self.give_row(b"tool", &found, 7, given, place, &beside::TOOL_CALL)
                .await?;
        }
        Ok(())
    }

    /// Gives an event whose identity is its whole row; `at` is the column of its time.
    async fn give_row(
        &mut self,
        what: &[u8],
        values: &Values,
        at: usize,
        given: Given,
        place: String,
        columns: &[&str],
    ) -> Result<(), ReadError> {
        let is_open = self
            .current
            .as_ref()
            .is_some_and(|current| current.tier.is_some());
        if !is_open {
            let reason = NO_SESSION;
            return self
                .refuse(kind::EVENT, place, reason, values, columns)
                .await;
        }
        let parts: Vec<Vec<u8>> = (0..columns.len())
            .map(|column| values.bytes(column).unwrap_or_default().to_vec())
            .collect();
        let at_ms = values
            .hint(at)
            .and_then(|text| LegacyTime::parse(&text))
            .map(LegacyTime::ms);
        self.give(what, &parts, at_ms, given, place).await
    }

    async fn give(
        &mut self,
        what: &[u8],
        id_parts: &[Vec<u8>],
        at_ms: Option<i64>,
        given: Given,
        place: String,
    ) -> Result<(), ReadError> {
        let Some(current) = self.current.as_mut() else {
            return Ok(());
        };
        let Some(tier) = current.tier.clone() else {
            return Ok(());
        };
        let parts: Vec<&[u8]> = [current.chain.session_id().as_bytes(), what]
            .into_iter()
            .chain(id_parts.iter().map(Vec::as_slice))
            .collect();
        let event_id = event_id(&parts);
        current
            .chain
            .give(tier, event_id, at_ms, given, place, &mut self.out)
            .await
    }

    /// Names rows whose session or message is not there.
    async fn strays(&mut self) -> Result<(), ReadError> {
        self.current = None;
        for (table, columns) in beside::TABLES {
            let mut after = None;
            while let Some(found) = self.beside.stray_after(table, columns, after).await? {
                after = Some(found.rowid);
                let place = format!("table {table}, row {}", found.rowid);
                let reason = NO_SESSION;
                self.refuse(kind::EVENT, place, reason, &found, columns)
                    .await?;
            }
        }
        Ok(())
    }

    async fn refuse(
        &mut self,
        kind: &'static str,
        place: String,
        reason: &str,
        values: &Values,
        columns: &[&str],
    ) -> Result<(), ReadError> {
        let raw = values.json(columns, &[]).into_bytes();
        let bytes = raw.len();
        let refusal = Refusal {
            kind,
            place,
            reason: reason.to_owned(),
            raw,
        };
        self.out.push(Item::Refused(refusal), bytes).await
    }
}
