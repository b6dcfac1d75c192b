//! The only room that knows SQLite: files, pragmas, transactions, migrations, checks, snapshots.
//!
//! It owns how a database is opened and written, and refuses to know what is in it: rows belong to
//! `store`. One writer a file, many readers; every write begins with `BEGIN IMMEDIATE`, so that it
//! waits at the door and not half way.
//!
//! A pool of writers was measured and lost: with 64 callers a pool of eight managed 4,000 durable
//! appends a second with single waits of 1.5 s, one writer that commits for all 18,000 with 6 ms.

mod belongings;
mod bind;
mod check;
mod copy;
mod error;
mod identity;
mod look;
mod migrate;
mod open;
mod options;
mod query;
mod rows;
mod snapshot;
mod stats;
mod tidy;
mod tx;
mod undone;
mod writer;

pub use belongings::{
    HISTORY, OF_TASKS, OWNED, TaskMention, copy_belongings, give_tier, may_belong, put_belongings,
};
pub use bind::bound;
pub use check::{FULL_TEXT_INDEXES, check_connection, check_full_text, check_relations};
pub use copy::{DbCopy, Erase, Erased};
pub use error::{DbError, DbErrorKind, OpenError};
pub use migrate::{Release, known_version, tables_of};
pub use open::{Access, Db, Durability, ReadTx, Reader, WriteAccess};
pub use query::{QueryError, Sealed};
pub use rows::TableRows;
pub use snapshot::{SnapshotGate, SnapshotRun, SnapshotSource, open_snapshot};
pub use stats::{DbPages, DbProof, TableSize};
pub use tx::{BulkTx, WriteTx};
pub use writer::BoxFuture;

/// One connection, for reading or inside a transaction.
pub type Connection = sqlx::SqliteConnection;

/// SQLite older than this carries the WAL-reset corruption bug.
const SQLITE_FLOOR: [u32; 3] = [3, 51, 3];
