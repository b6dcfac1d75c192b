//! What connections are opened with: pragmas, caches, pools.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqlitePool};

use super::look::Look;
use super::open::Durability;
use crate::fs;
use crate::model::Tier;

/// How long a connection waits for another process: longer than the slowest commit measured
/// (0.6 s behind a forgotten reader), shorter than a person's patience.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Larger pages than SQLite's own 4 KiB made inserts of 584-byte rows 23 % faster.
const PAGE_BYTES: u32 = 8_192;
/// Pages in the log before the writer checkpoints: 8 MiB at our page size.
const CHECKPOINT_PAGES: &str = "1000";
/// The log is cut back to this after a checkpoint, bytes.
const LOG_LIMIT_BYTES: &str = "67108864";
/// Page cache of the writer, KiB as a negative number.
const WRITER_CACHE: &str = "-2000";
/// Page cache of a reader, KiB as a negative number.
const READER_CACHE: &str = "-1000";
/// Page cache of an import's transaction, KiB; those that are open together share it.
const BULK_CACHE_KIB: usize = 65_536;
/// The least that one of many gets.
const LEAST_BULK_CACHE_KIB: usize = 2_000;
/// Rows a statement may run ahead of its reader.
const ROW_BUFFER: usize = 1_024;
/// An idle reader closes after this.
const READER_IDLE: Duration = Duration::from_secs(60);
/// Readers of the control plane: cores × 2 on the smallest machine meant.
const GLOBAL_READERS: u32 = 4;
/// Readers of one agent: each costs a thread and three descriptors, and agents are many.
const AGENT_READERS: u32 = 2;

fn base_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .row_buffer_size(ROW_BUFFER)
        // A statement may hold what somebody said, and a slow disk is no news to who waits for it.
        .disable_statement_logging()
        // Sorting and scratch tables stay off the disk, where they would not be private.
        .pragma("temp_store", "MEMORY")
        // A schema is input: it may not reach functions with side effects.
        .pragma("trusted_schema", "OFF")
}

pub(super) fn write_options(path: &Path, durability: Durability) -> SqliteConnectOptions {
    let options = writing(path);
    // What cannot be told apart is taken as local, as SQLite itself would.
    match fs::space::filesystem(path) {
        // A log shared through memory needs one machine: elsewhere it corrupts.
        Ok(fs::FilesystemKind::Network(_) | fs::FilesystemKind::CrossVm(_)) => options
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(synchronous(durability, SqliteSynchronous::Extra)),
        Ok(fs::FilesystemKind::Local | fs::FilesystemKind::Volatile(_)) | Err(_) => options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous(durability, SqliteSynchronous::Full)),
    }
}

/// A writer that leaves the file with a rollback journal: see [`super::Access::Load`].
pub(super) fn load_options(path: &Path) -> SqliteConnectOptions {
    writing(path)
        .journal_mode(SqliteJournalMode::Delete)
        .synchronous(SqliteSynchronous::Extra)
}

/// A writer for one long transaction, always durable, whatever log the file has.
///
/// * `others`: transactions of other databases that are open beside it.
pub(super) fn bulk_options(path: &Path, others: usize) -> SqliteConnectOptions {
    let cache = (BULK_CACHE_KIB / (others + 1)).max(LEAST_BULK_CACHE_KIB);
    writing(path)
        .synchronous(SqliteSynchronous::Extra)
        .pragma("cache_size", format!("-{cache}"))
}

/// * `full`: what makes a commit durable. A commit with a rollback journal is the removal of that journal, which only
///   EXTRA waits for: under FULL a power loss brings the journal back, and the journal takes the commit back.
fn synchronous(durability: Durability, full: SqliteSynchronous) -> SqliteSynchronous {
    match durability {
        Durability::Full => full,
        Durability::Normal => SqliteSynchronous::Normal,
    }
}

fn writing(path: &Path) -> SqliteConnectOptions {
    base_options(path)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("journal_size_limit", LOG_LIMIT_BYTES)
        .pragma("cache_size", WRITER_CACHE)
        .optimize_on_close(true, 400)
}

/// What is decided when a file is made. Said to a file that exists, the second would be a write, and a
/// sync, at every open.
pub(super) fn with_layout(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .page_size(PAGE_BYTES)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
}

/// Readers beside a writer.
pub(super) fn pooled_options(path: &Path) -> SqliteConnectOptions {
    read_options(path).pragma("cache_size", READER_CACHE)
}

pub(super) fn read_options(path: &Path) -> SqliteConnectOptions {
    base_options(path)
        .read_only(true)
        .pragma("query_only", "ON")
}

pub(super) fn look_options(path: &Path, look: &Look) -> SqliteConnectOptions {
    match look {
        Look::Immutable => read_options(path).immutable(true),
        Look::Shared => read_options(path),
        // Private: a journal in it may be rolled back, which reading alone must not.
        Look::Copy(_, copy) => read_options(copy).read_only(false),
    }
}

/// Readers, opened when they are needed.
pub(super) fn pool(options: SqliteConnectOptions, tier: &Tier) -> SqlitePool {
    let size = match tier {
        Tier::Global => GLOBAL_READERS,
        Tier::Agent(_) => AGENT_READERS,
    };
    SqlitePoolOptions::new()
        .min_connections(0)
        .max_connections(size)
        .idle_timeout(READER_IDLE)
        .test_before_acquire(false)
        .connect_lazy_with(options)
}
