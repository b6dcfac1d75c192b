//! The lossless form: a line for the session, one for each event, one for the end.
//!
//! Keys stand in a fixed order and numbers are whole, so that what comes back is written again byte for byte. An event's
//! JSON travels as a text: parsed and printed again it would not be the same bytes.

use serde::{Deserialize, Serialize};

use crate::model::{AgentId, Event, NewEvent, Snapshot};
use crate::store::agent::session_copy::{ConversationRow, EntryRow, SessionRow};

/// Version of the form. A reader takes this one and no newer.
pub(super) const FORMAT: u32 = 1;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    /// The first.
    Session(Box<Head>),
    /// One of many.
    Event(EventLine),
    /// The last: without it the file was cut.
    End {
        /// Events before it.
        events: u64,
    },
}

/// The session and what belongs to it, but for its events.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: u32,
    pub(super) agent_id: AgentId,
    pub(super) session: SessionRow,
    pub(super) routes: Vec<(String, i64)>,
    pub(super) entries: Vec<EntryRow>,
    pub(super) conversations: Vec<ConversationRow>,
    pub(super) snapshots: Vec<Snapshot>,
}

/// An event.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EventLine {
    pub(super) seq: i64,
    event_id: String,
    event_type: String,
    role: Option<String>,
    parent_id: Option<String>,
    idempotency_key: Option<String>,
    created_at_ms: i64,
    text: String,
    event_json: Option<String>,
}

impl EventLine {
    pub(super) fn new(event: Event, idempotency_key: Option<String>) -> Self {
        Self {
            seq: event.seq,
            event_id: event.event_id,
            event_type: event.event_type,
            role: event.role,
            parent_id: event.parent_id,
            idempotency_key,
            created_at_ms: event.created_at_ms,
            text: event.text,
            event_json: event.event_json,
        }
    }

    pub(super) fn into_event(self) -> (i64, NewEvent) {
        let event = NewEvent {
            event_id: self.event_id,
            event_type: self.event_type,
            role: self.role,
            parent_id: self.parent_id,
            idempotency_key: self.idempotency_key,
            created_at_ms: self.created_at_ms,
            text: self.text,
            event_json: self.event_json,
        };
        (self.seq, event)
    }
}

/// The line as it is written, its end included.
pub(super) fn line(line: &Line) -> String {
    // Plain texts and whole numbers: nothing that JSON could not hold.
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}
