//! Events of a transcript.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// An event to be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    /// Identity within its session.
    pub event_id: String,
    /// `message` for what somebody said; any other type is kept as it came.
    pub event_type: String,
    /// Who spoke; `None` for events that are no message.
    pub role: Option<String>,
    /// Event this one follows; `None` for a first or an unchained one.
    pub parent_id: Option<String>,
    /// Caller's key for a repeated append.
    pub idempotency_key: Option<String>,
    /// When it happened.
    pub created_at_ms: i64,
    /// Readable text; empty where there is none.
    pub text: String,
    /// The whole event as JSON text where the fields above do not say it all.
    pub event_json: Option<String>,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Place in its session, from 1, gaps allowed.
    pub seq: i64,
    /// Identity within its session.
    pub event_id: String,
    /// `message` or another type.
    pub event_type: String,
    /// Who spoke; `None` for events that are no message.
    pub role: Option<String>,
    /// Event this one follows.
    pub parent_id: Option<String>,
    /// When it happened.
    pub created_at_ms: i64,
    /// Readable text.
    pub text: String,
    /// The whole event as JSON text where the fields above do not say it all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_json: Option<String>,
    /// True sizes, where a page left some of it out; `None` where all is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutEvent>,
}

/// True sizes of an event of which a page shows a part: see [`Payloads::Bounded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutEvent {
    /// Bytes of the text.
    pub text_bytes: i64,
    /// Bytes of the JSON; `None` where there is none.
    pub json_bytes: Option<i64>,
}

/// Characters of a long text that a bounded page shows.
pub const PREVIEW_CHARS: i64 = 16_384;
/// JSON of more bytes than this is not on a bounded page.
pub const BOUNDED_JSON_BYTES: i64 = 65_536;
/// A text of more bytes than this is not on a bounded page, not even its beginning: to have that, SQLite reads it all.
pub const BOUNDED_TEXT_BYTES: i64 = 1_048_576;

/// How much of large events a page of a transcript holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payloads {
    /// Of a long text its first [`PREVIEW_CHARS`] characters; no JSON above [`BOUNDED_JSON_BYTES`] and no text above
    /// [`BOUNDED_TEXT_BYTES`], neither of which is read then. [`Event::cut`] has the true sizes.
    #[default]
    Bounded,
    /// Everything, whatever its size.
    Whole,
}

/// An event that matched a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchHit {
    /// Owner of the session.
    pub agent_id: AgentId,
    /// Session it was said in.
    pub session_id: String,
    /// Route of that session.
    pub session_key: String,
    /// Title of that session.
    pub display_name: Option<String>,
    /// Place in the session.
    pub seq: i64,
    /// Who spoke.
    pub role: Option<String>,
    /// When.
    pub created_at_ms: i64,
    /// The words around the match, matches between `[` and `]`.
    pub snippet: String,
    /// bm25 of SQLite's FTS5: the lower, the better.
    pub rank: f64,
}

/// Which events of a transcript, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptOrder {
    /// Those that lead to where the conversation stands.
    #[default]
    Branch,
    /// All, in the order they were accepted.
    Accepted,
}

/// Where a page of a transcript begins or ends. Places are those of events, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptCursor {
    /// The last events.
    #[default]
    Newest,
    /// The last events before this place.
    Before(i64),
    /// The first events behind this place; 0 for the first of all.
    After(i64),
}

/// A place of a transcript to go back to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Identity within its session.
    pub snapshot_id: String,
    /// `compaction`, or why somebody made it.
    pub reason: String,
    /// Place of the event the conversation stood at; 0 before the first.
    pub seq: i64,
    /// Events of the branch up to there.
    pub event_count: i64,
    /// When it was made.
    pub created_at_ms: i64,
    /// What its maker noted, as JSON text.
    pub metadata_json: Option<String>,
}
