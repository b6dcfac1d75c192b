//! Opening without leaving a trace.
//!
//! A read-only connection to a WAL database still creates `-wal` and `-shm`, and leaves them. So a
//! database without a log is opened `immutable`, one that a writer has open plainly, and one whose
//! log a killed writer left through a private copy.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// Decides how to look at the database at `path` without leaving a trace.
///
/// An index beside it means that somebody may have it open, in this very process too, whatever the
/// root's lock says: then only SQLite may touch it. A copy taken as a file would drop this process's
/// locks on it, and could be half of one state and half of another. What a killed writer left is shared
/// as well: SQLite makes the index anew in place, which changes nothing that counts.
///
/// A rollback journal belongs to a writer that lives, beside which SQLite's locks keep a look right, or was left by a
/// killed one: then half of a transaction is in the file, a look is refused by SQLite, and goes to a private copy.
///
/// `Immutable` is a promise that nobody writes: the caller keeps writers out, or compares
/// [`stamp`]s of before and after.
pub(super) fn choose(path: &Path) -> Result<Look, OpenError> {
    let [wal, shm, journal] = fs::sidecars(path);
    match (has_bytes(&wal), shm.exists()) {
        (_, true) => Ok(Look::Shared),
        (false, false) if has_bytes(&journal) => Ok(Look::Shared),
        (false, false) => Ok(Look::Immutable),
        (true, false) => copy(path),
    }
}

fn has_bytes(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0)
}

/// Size and time of the last change of the database and of its logs, where they exist.
///
/// Equal ones mean that nobody wrote in between: a writer makes a log before it changes the
/// database, and lives longer than the clock of any file system ticks.
pub(super) fn stamp(path: &Path) -> [Option<(u64, SystemTime)>; 3] {
    let [wal, _, journal] = fs::sidecars(path);
    [path, &wal, &journal].map(|file| {
        let meta = std::fs::metadata(file).ok()?;
        Some((meta.len(), meta.modified().ok()?))
    })
}

/// Decides how to look at a database of unknown origin, which somebody may be writing.
///
/// Its header is read outside SQLite: never a file that this process has open through SQLite, whose
/// locks would go with the handle.
pub(super) fn choose_foreign(path: &Path) -> Result<Look, OpenError> {
    let [wal, shm, journal] = fs::sidecars(path);
    if has_bytes(&wal) && !shm.exists() {
        return copy(path);
    }
    // Nobody has a WAL database open that has neither: a plain connection would create both. A journal is of a
    // writer that was turning the one kind into the other.
    if !wal.exists() && !shm.exists() && !has_bytes(&journal) && is_wal(path)? {
        return Ok(Look::Immutable);
    }
    Ok(Look::Shared)
}

/// Decides how to look at a database of any origin that nobody writes.
///
/// * `place`: folder for a private copy, where one is needed.
pub(super) fn choose_still(path: &Path, place: &Path) -> Result<Look, OpenError> {
    let [wal, _, journal] = fs::sidecars(path);
    if has_bytes(&wal) || has_bytes(&journal) {
        return copy_into(path, place);
    }
    Ok(Look::Immutable)
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
fn copy_into(path: &Path, place: &Path) -> Result<Look, OpenError> {
    let dir = tempfile::Builder::new()
        .prefix("zeroclaw-look-")
        .permissions(PermissionsExt::from_mode(0o700))
        .tempdir_in(place)
        .map_err(fs::FsError::at("copying aside", path))?;
    let target = dir.path().join("look.sqlite");
    fs::atomic::copy_scratch(path, &target)?;
    let [wal, _, journal] = fs::sidecars(path);
    let [target_wal, _, target_journal] = fs::sidecars(&target);
    for (from, to) in [(wal, target_wal), (journal, target_journal)] {
        if from.exists() {
            fs::atomic::copy_scratch(&from, &to)?;
        }
    }
    Ok(Look::Copy(dir, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_writer_does_changes_the_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sqlite");
        let [wal, _, journal] = fs::sidecars(&path);
        let mut stamps = vec![stamp(&path)];
        for (file, bytes) in [
            (&path, 0),
            (&path, 8),
            (&wal, 0),
            (&wal, 4),
            (&path, 16),
            (&journal, 4),
        ] {
            std::fs::write(file, vec![0; bytes]).unwrap();
            assert_eq!(stamp(&path), stamp(&path));
            stamps.push(stamp(&path));
        }
        std::fs::remove_file(&wal).unwrap();
        stamps.push(stamp(&path));

        let mut different = stamps.clone();
        different.dedup();

        assert_eq!(different, stamps);
    }
}
