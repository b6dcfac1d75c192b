//! Opening without leaving a trace.
//!
//! A read-only connection to a WAL database still creates `-wal` and `-shm`, and leaves them. So a
//! database at rest (no log beside it) is opened `immutable`, one with a log and its index beside it
//! plainly, and one with a log but no index through a private copy.

use std::os::unix::fs::PermissionsExt;
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

/// Decides how to look at a database of unknown origin, which somebody may be writing.
///
/// Its header is read outside SQLite: never a file that this process has open through SQLite, whose
/// locks would go with the handle.
pub(super) fn choose_foreign(path: &Path) -> Result<Look, OpenError> {
    let [wal, shm, _] = fs::sidecars(path);
    let has_log = std::fs::metadata(&wal).is_ok_and(|meta| meta.len() > 0);
    if has_log && !shm.exists() {
        return copy(path);
    }
    // Nobody has a WAL database open that has neither: a plain connection would create both.
    if !wal.exists() && !shm.exists() && is_wal(path)? {
        return Ok(Look::Immutable);
    }
    Ok(Look::Shared)
}

/// Whether the header asks for a write-ahead log: byte 19 of the file format, "read version".
fn is_wal(path: &Path) -> Result<bool, fs::FsError> {
    use std::io::Read;
    let mut header = [0; 20];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) => Ok(header[19] == 2),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(fs::FsError::at("reading", path)(error)),
    }
}

/// Copies the database, its log and its rollback journal into a private folder of the system's place
/// for temporary files.
pub(super) fn copy(path: &Path) -> Result<Look, OpenError> {
    copy_into(path, &std::env::temp_dir())
}

/// The same into a private folder in `place`.
pub(super) fn copy_into(path: &Path, place: &Path) -> Result<Look, OpenError> {
    let dir = tempfile::Builder::new()
        .prefix("zeroclaw-look-")
        .permissions(PermissionsExt::from_mode(0o700))
        .tempdir_in(place)
        .map_err(fs::FsError::at("copying aside", path))?;
    let target = dir.path().join("look.sqlite");
    fs::atomic::copy_private(path, &target)?;
    let [wal, _, journal] = fs::sidecars(path);
    let [target_wal, _, target_journal] = fs::sidecars(&target);
    for (from, to) in [(wal, target_wal), (journal, target_journal)] {
        if from.exists() {
            fs::atomic::copy_private(&from, &to)?;
        }
    }
    Ok(Look::Copy(dir, target))
}
