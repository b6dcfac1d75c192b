//! The folder beside an archive's destination in which it is made.
//!
//! It goes in every outcome. One that a killed process left behind goes when the next archive is made beside it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::BackupError;
use crate::fs::{FsError, atomic, process};

const PREFIX: &str = ".zeroclaw-backup-";
const SUFFIX: &str = ".partial";
/// File that names the process at work.
const OWNER: &str = "owner.json";
/// A folder without a readable owner is given up after this: its owner is written right after it is made.
const UNOWNED: Duration = Duration::from_secs(3_600);

/// A private folder that goes when this is dropped.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Owner {
    pid: u32,
    start_ticks: Option<u64>,
    boot_id: Option<String>,
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
        sweep(beside);
        let path = beside.join(format!("{PREFIX}{id}{SUFFIX}"));
        atomic::create_dir_private(&path)?;
        let staging = Self { path };
        let pid = std::process::id();
        let owner = Owner {
            pid,
            start_ticks: process::start_ticks(pid),
            boot_id: process::boot_id(),
        };
        let text = serde_json::to_vec(&owner)
            .expect("invariant: an owner has text keys and plain values only");
        atomic::write_private(&staging.path.join(OWNER), &text)?;
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

/// Removes what dead processes left in `folder`. What cannot be removed stays for the next time.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_staging = entry.file_name().to_str().is_some_and(is_staging_name);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_staging && is_folder && is_dead(&entry.path()) {
            tracing::info!(path = %entry.path().display(), "removing what an interrupted backup left");
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_dead(folder: &Path) -> bool {
    let owner = std::fs::read(folder.join(OWNER)).ok();
    let owner = owner.and_then(|text| serde_json::from_slice::<Owner>(&text).ok());
    match owner {
        // The id alone is not enough: it is reused.
        Some(owner) if owner.start_ticks.is_some() => {
            owner.boot_id != process::boot_id()
                || owner.start_ticks != process::start_ticks(owner.pid)
        }
        _ => is_older(folder, UNOWNED),
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
}
