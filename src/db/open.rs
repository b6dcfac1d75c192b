//! Opening a database: who may, with which pragmas, and what is proved before.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, Sqlite, SqliteConnection, SqlitePool};
use tempfile::TempDir;

use super::error::{DbError, OpenError};
use super::identity::{check_sqlite, inspect, inspect_or_copy, is_empty};
use super::look::Look;
use super::migrate::{self, Release, known_version};
use super::options::{
    bulk_options, load_options, look_options, pool, pooled_options, with_layout, write_options,
};
use super::tx::{BulkTx, WriteTx};
use super::writer::{BoxFuture, Writer};
use crate::fs::{self, FileLock, LockError};
use crate::model::Tier;

/// A connection that reads; it goes back to its pool when dropped.
pub type Reader = PoolConnection<Sqlite>;

/// A connection that sees one instant for as long as it is kept; the log grows meanwhile.
pub type ReadTx = sqlx::Transaction<'static, Sqlite>;

/// How long to wait for another process that migrates the same file.
const MIGRATE_WAIT: Duration = Duration::from_secs(30);

/// Brings the write-ahead log back.
const END_OF_LOAD: &str = "PRAGMA journal_mode = WAL";

/// What acknowledged means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// On disk: survives power loss.
    #[default]
    Full,
    /// Survives a killed process; power loss may take the last commits.
    Normal,
}

/// How a database is written.
#[derive(Clone, Debug)]
pub struct WriteAccess {
    /// What acknowledged means.
    pub durability: Durability,
    /// Stamped on a migrated schema.
    pub release: Release,
    /// File whose lock is held round a migration; made when needed, then kept.
    pub migrate_lock: PathBuf,
}

/// What the caller may do with a database.
#[derive(Clone, Debug)]
pub enum Access {
    /// Read and write; an older schema is migrated first.
    Write(WriteAccess),
    /// The same for filling an empty database that nobody else has open, always durable.
    ///
    /// Until it is closed it has a rollback journal instead of a write-ahead log: new pages go straight to their
    /// place, where a log writes each of them twice. Readers and the writer keep each other out meanwhile. A killed
    /// process leaves a journal that the next opening for writing rolls back; that one, like closing, brings the
    /// log back.
    Load(WriteAccess),
    /// Read only, leaving no trace: nothing is created, migrated or checkpointed.
    Look {
        /// No writer lives: the caller holds the root against them, or nobody ever wrote it.
        is_at_rest: bool,
    },
}

/// What becomes of a file that holds nothing yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    /// It gets a schema: somebody was cut off while making it.
    Fill,
    /// It is refused: what was in it is gone, and nobody would be told.
    Refuse,
}

/// An open database of one tier.
#[derive(Debug)]
pub struct Db {
    path: PathBuf,
    tier: Tier,
    readers: SqlitePool,
    writer: Option<Writer>,
    version: i64,
    // Holds the private copy that is looked at, until this goes.
    _copy: Option<TempDir>,
}

impl Db {
    /// Makes a new database: file and folder private from birth, newest schema.
    ///
    /// # Errors
    ///
    /// [`OpenError::Exists`] when there is one already; any other when it cannot be made.
    pub async fn create(path: &Path, tier: &Tier, access: WriteAccess) -> Result<Self, OpenError> {
        if std::fs::metadata(path).is_ok_and(|meta| meta.len() > 0) {
            return Err(OpenError::Exists {
                path: path.to_owned(),
            });
        }
        Self::open_or_create(path, tier, access).await
    }

    /// Opens a database for writing, and makes it first where there is none.
    ///
    /// # Errors
    ///
    /// As [`Db::open`], but for [`OpenError::NotFound`].
    pub async fn open_or_create(
        path: &Path,
        tier: &Tier,
        access: WriteAccess,
    ) -> Result<Self, OpenError> {
        if let Some(folder) = path.parent() {
            fs::atomic::create_dir_private(folder)?;
        }
        // Born 0600: the sidecars take this mode when they are born.
        fs::atomic::precreate_private(path)?;
        Self::open_write(path, tier, access, Empty::Fill).await
    }

    /// Opens an existing database.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: not there, empty, newer than this release, of another tier or agent, with a
    /// table missing, or SQLite failed. A file that is refused is left as it was.
    pub async fn open(path: &Path, tier: &Tier, access: Access) -> Result<Self, OpenError> {
        if !path.exists() {
            return Err(OpenError::NotFound {
                path: path.to_owned(),
            });
        }
        match access {
            Access::Write(access) => Self::open_write(path, tier, access, Empty::Refuse).await,
            Access::Load(access) => {
                prepare(path, tier, &access, Empty::Refuse).await?;
                let options = load_options(path);
                Self::start(path, tier, options, Some(END_OF_LOAD)).await
            }
            Access::Look { is_at_rest } => Self::open_look(path, tier, is_at_rest).await,
        }
    }

    async fn open_write(
        path: &Path,
        tier: &Tier,
        access: WriteAccess,
        empty: Empty,
    ) -> Result<Self, OpenError> {
        prepare(path, tier, &access, empty).await?;
        let options = write_options(path, access.durability);
        Self::start(path, tier, options, None).await
    }

    /// Starts the writer of a database of the newest version.
    async fn start(
        path: &Path,
        tier: &Tier,
        options: SqliteConnectOptions,
        last: Option<&'static str>,
    ) -> Result<Self, OpenError> {
        let conn = options.connect_here().await;
        let conn = conn.map_err(|error| DbError::from(error).at(path))?;
        Ok(Self {
            path: path.to_owned(),
            tier: tier.clone(),
            readers: pool(pooled_options(path), tier),
            writer: Some(Writer::start(conn, path.to_owned(), last)),
            version: known_version(tier),
            _copy: None,
        })
    }

    async fn open_look(path: &Path, tier: &Tier, is_at_rest: bool) -> Result<Self, OpenError> {
        let (mut look, mut identity) = inspect(path, tier).await?;
        if identity.version == 0 {
            return Err(is_empty(path, tier));
        }
        if !is_at_rest && matches!(look, Look::Immutable) {
            // A writer lives that may begin with this file at any moment: from here on its locks count.
            (look, identity) = inspect_or_copy(path, tier, Look::Shared).await?;
        }
        let options = look_options(path, &look);
        let copy = match look {
            Look::Copy(dir, _) => Some(dir),
            Look::Immutable | Look::Shared => None,
        };
        Ok(Self {
            path: path.to_owned(),
            tier: tier.clone(),
            readers: pool(options, tier),
            writer: None,
            version: identity.version,
            _copy: copy,
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which tier it is.
    #[must_use]
    pub fn tier(&self) -> &Tier {
        &self.tier
    }

    /// Whether it was opened for writing.
    pub(super) fn is_writer(&self) -> bool {
        self.writer.is_some()
    }

    /// Its schema version: the newest when opened for writing, what is there when looked at.
    #[must_use]
    pub fn version(&self) -> i64 {
        self.version
    }

    /// Connections for reading.
    pub(super) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// A connection for reading.
    ///
    /// # Errors
    ///
    /// [`DbError`] when none can be had within the pool's wait.
    pub async fn read(&self) -> Result<Reader, DbError> {
        self.readers
            .acquire()
            .await
            .map_err(|error| DbError::from(error).at(&self.path))
    }

    /// A connection that sees the database as it is now, whatever is written meanwhile.
    ///
    /// # Errors
    ///
    /// As [`Db::read`].
    pub async fn read_instant(&self) -> Result<ReadTx, DbError> {
        self.readers
            .begin()
            .await
            .map_err(|error| DbError::from(error).at(&self.path))
    }

    /// Runs one use case's writes in a transaction; several callers may share the commit.
    ///
    /// Returns after the commit: with [`Durability::Full`] the rows are on disk. When `work` fails,
    /// nothing of it remains. `work` must not wait for anything but this database.
    ///
    /// # Errors
    ///
    /// What `work` returns, or [`DbError`] as `E` when the transaction cannot begin or commit, or
    /// when the database was opened only to look.
    pub async fn write<F, T, E>(&self, work: F) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut WriteTx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: std::error::Error + From<DbError> + Send + 'static,
    {
        self.write_then(work, |_| ()).await
    }

    /// The same, and tells `after` of the result once it is committed, also where the caller has gone meanwhile.
    ///
    /// `after` runs on the writer's task: it must neither wait nor take long.
    ///
    /// # Errors
    ///
    /// As [`Db::write`].
    pub async fn write_then<F, A, T, E>(&self, work: F, after: A) -> Result<T, E>
    where
        F: for<'t, 'c> FnOnce(&'t mut WriteTx<'c>) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
        T: Send + 'static,
        E: std::error::Error + From<DbError> + Send + 'static,
    {
        match &self.writer {
            Some(writer) => writer.run(work, after).await,
            None => Err(DbError::stopped().at(&self.path).into()),
        }
    }

    /// Begins one long transaction on a connection of its own, always durable.
    ///
    /// # Errors
    ///
    /// [`DbError`] when another connection holds the file for longer than the busy timeout, or when the database was
    /// opened only to look.
    pub async fn begin_bulk(&self) -> Result<BulkTx, DbError> {
        self.begin_bulk_beside(0).await
    }

    /// The same beside `others` on other databases, with which it shares the memory that one alone has.
    ///
    /// # Errors
    ///
    /// As [`Db::begin_bulk`].
    pub async fn begin_bulk_beside(&self, others: usize) -> Result<BulkTx, DbError> {
        if self.writer.is_none() {
            return Err(DbError::stopped().at(&self.path));
        }
        let conn = bulk_options(&self.path, others).connect_here().await;
        let conn = conn.map_err(|error| DbError::from(error).at(&self.path))?;
        BulkTx::begin(conn, self.path.clone()).await
    }

    /// Finishes queued writes and closes; a writer's log is folded into the file.
    pub async fn close(self) {
        // Readers first: the last to leave removes the log, and a reader may not.
        self.readers.close().await;
        if let Some(writer) = self.writer {
            writer.close().await;
        }
    }
}

/// Proves that a file is what it should be, through a handle that cannot write: a refused one stays as it was. Then
/// brings it to the newest version.
async fn prepare(
    path: &Path,
    tier: &Tier,
    access: &WriteAccess,
    empty: Empty,
) -> Result<(), OpenError> {
    let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(path));
    let (_, mut identity) = inspect(path, tier).await?;
    if identity.version == 0 && empty == Empty::Refuse {
        return Err(is_empty(path, tier));
    }
    if identity.version < known_version(tier) {
        let _lock = lock_migration(path, &access.migrate_lock).await?;
        // Another process may have migrated while this one waited.
        (_, identity) = inspect(path, tier).await?;
        if identity.version < known_version(tier) {
            let mut options = write_options(path, Durability::Full);
            if identity.version == 0 {
                options = with_layout(options);
            }
            let mut conn = options.connect_here().await.map_err(named)?;
            check_sqlite(&mut conn, path).await?;
            migrate::migrate(&mut conn, path, tier, access.release).await?;
            conn.close().await.map_err(named)?;
        }
    }
    Ok(())
}

/// `ConnectOptions::connect` without its trait in every caller.
pub(super) trait ConnectHere {
    async fn connect_here(self) -> Result<SqliteConnection, sqlx::Error>;
}

impl ConnectHere for SqliteConnectOptions {
    async fn connect_here(self) -> Result<SqliteConnection, sqlx::Error> {
        SqliteConnection::connect_with(&self).await
    }
}

/// Takes the lock round a migration, on a thread that may wait.
async fn lock_migration(path: &Path, lock: &Path) -> Result<FileLock, OpenError> {
    let owned = lock.to_owned();
    let taken = tokio::task::spawn_blocking(move || FileLock::exclusive(&owned, MIGRATE_WAIT));
    match taken.await {
        Ok(Ok(lock)) => Ok(lock),
        Ok(Err(LockError::Fs(error))) => Err(error.into()),
        Ok(Err(_)) => Err(OpenError::Locked {
            path: path.to_owned(),
            waited: MIGRATE_WAIT,
        }),
        Err(_) => Err(DbError::stopped().at(path).into()),
    }
}
