//! What can go wrong with a database, classified once, by SQLite's result code.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::fs::{self, FsError};
use crate::model::ErrorKind;

/// What kind of failure it is; decides the exit code and the advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DbErrorKind {
    /// Another connection held the file for longer than the busy timeout.
    Busy,
    /// No space left, or the page limit is reached.
    Full,
    /// The file or its folder cannot be written.
    ReadOnly,
    /// The file is damaged or no database.
    Corrupt,
    /// A rule of the schema refused the row.
    Constraint,
    /// The operating system failed to read or write.
    Io,
    /// The file cannot be opened.
    CannotOpen,
    /// The database's writer has stopped.
    Stopped,
    /// Anything else.
    Other,
}

impl From<DbErrorKind> for ErrorKind {
    fn from(kind: DbErrorKind) -> Self {
        match kind {
            DbErrorKind::Busy => Self::Busy,
            DbErrorKind::Full | DbErrorKind::ReadOnly => Self::NoSpace,
            DbErrorKind::Corrupt => Self::Damaged,
            _ => Self::Internal,
        }
    }
}

/// A failed statement.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}{}", what(*.kind, .holder.as_deref()), at(.path.as_deref()))]
pub struct DbError {
    kind: DbErrorKind,
    path: Option<PathBuf>,
    /// Who holds the database, where that is the reason and the system tells.
    holder: Option<String>,
    #[source]
    source: Option<Arc<sqlx::Error>>,
}

fn what(kind: DbErrorKind, holder: Option<&str>) -> String {
    let text = match kind {
        DbErrorKind::Busy if holder.is_some() => "database is held by ",
        DbErrorKind::Busy => "database is held by another process",
        DbErrorKind::Full => "no space left for the database",
        DbErrorKind::ReadOnly => "database cannot be written",
        DbErrorKind::Corrupt => "database is damaged",
        DbErrorKind::Constraint => "row breaks a rule of the schema",
        DbErrorKind::Io => "reading or writing the database failed",
        DbErrorKind::CannotOpen => "database cannot be opened",
        DbErrorKind::Stopped => "the database's writer has stopped",
        DbErrorKind::Other => "statement failed",
    };
    [text, holder.unwrap_or_default()].concat()
}

fn at(path: Option<&Path>) -> String {
    path.map(|path| format!(": {}", path.display()))
        .unwrap_or_default()
}

impl DbError {
    pub(crate) fn stopped() -> Self {
        Self {
            kind: DbErrorKind::Stopped,
            path: None,
            holder: None,
            source: None,
        }
    }

    /// The failed statement behind another error, if one is.
    pub(super) fn behind(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let causes = std::iter::successors(Some(error), |error| error.source());
        // Errors that wrap this one transparently hide it, but not its own cause.
        let statements = causes.filter_map(|cause| cause.downcast_ref::<Arc<sqlx::Error>>());
        statements.last().map(|source| Self {
            kind: classify(source),
            path: None,
            holder: None,
            source: Some(Arc::clone(source)),
        })
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> DbErrorKind {
        self.kind
    }

    /// Asks the system who holds `path`, where that is what went wrong.
    pub(super) fn held_at(mut self, path: &Path) -> Self {
        if self.kind == DbErrorKind::Busy {
            self.holder = fs::database_writer(path);
        }
        self.at(path)
    }

    /// Names the file, where nothing named it yet.
    #[must_use]
    pub fn at(mut self, path: &Path) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl From<sqlx::Error> for DbError {
    fn from(source: sqlx::Error) -> Self {
        Self {
            kind: classify(&source),
            path: None,
            holder: None,
            source: Some(Arc::new(source)),
        }
    }
}

/// Classifies by SQLite's primary result code, never by message text.
fn classify(error: &sqlx::Error) -> DbErrorKind {
    match error {
        sqlx::Error::Database(database) => {
            let code: Option<i32> = database.code().and_then(|code| code.parse().ok());
            match code.map(|code| code & 0xff) {
                Some(5 | 6) => DbErrorKind::Busy,
                Some(8) => DbErrorKind::ReadOnly,
                Some(10) => DbErrorKind::Io,
                Some(11 | 26) => DbErrorKind::Corrupt,
                Some(13) => DbErrorKind::Full,
                Some(14) => DbErrorKind::CannotOpen,
                Some(19) => DbErrorKind::Constraint,
                _ => DbErrorKind::Other,
            }
        }
        sqlx::Error::PoolTimedOut => DbErrorKind::Busy,
        sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => DbErrorKind::Stopped,
        sqlx::Error::Io(_) => DbErrorKind::Io,
        _ => DbErrorKind::Other,
    }
}

/// Why a tier could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such file.
    #[error("no database at {}", .path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// There is one already where a new one was to be made.
    #[error("a database exists already at {}", .path.display())]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The file comes from a newer release; this one must not touch it.
    #[error(
        "{} has schema version {found}{}, this release knows {known}",
        .path.display(),
        .writer.as_ref().map(|release| format!(" (written by release {release})")).unwrap_or_default()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version this release knows.
        known: i64,
        /// The release that wrote it, where it says so.
        writer: Option<String>,
    },
    /// The file is older than this release and may not be changed now.
    #[error("{} has schema version {found}, this release needs {known}", .path.display())]
    TooOld {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The version needed.
        known: i64,
    },
    /// The file is no database of ours, or belongs to another tier or agent.
    #[error("{} is not the {expected} database: {found}", .path.display())]
    WrongFile {
        /// The file.
        path: PathBuf,
        /// The tier looked for.
        expected: String,
        /// What it is instead.
        found: String,
    },
    /// The file holds no schema: who was to make it was cut off.
    #[error("{} is not the {expected} database: it is empty", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// The tier looked for.
        expected: String,
    },
    /// A table that its version promises is missing; it is not made up empty.
    #[error("{} lacks the table {table} of schema version {version}", .path.display())]
    MissingTable {
        /// The file.
        path: PathBuf,
        /// The table.
        table: String,
        /// The schema version that promises it.
        version: i64,
    },
    /// Another process migrated for longer than `waited`.
    #[error("{} is being migrated by another process (waited {} s)", .path.display(), .waited.as_secs())]
    Locked {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// A migration failed; the transaction was rolled back.
    #[error("migration of {} failed", .path.display())]
    Migrate {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The SQLite this was built with is older than the floor.
    #[error(
        "built with SQLite {found}, which can corrupt write-ahead logs; 3.51.3 or newer is needed"
    )]
    OldSqlite {
        /// Its version.
        found: String,
    },
    /// SQLite failed.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl OpenError {
    /// What kind of failure it is to a person.
    #[must_use]
    pub fn failure(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Exists { .. } => ErrorKind::Refused,
            Self::TooNew { .. } => ErrorKind::NewerSchema,
            Self::TooOld { .. } => ErrorKind::OlderSchema,
            Self::WrongFile { .. } | Self::MissingTable { .. } | Self::Empty { .. } => {
                ErrorKind::Damaged
            }
            Self::Locked { .. } => ErrorKind::Busy,
            Self::Db(error) => error.kind().into(),
            Self::Fs(error) => error.kind().into(),
            _ => ErrorKind::Internal,
        }
    }

    /// What the operator can do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound { .. } => {
                Some("run `zeroclaw init`, or `zeroclaw doctor --fix` to import what is there")
            }
            Self::TooNew { .. } => Some(
                "update zeroclaw, or restore a backup made by this release; nothing was changed",
            ),
            Self::TooOld { .. } => Some("run `zeroclaw doctor --fix` to migrate it"),
            Self::MissingTable { .. } | Self::WrongFile { .. } | Self::Empty { .. } => {
                Some("restore it from a backup: `zeroclaw backup list`")
            }
            Self::Locked { .. } => Some("wait for the other zeroclaw process, or stop it"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_database_is_told_from_a_broken_rule() {
        use sqlx::Connection;
        let mut conn = sqlx::SqliteConnection::connect("sqlite::memory:")
            .await
            .unwrap();
        sqlx::raw_sql(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB) STRICT; PRAGMA max_page_count = 3;",
        )
        .execute(&mut conn)
        .await
        .unwrap();

        let full = sqlx::query("INSERT INTO t VALUES (1, zeroblob(1000000))")
            .execute(&mut conn)
            .await
            .unwrap_err();
        sqlx::query("INSERT INTO t VALUES (1, NULL)")
            .execute(&mut conn)
            .await
            .unwrap();
        let twice = sqlx::query("INSERT INTO t VALUES (1, NULL)")
            .execute(&mut conn)
            .await
            .unwrap_err();

        assert_eq!(DbError::from(full).kind(), DbErrorKind::Full);
        assert_eq!(DbError::from(twice).kind(), DbErrorKind::Constraint);
    }
}
