//! What can be proved about a database.

use serde::{Deserialize, Serialize};

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Nothing found.
    Ok,
    /// Something found; the lines say what, bounded in number.
    Failed {
        /// SQLite's own words.
        lines: Vec<String>,
    },
}

impl CheckOutcome {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}

/// All checks of one tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierCheck {
    /// `global` or `agent <id>`.
    pub tier: String,
    /// Path relative to the root.
    pub path: String,
    /// Its schema version; `None` when it cannot be read.
    pub schema_version: Option<i64>,
    /// Size of the main file, bytes.
    pub size_bytes: u64,
    /// Size of the write-ahead log, bytes.
    pub wal_bytes: u64,
    /// `PRAGMA integrity_check`.
    pub integrity: CheckOutcome,
    /// `PRAGMA foreign_key_check`.
    pub foreign_keys: CheckOutcome,
    /// FTS5 integrity check at rank 1, all indexes.
    pub full_text: CheckOutcome,
    /// Role, owner and tables are what the schema version promises.
    pub identity: CheckOutcome,
}

impl TierCheck {
    /// Whether every check passed.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        [
            &self.integrity,
            &self.foreign_keys,
            &self.full_text,
            &self.identity,
        ]
        .into_iter()
        .all(CheckOutcome::is_ok)
    }
}
