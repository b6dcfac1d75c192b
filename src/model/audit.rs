//! What was done to memories, and by whom.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// One thing done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEvent {
    /// Identity.
    pub event_id: String,
    /// What kind of thing it is about.
    pub subject: String,
    /// What was done, in its writer's word.
    pub operation: String,
    /// Key of what it was done to.
    pub subject_key: Option<String>,
    /// Namespace of that.
    pub namespace: Option<String>,
    /// The session it was done in, as its writer knew it.
    pub session_hint: Option<String>,
    /// Who did it.
    pub agent_id: Option<AgentId>,
    /// When.
    pub at_ms: i64,
    /// The same as its writer wrote it.
    pub at_text: Option<String>,
    /// What else its writer says.
    pub metadata: Option<String>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}
