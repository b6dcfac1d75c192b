//! Compact, consistent copies of a live database.
//!
//! `VACUUM INTO` reads under one read transaction, carries no deleted bytes and needs no pause of the
//! writer. To catch several files at one instant, every writer is held (`BEGIN IMMEDIATE`) while the
//! read transactions start, a few milliseconds, and let go again. The stepped online backup was
//! measured and lost: beside a writer it restarts for ever.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::{Connection, SqliteConnection};
use tokio::task::JoinHandle;

use super::error::{DbError, OpenError};
use super::identity::identify;
use super::look::{self, Look};
use super::open::Durability;
use super::options::{read_options, write_options};
use super::tx::begin_immediate;
use crate::fs;
use crate::model::Tier;

/// How often to look whether a capture has begun to write.
const POLL: Duration = Duration::from_millis(1);

/// A database about to be captured.
#[derive(Debug)]
pub struct SnapshotSource {
    path: PathBuf,
    reader: SqliteConnection,
    gate: Option<SqliteConnection>,
    _look: Option<Look>,
}

/// A capture under way.
#[derive(Debug)]
pub struct SnapshotRun {
    target: PathBuf,
    task: JoinHandle<Result<(), DbError>>,
}

impl SnapshotSource {
    /// Opens the database at `path` for capture, of any origin.
    ///
    /// * `can_write`: whether writers may be held; `false` on a read-only root, where there are none.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it cannot be opened.
    pub async fn open(path: &Path, can_write: bool) -> Result<Self, OpenError> {
        let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(path));
        if !path.exists() {
            return Err(OpenError::NotFound {
                path: path.to_owned(),
            });
        }
        if can_write {
            // A writing connection, so that the last to leave folds the log back in.
            // Without statistics at the end: they would be a write under nobody's lock.
            let options = write_options(path, Durability::Full).optimize_on_close(false, None);
            let reader = SqliteConnection::connect_with(&options)
                .await
                .map_err(named)?;
            let gate = SqliteConnection::connect_with(&options)
                .await
                .map_err(named)?;
            return Ok(Self {
                path: path.to_owned(),
                reader,
                gate: Some(gate),
                _look: None,
            });
        }
        Self::look(path, look::choose(path)?).await
    }

    /// Opens a database of unknown origin for capture: nothing of it is changed, not even its journal
    /// mode, and its writers are not held.
    ///
    /// Never a file that this process has open through SQLite.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it cannot be read.
    pub async fn open_foreign(path: &Path) -> Result<Self, OpenError> {
        Self::look(path, look::choose_foreign(path)?).await
    }

    /// The same for a file nobody writes: where a log or a journal holds a part of it, through a private copy of them
    /// all.
    ///
    /// * `place`: folder for the copy, which goes with this value.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it cannot be copied or read.
    pub async fn open_still(path: &Path, place: &Path) -> Result<Self, OpenError> {
        Self::look(path, look::choose_still(path, place)?).await
    }

    async fn look(path: &Path, mut look: Look) -> Result<Self, OpenError> {
        let mut reader = connect(path, &look).await;
        if reader.is_err() && matches!(look, Look::Shared) {
            // A log's index that cannot be shared, or a journal that only a writer can roll back.
            look = look::copy(path)?;
            reader = connect(path, &look).await;
        }
        Ok(Self {
            path: path.to_owned(),
            reader: reader?,
            gate: None,
            _look: Some(look),
        })
    }

    /// What the registry of a control plane says: agents and where their databases are.
    ///
    /// Read through the connection that captures: with the file open here, no other look may touch it.
    ///
    /// # Errors
    ///
    /// [`DbError`] when it cannot be read.
    pub async fn registry(&mut self) -> Result<Vec<(String, String)>, DbError> {
        let found = super::copy::registered(&mut self.reader).await;
        found.map_err(|error| error.at(&self.path))
    }

    /// Keeps writers out until [`SnapshotGate::release`].
    ///
    /// # Errors
    ///
    /// [`DbError`] when another writer does not finish within the busy timeout.
    pub async fn hold(&mut self) -> Result<(), DbError> {
        match &mut self.gate {
            Some(gate) => begin_immediate(gate)
                .await
                .map_err(|error| error.at(&self.path)),
            None => Ok(()),
        }
    }

    /// Begins to capture into `target`, an empty or missing file in a private folder, and returns
    /// once the read transaction stands: from then on later commits are not part of the copy.
    ///
    /// # Errors
    ///
    /// The file system's, when `target` cannot be made.
    pub async fn start(mut self, target: &Path) -> Result<(SnapshotRun, SnapshotGate), OpenError> {
        // Pre-created: SQLite would make it 0644 under a common umask.
        fs::atomic::precreate_private(target)?;
        let gate = SnapshotGate {
            path: self.path.clone(),
            conn: self.gate.take(),
        };
        let owned = target.to_owned();
        let task = tokio::spawn(async move {
            let into = owned.to_str().map(str::to_owned);
            let source = self.path.clone();
            let result = match into {
                Some(into) => {
                    sqlx::query("VACUUM main INTO ?1")
                        .bind(into)
                        .execute(&mut self.reader)
                        .await
                }
                None => Err(sqlx::Error::Configuration(
                    "staging path is not UTF-8".into(),
                )),
            };
            let closed = self.reader.close().await;
            result
                .map(|_| ())
                .and(closed)
                .map_err(|error| DbError::from(error).at(&source))
        });
        let run = SnapshotRun {
            target: target.to_owned(),
            task,
        };
        run.begun().await;
        Ok((run, gate))
    }
}

/// The hold on a captured database's writers.
#[derive(Debug)]
pub struct SnapshotGate {
    path: PathBuf,
    conn: Option<SqliteConnection>,
}

impl SnapshotGate {
    /// Lets writers in again.
    ///
    /// # Errors
    ///
    /// [`DbError`] when the connection fails.
    pub async fn release(self) -> Result<(), DbError> {
        let Some(mut conn) = self.conn else {
            return Ok(());
        };
        let named = |error: sqlx::Error| DbError::from(error).at(&self.path);
        if let Err(error) = sqlx::raw_sql("ROLLBACK").execute(&mut conn).await {
            // Not held: nothing to let go.
            tracing::debug!(%error, "no transaction to roll back");
        }
        conn.close().await.map_err(named)
    }
}

impl SnapshotRun {
    /// Waits until the copy has begun to be written, which is after its read transaction began.
    async fn begun(&self) {
        while !self.task.is_finished()
            && std::fs::metadata(&self.target).is_ok_and(|meta| meta.len() == 0)
        {
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits for the copy to be whole, and syncs it: SQLite does not.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the capture failed.
    pub async fn finish(self) -> Result<(), OpenError> {
        let target = self.target;
        match self.task.await {
            Ok(result) => result?,
            Err(_) => return Err(DbError::stopped().at(&target).into()),
        }
        let synced = std::fs::File::open(&target).and_then(|file| file.sync_all());
        synced.map_err(fs::FsError::at("syncing", &target))?;
        Ok(())
    }
}

/// A connection that reads what `look` chose, and has proved that it can.
async fn connect(path: &Path, look: &Look) -> Result<SqliteConnection, OpenError> {
    let options = match look {
        Look::Immutable => read_options(path).immutable(true),
        Look::Shared => read_options(path),
        // Private: a journal in it may be rolled back.
        Look::Copy(_, copy) => read_options(copy).read_only(false),
    };
    // `VACUUM INTO` counts as a write to `query_only`.
    let options = options.pragma("query_only", "OFF");
    let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(path));
    let mut conn = SqliteConnection::connect_with(&options)
        .await
        .map_err(named)?;
    sqlx::query("SELECT count(*) FROM sqlite_schema")
        .execute(&mut conn)
        .await
        .map_err(named)?;
    Ok(conn)
}

/// Opens a captured copy, at rest and private, for checks; `tier` is what it claims to be.
///
/// The connection can write, because FTS5's check is an insert; it changes nothing that is kept.
///
/// # Errors
///
/// [`OpenError`] when the copy is no database of `tier` and its owner, lacks a table, or is newer
/// than this release.
pub async fn open_snapshot(path: &Path, tier: &Tier) -> Result<SqliteConnection, OpenError> {
    let options = read_options(path)
        .read_only(false)
        .pragma("query_only", "OFF");
    let mut conn = SqliteConnection::connect_with(&options)
        .await
        .map_err(|error| OpenError::Db(DbError::from(error).at(path)))?;
    if identify(&mut conn, path, tier).await?.version == 0 {
        return Err(OpenError::WrongFile {
            path: path.to_owned(),
            expected: tier.to_string(),
            found: "it is empty".to_owned(),
        });
    }
    Ok(conn)
}
