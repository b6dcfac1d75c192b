//! Files that hold memories, and the entries found in them.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// An indexed file with its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedFile {
    /// Where it lies, relative to the root it was found in.
    pub path: String,
    /// SHA-256 of its bytes, hex.
    pub hash: String,
    /// When it was last changed.
    pub mtime_ms: i64,
    /// How many bytes.
    pub size_bytes: i64,
    /// Its entries, in order.
    pub entries: Vec<IndexedEntry>,
}

/// One entry of such a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedEntry {
    /// Identity within its file: of its text, whatever line it moves to.
    pub id: String,
    /// First line, from 1.
    pub start_line: i64,
    /// Last line.
    pub end_line: i64,
    /// `core` or `daily`.
    pub category: String,
    /// Name of the entry, where it has one.
    pub key: Option<String>,
    /// What it says.
    pub text: String,
}

/// An entry as a listing or a search shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexedHit {
    /// Owner.
    pub agent_id: AgentId,
    /// Its file.
    pub path: String,
    /// bm25 of SQLite's FTS5, the lower the better; `None` in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<f64>,
    /// The entry itself.
    #[serde(flatten)]
    pub entry: IndexedEntry,
}

/// What indexing an agent's memory files anew did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reindexed {
    /// The agent.
    pub agent_id: AgentId,
    /// Whether its workspace is there; where it is not, the index stays as it was.
    pub has_workspace: bool,
    /// Files that are indexed.
    pub files: u64,
    /// Their entries.
    pub entries: u64,
    /// Files that were written, because they are new or have changed.
    pub indexed: u64,
    /// Files whose rows went, because they are gone.
    pub removed: u64,
    /// Whether the word index was built anew.
    pub words_rebuilt: bool,
    /// Files that could not be read.
    pub skipped: Vec<SkippedFile>,
}

impl Reindexed {
    /// A report on an agent before anything was done.
    #[must_use]
    pub fn of(agent_id: AgentId) -> Self {
        Self {
            agent_id,
            has_workspace: true,
            files: 0,
            entries: 0,
            indexed: 0,
            removed: 0,
            words_rebuilt: false,
            skipped: Vec::new(),
        }
    }
}

/// A file that was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedFile {
    /// The file.
    pub path: String,
    /// Why.
    pub reason: String,
}
