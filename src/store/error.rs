//! Why rows could not be read or written.

use crate::db::DbError;

/// A failed store operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A stored value breaks the schema's promise.
    #[error("{table}.{column} of row {row} holds {found:?}, which this release cannot read")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
        /// What it holds; cut to a readable length.
        found: String,
    },
    /// A cursor that no page of this listing gave out.
    #[error("{text:?} is no cursor of this listing")]
    Cursor {
        /// The cursor.
        text: String,
    },
    /// SQLite failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl StoreError {
    /// Names the database, where nothing named it yet.
    #[must_use]
    pub fn at(self, path: &std::path::Path) -> Self {
        match self {
            Self::Db(error) => Self::Db(error.at(path)),
            other => other,
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        Self::Db(DbError::from(error))
    }
}
