//! Opening without leaving a trace.
//!
//! A read-only connection to a WAL database still creates `-wal` and `-shm`, and leaves them. So a
//! database at rest (no log beside it) is opened `immutable`, one with a log and its index beside it
//! plainly, and one with a log but no index through a private copy.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::OpenError;
use crate::fs;

/// How a database is looked at.
#[derive(Debug)]
pub(super) enum Look {
    /// At rest: nobody writes, there is no log.
    Immutable,
    /// A log and its index lie beside it; SQLite shares them.
    Shared,
    /// A log without index: read from a copy that goes with this value.
    Copy(TempDir, PathBuf),
}

/// Decides how to look at the database at `path`.
///
/// `is_at_rest` says that the caller holds the root against writers; only then may a file without
/// a log be taken as immutable.
pub(super) fn choose(path: &Path, is_at_rest: bool) -> Result<Look, OpenError> {
    let [wal, shm, _] = fs::sidecars(path);
    let has_log = std::fs::metadata(&wal).is_ok_and(|meta| meta.len() > 0);
    let has_index = shm.exists();
    match (has_log, has_index) {
        (false, _) if is_at_rest => Ok(Look::Immutable),
        (false, false) => Ok(Look::Immutable),
        (_, true) => Ok(Look::Shared),
        (true, false) => copy(path),
    }
}

/// Copies the database and its log into a private folder.
pub(super) fn copy(path: &Path) -> Result<Look, OpenError> {
    let dir = tempfile::Builder::new()
        .prefix("zeroclaw-look-")
        .tempdir()
        .map_err(fs::FsError::at("copying aside", path))?;
    let target = dir.path().join("look.sqlite");
    fs::atomic::copy_private(path, &target)?;
    let [wal, _, _] = fs::sidecars(path);
    if wal.exists() {
        let [target_wal, _, _] = fs::sidecars(&target);
        fs::atomic::copy_private(&wal, &target_wal)?;
    }
    Ok(Look::Copy(dir, target))
}
