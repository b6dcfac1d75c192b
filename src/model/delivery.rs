//! Messages on their way through channels.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// Waits for its time.
    Pending,
    /// A process has it.
    Sending,
    /// It may have been sent, and nobody knows: not sent again by itself.
    Unknown,
    /// Given to the channel, which took it.
    Sent,
    /// Will not be sent, unless a person says so.
    Dead,
}

text_enum!(DeliveryStatus {
    Pending => "pending",
    Sending => "sending",
    Unknown => "unknown",
    Sent => "sent",
    Dead => "dead",
});

impl DeliveryStatus {
    /// Every form, for help.
    pub const WORDS: &'static [&'static str] = &["pending", "sending", "unknown", "sent", "dead"];
}

/// Why a message will not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadReason {
    /// The channel will never take it.
    Permanent,
    /// It failed as often as it may.
    Exhausted,
    /// It is too old.
    Expired,
    /// Somebody decided so.
    GivenUp,
}

text_enum!(DeadReason {
    Permanent => "permanent",
    Exhausted => "exhausted",
    Expired => "expired",
    GivenUp => "given_up",
});

/// Where a message goes, and on whose behalf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRoute {
    /// The channel, as the configuration names it.
    pub channel: String,
    /// Which account of the channel; `None` for its only one.
    pub account_id: Option<String>,
    /// Whom the channel is to give it to, in its own form.
    pub target: String,
    /// The thread at the target.
    pub thread_id: Option<String>,
    /// The agent that speaks.
    pub agent_id: Option<AgentId>,
    /// The session it belongs to.
    pub session_key: Option<String>,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewDelivery {
    /// Where it goes.
    pub route: DeliveryRoute,
    /// What it is, in its writer's word.
    pub entry_kind: Option<String>,
    /// What is to be sent, JSON text that the channel understands.
    pub entry_json: String,
    /// The same key is the same message: enqueued again, it is not sent again.
    pub idempotency_key: Option<String>,
    /// The task whose end it tells: it counts as told once this is sent.
    pub task_id: Option<String>,
    /// Whether it may be sent again where nobody knows if it was: it may come twice then.
    pub may_resend: bool,
    /// Failed attempts after the first that it may have.
    pub max_retries: i64,
    /// Older than this it is not sent any more.
    pub max_age_ms: i64,
}

impl NewDelivery {
    /// Failed attempts after the first, unless its writer says otherwise: with the pauses between them, half a day.
    pub const MAX_RETRIES: i64 = 24;
    /// How old it may become, unless its writer says otherwise: a day. What is older surprises who gets it.
    pub const MAX_AGE_MS: i64 = 24 * 60 * 60 * 1_000;

    /// A message that is sent at most once.
    #[must_use]
    pub fn new(route: DeliveryRoute, entry_json: impl Into<String>) -> Self {
        Self {
            route,
            entry_kind: None,
            entry_json: entry_json.into(),
            idempotency_key: None,
            task_id: None,
            may_resend: false,
            max_retries: Self::MAX_RETRIES,
            max_age_ms: Self::MAX_AGE_MS,
        }
    }

    /// The same under a key.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

/// A message in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryEntry {
    /// Identity; sorts by time.
    pub id: String,
    /// The queue it is in.
    pub queue_name: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Why it will not be sent, where it is dead.
    pub dead_reason: Option<DeadReason>,
    /// What it is, in its writer's word.
    pub entry_kind: Option<String>,
    /// Where it goes.
    #[serde(flatten)]
    pub route: DeliveryRoute,
    /// The task whose end it tells.
    pub task_id: Option<String>,
    /// The same key is the same message.
    pub idempotency_key: Option<String>,
    /// What is to be sent, JSON text; `None` in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_json: Option<String>,
    /// Whether it may come twice.
    pub may_resend: bool,
    /// Attempts that failed.
    pub retry_count: i64,
    /// How many may fail after the first.
    pub max_retries: i64,
    /// Not before.
    pub next_attempt_at_ms: i64,
    /// Not from here on.
    pub expires_at_ms: i64,
    /// When a process took it; `None` while none has it.
    pub claimed_at_ms: Option<i64>,
    /// When the channel began to send; `None` while nothing can have left.
    pub platform_send_started_at_ms: Option<i64>,
    /// The channel's own id of what it sent.
    pub platform_message_id: Option<String>,
    /// When it was last tried.
    pub last_attempt_at_ms: Option<i64>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// Since when it is here.
    pub enqueued_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// When it was sent.
    pub sent_at_ms: Option<i64>,
    /// When it became dead or unknown.
    pub failed_at_ms: Option<i64>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}
