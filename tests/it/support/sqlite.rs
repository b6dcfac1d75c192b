//! SQLite files for tests: written like the old program did, read without touching the original.
//!
//! Every function here is synchronous and may be called from inside an async test: the work runs on a thread of its own.

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

/// How a store keeps a transaction undoable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journal {
    /// Write-ahead log, as every old store but one.
    Wal,
    /// Rollback journal, as the cron store.
    Rollback,
}

/// Runs `work` to its end on its own thread and runtime.
pub(crate) fn block_on<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap()
                .block_on(work)
        });
        match thread.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Opens or creates a store for writing. Foreign keys are off: a recipe may plant orphans.
pub(crate) async fn open(path: &Path, journal: Journal) -> SqliteConnection {
    let mode = match journal {
        Journal::Wal => SqliteJournalMode::Wal,
        Journal::Rollback => SqliteJournalMode::Delete,
    };
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(mode)
        .synchronous(SqliteSynchronous::Off)
        .foreign_keys(false)
        .pragma("wal_autocheckpoint", "0")
        .connect()
        .await
        .unwrap_or_else(|error| panic!("cannot open {}: {error}", path.display()))
}

/// Runs one script.
pub(crate) async fn run(connection: &mut SqliteConnection, script: &str) {
    // Safe: the text comes from a recipe in this repository.
    sqlx::raw_sql(AssertSqlSafe(script))
        .execute(connection)
        .await
        .unwrap_or_else(|error| panic!("{error}\nin {}", head(script)));
}

/// Runs scripts in one transaction, so that a log stays small.
pub(crate) async fn run_together(connection: &mut SqliteConnection, scripts: &[&str]) {
    if scripts.is_empty() {
        return;
    }
    run(connection, "BEGIN IMMEDIATE").await;
    for script in scripts {
        run(connection, script).await;
    }
    run(connection, "COMMIT").await;
}

fn head(script: &str) -> String {
    script.chars().take(400).collect()
}

/// A main file and its log, taken while the writer was alive.
pub(crate) struct Pair {
    /// The main file's bytes.
    pub(crate) main: Vec<u8>,
    /// The log's bytes, never empty.
    pub(crate) wal: Vec<u8>,
}

/// Writes `checkpointed` into a main file and leaves `pending` committed in the log.
pub(crate) fn pair(ddl: &str, checkpointed: &[&str], pending: &[&str]) -> Pair {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("store.db");
    let bytes = block_on(async {
        let mut connection = open(&path, Journal::Wal).await;
        run_together(&mut connection, &[ddl]).await;
        run_together(&mut connection, checkpointed).await;
        run(&mut connection, "PRAGMA wal_checkpoint(TRUNCATE)").await;
        run_together(&mut connection, pending).await;
        // Read while the writer lives: its close would checkpoint and delete the log.
        let bytes = Pair {
            main: fs::read(&path).unwrap(),
            wal: fs::read(sidecar(&path, "-wal")).unwrap(),
        };
        connection.close().await.unwrap();
        bytes
    });
    assert!(!bytes.wal.is_empty(), "nothing was left in the log");
    bytes
}

/// The path of a file that SQLite keeps beside `path`: `-wal`, `-shm` or `-journal`.
pub(crate) fn sidecar(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A throw-away copy of a store with its log or journal, so that reading changes nothing in place.
pub(crate) struct PrivateCopy {
    path: PathBuf,
    // Held for its drop.
    _folder: tempfile::TempDir,
}

impl PrivateCopy {
    /// Copies the main file and whichever of `-wal` and `-journal` lie beside it.
    pub(crate) fn of(store: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.db");
        fs::copy(store, &path).unwrap_or_else(|e| panic!("cannot copy {}: {e}", store.display()));
        for suffix in ["-wal", "-journal"] {
            let from = sidecar(store, suffix);
            if from.exists() {
                fs::copy(from, sidecar(&path, suffix)).unwrap();
            }
        }
        Self {
            path,
            _folder: folder,
        }
    }

    /// Copies the main file alone, as someone does who does not know about logs.
    pub(crate) fn without_sidecars(store: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copy.db");
        fs::copy(store, &path).unwrap();
        Self {
            path,
            _folder: folder,
        }
    }

    /// Where the copy lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the copy for reading; recovery may write to it.
    pub(crate) async fn open(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .foreign_keys(false)
            .connect()
            .await
            .unwrap_or_else(|error| panic!("cannot open a copy: {error}"))
    }
}

/// The first column of the first row of `query`, read through a private copy.
pub(crate) fn number(store: &Path, query: &str) -> i64 {
    try_number(store, query).unwrap_or_else(|error| panic!("{}: {query}: {error}", store.display()))
}

/// All rows of `query` as text, NULL as an empty one, read through a private copy.
pub(crate) fn rows(store: &Path, query: &str) -> Vec<Vec<String>> {
    let copy = PrivateCopy::of(store);
    let rows = block_on(async {
        let mut connection = copy.open().await;
        sqlx::query(AssertSqlSafe(query))
            .fetch_all(&mut connection)
            .await
    });
    let rows = rows.unwrap_or_else(|error| panic!("{}: {query}: {error}", store.display()));
    let text = |row: &SqliteRow, at| {
        row.get_unchecked::<Option<String>, _>(at)
            .unwrap_or_default()
    };
    rows.iter()
        .map(|row| (0..row.len()).map(|at| text(row, at)).collect())
        .collect()
}

/// Runs a script on a store in place, as somebody with another program would, and closes it in good order.
pub(crate) fn change(store: &Path, script: &str) {
    assert!(store.exists(), "{} does not exist", store.display());
    block_on(async {
        let mut connection = open(store, Journal::Wal).await;
        run(&mut connection, script).await;
        connection.close().await.unwrap();
    });
}

/// As [`number`], for queries that a damaged file may refuse.
pub(crate) fn try_number(store: &Path, query: &str) -> Result<i64, sqlx::Error> {
    number_in(&PrivateCopy::of(store), query)
}

/// As [`try_number`], on a copy that was already made.
pub(crate) fn number_in(copy: &PrivateCopy, query: &str) -> Result<i64, sqlx::Error> {
    block_on(async {
        let mut connection = copy.open().await;
        sqlx::query_scalar::<_, i64>(AssertSqlSafe(query))
            .fetch_one(&mut connection)
            .await
    })
}

/// Whether a store passes SQLite's full check, read through a copy.
pub(crate) fn is_sound(store: &Path) -> bool {
    let copy = PrivateCopy::of(store);
    block_on(async {
        let mut connection = copy.open().await;
        sqlx::query_scalar::<_, String>("PRAGMA integrity_check")
            .fetch_one(&mut connection)
            .await
            .is_ok_and(|answer| answer == "ok")
    })
}

/// Compares a full-text index with its content table, in a copy. `integrity_check` does not.
pub(crate) fn check_index(store: &Path, index: &str) -> Result<(), sqlx::Error> {
    let copy = PrivateCopy::of(store);
    let check = format!("INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)");
    block_on(async {
        let mut connection = copy.open().await;
        sqlx::raw_sql(AssertSqlSafe(check))
            .execute(&mut connection)
            .await
            .map(drop)
    })
}

/// Holds the write lock of a live database for a while, as another program would.
pub(crate) fn hold(store: &Path, span: std::time::Duration) {
    block_on(async {
        let mut connection = SqliteConnectOptions::new()
            .filename(store)
            .busy_timeout(std::time::Duration::from_secs(60))
            .connect()
            .await
            .unwrap();
        run(&mut connection, "BEGIN IMMEDIATE").await;
        tokio::time::sleep(span).await;
        run(&mut connection, "ROLLBACK").await;
        connection.close().await.unwrap();
    });
}
