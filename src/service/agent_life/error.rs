//! Why an agent's life was left as it is.

use std::path::PathBuf;

use crate::model::{AgentId, ErrorKind};

/// Files that an error names.
const MAX_TOLD: usize = 5;

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
    /// A deletion was asked for without consent.
    #[error("deleting agent {agent} takes {rows} rows and {files} files out of the root")]
    NeedsYes {
        /// The agent.
        agent: AgentId,
        /// Rows of the control plane.
        rows: i64,
        /// Files, its database among them.
        files: usize,
    },
    /// Something of its folder would be in no archive.
    #[error("{} of agent {agent} cannot go into the archive: {}", .left_out.len(), told(.left_out))]
    LeftBehind {
        /// The agent.
        agent: AgentId,
        /// What it is.
        left_out: Vec<String>,
    },
    /// The archive does not hold what was to be deleted.
    #[error("{} does not hold all {table} of agent {agent}", .archive.display())]
    Unproved {
        /// The agent.
        agent: AgentId,
        /// The archive.
        archive: PathBuf,
        /// The table.
        table: String,
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
            Self::Unproved { .. } => ErrorKind::Damaged,
            _ => ErrorKind::Refused,
        }
    }

    /// What the operator can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::InUse { hint, .. } => hint.clone(),
            Self::NeedsYes { agent, .. } => format!(
                "`zeroclaw agents delete {agent} --dry-run` shows what, `--yes` does it; an archive is made first, and \
                 `agents restore` brings all of it back"
            ),
            Self::LeftBehind { .. } => {
                "move it away, or give it up with `--drop-unarchived`".to_owned()
            }
            Self::Unproved { .. } => "nothing was deleted; try again".to_owned(),
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

/// The first few of a list.
fn told(list: &[String]) -> String {
    let mut told = list[..list.len().min(MAX_TOLD)].join(", ");
    if list.len() > MAX_TOLD {
        told.push_str(", …");
    }
    told
}
