//! Why a use case failed, and what kind of failure it is.

use std::path::PathBuf;

use crate::config::ConfigError;
use crate::db::{Db, DbError, DbErrorKind, OpenError, known_version};
use crate::fs::{FsError, LockError};
use crate::model::{ErrorKind, IdError};
use crate::store::StoreError;

/// A failed use case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is no root.
    #[error("no state in {}", .root.display())]
    NotInitialised {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Nothing has that name.
    #[error("no {what} {name:?}")]
    NotFound {
        /// Kind of thing.
        what: &'static str,
        /// Name it was asked by.
        name: String,
    },
    /// Several things have that name.
    #[error("{name:?} fits several {what}: {}", .candidates.join(", "))]
    Ambiguous {
        /// Kind of thing, in the plural.
        what: &'static str,
        /// Name it was asked by.
        name: String,
        /// Names that would do.
        candidates: Vec<String>,
    },
    /// What was given cannot be taken.
    #[error("{what} {reason}")]
    Invalid {
        /// What it is.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// It is not as the caller last saw it; nothing was changed.
    #[error("{what} {name:?} was expected {expected}, and is {found}")]
    Conflict {
        /// Kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// What the caller expected.
        expected: String,
        /// What is there.
        found: String,
    },
    /// There is something of that name already; it was left as it is.
    #[error("{what} {name:?} is there already: {}", .path.display())]
    Taken {
        /// Kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Somebody else's turn is under way in a session.
    #[error("session {session_id:?} is in a turn of {}", .owner.as_deref().unwrap_or("somebody who just ended it"))]
    TurnHeld {
        /// The session.
        session_id: String,
        /// Who holds the turn, where they still did when asked.
        owner: Option<String>,
    },
    /// Somebody who lives holds a lease.
    #[error("{scope} {key:?} is held by {owner}{}", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    LeaseHeld {
        /// Kind of thing.
        scope: String,
        /// The thing.
        key: String,
        /// Who holds it, in its own words.
        owner: String,
        /// Its process, where it said.
        pid: Option<u32>,
    },
    /// A plugin keeps as much as it may; nothing was written.
    #[error(
        "plugin {plugin_id:?} is full: it holds {used} of {most} {what}, and {wanted} more do not fit"
    )]
    PluginFull {
        /// The plugin.
        plugin_id: String,
        /// Which limit: `rows` or `bytes`.
        what: &'static str,
        /// What it holds of that.
        used: i64,
        /// What it may.
        most: i64,
        /// What the write needs on top.
        wanted: i64,
        /// The namespace that holds most of it.
        namespace: String,
    },
    /// A pairing code or secret opens nothing.
    #[error("this pairs nothing: it is wrong, used, or over")]
    NotPaired,
    /// There are too many of a kind already.
    #[error("there are too many {what} already")]
    TooMany {
        /// Kind of thing, in the plural.
        what: &'static str,
    },
    /// A session is protected from what was asked.
    #[error("session {session_id:?} {reason}")]
    Protected {
        /// The session.
        session_id: String,
        /// Why it is.
        reason: &'static str,
    },
    /// The bytes of an artifact are not those that were put.
    #[error(
        "artifact {artifact:?} of run {run_id:?} is damaged: its bytes have SHA-256 {found}, recorded was {recorded}"
    )]
    DamagedArtifact {
        /// The run.
        run_id: String,
        /// Its path or id within the run.
        artifact: String,
        /// SHA-256 recorded when it was put, hex.
        recorded: String,
        /// SHA-256 of the bytes that are there, hex.
        found: String,
    },
    /// A sink took no more bytes of an artifact.
    #[error("artifact {artifact:?} was not written")]
    Sink {
        /// Its path or id within its run.
        artifact: String,
        /// Why.
        source: std::io::Error,
    },
    /// A name is no agent id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A database could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Rows could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The root is held.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The configuration cannot be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A backup, verification or restore failed.
    #[error(transparent)]
    Backup(#[from] crate::backup::BackupError),
    /// An agent was not moved.
    #[error(transparent)]
    Move(#[from] super::agent_move::MoveError),
    /// An agent's life was left as it is.
    #[error(transparent)]
    Life(#[from] super::agent_life::LifeError),
    /// A file or folder was not read or changed.
    #[error(transparent)]
    Vfs(#[from] super::vfs::VfsError),
    /// A statement was not answered.
    #[error(transparent)]
    Query(#[from] crate::db::QueryError),
}

impl From<DbError> for ServiceError {
    fn from(error: DbError) -> Self {
        Self::Store(StoreError::Db(error))
    }
}

impl ServiceError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotInitialised { .. } => ErrorKind::NotInitialised,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Ambiguous { .. }
            | Self::Invalid { .. }
            | Self::Id(_)
            | Self::Store(StoreError::Cursor { .. }) => ErrorKind::Usage,
            Self::Open(error) => error.failure(),
            Self::Store(StoreError::Db(error)) => error.kind().into(),
            Self::Store(StoreError::Corrupt { .. }) | Self::DamagedArtifact { .. } => {
                ErrorKind::Damaged
            }
            Self::Sink { source, .. } => match source.kind() {
                std::io::ErrorKind::StorageFull => ErrorKind::NoSpace,
                _ => ErrorKind::Internal,
            },
            Self::Lock(LockError::Held { .. }) => ErrorKind::Busy,
            Self::Lock(LockError::Fs(error)) | Self::Fs(error) => error.kind().into(),
            Self::TurnHeld { .. } | Self::LeaseHeld { .. } | Self::TooMany { .. } => {
                ErrorKind::Busy
            }
            Self::Config(_)
            | Self::Conflict { .. }
            | Self::NotPaired
            | Self::PluginFull { .. }
            | Self::Protected { .. }
            | Self::Taken { .. } => ErrorKind::Refused,
            Self::Backup(error) => error.kind(),
            Self::Move(error) => error.kind(),
            Self::Life(error) => error.kind(),
            Self::Vfs(error) => error.kind(),
            Self::Query(error) => error.kind(),
        }
    }

    /// What the operator can do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotInitialised { .. } => Some(
                "run `zeroclaw init` for a fresh root, or `zeroclaw doctor` to see what could be imported".to_owned(),
            ),
            Self::Open(error) => error.hint().map(str::to_owned),
            Self::Lock(LockError::Held { holder: Some(holder), .. }) if holder.kind == "daemon" => {
                Some(format!("stop the daemon first: `kill {}`", holder.pid))
            }
            Self::Lock(LockError::Held { .. }) => Some("wait for it to finish, then try again".to_owned()),
            Self::NotFound { what: "job", .. } => Some("`zeroclaw cron list` shows the jobs".to_owned()),
            Self::NotFound { what: "agent", .. } => Some("`zeroclaw agents list` shows the names".to_owned()),
            Self::Taken { what: "agent", .. } => Some("take another name; `zeroclaw agents list` shows those in use".to_owned()),
            Self::NotFound { what: "session", .. } => Some("`zeroclaw sessions list` shows ids and keys".to_owned()),
            Self::Backup(error) => error.hint(),
            Self::Move(error) => Some(error.hint()),
            Self::Life(error) => Some(error.hint()),
            Self::LeaseHeld { owner, pid: Some(pid), .. } if owner == "daemon" => {
                Some(format!("stop the daemon first: `kill {pid}`"))
            }
            Self::LeaseHeld { .. } => Some("wait for it to finish, or end that process".to_owned()),
            Self::TurnHeld { .. } => Some("wait for the turn to end, or cancel it".to_owned()),
            Self::PluginFull { plugin_id, namespace, .. } => Some(format!(
                "`zeroclaw plugins clear {plugin_id} --namespace {namespace} --yes` frees what is kept there; \
                 `[state.plugins]` in config.toml sets the limit"
            )),
            Self::NotFound { what: "plugin", .. } => Some("`zeroclaw plugins list` shows the names".to_owned()),
            Self::Conflict { .. } => Some("read it again, then decide again".to_owned()),
            Self::DamagedArtifact { .. } => Some("restore the agent from a backup: `zeroclaw backup list --archives`".to_owned()),
            Self::Vfs(error) => error.hint().map(str::to_owned),
            Self::NotPaired => Some("`zeroclaw devices pair` gives a code".to_owned()),
            Self::NotFound { what: "request", .. } => Some("`zeroclaw devices requests` shows them".to_owned()),
            Self::NotFound { what: "request with code", .. } => Some("`zeroclaw channels requests` shows them".to_owned()),
            Self::NotFound { what: "device", .. } => Some("`zeroclaw devices list` shows the devices".to_owned()),
            Self::Query(error) => error.hint().map(str::to_owned),
            _ => None,
        }
    }
}

/// Names the database in a store's failure.
pub(super) trait InDb<T> {
    /// Says that the failure is `db`'s; and that it is of an older schema, where one that is only looked at lacks
    /// tables or columns that came later.
    fn in_db(self, db: &Db) -> Result<T, ServiceError>;
}

impl<T> InDb<T> for Result<T, StoreError> {
    fn in_db(self, db: &Db) -> Result<T, ServiceError> {
        self.map_err(|error| match &error {
            StoreError::Db(failed)
                if failed.kind() == DbErrorKind::Other
                    && db.version() < known_version(db.tier()) =>
            {
                OpenError::TooOld {
                    path: db.path().to_owned(),
                    found: db.version(),
                    known: known_version(db.tier()),
                }
                .into()
            }
            _ => error.at(db.path()).into(),
        })
    }
}
