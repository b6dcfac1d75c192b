//! What is appended to a transcript, and what comes of it.

use serde::{Deserialize, Serialize};

use super::{ChatType, SessionScope};

/// Most events of one append.
pub const MAX_APPEND_EVENTS: usize = 500;

/// Most bytes of text and JSON of one append.
pub const MAX_APPEND_BYTES: usize = 256 * 1024 * 1024;

/// Which session is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionTarget {
    /// The session of this id.
    Id(String),
    /// The session that this key leads to now.
    Key(String),
}

impl From<&SessionTarget> for String {
    fn from(target: &SessionTarget) -> Self {
        match target {
            SessionTarget::Id(text) | SessionTarget::Key(text) => text.clone(),
        }
    }
}

/// Who a session talks with, typed; the same five values are always the same conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationAddress {
    /// Channel type, for example `telegram`.
    pub channel: String,
    /// Account on that channel, for example `main`.
    pub account_id: String,
    /// Direct, group or channel.
    pub kind: ChatType,
    /// Who is on the other side, in the channel's own terms.
    pub peer_id: String,
    /// Thread within it, where the channel has threads.
    pub thread_id: Option<String>,
}

/// What a session is made with, if it is not there yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionHeader {
    /// Route that leads to it; `None` for the target's key, or for its id where it is named by that.
    pub session_key: Option<String>,
    /// What it spans.
    pub session_scope: SessionScope,
    /// Its primary conversation. Channel, account and kind of chat follow from it.
    pub conversation: Option<ConversationAddress>,
    /// Title.
    pub display_name: Option<String>,
    /// Provider of its model.
    pub model_provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
}

/// An event as a caller hands it over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppendEvent {
    /// Identity within its session; `None` for a new one.
    #[serde(default)]
    pub event_id: Option<String>,
    /// `message` for what somebody said; any other type is kept as it is.
    pub event_type: String,
    /// Who spoke; `None` for events that are no message.
    #[serde(default)]
    pub role: Option<String>,
    /// When it happened; `None` for now.
    #[serde(default)]
    pub created_at_ms: Option<i64>,
    /// Readable text, the searchable part; empty where there is none.
    #[serde(default)]
    pub text: String,
    /// The whole event as JSON text where the fields above do not say it all.
    #[serde(default)]
    pub event_json: Option<String>,
}

impl AppendEvent {
    /// A message said now.
    pub fn message(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            event_id: None,
            event_type: "message".to_owned(),
            role: Some(role.into()),
            created_at_ms: None,
            text: text.into(),
            event_json: None,
        }
    }

    /// Bytes of its text and JSON.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.event_json.as_ref().map_or(0, String::len)
    }
}

/// A place in a transcript that a conversation can stand at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before its first event.
    Start,
    /// This event.
    Event(String),
}

/// Events for one session, all or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Append {
    /// Where they go; a session that is not there is made.
    pub session: SessionTarget,
    /// What it is made with.
    #[serde(default)]
    pub header: SessionHeader,
    /// The events in order, 1 to [`MAX_APPEND_EVENTS`]; each follows the one before.
    pub events: Vec<AppendEvent>,
    /// A repeat with the same key appends nothing and gives the first result.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// Append only if the conversation stands there.
    #[serde(default)]
    pub expected_parent: Option<Place>,
}

impl Append {
    /// Events without any condition.
    #[must_use]
    pub fn new(session: SessionTarget, events: Vec<AppendEvent>) -> Self {
        Self {
            session,
            header: SessionHeader::default(),
            events,
            idempotency_key: None,
            expected_parent: None,
        }
    }

    /// Makes a repeat harmless.
    #[must_use]
    pub fn with_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Says what the conversation must stand at.
    #[must_use]
    pub fn after(mut self, parent: Place) -> Self {
        self.expected_parent = Some(parent);
        self
    }

    /// Says what a session is made with that is not there yet.
    #[must_use]
    pub fn with_header(mut self, header: SessionHeader) -> Self {
        self.header = header;
        self
    }
}

/// The place of an appended event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventPlace {
    /// Place in its session.
    pub seq: i64,
    /// Identity within its session.
    pub event_id: String,
}

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appended {
    /// The session they went to.
    pub session_id: String,
    /// The events in order; of a repeat, those of the first time that are still there.
    pub events: Vec<EventPlace>,
    /// Whether the session was made by this.
    pub is_new_session: bool,
    /// Whether the key was known, so that nothing was appended now.
    pub is_repeat: bool,
}
