//! Write transactions.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sqlx::{Connection, SqliteConnection};

use super::error::{DbError, DbErrorKind};

/// A connection inside a transaction that began with `BEGIN IMMEDIATE`.
///
/// Store functions that write take this, so that no row is written outside a transaction. It can
/// neither commit nor roll back: who began it does that.
#[derive(Debug)]
pub struct WriteTx<'c> {
    conn: &'c mut SqliteConnection,
}

impl<'c> WriteTx<'c> {
    /// Wraps a connection whose transaction has begun.
    pub(super) fn new(conn: &'c mut SqliteConnection) -> Self {
        Self { conn }
    }
}

impl Deref for WriteTx<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.conn
    }
}

impl DerefMut for WriteTx<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.conn
    }
}

/// One long transaction on a connection of its own, for imports.
///
/// Dropped without [`BulkTx::commit`] it leaves nothing behind: the connection closes and SQLite
/// rolls back.
#[derive(Debug)]
pub struct BulkTx {
    conn: SqliteConnection,
    path: PathBuf,
}

impl BulkTx {
    pub(super) async fn begin(mut conn: SqliteConnection, path: PathBuf) -> Result<Self, DbError> {
        begin_immediate(&mut conn)
            .await
            .map_err(|error| error.at(&path))?;
        Ok(Self { conn, path })
    }

    /// The transaction, for store functions.
    pub fn tx(&mut self) -> WriteTx<'_> {
        WriteTx::new(&mut self.conn)
    }

    /// Commits and closes. Once this returns the rows are on disk.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite cannot commit; nothing of the transaction remains.
    pub async fn commit(mut self) -> Result<(), DbError> {
        sqlx::raw_sql("COMMIT")
            .execute(&mut self.conn)
            .await
            .map_err(|error| DbError::from(error).at(&self.path))?;
        self.conn
            .close()
            .await
            .map_err(|error| DbError::from(error).at(&self.path))
    }
}

pub(super) async fn begin_immediate(conn: &mut SqliteConnection) -> Result<(), DbError> {
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(conn).await?;
    Ok(())
}

/// The same on a connection whose own timeout is short: tries until `patience` is over.
///
/// SQLite asks more and more rarely the longer it waits, up to every 100 ms, and so misses the moments between the
/// transactions of somebody who writes again and again. Many short waits ask at least every few milliseconds.
pub(super) async fn begin_patiently(
    conn: &mut SqliteConnection,
    patience: Duration,
) -> Result<(), DbError> {
    let since = Instant::now();
    loop {
        match begin_immediate(conn).await {
            Err(error) if error.kind() == DbErrorKind::Busy && since.elapsed() < patience => {}
            ended => return ended,
        }
    }
}
