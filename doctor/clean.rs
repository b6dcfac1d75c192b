//! `zeroclaw doctor clean`: deletes old files whose import is proven, and what a named run had made that was undone.
//!
//! A file goes only when its bytes are those of a source whose every record came in and was read back; all others stay
//! and are named with the reason. Receipts say so first, then the files go: killed between, the next clean goes on.

use std::path::PathBuf;

use serde::Serialize;
use zeroclaw::clock::Clock;
use zeroclaw::fs::{FsError, HolderKind, Layout};
use zeroclaw::model::{ErrorKind, MigrationRun};
use zeroclaw::service::undo;
use zeroclaw::service::{Importer, Service, ServiceError};

use super::hold::{hold, refuse_held};
use super::names::escaped;

mod delete;
mod proof;
mod show;

pub(crate) use show::show;

use proof::{Proof, Unit};

/// Name of the record in the folder of an undone run.
const RECORD: &str = "undo.json";
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Why nothing is deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CleanError {
    /// The service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// An undo or a restore was cut off, and a dry run must not end it.
    #[error("an undo or a restore of this root was cut off half way")]
    CutOff,
}

impl CleanError {
    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Service(error) => error.kind(),
            Self::Fs(error) => error.kind().into(),
            Self::CutOff => ErrorKind::Refused,
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Service(ServiceError::NotFound { .. }) => {
                Some("`zeroclaw doctor history` shows the runs".to_owned())
            }
            Self::Service(error) => error.hint(),
            Self::Fs(_) => None,
            Self::CutOff => {
                Some("run it without --dry-run: what was cut off is finished first".to_owned())
            }
        }
    }
}

/// A file that stays, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct KeptFile {
    /// Where it is, below the root.
    pub(crate) path: String,
    /// Why it stays.
    pub(crate) reason: String,
}

/// What goes of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CleanRun {
    /// The run.
    pub(crate) run: String,
    /// `sources`: old files that it moved aside; `undone`: what it had made, which was undone.
    pub(crate) what: &'static str,
    /// When it ended, or was undone.
    pub(crate) ended_at_ms: Option<i64>,
    /// Files that go.
    pub(crate) files: u64,
    /// Their size, bytes.
    pub(crate) bytes: u64,
    /// Files that stay.
    pub(crate) kept: Vec<KeptFile>,
    #[serde(skip)]
    units: Vec<Unit>,
}

/// What goes, or went.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CleanReport {
    /// The root.
    pub(crate) root: String,
    /// Runs of which something is kept, newest first.
    pub(crate) runs: Vec<CleanRun>,
    /// Files that go, of all runs.
    pub(crate) files: u64,
    /// Their size, bytes.
    pub(crate) bytes: u64,
    /// Whether they are gone.
    pub(crate) written: bool,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// What is asked to go.
pub(crate) struct Clean<'a> {
    /// Where things lie.
    pub(crate) layout: Layout,
    /// This run alone.
    pub(crate) run_id: Option<&'a str>,
    /// Only what ended so long ago, days.
    pub(crate) older_than_days: Option<u32>,
    /// The time.
    pub(crate) clock: Clock,
}

impl Clean<'_> {
    /// Says what would go; changes nothing.
    pub(crate) async fn look(&self) -> Result<CleanReport, CleanError> {
        if self.layout.restore_journal().exists() {
            return Err(CleanError::CutOff);
        }
        refuse_held(&self.layout)?;
        if !self.layout.global_db().exists() {
            return self.plan(None).await;
        }
        let service = Service::look(self.layout.root(), self.clock.clone()).await?;
        let planned = self.plan(Some(&service)).await;
        service.close().await;
        planned
    }

    /// Deletes it.
    pub(crate) async fn carry_out(&self) -> Result<CleanReport, CleanError> {
        undo::finish(&self.layout, &self.clock).await?;
        if !self.layout.global_db().exists() {
            // Refused before the lock makes its file.
            self.plan(None).await?;
            let lock = hold(&self.layout, &self.clock).await?;
            let done = self.plan(None).await.and_then(|report| {
                let state_was_there = self.state_was_there();
                Ok((delete::all(&self.layout, report)?, state_was_there))
            });
            lock.remove(&self.layout)?;
            let (report, state_was_there) = done?;
            if !state_was_there {
                delete::empty(&self.layout.state_dir())?;
            }
            return Ok(report);
        }
        let root = self.layout.root();
        let service = Service::open(root, self.clock.clone(), HolderKind::Doctor).await?;
        let importer = Importer::new(service);
        let done = self.delete(&importer).await;
        importer.close().await;
        done
    }

    async fn delete(&self, importer: &Importer) -> Result<CleanReport, CleanError> {
        let report = self.plan(Some(importer.service())).await?;
        let mut receipts = Vec::new();
        for run in report.runs.iter().filter(|run| run.what == "sources") {
            let goes = |path: &str| {
                let units = run.units.iter();
                units.clone().any(|unit| escaped(&unit.main) == path)
            };
            for mut receipt in importer.service().receipts_of(&run.run).await? {
                if receipt.retired_path.as_deref().is_some_and(goes) {
                    receipt.retired_path = None;
                    receipts.push(receipt);
                }
            }
        }
        importer.put_receipts(receipts).await?;
        zeroclaw::fs::fault("clean.marked");
        Ok(delete::all(&self.layout, report)?)
    }

    async fn plan(&self, service: Option<&Service>) -> Result<CleanReport, CleanError> {
        let mut runs = Vec::new();
        let mut is_known = false;
        if let Some(service) = service {
            let all = service.runs_in_order().await?;
            is_known = all.iter().any(|run| Some(run.id.as_str()) == self.run_id);
            let proof = Proof::of(service, &all).await?;
            let wanted = |run: &&MigrationRun| {
                self.run_id.is_none_or(|id| id == run.id) && self.is_old(run.finished_at_ms)
            };
            for run in all.iter().filter(wanted) {
                runs.extend(self.sources(run, &proof)?);
            }
        }
        runs.extend(self.undone()?);
        match (self.run_id, runs.is_empty()) {
            (Some(name), true) if !is_known && service.is_some() => {
                let name = name.to_owned();
                return Err(ServiceError::NotFound { what: "run", name }.into());
            }
            (_, true) if service.is_none() => {
                let root = self.layout.root().to_owned();
                return Err(ServiceError::NotInitialised { root }.into());
            }
            _ => {}
        }
        let mut notes = Vec::new();
        if runs
            .iter()
            .any(|run| run.what == "sources" && run.files > 0)
        {
            notes.push("runs whose old files are deleted can no longer be undone".to_owned());
        }
        Ok(CleanReport {
            root: self.layout.root().display().to_string(),
            files: runs.iter().map(|run| run.files).sum(),
            bytes: runs.iter().map(|run| run.bytes).sum(),
            runs,
            written: false,
            notes,
        })
    }

    /// What of one run's old files goes; `None` where it keeps none.
    fn sources(&self, run: &MigrationRun, proof: &Proof) -> Result<Option<CleanRun>, CleanError> {
        let units = proof::units(&self.layout, &run.id)?;
        if units.is_empty() {
            return Ok(None);
        }
        let mut found = CleanRun {
            run: run.id.clone(),
            what: "sources",
            ended_at_ms: run.finished_at_ms,
            files: 0,
            bytes: 0,
            kept: Vec::new(),
            units: Vec::new(),
        };
        for unit in units {
            match proof.doubt(&self.layout, run, &unit)? {
                Some(reason) => found.kept.push(KeptFile {
                    path: escaped(&unit.main),
                    reason,
                }),
                None => {
                    found.files += unit.files();
                    found.bytes += unit.bytes;
                    found.units.push(unit);
                }
            }
        }
        Ok(Some(found))
    }

    /// What a run had made that was undone: it goes only when it is named.
    fn undone(&self) -> Result<Option<CleanRun>, CleanError> {
        let Some(name) = self.run_id.filter(|name| is_name(name)) else {
            return Ok(None);
        };
        let Some((folder, record)) = record_of(&self.layout, name) else {
            return Ok(None);
        };
        let ended_at_ms = record["undone_at_ms"].as_i64();
        if !self.is_old(ended_at_ms) {
            return Ok(None);
        }
        let (mut files, mut bytes) = (0, 0);
        for entry in walkdir::WalkDir::new(&folder) {
            let entry = entry.map_err(|error| FsError::at("list", &folder)(error.into()))?;
            if !entry.file_type().is_dir() {
                files += 1;
                bytes += entry.metadata().map_or(0, |meta| meta.len());
            }
        }
        Ok(Some(CleanRun {
            run: name.to_owned(),
            what: "undone",
            ended_at_ms,
            files,
            bytes,
            kept: Vec::new(),
            units: Vec::new(),
        }))
    }

    fn is_old(&self, ended_at_ms: Option<i64>) -> bool {
        let Some(days) = self.older_than_days else {
            return true;
        };
        let limit = self.clock.now_ms() - i64::from(days) * DAY_MS;
        ended_at_ms.is_some_and(|ended| ended <= limit)
    }

    /// Whether the state folder was there before the run whose remains are named.
    fn state_was_there(&self) -> bool {
        let record = self.run_id.filter(|name| is_name(name));
        let record = record.and_then(|name| record_of(&self.layout, name));
        record.is_none_or(|(_, record)| {
            let folders = record["folders_before"].as_array();
            folders.is_none_or(|folders| folders.iter().any(|folder| folder == "state"))
        })
    }
}

/// A run's name is one name; anything else is no run.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '.'])
}

/// The folder of an undone run, and what it says of itself; it may be on its way out already.
fn record_of(layout: &Layout, name: &str) -> Option<(PathBuf, serde_json::Value)> {
    let folder = layout.undone_run_dir(name);
    let folders = [delete::going(&folder), folder];
    folders.into_iter().find_map(|folder| {
        let bytes = std::fs::read(folder.join(RECORD)).ok()?;
        Some((folder, serde_json::from_slice(&bytes).ok()?))
    })
}
