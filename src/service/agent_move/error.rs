//! Why an agent was not moved.

use std::path::{Path, PathBuf};

use crate::model::{AgentId, ErrorKind};

/// A move that was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// There is such an agent, or what is left of one.
    #[error("there is an agent {name} already: {}", .path.display())]
    Taken {
        /// The name.
        name: AgentId,
        /// Its database.
        path: PathBuf,
    },
    /// An import was asked for without consent.
    #[error("{} would write to {}", if *.is_restore { "restoring" } else { "importing" }, .target.display())]
    NeedsYes {
        /// The archive.
        archive: PathBuf,
        /// The root.
        target: PathBuf,
        /// The agent, if it was said.
        agent: Option<AgentId>,
        /// The new name, if it was said.
        name: Option<AgentId>,
        /// Whether everything of a deleted agent was to come back.
        is_restore: bool,
    },
    /// The archive is of no whole agent.
    #[error("{} is no archive of a deleted agent", .archive.display())]
    NotWhole {
        /// The archive.
        archive: PathBuf,
    },
    /// The archive holds a whole root.
    #[error("{} holds a whole root, and it is not said which agent is meant", .archive.display())]
    WhichAgent {
        /// The archive.
        archive: PathBuf,
        /// The agents in it.
        agents: Vec<AgentId>,
    },
}

impl MoveError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Taken { .. } | Self::NeedsYes { .. } => ErrorKind::Refused,
            Self::WhichAgent { .. } | Self::NotWhole { .. } => ErrorKind::Usage,
        }
    }

    /// What the operator can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Taken { .. } => {
                "`--as NEW` takes it in under another name; an import never merges".to_owned()
            }
            Self::NeedsYes {
                archive,
                target,
                agent,
                name,
                is_restore,
            } => {
                let verb = if *is_restore { "restore" } else { "import" };
                consent(verb, archive, target, agent.as_ref(), name.as_ref())
            }
            Self::NotWhole { .. } => {
                "`zeroclaw agents import ARCHIVE` takes an agent out of an export or a backup"
                    .to_owned()
            }
            Self::WhichAgent { agents, .. } => {
                let names: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
                format!("name it with `--agent ID`; there are {}", names.join(", "))
            }
        }
    }
}

/// The command that would do it.
fn consent(
    verb: &str,
    archive: &Path,
    target: &Path,
    agent: Option<&AgentId>,
    name: Option<&AgentId>,
) -> String {
    let flag =
        |flag: &str, id: Option<&AgentId>| id.map(|id| format!(" {flag} {id}")).unwrap_or_default();
    let command = format!(
        "zeroclaw --config-dir '{}' agents {verb} '{}'{}{}",
        target.display(),
        archive.display(),
        flag("--agent", agent),
        flag("--as", name),
    );
    format!("`{command} --dry-run` shows what, `{command} --yes` does it")
}
