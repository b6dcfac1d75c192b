//! The journal of a restore: what a kill in the middle leaves for the next process.
//!
//! In phase `staging` nothing of the root was touched: the new files go, all is old. In phase `swapping` every new
//! file is whole, synced and beside its place: the swap is taken to its end, all is new. The journal is written
//! before the staging folder is made and removed after it is gone, so a root without a journal has nothing half done.
//! An import is undone, and an agent renamed, deleted or restored, under the same journal, so that whoever opens the root
//! next ends that too.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::BackupError;
use super::life::Life;
use super::undo::Undo;
use crate::fs::{FsError, FsErrorKind, Layout, atomic, fault, sidecars};
use crate::model::{AgentRecord, BackupRun};

/// Version of the journal of a restore; an unknown one is left alone.
const VERSION: u32 = 1;
/// Version of the journal of an undone import, which a release that knows none must leave alone.
const UNDO_VERSION: u32 = 2;
/// Version of the journal of a step in an agent's life, likewise.
const LIFE_VERSION: u32 = 3;

/// A restore under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    version: u32,
    /// Identity of the restore.
    pub(super) id: String,
    /// How far it came.
    pub(super) phase: Phase,
    /// What is moved, in order; empty while staging.
    pub(super) swaps: Vec<Swap>,
    /// The row and the record that follow the swap when one agent alone is restored.
    pub(super) register: Option<Box<Register>>,
    /// What follows the swap when an import is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undo: Option<Box<Undo>>,
    /// What follows the swap when an agent is renamed, deleted or restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) life: Option<Box<Life>>,
}

/// How far a restore came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Gathers the new files.
    Staging,
    /// Puts them in place.
    Swapping,
}

/// One file that is replaced, or only set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Swap {
    /// Path in the root, in the staging folder, and in the folder of what is set aside.
    pub(super) path: String,
    /// Whether a new file takes its place.
    pub(super) has_new: bool,
    /// Whether logs may lie beside it.
    pub(super) is_database: bool,
}

/// What the control plane must be told after one agent was restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Register {
    /// The agent's row.
    pub(super) agent: AgentRecord,
    /// The record of the restore.
    pub(super) run: BackupRun,
}

impl Journal {
    /// A restore that begins.
    pub(super) fn staging(id: &str) -> Self {
        Self {
            version: VERSION,
            id: id.to_owned(),
            phase: Phase::Staging,
            swaps: Vec::new(),
            register: None,
            undo: None,
            life: None,
        }
    }

    /// An undone import that begins: what it puts back is known from the start.
    pub(super) fn undoing(id: &str, undo: Undo) -> Self {
        Self {
            version: UNDO_VERSION,
            undo: Some(Box::new(undo)),
            ..Self::staging(id)
        }
    }

    /// A step in an agent's life that begins.
    pub(super) fn living(id: &str, life: Life) -> Self {
        Self {
            version: LIFE_VERSION,
            life: Some(Box::new(life)),
            ..Self::staging(id)
        }
    }

    /// Says what follows the swap in an agent's life.
    pub(super) fn lives(&mut self, life: Life) {
        self.version = LIFE_VERSION;
        self.life = Some(Box::new(life));
    }

    /// Reads the journal of a root; `None` where no restore is unfinished.
    pub(super) fn read(layout: &Layout) -> Result<Option<Self>, BackupError> {
        let path = layout.restore_journal();
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FsError::at("read", &path)(error).into()),
        };
        let unreadable = |reason: String| BackupError::Journal {
            path: path.clone(),
            reason,
        };
        let journal: Self =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let known = match (&journal.undo, &journal.life) {
            (None, None) => VERSION,
            (Some(_), None) => UNDO_VERSION,
            (_, Some(_)) => LIFE_VERSION,
        };
        if journal.version != known {
            let reason = format!("it has version {}", journal.version);
            return Err(unreadable(reason));
        }
        let is_name = !journal.id.is_empty() && !journal.id.contains(['/', '.']);
        let is_inside = journal
            .swaps
            .iter()
            .all(|swap| super::names::fault(&swap.path).is_none())
            && journal.undo.as_ref().is_none_or(|undo| undo.is_inside());
        if !is_name || !is_inside {
            return Err(unreadable("it leads out of the root".to_owned()));
        }
        Ok(Some(journal))
    }

    /// Writes the journal, whole or not at all.
    pub(super) fn write(&self, layout: &Layout) -> Result<(), BackupError> {
        let bytes = serde_json::to_vec_pretty(self)
            .expect("invariant: a journal has text keys and plain values only");
        Ok(atomic::write_private(&layout.restore_journal(), &bytes)?)
    }

    /// Takes every swap to its end; may be repeated from any point.
    pub(super) fn swap(&self, layout: &Layout) -> Result<(), BackupError> {
        for swap in &self.swaps {
            self.swap_one(layout, swap)?;
            fault("restore.swap");
        }
        Ok(())
    }

    /// Folder of what is set aside.
    pub(super) fn aside(&self, layout: &Layout) -> PathBuf {
        match self.undo {
            Some(_) => layout.undone_run_dir(&self.id),
            None => layout.restored_run_dir(&self.id),
        }
    }

    /// Removes the staging folder, then the journal.
    pub(super) fn clear(&self, layout: &Layout) -> Result<(), BackupError> {
        let staging = layout.restore_staging_dir(&self.id);
        match std::fs::remove_dir_all(&staging) {
            Ok(()) => atomic::sync_dir(&layout.state_dir())?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(FsError::at("remove", &staging)(error).into()),
        }
        fault("restore.cleared");
        match atomic::remove_file_synced(&layout.restore_journal()) {
            Err(error) if error.kind() != FsErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn swap_one(&self, layout: &Layout, swap: &Swap) -> Result<(), BackupError> {
        let place = layout.root().join(&swap.path);
        let staged = staged(layout, &self.id, &swap.path);
        if swap.has_new && !exists(&staged) {
            // Moved already; nothing but this moves it.
            return match exists(&place) {
                true => Ok(()),
                false => Err(BackupError::Journal {
                    path: layout.restore_journal(),
                    reason: format!("{} is neither staged nor in place", swap.path),
                }),
            };
        }
        let aside = self.aside(layout).join(&swap.path);
        let logs = sidecars(&place).into_iter().zip(sidecars(&aside));
        // The main file first: without it nobody can take its logs for another's.
        let pairs = std::iter::once((place.clone(), aside.clone()));
        for (from, to) in pairs.chain(logs.filter(|_| swap.is_database)) {
            if exists(&from) {
                atomic::rename_synced(&from, &free_name(to))?;
                fault("restore.aside");
            }
        }
        if swap.has_new {
            atomic::rename_synced(&staged, &place)?;
        }
        Ok(())
    }
}

/// Where a new file waits for its swap.
pub(super) fn staged(layout: &Layout, id: &str, path: &str) -> PathBuf {
    layout.restore_staging_dir(id).join("tree").join(path)
}

/// Whether anything is there, a dangling link too.
pub(super) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// A name that is free: something set aside by an earlier try is never replaced.
pub(super) fn free_name(path: PathBuf) -> PathBuf {
    let mut free = path.clone();
    let mut number = 1;
    while exists(&free) {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{number}"));
        free = PathBuf::from(name);
        number += 1;
    }
    free
}
