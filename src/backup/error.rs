//! Why a backup, a verification or a restore failed.

use std::path::PathBuf;

use super::seal::Encryption;
use crate::db::{DbError, OpenError};
use crate::fs::FsError;
use crate::model::{AgentId, ErrorKind};

/// A failed backup, verification or restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// There is no archive of that name.
    #[error("no archive at {}", .path.display())]
    NoArchive {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The archive is encrypted, and nothing of the kind that opens it was given.
    #[error("{} is encrypted: {}", .archive.display(), match .encryption {
        Encryption::Recipients => "an identity opens it",
        Encryption::Passphrase => "its passphrase opens it",
    })]
    Encrypted {
        /// The archive.
        archive: PathBuf,
        /// How it is encrypted.
        encryption: Encryption,
    },
    /// The archive is encrypted to other keys, or with another passphrase.
    #[error("the key that was given does not open {}", .archive.display())]
    WrongKey {
        /// The archive.
        archive: PathBuf,
    },
    /// A recipient, an identity or a passphrase cannot be used. Never says what it is, only where.
    #[error("{place}: {reason}")]
    BadKey {
        /// The option, or the file and line.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The archive is not what it should be.
    #[error("{} is damaged: {member}: {reason}", .archive.display())]
    Damaged {
        /// The archive.
        archive: PathBuf,
        /// The item that is wrong, by its path in the archive.
        member: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The archive, or a database in it, was written by a newer release.
    #[error(
        "{}: {member} has version {found} (written by release {release}), this release knows {known}",
        .archive.display()
    )]
    Newer {
        /// The archive.
        archive: PathBuf,
        /// The item that is newer, by its path in the archive.
        member: String,
        /// Its version.
        found: i64,
        /// The newest version this release knows.
        known: i64,
        /// The release that wrote the archive.
        release: String,
    },
    /// A restore was asked for without consent.
    #[error("restoring would replace files in {}", .target.display())]
    NeedsYes {
        /// The archive.
        archive: PathBuf,
        /// The root it would be restored to.
        target: PathBuf,
        /// The one agent, if not all.
        agent: Option<AgentId>,
    },
    /// Retention was asked for without a rule.
    #[error("no rule says which archives to keep, so none is deleted")]
    NoRule,
    /// The place for the work has too little room.
    #[error("{} has {free} bytes free, {needed} are needed", .path.display())]
    NoSpace {
        /// The place.
        path: PathBuf,
        /// Bytes needed at least.
        needed: u64,
        /// Bytes there are.
        free: u64,
    },
    /// Something of that name is there already.
    #[error("{} exists already", .path.display())]
    Exists {
        /// What would be overwritten.
        path: PathBuf,
    },
    /// The folder for the archive does not exist.
    #[error("no folder {}", .path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A database of the root is damaged, so no backup of it would be good.
    #[error("the database of {tier} is damaged: {}", .lines.join("; "))]
    DamagedSource {
        /// `global` or `agent <id>`.
        tier: String,
        /// What the checks found.
        lines: Vec<String>,
    },
    /// What an archive without secrets may not hold was still there after it was taken out.
    #[error("{tier}: {rows} rows of {table} still hold what was to be left out")]
    Unscrubbed {
        /// `global` or `agent <id>`.
        tier: String,
        /// The table.
        table: &'static str,
        /// Rows.
        rows: i64,
    },
    /// An agent is registered, and its database is gone.
    #[error("agent {agent} is registered, but there is no database at {}", .path.display())]
    MissingAgent {
        /// The agent.
        agent: String,
        /// Where its database should be.
        path: PathBuf,
    },
    /// The registry names a path outside the root.
    #[error("agent {agent} is registered with the path {path:?}, which leads out of the root")]
    StrayAgent {
        /// The agent.
        agent: String,
        /// The path as registered.
        path: String,
    },
    /// Agents were made and deleted all the while.
    #[error("agents kept changing while the backup began ({tries} tries)")]
    AgentsChanging {
        /// How often it was tried.
        tries: usize,
    },
    /// All databases are open at once while the instant is taken, and the system allows fewer files.
    #[error(
        "{databases} databases at one instant need {needed} open files, this process may have {limit}"
    )]
    FewFiles {
        /// Databases of the root.
        databases: usize,
        /// Files needed.
        needed: u64,
        /// Files allowed.
        limit: u64,
    },
    /// The archive does not hold the agent asked for.
    #[error("{} does not hold agent {agent}", .archive.display())]
    NoAgent {
        /// The archive.
        archive: PathBuf,
        /// The agent.
        agent: AgentId,
    },
    /// The archive is of one agent, and a whole root was to be restored.
    #[error("{} holds agent {agent} alone, not a root", .archive.display())]
    OneAgent {
        /// The archive.
        archive: PathBuf,
        /// The agent.
        agent: AgentId,
    },
    /// One agent can only be restored into an existing root.
    #[error("no state in {}", .target.display())]
    NotInitialised {
        /// The root.
        target: PathBuf,
    },
    /// A folder of the root is a link: following it would write somewhere else.
    #[error("{} is a link, and restoring would follow it out of the root", .path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The journal of a restore that was cut off cannot be read.
    #[error("the journal of an unfinished restore cannot be read: {}: {reason}", .path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A background task was lost.
    #[error("a background task stopped")]
    Stopped,
    /// A database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A database could not be read or written.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl BackupError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoArchive { .. } | Self::NoFolder { .. } | Self::NoAgent { .. } => {
                ErrorKind::NotFound
            }
            Self::Encrypted { .. } | Self::WrongKey { .. } | Self::BadKey { .. } => {
                ErrorKind::Usage
            }
            Self::Damaged { .. }
            | Self::DamagedSource { .. }
            | Self::MissingAgent { .. }
            | Self::StrayAgent { .. }
            | Self::Journal { .. } => ErrorKind::Damaged,
            Self::Newer { .. } => ErrorKind::NewerSchema,
            Self::NeedsYes { .. }
            | Self::NoRule
            | Self::Exists { .. }
            | Self::OneAgent { .. }
            | Self::Link { .. } => ErrorKind::Refused,
            Self::NoSpace { .. } | Self::FewFiles { .. } => ErrorKind::NoSpace,
            Self::AgentsChanging { .. } => ErrorKind::Busy,
            Self::NotInitialised { .. } => ErrorKind::NotInitialised,
            Self::Stopped | Self::Unscrubbed { .. } => ErrorKind::Internal,
            Self::Open(error) => error.failure(),
            Self::Db(error) => error.kind().into(),
            Self::Fs(error) => error.kind().into(),
        }
    }

    /// What the operator can do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoArchive { .. } => "`zeroclaw backup list` shows the archives that were made",
            Self::Encrypted { encryption, .. } => match encryption {
                Encryption::Recipients => "name the file of the identity: `--identity FILE`",
                Encryption::Passphrase => {
                    "name a file with the passphrase: `--passphrase-file FILE`, or `-` for standard input"
                }
            },
            Self::WrongKey { .. } => {
                "nothing was changed; give the key it was made for (a damaged header can look like a wrong key)"
            }
            Self::Damaged { .. } => {
                "nothing was changed; take another archive: `zeroclaw backup list`"
            }
            Self::Newer { .. } => {
                "update zeroclaw, or take an archive made by this release; nothing was changed"
            }
            Self::NeedsYes {
                archive,
                target,
                agent,
            } => return Some(consent(archive, target, agent.as_ref())),
            Self::NoRule => {
                "say what to keep, for example --keep-last 7 --keep-weekly 8; 0 switches a rule off"
            }
            Self::NoSpace { .. } => {
                "make room, or choose another place: --output for an archive, TMPDIR for a verification"
            }
            Self::Exists { .. } => "choose another name; an archive is never overwritten",
            Self::NoFolder { .. } => "make the folder first, or name another one",
            Self::DamagedSource { .. } | Self::MissingAgent { .. } => {
                "restore it from an earlier archive: `zeroclaw backup list`"
            }
            Self::AgentsChanging { .. } => "try again when no agent is being made or deleted",
            Self::FewFiles { needed, .. } => {
                return Some(format!("allow more in this shell: `ulimit -n {needed}`"));
            }
            Self::NoAgent { .. } => {
                "`zeroclaw backup verify ARCHIVE` shows which agents an archive holds"
            }
            Self::OneAgent { archive, .. } => {
                return Some(format!(
                    "`zeroclaw agents import '{}'` takes it into this root",
                    archive.display()
                ));
            }
            Self::NotInitialised { .. } => {
                "restore the whole archive, or run `zeroclaw init` first"
            }
            Self::Link { .. } => "replace the link by a folder, or restore to another root",
            Self::Open(error) => return error.hint().map(str::to_owned),
            Self::StrayAgent { .. }
            | Self::Journal { .. }
            | Self::BadKey { .. }
            | Self::Stopped
            | Self::Unscrubbed { .. }
            | Self::Db(_)
            | Self::Fs(_) => {
                return None;
            }
        };
        Some(text.to_owned())
    }
}

/// The command that would do it.
fn consent(archive: &std::path::Path, target: &std::path::Path, agent: Option<&AgentId>) -> String {
    let agent = agent.map(|id| format!(" --agent {id}")).unwrap_or_default();
    let command = format!(
        "zeroclaw backup restore '{}' --target '{}'{agent}",
        archive.display(),
        target.display()
    );
    format!("`{command} --dry-run` shows what, `{command} --yes` does it")
}
