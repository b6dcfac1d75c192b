//! Why a statement was not answered.

use std::time::Duration;

use super::super::error::DbError;
use crate::model::ErrorKind;

/// Why a statement was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// It would do more than read, or reads what is kept closed.
    #[error("{reason}")]
    Refused {
        /// What it would do.
        reason: String,
    },
    /// SQLite does not understand it, or a name in it.
    #[error("the statement cannot be run")]
    Statement {
        /// What SQLite says.
        source: sqlx::Error,
    },
    /// It ran for longer than it may.
    #[error("stopped: the query ran for longer than {} s", .limit.as_secs())]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// It needs more memory than it may have.
    #[error("stopped: the query needs more memory than it may have, for one value or for sorting")]
    TooLarge,
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl QueryError {
    pub(super) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused {
            reason: reason.into(),
        }
    }

    /// Tells the failures of a statement from those of the database, by SQLite's result code.
    pub(super) fn of(error: sqlx::Error, limit: Duration) -> Self {
        let code = match &error {
            sqlx::Error::Database(database) => database.code().and_then(|code| code.parse().ok()),
            // The thread that SQLite ran on ends when a row cannot be copied for want of memory.
            sqlx::Error::WorkerCrashed => return Self::TooLarge,
            _ => None,
        };
        match code.map(|code: i32| code & 0xff) {
            Some(1 | 20 | 25) => Self::Statement { source: error },
            Some(7 | 18) => Self::TooLarge,
            Some(8 | 23) => Self::refused("a query only reads; SQLite refused what it asks for"),
            Some(9) => Self::TooSlow { limit },
            _ => Self::Db(error.into()),
        }
    }

    /// What kind of failure it is to a person.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Statement { .. } => ErrorKind::Usage,
            Self::Refused { .. } | Self::TooSlow { .. } | Self::TooLarge => ErrorKind::Refused,
            Self::Db(error) => error.kind().into(),
        }
    }

    /// What can be done about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Statement { .. } => Some(
                "`SELECT name FROM sqlite_schema WHERE type = 'view'` lists the views; docs/views.md describes them",
            ),
            Self::TooSlow { .. } => Some("ask for less, or give it longer with --timeout SECONDS"),
            Self::TooLarge => Some("ask for fewer or shorter values, for example with substr()"),
            Self::Refused { .. } | Self::Db(_) => None,
        }
    }
}
