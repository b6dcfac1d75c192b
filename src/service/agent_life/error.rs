//! Why an agent's life was left as it is.

use crate::model::{AgentId, ErrorKind};

/// A step of an agent's life that was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LifeError {
    /// Something under way needs the agent.
    #[error("agent {agent} is in use: {by}")]
    InUse {
        /// The agent.
        agent: AgentId,
        /// What needs it, and who has that in hand.
        by: String,
        /// What ends it.
        hint: String,
    },
    /// Its folder cannot be moved or removed as a whole.
    #[error("agent {agent} lies in an odd place: {reason}")]
    OddPlace {
        /// The agent.
        agent: AgentId,
        /// What is odd.
        reason: String,
    },
    /// The agent is kept for its history.
    #[error("agent {agent} is retired: it is searched, and never runs")]
    Retired {
        /// The agent.
        agent: AgentId,
    },
}

impl LifeError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::InUse { .. } => ErrorKind::Busy,
            Self::Retired { .. } | Self::OddPlace { .. } => ErrorKind::Refused,
        }
    }

    /// What the operator can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::InUse { hint, .. } => hint.clone(),
            Self::OddPlace { .. } => {
                "a folder `agents/ID` of the root's own filesystem can be moved; `agents export` and `import` move what is in it"
                    .to_owned()
            }
            Self::Retired { agent } => {
                format!("`zeroclaw agents activate {agent}` takes it into service again")
            }
        }
    }
}
