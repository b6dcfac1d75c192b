//! Which of the files that runs moved aside are proven to be in.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, Layout, sidecars};
use zeroclaw::model::{MigrationRun, MigrationStatus, SourceReceipt, SourceStatus};
use zeroclaw::service::{Service, ServiceError};

use crate::doctor::names::escaped;
use crate::doctor::scan::digest;

/// A file, or a database with its logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Path below the root.
    pub(super) main: PathBuf,
    /// Paths of its logs.
    pub(super) logs: Vec<PathBuf>,
    /// Size of all, bytes.
    pub(super) bytes: u64,
}

impl Unit {
    pub(super) fn files(&self) -> u64 {
        1 + self.logs.len() as u64
    }
}

/// What all receipts prove.
pub(super) struct Proof {
    /// Receipts by digest of their source.
    receipts: HashMap<String, Vec<SourceReceipt>>,
}

impl Proof {
    pub(super) async fn of(service: &Service, runs: &[MigrationRun]) -> Result<Self, ServiceError> {
        let mut receipts: HashMap<String, Vec<SourceReceipt>> = HashMap::new();
        for run in runs {
            for receipt in service.receipts_of(&run.id).await? {
                let same = receipts.entry(receipt.source_sha256.clone()).or_default();
                same.push(receipt);
            }
        }
        Ok(Self { receipts })
    }

    /// Why a unit must stay; `None` when it may go.
    pub(super) fn doubt(
        &self,
        layout: &Layout,
        run: &MigrationRun,
        unit: &Unit,
    ) -> Result<Option<String>, FsError> {
        if run.status == MigrationStatus::Running {
            return Ok(Some("its run is not finished".to_owned()));
        }
        let (_, sha256) = digest(&layout.root().join(&unit.main), true)?;
        let aside = layout.migrated_run_dir(&run.id);
        let place = unit.main.strip_prefix(layout.stored(&aside));
        let place = place.map(escaped).unwrap_or_default();
        // The same bytes in another place may be another agent's: only its own receipts speak for it.
        let own: Vec<_> = self
            .receipts
            .get(&sha256)
            .into_iter()
            .flatten()
            .filter(|receipt| receipt.last_run_id == run.id || receipt.source_path == place)
            .collect();
        if own.is_empty() {
            return Ok(Some("no receipt is of these bytes".to_owned()));
        }
        let doubts = own.iter().map(|receipt| doubt_of(receipt));
        let mut doubts: Vec<Option<String>> = doubts.collect();
        Ok(match doubts.contains(&None) {
            true => None,
            false => doubts.swap_remove(0),
        })
    }
}

fn doubt_of(receipt: &SourceReceipt) -> Option<String> {
    let total = &receipt.total;
    if total.refused > 0 {
        return Some(format!("{} of its records were refused", total.refused));
    }
    match receipt.status {
        SourceStatus::Retired => None,
        // A copy of what another source said, when something could be read of it at all.
        SourceStatus::Discarded if total.records > 0 => None,
        SourceStatus::Discarded => Some("nothing could be read of it".to_owned()),
        status => Some(format!(
            "its receipt says `{status}`, not that it is proven"
        )),
    }
}

/// The files that a run keeps, logs with their database.
pub(super) fn units(layout: &Layout, run_id: &str) -> Result<Vec<Unit>, FsError> {
    let aside = layout.migrated_run_dir(run_id);
    let mut files = BTreeSet::new();
    if aside.is_dir() {
        for entry in walkdir::WalkDir::new(&aside) {
            let entry = entry.map_err(|error| FsError::at("list", &aside)(error.into()))?;
            if !entry.file_type().is_dir() {
                files.insert(layout.stored(entry.path()).to_owned());
            }
        }
    }
    let logs_of = |main: &Path| -> Vec<PathBuf> {
        let logs = sidecars(main).into_iter();
        logs.filter(|log| files.contains(log)).collect()
    };
    let logs: BTreeSet<PathBuf> = files.iter().flat_map(|main| logs_of(main)).collect();
    let size = |path: &PathBuf| {
        let meta = std::fs::symlink_metadata(layout.root().join(path));
        meta.map_or(0, |meta| meta.len())
    };
    let mains = files.iter().filter(|file| !logs.contains(*file));
    Ok(mains
        .map(|main| {
            let logs = logs_of(main);
            Unit {
                bytes: size(main) + logs.iter().map(size).sum::<u64>(),
                main: main.clone(),
                logs,
            }
        })
        .collect())
}
