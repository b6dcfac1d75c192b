//! Which commands this process runs, for all its schedulers.
//!
//! A run's row names its process, and that lives on when a tick fails half way: without this nobody would ever take such
//! a run for lost. Ticks that overlap, in a daemon, share the bound on commands by it too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Root and run. Of the process, because that is what rows name as their owner.
static RUNS: Mutex<BTreeSet<(PathBuf, String)>> = Mutex::new(BTreeSet::new());

/// A run that this process has in hand: from before its row is committed until after its end is.
#[derive(Debug)]
pub(super) struct InHand {
    key: (PathBuf, String),
}

impl InHand {
    pub(super) fn take(root: &Path, task_id: &str) -> Self {
        let key = (root.to_owned(), task_id.to_owned());
        with(|runs| runs.insert(key.clone()));
        Self { key }
    }

    /// How many runs of a root there are.
    pub(super) fn count(root: &Path) -> usize {
        with(|runs| runs.iter().filter(|(of, _)| of == root).count())
    }

    /// Whether a run is in hand.
    pub(super) fn has(root: &Path, task_id: &str) -> bool {
        with(|runs| runs.contains(&(root.to_owned(), task_id.to_owned())))
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        with(|runs| runs.remove(&self.key));
    }
}

/// The set is whole after a panic of whoever had it, too.
fn with<T>(work: impl FnOnce(&mut BTreeSet<(PathBuf, String)>) -> T) -> T {
    work(&mut RUNS.lock().unwrap_or_else(PoisonError::into_inner))
}
