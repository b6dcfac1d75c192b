//! What an agent has promised or noticed, to come back to in its time.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// Where a commitment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitmentStatus {
    /// Waits for its window, or is in it.
    Pending,
    /// Put off until a time.
    Snoozed,
    /// Kept.
    Sent,
    /// Dropped by somebody.
    Dismissed,
    /// Its window has closed.
    Expired,
}

text_enum!(CommitmentStatus {
    Pending => "pending",
    Snoozed => "snoozed",
    Sent => "sent",
    Dismissed => "dismissed",
    Expired => "expired",
});

impl CommitmentStatus {
    /// Every form, for help.
    pub const WORDS: &'static [&'static str] =
        &["pending", "snoozed", "sent", "dismissed", "expired"];

    /// Whether it can still become due.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Snoozed)
    }
}

/// A commitment to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewCommitment {
    /// Who comes back.
    pub agent_id: AgentId,
    /// The conversation it belongs to.
    pub session_key: String,
    /// Through which channel.
    pub channel: String,
    /// Which account of the channel; `None` for its only one.
    pub account_id: Option<String>,
    /// Whom to come back to, in the channel's own form.
    pub recipient_id: Option<String>,
    /// The thread there.
    pub thread_id: Option<String>,
    /// Who said what it comes from.
    pub sender_id: Option<String>,
    /// What it is, in its writer's word.
    pub kind: String,
    /// How private it is, in its writer's word.
    pub sensitivity: String,
    /// Where it comes from, in its writer's word.
    pub source: String,
    /// Why.
    pub reason: String,
    /// What might be said.
    pub suggested_text: String,
    /// Of the living ones of one conversation no two have the same.
    pub dedupe_key: String,
    /// How sure its writer is, 0 to 1.
    pub confidence: f64,
    /// The window's begin.
    pub due_earliest_ms: i64,
    /// The window's end, itself within.
    pub due_latest_ms: i64,
    /// The zone the window was meant in, by its IANA name.
    pub due_timezone: String,
    /// The message it comes from.
    pub source_message_id: Option<String>,
    /// The run it comes from.
    pub source_run_id: Option<String>,
}

/// A commitment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Commitment {
    /// Identity; sorts by time.
    pub id: String,
    /// Where it stands.
    pub status: CommitmentStatus,
    /// What was committed to.
    #[serde(flatten)]
    pub what: NewCommitment,
    /// When it was made.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// How often it was tried to keep it.
    pub attempts: i64,
    /// When that was last.
    pub last_attempt_at_ms: Option<i64>,
    /// When it was kept.
    pub sent_at_ms: Option<i64>,
    /// When it was dropped.
    pub dismissed_at_ms: Option<i64>,
    /// Until when it was put off.
    pub snoozed_until_ms: Option<i64>,
    /// When its window was found closed.
    pub expired_at_ms: Option<i64>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}
