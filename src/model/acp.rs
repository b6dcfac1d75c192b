//! Sessions of programs that speak the Agent Client Protocol.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// Whether a client may go on with its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AcpState {
    /// It may.
    Open,
    /// A tombstone: never resumed.
    Ended,
}

text_enum!(AcpState { Open => "open", Ended => "ended" });

/// What is known of a client's session beside its transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcpSession {
    /// Owner.
    pub agent_id: AgentId,
    /// Identity within its agent, as the client knows it.
    pub session_id: String,
    /// Route of the session in its agent's tier.
    pub session_key: String,
    /// The client's working folder as it named it; text, never resolved.
    pub cwd: String,
    /// Whether it may go on.
    pub state: AcpState,
    /// A counter of its origin, no billing data.
    pub token_count: i64,
    /// When it was made.
    pub created_at_ms: i64,
    /// When the client last used it.
    pub last_activity_at_ms: i64,
    /// When it ended; `None` while open.
    pub ended_at_ms: Option<i64>,
}
