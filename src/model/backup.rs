//! Records of backups.

use serde::{Deserialize, Serialize};

use super::text_enum;

/// What was done with an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupKind {
    /// Written.
    Create,
    /// Proved.
    Verify,
    /// Brought back.
    Restore,
}

text_enum!(BackupKind { Create => "create", Verify => "verify", Restore => "restore" });

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupStatus {
    /// Under way.
    Running,
    /// Done.
    Completed,
    /// Failed; the error says why.
    Failed,
    /// Its process died.
    Interrupted,
}

text_enum!(BackupStatus {
    Running => "running",
    Completed => "completed",
    Failed => "failed",
    Interrupted => "interrupted",
});

/// How old the newest good backup is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupFreshness {
    /// There is none.
    Missing,
    /// Recent enough.
    Fresh,
    /// Older than it should be.
    Stale,
}

text_enum!(BackupFreshness { Missing => "missing", Fresh => "fresh", Stale => "stale" });

/// Why retention keeps an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// One of the newest.
    Last,
    /// The newest of its day.
    Daily,
    /// The newest of its week.
    Weekly,
    /// The newest of its month.
    Monthly,
    /// The newest of all: it stays whatever the rules say.
    Newest,
    /// Dated later than now: a clock was wrong, and its age is not known.
    Future,
    /// Made by an import before its first change.
    BeforeImport,
    /// A person named it.
    OwnName,
    /// It holds no control plane, so it is no backup of a whole root.
    NotWhole,
    /// No rule was given.
    NoRule,
}

text_enum!(KeepReason {
    Last => "last",
    Daily => "daily",
    Weekly => "weekly",
    Monthly => "monthly",
    Newest => "newest",
    Future => "future",
    BeforeImport => "before_import",
    OwnName => "own_name",
    NotWhole => "not_whole",
    NoRule => "no_rule",
});

/// One backup, verification or restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRun {
    /// Identity.
    pub id: String,
    /// What was done.
    pub kind: BackupKind,
    /// When it began.
    pub created_at_ms: i64,
    /// When it ended.
    pub finished_at_ms: Option<i64>,
    /// The archive.
    pub archive_path: String,
    /// Its size, bytes.
    pub archive_bytes: Option<i64>,
    /// How it went.
    pub status: BackupStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// The manifest, or `{}` before there is one.
    pub manifest_json: String,
}
