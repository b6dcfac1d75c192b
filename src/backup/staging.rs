//! Folders in which work is done: beside an archive's destination to make it, among temporary files to prove it.
//!
//! They go in every outcome. One that a killed process left behind goes when the next one is made beside it.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::BackupError;
use crate::fs::{FsError, atomic, process};
use crate::model::{Liveness, ProcessIdentity};

const PREFIX: &str = ".zeroclaw-backup-";
const SUFFIX: &str = ".partial";
const SCRATCH_PREFIX: &str = "zeroclaw-verify-";
/// File that names the process at work.
const OWNER: &str = "owner.json";
/// A folder without a readable owner is given up after this: its owner is written right after it is made.
const UNOWNED: Duration = Duration::from_secs(3_600);

/// A private folder that goes when this is dropped.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
}

/// Where the bytes of members lie.
#[derive(Clone, Debug)]
pub(super) struct Contents {
    tree: PathBuf,
    in_place: BTreeMap<String, PathBuf>,
}

impl Contents {
    /// For members that lie under `tree`, each under its path in the archive.
    pub(super) fn in_tree(tree: PathBuf) -> Self {
        Self {
            tree,
            in_place: BTreeMap::new(),
        }
    }

    /// Says that a member is read from where it is: a copy of a large file costs as many bytes again.
    pub(super) fn leave(&mut self, archive_path: &str, path: PathBuf) {
        self.in_place.insert(archive_path.to_owned(), path);
    }

    /// Where a member's bytes are.
    pub(super) fn path(&self, archive_path: &str) -> PathBuf {
        let in_place = self.in_place.get(archive_path).cloned();
        in_place.unwrap_or_else(|| self.tree.join(archive_path))
    }
}

/// Whether a name is that of a staging folder.
pub(super) fn is_staging_name(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

impl Staging {
    /// Makes the folder in `beside`, after removing those of dead processes.
    ///
    /// # Errors
    ///
    /// [`BackupError::Fs`] when it cannot be made.
    pub(super) fn create(beside: &Path, id: &str) -> Result<Self, BackupError> {
        sweep(beside, is_staging_name);
        let path = beside.join(format!("{PREFIX}{id}{SUFFIX}"));
        atomic::create_dir_private(&path)?;
        let staging = Self { path };
        sign(&staging.path)?;
        Ok(staging)
    }

    /// Where the members lie.
    pub(super) fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// Where the archive is written.
    pub(super) fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// Makes the folder for a member and gives its path.
    pub(super) fn place(&self, archive_path: &str) -> Result<PathBuf, FsError> {
        let path = self.tree().join(archive_path);
        if let Some(folder) = path.parent() {
            atomic::create_dir_private(folder)?;
        }
        Ok(path)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "staging folder stays behind");
        }
    }
}

/// Makes a private folder for unpacked databases, which goes when this is dropped, after removing those of dead
/// processes.
///
/// # Errors
///
/// [`BackupError::Fs`] when it cannot be made.
pub(super) fn scratch() -> Result<TempDir, BackupError> {
    scratch_in(&std::env::temp_dir())
}

fn scratch_in(place: &Path) -> Result<TempDir, BackupError> {
    sweep(place, |name| name.starts_with(SCRATCH_PREFIX));
    // Everybody may write there: only a folder that did not exist is taken.
    let made = tempfile::Builder::new()
        .prefix(SCRATCH_PREFIX)
        .permissions(PermissionsExt::from_mode(0o700))
        .tempdir_in(place);
    let scratch = made.map_err(FsError::at("make a folder in", place))?;
    sign(scratch.path())?;
    Ok(scratch)
}

/// Writes into a folder which process works in it.
fn sign(folder: &Path) -> Result<(), FsError> {
    let text = serde_json::to_vec(&process::own())
        .expect("invariant: an owner has text keys and plain values only");
    atomic::write_private(&folder.join(OWNER), &text)
}

/// Removes what dead processes left in `folder`. What cannot be removed stays for the next time.
fn sweep(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_named = entry.file_name().to_str().is_some_and(&is_ours);
        if is_named && is_own_folder(&entry, folder) && is_dead(&entry.path()) {
            tracing::info!(path = %entry.path().display(), "removing what a process left that was cut off");
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Not a link, and not somebody else's, whose word would say nothing. What the superuser makes belongs to the owner of
/// the folder around it.
fn is_own_folder(entry: &std::fs::DirEntry, around: &Path) -> bool {
    let Ok(meta) = entry.metadata() else {
        return false;
    };
    let is_own = meta.uid() == rustix::process::geteuid().as_raw()
        || std::fs::metadata(around).is_ok_and(|around| around.uid() == meta.uid());
    meta.is_dir() && is_own
}

fn is_dead(folder: &Path) -> bool {
    let owner = std::fs::read(folder.join(OWNER)).ok();
    let owner = owner.and_then(|text| serde_json::from_slice::<ProcessIdentity>(&text).ok());
    match owner.map(|owner| process::liveness(&owner)) {
        Some(Liveness::Gone) => true,
        Some(Liveness::Alive) => false,
        Some(Liveness::Unknown) | None => is_older(folder, UNOWNED),
    }
}

fn is_older(folder: &Path, than: Duration) -> bool {
    let made = std::fs::metadata(folder).and_then(|meta| meta.modified());
    made.is_ok_and(|made| {
        SystemTime::now()
            .duration_since(made)
            .is_ok_and(|age| age > than)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_process_loses_its_folder_and_a_living_one_keeps_it() {
        let home = tempfile::tempdir().unwrap();
        let living = Staging::create(home.path(), "living").unwrap();
        let dead = home.path().join(".zeroclaw-backup-dead.partial");
        std::fs::create_dir(&dead).unwrap();
        let owner = r#"{"pid": 4000000, "start_ticks": 1, "boot_id": null}"#;
        std::fs::write(dead.join(OWNER), owner).unwrap();
        let fresh = home.path().join(".zeroclaw-backup-fresh.partial");
        std::fs::create_dir(&fresh).unwrap();

        let next = Staging::create(home.path(), "next").unwrap();

        assert!(!dead.exists());
        assert!(living.path.exists() && fresh.exists());
        let path = next.path.clone();
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn a_scratch_folder_of_a_dead_process_goes_with_the_next_and_of_others_stays() {
        let home = tempfile::tempdir().unwrap();
        let living = scratch_in(home.path()).unwrap();
        let dead = home.path().join("zeroclaw-verify-dead");
        std::fs::create_dir(&dead).unwrap();
        let owner = r#"{"pid": 4000000, "start_ticks": 1, "boot_id": null}"#;
        std::fs::write(dead.join(OWNER), owner).unwrap();
        std::fs::write(dead.join("1.sqlite"), "rows").unwrap();
        let unsigned = home.path().join("zeroclaw-verify-unsigned");
        std::fs::create_dir(&unsigned).unwrap();
        let long_ago = SystemTime::now() - 2 * UNOWNED;
        let handle = std::fs::File::open(&unsigned).unwrap();
        handle.set_modified(long_ago).unwrap();
        let other = home.path().join("zeroclaw-other");
        std::fs::create_dir(&other).unwrap();
        let link = home.path().join("zeroclaw-verify-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();

        let next = scratch_in(home.path()).unwrap();

        assert!(!dead.exists() && !unsigned.exists());
        assert!(living.path().exists() && next.path().exists());
        assert!(other.exists() && link.symlink_metadata().is_ok());
        let mode = next.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
