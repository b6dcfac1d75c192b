//! Where the disk went, and what making databases smaller gave back.

use serde::{Deserialize, Serialize};

/// What a table takes up in its database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableStats {
    /// The table; a full-text index counts as one.
    pub table: String,
    /// What is kept there: see [`KindStats`].
    pub kind: String,
    /// Rows, indexes and what is unused of them, bytes.
    pub bytes: u64,
    /// The indexes' part.
    pub index_bytes: u64,
    /// What of it holds nothing.
    pub unused_bytes: u64,
}

/// One database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierStats {
    /// `global` or `agent <id>`.
    pub tier: String,
    /// Path relative to the root.
    pub path: String,
    /// Size of the main file.
    pub file_bytes: u64,
    /// Size of the write-ahead log.
    pub wal_bytes: u64,
    /// Pages that hold nothing: `db compact` gives them back.
    pub free_bytes: u64,
    /// Files of its workspace, for an agent.
    pub workspace_bytes: u64,
    /// Its tables, the largest first.
    pub tables: Vec<TableStats>,
    /// Why it cannot be read; `None` when it can.
    pub error: Option<String>,
}

/// What is kept, over all databases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindStats {
    /// For example `conversations`, `search indexes`, `files`.
    pub kind: String,
    /// Bytes of its tables and indexes.
    pub bytes: u64,
}

/// Files beside the databases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderStats {
    /// What they are.
    pub what: String,
    /// Path relative to the root.
    pub path: String,
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be read, and is in neither number.
    pub unreadable: u64,
}

/// Where the disk went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootStats {
    /// The root folder.
    pub root: String,
    /// Everything below it.
    pub total_bytes: u64,
    /// What the file system still has.
    pub available_bytes: u64,
    /// Databases, control plane first.
    pub tiers: Vec<TierStats>,
    /// What is kept in them, the largest first.
    pub kinds: Vec<KindStats>,
    /// Files beside them.
    pub folders: Vec<FolderStats>,
}

/// What became of one database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierCompacted {
    /// `global` or `agent <id>`.
    pub tier: String,
    /// Size before, log included.
    pub before_bytes: u64,
    /// Size after; in a dry run what can be expected.
    pub after_bytes: u64,
    /// Room it needs beside the file while it lasts.
    pub needed_bytes: u64,
    /// Room there is.
    pub available_bytes: u64,
    /// Why it is left as it is; `None` when it was made smaller, or would be.
    pub refused: Option<CompactRefusal>,
    /// The same in words.
    pub reason: Option<String>,
}

/// Why a database is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactRefusal {
    /// It cannot be opened.
    Unreadable,
    /// A check found something wrong.
    Damaged,
    /// There is no room for it.
    NoSpace,
}

/// What became of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootCompacted {
    /// By database.
    pub tiers: Vec<TierCompacted>,
    /// Bytes given back to the disk; in a dry run what can be expected.
    pub freed_bytes: u64,
    /// Whether everything is as it was.
    pub is_dry_run: bool,
}
