//! Which database a row lives in.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// One of the two kinds of database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The control plane, one a root.
    Global,
    /// The data plane of one agent.
    Agent(AgentId),
}

impl Tier {
    /// The role written in the database's own `schema_meta`.
    #[must_use]
    pub fn role(&self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Agent(_) => "agent",
        }
    }

    /// The owner, for an agent's tier.
    #[must_use]
    pub fn agent_id(&self) -> Option<&AgentId> {
        match self {
            Self::Global => None,
            Self::Agent(id) => Some(id),
        }
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Agent(id) => write!(f, "agent {id}"),
        }
    }
}
