//! Runs of doctor and the receipts of what they brought in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text_enum;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MigrationStatus {
    /// Under way, or cut off and to be continued.
    Running,
    /// Everything in.
    Completed,
    /// In, with records refused or sources left.
    Warning,
    /// At least one source failed.
    Failed,
}

text_enum!(MigrationStatus {
    Running => "running",
    Completed => "completed",
    Warning => "warning",
    Failed => "failed",
});

/// The phase a run has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Archiving what there was.
    Backup,
    /// Bringing sources in.
    Apply,
    /// Reading them back.
    Verify,
    /// Moving proven sources aside.
    Retire,
    /// Building full-text indexes.
    Index,
    /// Done; writing the report.
    Report,
}

text_enum!(RunPhase {
    Backup => "backup",
    Apply => "apply",
    Verify => "verify",
    Retire => "retire",
    Index => "index",
    Report => "report",
});

/// One `doctor --fix` that had something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationRun {
    /// Identity; also the name of its folder of retired sources.
    pub id: String,
    /// When it began.
    pub started_at_ms: i64,
    /// When it ended.
    pub finished_at_ms: Option<i64>,
    /// How.
    pub status: MigrationStatus,
    /// Phase reached.
    pub phase: RunPhase,
    /// Foreign root of the sources.
    pub from_path: Option<String>,
    /// Archive made before the first change.
    pub backup_path: Option<String>,
    /// Release that did it.
    pub app_version: String,
    /// JSON text for people and tools.
    pub report_json: String,
}

/// What became of one kind of record of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindCount {
    /// Records read.
    pub records: u64,
    /// Rows that are new.
    pub imported: u64,
    /// Rows that were there already, from this source or an equal one.
    pub present: u64,
    /// Records folded into a row of another source.
    pub merged: u64,
    /// Records not taken, each named with its reason.
    pub refused: u64,
}

impl KindCount {
    /// Whether every record is accounted for.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.records == self.imported + self.present + self.merged + self.refused
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.imported += other.imported;
        self.present += other.present;
        self.merged += other.merged;
        self.refused += other.refused;
    }
}

/// One tier's share of a receipt, committed with the rows it speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierReceipt {
    /// Identity of the source.
    pub source_key: String,
    /// Digest of the source's content when it was read.
    pub source_sha256: String,
    /// Run that brought it in.
    pub run_id: String,
    /// When.
    pub imported_at_ms: i64,
    /// Counts by kind of record.
    pub counts: BTreeMap<String, KindCount>,
}

/// What has become of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceStatus {
    /// Rows committed.
    Applied,
    /// Rows read back and found equal.
    Verified,
    /// Moved aside after proof.
    Retired,
    /// Stays a file.
    Kept,
    /// Not imported by rule.
    Discarded,
    /// Not imported; untouched in place.
    Failed,
}

text_enum!(SourceStatus {
    Applied => "applied",
    Verified => "verified",
    Retired => "retired",
    Kept => "kept",
    Discarded => "discarded",
    Failed => "failed",
});

/// What a receipt says at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// What has become of the source.
    pub status: SourceStatus,
    /// Records of it that were not taken.
    pub refused: u64,
    /// When it was last brought in.
    pub imported_at_ms: i64,
}

/// The receipt of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReceipt {
    /// Identity of the source.
    pub source_key: String,
    /// Format it was read as.
    pub migration_kind: String,
    /// Path relative to the root it was found in.
    pub source_path: String,
    /// Table most of it went to.
    pub target_table: String,
    /// Digest of its content when it was read.
    pub source_sha256: String,
    /// Its size, bytes.
    pub source_size_bytes: i64,
    /// Totals over all kinds of record.
    pub total: KindCount,
    /// Run that last spoke of it.
    pub last_run_id: String,
    /// What has become of it.
    pub status: SourceStatus,
    /// When.
    pub imported_at_ms: i64,
    /// Whether it was moved aside.
    pub removed_source: bool,
    /// Where to.
    pub retired_path: Option<String>,
    /// JSON text: counts by kind, refused records, notes.
    pub report_json: String,
}
