//! Before the first change: nobody else at work, room enough, a place that can be written.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use zeroclaw::fs::space;

/// The old daemon rewrites its state file every few seconds; older than this it has stopped.
const FRESH: Duration = Duration::from_secs(30);

/// Space that must be free for each byte that comes in: rows, their log, their index.
const GROWTH: u64 = 3;

/// Space that must be free besides, bytes: new databases and their logs.
const RESERVE: u64 = 8 * 1024 * 1024;

/// Why a run must not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PreflightError {
    /// The old program is running on the sources.
    #[error("an old zeroclaw daemon is running on {}{}", .root.display(), .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    OldDaemon {
        /// The root it runs on.
        root: PathBuf,
        /// Its process, where its state file says so.
        pid: Option<u64>,
    },
    /// There is not enough room.
    #[error("{} has {free} bytes free, the import needs about {needed}", .path.display())]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The place cannot be written.
    #[error("{} is on a read-only medium", .path.display())]
    ReadOnly {
        /// Where.
        path: PathBuf,
    },
}

/// Looks for an old daemon on the root that is imported.
pub(crate) fn old_daemon(root: &Path) -> Result<(), PreflightError> {
    let pid = daemon_state(root);
    let lock = root.join("data/daemon.sock.lock");
    // A lock of the operating system is the reliable sign; the state file is a weak one.
    let is_locked = File::open(&lock)
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)));
    let is_fresh = std::fs::metadata(root.join("state/daemon_state.json"))
        .and_then(|meta| meta.modified())
        .is_ok_and(|modified| {
            SystemTime::now()
                .duration_since(modified)
                .is_ok_and(|age| age < FRESH)
        });
    let is_alive = pid.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
    if is_locked || (is_fresh && is_alive) {
        return Err(PreflightError::OldDaemon {
            root: root.to_owned(),
            pid,
        });
    }
    Ok(())
}

fn daemon_state(root: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(root.join("state/daemon_state.json")).ok()?;
    serde_json::from_str::<serde_json::Value>(&text).ok()?["pid"].as_u64()
}

/// Checks that `target` can take `import_bytes` of sources, with an archive of `archive_bytes` first.
pub(crate) fn room(
    target: &Path,
    import_bytes: u64,
    archive_bytes: u64,
) -> Result<(), PreflightError> {
    // What cannot be asked is left to the write that will tell.
    if space::is_read_only(target).unwrap_or(false) {
        return Err(PreflightError::ReadOnly {
            path: target.to_owned(),
        });
    }
    let needed = import_bytes * GROWTH + archive_bytes + RESERVE;
    match space::free_bytes(target) {
        Ok(free) if free < needed => Err(PreflightError::NoSpace {
            path: target.to_owned(),
            needed,
            free,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_means_a_daemon_and_a_stale_file_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("data/daemon.sock.lock");
        std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
        std::fs::write(&lock, "").unwrap();
        assert!(old_daemon(folder.path()).is_ok());

        let held = File::open(&lock).unwrap();
        held.lock().unwrap();
        assert!(matches!(
            old_daemon(folder.path()),
            Err(PreflightError::OldDaemon { .. })
        ));
    }

    #[test]
    fn too_little_room_is_told_in_bytes() {
        let folder = tempfile::tempdir().unwrap();

        let error = room(folder.path(), u64::MAX / 8, 0).unwrap_err();

        assert!(matches!(error, PreflightError::NoSpace { .. }), "{error}");
    }
}
