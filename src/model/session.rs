//! Sessions and the conversations they belong to.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// What a session spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionScope {
    /// One conversation.
    #[default]
    Conversation,
    /// The agent's shared main session.
    SharedMain,
    /// A group chat.
    Group,
    /// A channel.
    Channel,
}

text_enum!(SessionScope {
    Conversation => "conversation",
    SharedMain => "shared-main",
    Group => "group",
    Channel => "channel",
});

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Waiting for the next turn.
    Idle,
    /// A turn is under way.
    Running,
    /// Ended well.
    Done,
    /// Its last turn failed.
    Failed,
    /// Ended by somebody.
    Killed,
    /// Its last turn took too long.
    Timeout,
    /// Its turn's owner died.
    Interrupted,
}

text_enum!(SessionStatus {
    Idle => "idle",
    Running => "running",
    Done => "done",
    Failed => "failed",
    Killed => "killed",
    Timeout => "timeout",
    Interrupted => "interrupted",
});

/// Kind of chat a session serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatType {
    /// Between two.
    Direct,
    /// A closed group.
    Group,
    /// A channel.
    Channel,
}

text_enum!(ChatType { Direct => "direct", Group => "group", Channel => "channel" });

/// Kind of a conversation; the same three as [`ChatType`].
pub type ConversationKind = ChatType;

/// A session without its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Owner.
    pub agent_id: AgentId,
    /// Identity within its agent.
    pub session_id: String,
    /// Route it was made under, opaque.
    pub session_key: String,
    /// What it spans.
    pub session_scope: SessionScope,
    /// Where it stands.
    pub status: SessionStatus,
    /// Kind of chat, where known.
    pub chat_type: Option<ChatType>,
    /// Channel it came through, where known.
    pub channel: Option<String>,
    /// Account on that channel.
    pub account_id: Option<String>,
    /// Its primary conversation.
    pub primary_conversation_id: Option<String>,
    /// Title given by a person.
    pub display_name: Option<String>,
    /// Provider of the model that last spoke.
    pub model_provider: Option<String>,
    /// Model that last spoke.
    pub model: Option<String>,
    /// Events, of all types.
    pub event_count: i64,
    /// Events with a role.
    pub message_count: i64,
    /// When it was made.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// When it was archived; `None` while it is not.
    pub archived_at_ms: Option<i64>,
    /// Whether its times stand in for times its source did not have.
    pub has_synthetic_times: bool,
    /// Goes up with each change of the session itself, not with its events.
    pub revision: i64,
    /// Since when it is kept for ever; `None` while it is not.
    pub pinned_at_ms: Option<i64>,
    /// Session it was copied from.
    pub forked_from: Option<String>,
}

impl SessionRecord {
    /// A session without events and without anything known of it.
    pub fn new(
        agent_id: AgentId,
        session_id: impl Into<String>,
        session_key: impl Into<String>,
        at_ms: i64,
    ) -> Self {
        Self {
            agent_id,
            session_id: session_id.into(),
            session_key: session_key.into(),
            session_scope: SessionScope::default(),
            status: SessionStatus::Idle,
            chat_type: None,
            channel: None,
            account_id: None,
            primary_conversation_id: None,
            display_name: None,
            model_provider: None,
            model: None,
            event_count: 0,
            message_count: 0,
            created_at_ms: at_ms,
            updated_at_ms: at_ms,
            archived_at_ms: None,
            has_synthetic_times: false,
            revision: 0,
            pinned_at_ms: None,
            forked_from: None,
        }
    }
}

/// Which session a key leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRoute {
    /// The key.
    pub session_key: String,
    /// The session.
    pub session_id: String,
    /// When it came to lead there.
    pub updated_at_ms: i64,
    /// What its origin said of the session beside, as JSON text.
    pub entry_json: Option<String>,
}

/// A conversation partner, typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Identity within its agent.
    pub conversation_id: String,
    /// Channel type, for example `telegram`.
    pub channel: String,
    /// Account on that channel, for example `main`.
    pub account_id: String,
    /// Direct, group or channel.
    pub kind: ConversationKind,
    /// Who is on the other side, in the channel's own terms.
    pub peer_id: String,
    /// Thread within it, where the channel has threads.
    pub thread_id: Option<String>,
    /// When it was first seen.
    pub created_at_ms: i64,
    /// When it was last seen.
    pub updated_at_ms: i64,
}

/// What to change of a session; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionPatch {
    /// Its title; `Some(None)` takes it away.
    #[serde(
        deserialize_with = "super::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub display_name: Option<Option<String>>,
    /// Provider of its model.
    #[serde(
        deserialize_with = "super::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub model_provider: Option<Option<String>>,
    /// Its model.
    #[serde(
        deserialize_with = "super::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<Option<String>>,
    /// Its state. `running` is not set by hand: a turn does that.
    pub status: Option<SessionStatus>,
    /// Whether it is archived.
    pub is_archived: Option<bool>,
    /// Whether it is kept for ever.
    pub is_pinned: Option<bool>,
}

/// A field that a patch wanted to change, and somebody else may have changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldConflict {
    /// Name of the field.
    pub field: String,
    /// What the patch wanted; `None` for nothing.
    pub wanted: Option<String>,
    /// What is there.
    pub found: Option<String>,
}
