//! Keeping an open file in order: the log folded in, free pages given back, statistics for the planner.

use sqlx::Connection as _;

use super::error::DbError;
use super::open::Db;
use super::options::write_options;
use super::{Durability, open::ConnectHere};

/// Free pages given back at a time: 16 MiB at our page size, a few milliseconds.
const PAGES_AT_A_TIME: &str = "PRAGMA incremental_vacuum(2000)";

impl Db {
    /// Folds the log in as far as readers let it, gives some free pages back, and refreshes the planner's statistics.
    ///
    /// On a connection of its own, so that the writer's callers wait for single statements at most. Does nothing to a
    /// database that is only looked at.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails; a log that somebody still reads is no failure.
    pub async fn tidy(&self) -> Result<(), DbError> {
        if !self.is_writer() {
            return Ok(());
        }
        let named = |error: sqlx::Error| DbError::from(error).at(self.path());
        let options = write_options(self.path(), Durability::Normal);
        let mut conn = options.connect_here().await.map_err(named)?;
        for statement in [
            PAGES_AT_A_TIME,
            "PRAGMA optimize",
            "PRAGMA wal_checkpoint(PASSIVE)",
        ] {
            sqlx::query(statement)
                .fetch_all(&mut conn)
                .await
                .map_err(named)?;
        }
        conn.close().await.map_err(named)
    }
}
