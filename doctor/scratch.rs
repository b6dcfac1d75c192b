//! Private folders for copies of sources, and those that killed runs left behind.
//!
//! A folder belongs to who holds the lock in it. The lock goes with its process however that ends, so a folder whose
//! lock can be had is nobody's any more.

use std::fs::{DirEntry, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use zeroclaw::fs::{FsError, atomic};

/// How the names of all such folders begin.
const PREFIX: &str = "zeroclaw-doctor-";
/// File under the lock of the folder's owner.
const LOCK: &str = "owner.lock";
/// Its name until it is locked.
const UNLOCKED: &str = "owner.new";
/// A folder that nobody ever locked is given up after this: it is locked right after it is made.
const UNOWNED: Duration = Duration::from_secs(3_600);

/// A folder for private copies, gone with its value.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    /// Makes one in the system's place for temporary files.
    ///
    /// # Errors
    ///
    /// [`FsError`] when it cannot be made.
    pub(crate) fn make() -> Result<Self, FsError> {
        Self::make_in(&std::env::temp_dir())
    }

    fn make_in(place: &Path) -> Result<Self, FsError> {
        let made = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(PermissionsExt::from_mode(0o700))
            .tempdir_in(place);
        let folder = made.map_err(FsError::at("making a private folder", place))?;
        let unlocked = folder.path().join(UNLOCKED);
        let lock = atomic::create_file_private(&unlocked)?;
        lock.lock().map_err(FsError::at("lock", &unlocked))?;
        // Under its last name it is never seen without its lock.
        let named = folder.path().join(LOCK);
        std::fs::rename(&unlocked, &named).map_err(FsError::at("rename", &unlocked))?;
        zeroclaw::fs::fault("doctor-scratch");
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what killed runs left in the system's place for temporary files; gives how many folders went.
pub(crate) fn sweep() -> usize {
    sweep_in(&std::env::temp_dir())
}

/// What cannot be removed stays for the next time.
fn sweep_in(place: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(place) else {
        return 0;
    };
    let left = entries.flatten().filter(is_left_behind);
    left.filter(|entry| std::fs::remove_dir_all(entry.path()).is_ok())
        .count()
}

fn is_left_behind(entry: &DirEntry) -> bool {
    let is_named = entry
        .file_name()
        .to_str()
        .is_some_and(|name| name.starts_with(PREFIX));
    // Of the entry itself, not of what a link leads to; and nobody else's, whose lock would say nothing.
    let Ok(meta) = entry.metadata() else {
        return false;
    };
    is_named
        && meta.is_dir()
        && meta.uid() == rustix::process::geteuid().as_raw()
        && is_dead(&entry.path())
}

fn is_dead(folder: &Path) -> bool {
    let lock = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(folder.join(LOCK));
    match lock {
        // Only taken to see whether it can be: it goes with the handle.
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => is_old(folder),
        Err(_) => false,
    }
}

fn is_old(folder: &Path) -> bool {
    let made = std::fs::metadata(folder).and_then(|meta| meta.modified());
    made.is_ok_and(|made| {
        SystemTime::now()
            .duration_since(made)
            .is_ok_and(|age| age > UNOWNED)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_go_and_all_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let living = Scratch::make_in(place.path()).unwrap();
        for name in [
            "zeroclaw-doctor-dead",
            "zeroclaw-doctor-fresh",
            "zeroclaw-doctor-old",
        ] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("zeroclaw-doctor-dead/owner.lock"), "").unwrap();
        std::fs::write(at("zeroclaw-doctor-dead/copy.db"), "rows").unwrap();
        let long_ago = SystemTime::now() - 2 * UNOWNED;
        let old = File::open(at("zeroclaw-doctor-old")).unwrap();
        old.set_modified(long_ago).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("other/owner.lock"), "").unwrap();
        std::os::unix::fs::symlink(at("other"), at("zeroclaw-doctor-link")).unwrap();

        assert_eq!(sweep_in(place.path()), 2);

        assert!(!at("zeroclaw-doctor-dead").exists() && !at("zeroclaw-doctor-old").exists());
        assert!(living.path().exists() && at("zeroclaw-doctor-fresh").exists());
        assert!(at("other").exists() && at("zeroclaw-doctor-link").symlink_metadata().is_ok());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
