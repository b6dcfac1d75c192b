//! What runtimes did and told, event by event, beside what was said.

use serde::{Deserialize, Serialize};

/// One step of a runtime in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrajectoryEvent {
    /// Its session.
    pub session_id: String,
    /// Place in its session, from 1.
    pub seq: i64,
    /// Run it belongs to, where there is one.
    pub run_id: Option<String>,
    /// When it was stored.
    pub created_at_ms: i64,
    /// What happened, JSON text.
    pub event_json: String,
}

/// One message of an ACP child to its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentStreamEvent {
    /// The parent's session.
    pub session_id: String,
    /// The child's run.
    pub run_id: String,
    /// Place in its run, from 1.
    pub seq: i64,
    /// When it was stored.
    pub created_at_ms: i64,
    /// What it told, JSON text.
    pub event_json: String,
}

/// Places that an append was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSpan {
    /// Of the first event.
    pub first_seq: i64,
    /// Of the last one.
    pub last_seq: i64,
}
