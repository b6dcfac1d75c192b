//! `zeroclaw doctor undo`: puts back what a run moved aside, and the databases of before it.
//!
//! Nothing is deleted and nothing replaced: what the run had made goes to `state/undone/<run>/`. What would be refused
//! is refused before the first change; after that the journal takes it to its end, whoever comes next.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;
use zeroclaw::clock::Clock;
use zeroclaw::fs::{FsError, Layout};
use zeroclaw::model::{ErrorKind, MigrationRun, MigrationStatus};
use zeroclaw::service::undo::{self, PlanStep, RowsSince, UndoJob};
use zeroclaw::service::{Service, ServiceError};

use super::before::{self, Before};
use super::hold::{hold, refuse_held};
use super::preflight::{self, PreflightError};

mod kept;
mod show;

pub(crate) use show::show;

/// Why a run is not undone. Nothing has changed then, unless the file system failed half way.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UndoError {
    /// The service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The old program runs.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// Another run came after it.
    #[error("run {later} came after {run} and built on it")]
    Later {
        /// The run.
        run: String,
        /// The newest run that is not undone.
        later: String,
    },
    /// It did nothing that could be undone.
    #[error("run {run} stopped before it changed anything")]
    Nothing {
        /// The run.
        run: String,
    },
    /// Something that must come back is gone.
    #[error("{what} is gone: {}", .path.display())]
    Missing {
        /// What it was.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
    /// What it moved aside was deleted.
    #[error("the old files of run {run} were deleted by `zeroclaw doctor clean`")]
    Cleaned {
        /// The run.
        run: String,
    },
    /// What was moved aside is not what it was.
    #[error("{} is not as it was when the run moved it there", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Something stands where a file must go back to.
    #[error("{} is there again{}", .path.display(), more(*.others))]
    Taken {
        /// The first of them.
        path: PathBuf,
        /// How many more.
        others: usize,
    },
    /// An undo or a restore was cut off, and a dry run must not end it.
    #[error("an undo or a restore of this root was cut off half way")]
    CutOff,
}

fn more(others: usize) -> String {
    match others {
        0 => String::new(),
        others => format!(", and {others} more places are taken"),
    }
}

impl UndoError {
    /// What kind of failure it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Service(error) => error.kind(),
            Self::Fs(error) => error.kind().into(),
            Self::Preflight(_) => ErrorKind::Busy,
            Self::Later { .. }
            | Self::Nothing { .. }
            | Self::Missing { .. }
            | Self::Cleaned { .. }
            | Self::Changed { .. }
            | Self::Taken { .. }
            | Self::CutOff => ErrorKind::Refused,
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Service(ServiceError::NotFound { .. }) => {
                "`zeroclaw doctor history` shows the runs".to_owned()
            }
            Self::Service(error) => return error.hint(),
            Self::Fs(_) => return None,
            Self::Preflight(_) => "stop the old daemon first; nothing was changed".to_owned(),
            Self::Later { later, .. } => {
                format!("undo that one first: `zeroclaw doctor undo {later}`; nothing was changed")
            }
            Self::Nothing { .. } => {
                "there is nothing to undo; `zeroclaw doctor --fix` goes on with it".to_owned()
            }
            Self::Missing { .. } | Self::Cleaned { .. } => {
                "a run can be undone only while what it moved aside and its archive are kept; nothing was changed"
                    .to_owned()
            }
            Self::Changed { .. } => {
                "put the file back as it was, from the run's archive if need be; nothing was changed"
                    .to_owned()
            }
            Self::Taken { .. } => {
                "move it elsewhere first: nothing is ever replaced; nothing was changed".to_owned()
            }
            Self::CutOff => {
                "run it without --dry-run: what was cut off is finished first".to_owned()
            }
        })
    }
}

/// One source that goes back.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SourceBack {
    /// Where it was, and is to be.
    pub(crate) path: String,
    /// Where it is kept.
    pub(crate) kept_at: String,
    /// Size, bytes.
    pub(crate) bytes: u64,
}

/// What undoing a run does, or did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct UndoReport {
    /// The root.
    pub(crate) root: String,
    /// The run.
    pub(crate) run: String,
    /// Whether there were databases before it.
    pub(crate) had_state: bool,
    /// Sources that go back, by path.
    pub(crate) sources: Vec<SourceBack>,
    /// What happens to each database.
    pub(crate) databases: Vec<PlanStep>,
    /// What else the run had made, which is set aside too.
    pub(crate) set_aside: Vec<String>,
    /// Rows written or deleted since the run ended: lost with the databases that are set aside.
    pub(crate) lost: Vec<RowsSince>,
    /// Where everything is that the run had made and that was written since; `None` before it is done.
    pub(crate) previous: Option<String>,
    /// Whether it was carried out now.
    pub(crate) written: bool,
    /// Whether it had been carried out before.
    pub(crate) was_undone: bool,
    /// What a person should know.
    pub(crate) notes: Vec<String>,
}

/// A run to be undone.
pub(crate) struct Undo<'a> {
    /// Where things lie.
    pub(crate) layout: Layout,
    /// The run.
    pub(crate) run_id: &'a str,
    /// The time.
    pub(crate) clock: Clock,
}

/// A plan that nothing speaks against.
struct Ready {
    job: UndoJob,
    before: Option<undo::Verified>,
    report: UndoReport,
}

impl Undo<'_> {
    /// Says what would be done; changes nothing.
    pub(crate) async fn look(&self) -> Result<UndoReport, UndoError> {
        if self.layout.restore_journal().exists() {
            return Err(UndoError::CutOff);
        }
        if let Some(report) = self.undone_before() {
            return Ok(report);
        }
        refuse_held(&self.layout)?;
        preflight::old_daemon(self.layout.root())?;
        let service = Service::look(self.layout.root(), self.clock.clone()).await?;
        let planned = self.plan(&service).await;
        service.close().await;
        Ok(planned?.report)
    }

    /// Undoes the run.
    ///
    /// * `tell`: hears what is going on, for a person who waits.
    pub(crate) async fn carry_out(
        &self,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<UndoReport, UndoError> {
        if self.layout.restore_journal().exists() {
            tell("finishing what was cut off");
            undo::finish(&self.layout, &self.clock).await?;
        }
        let has_state = self.layout.global_db().exists();
        if let Some(report) = self.undone_before() {
            if !has_state && self.layout.daemon_lock().exists() {
                // Killed before it could take its own lock file away.
                let lock = hold(&self.layout, &self.clock).await?;
                lock.remove(&self.layout)?;
            }
            return Ok(report);
        }
        if !has_state {
            let root = self.layout.root().to_owned();
            return Err(ServiceError::NotInitialised { root }.into());
        }
        let lock = hold(&self.layout, &self.clock).await?;
        preflight::old_daemon(self.layout.root())?;
        let service = Service::look_under(&lock, self.layout.root(), self.clock.clone()).await?;
        let planned = self.plan(&service).await;
        service.close().await;
        let ready = planned?;
        let mut report = ready.report;
        for line in show::losses(&report) {
            tell(&line);
        }
        tell(&format!("undoing run {}", self.run_id));
        let aside = undo::carry_out(lock, &ready.job, ready.before.as_ref()).await?;
        report.previous = Some(self.layout.stored(&aside).display().to_string());
        report.written = true;
        Ok(report)
    }

    /// The report of a run that was undone before; `None` where it was not.
    fn undone_before(&self) -> Option<UndoReport> {
        // A run's name is one name; anything else is no run.
        let is_name = !self.run_id.is_empty() && !self.run_id.contains(['/', '.']);
        let folder = is_name.then(|| self.layout.undone_run_dir(self.run_id))?;
        folder.join("undo.json").exists().then(|| UndoReport {
            previous: Some(self.layout.stored(&folder).display().to_string()),
            was_undone: true,
            ..self.empty_report()
        })
    }

    fn empty_report(&self) -> UndoReport {
        UndoReport {
            root: self.layout.root().display().to_string(),
            run: self.run_id.to_owned(),
            had_state: false,
            sources: Vec::new(),
            databases: Vec::new(),
            set_aside: Vec::new(),
            lost: Vec::new(),
            previous: None,
            written: false,
            was_undone: false,
            notes: Vec::new(),
        }
    }

    async fn plan(&self, service: &Service) -> Result<Ready, UndoError> {
        let runs = service.runs_in_order().await?;
        let run = self.newest_standing(&runs)?;
        let before = Before::of_run(&run.report_json);
        let archive = self.archive(run, &before)?;
        let receipts = service.receipts_of(&run.id).await?;
        let kept = kept::find(&self.layout, &run.id, &receipts)?;
        let then = before::rows_of(&run.report_json);
        let since_ms = run.finished_at_ms.unwrap_or(run.started_at_ms);
        let (lost, unreadable) = service.rows_since(since_ms, then.as_ref()).await?;

        let mut made = kept.surplus.clone();
        made.extend(self.made(run, &before, archive.as_ref()));
        let mut report = self.empty_report();
        report.had_state = before.had_state;
        report.sources = kept.report(&self.layout);
        report.lost = lost;
        report.set_aside = made
            .iter()
            .map(|place| super::names::escaped(place.path()))
            .collect();
        report.notes = notes(run, then.is_some(), &unreadable);
        let job = UndoJob {
            run: self.undone(run),
            layout: self.layout.clone(),
            archive: archive.filter(|_| before.had_state),
            moves: kept.moves,
            made,
            folders: kept::folders(&self.layout, &run.id, &before),
            record: json!({
                "run": run,
                "undone_at_ms": self.clock.now_ms(),
                "had_state": before.had_state,
                "folders_before": before.folders,
                "lost": report.lost,
            }),
        };
        let (before, steps) = undo::plan(&job).await?;
        report.databases = steps;
        Ok(Ready {
            job,
            before,
            report,
        })
    }

    /// The run, if it is the newest that is not undone.
    fn newest_standing<'r>(&self, runs: &'r [MigrationRun]) -> Result<&'r MigrationRun, UndoError> {
        let run = runs.iter().find(|run| run.id == self.run_id);
        let run = run.ok_or_else(|| ServiceError::NotFound {
            what: "run",
            name: self.run_id.to_owned(),
        })?;
        let is_undone = |run: &MigrationRun| before::undone_at(&run.report_json).is_some();
        if is_undone(run) {
            // Its record is gone, with the folder of what it had made.
            return Err(UndoError::Nothing {
                run: run.id.clone(),
            });
        }
        match runs.iter().find(|run| !is_undone(run)) {
            Some(newest) if newest.id != run.id => Err(UndoError::Later {
                run: run.id.clone(),
                later: newest.id.clone(),
            }),
            _ => Ok(run),
        }
    }

    /// The archive of before, which must be there.
    fn archive(&self, run: &MigrationRun, before: &Before) -> Result<Option<PathBuf>, UndoError> {
        let Some(path) = &run.backup_path else {
            return match before.had_state {
                true => Err(UndoError::Nothing {
                    run: run.id.clone(),
                }),
                false => Ok(None),
            };
        };
        let path = self.layout.root().join(path);
        if !path.is_file() {
            return Err(UndoError::Missing {
                what: "the archive of before the run",
                path,
            });
        }
        Ok(Some(path))
    }

    /// What the run made besides databases.
    fn made(
        &self,
        run: &MigrationRun,
        before: &Before,
        archive: Option<&PathBuf>,
    ) -> Vec<undo::Place> {
        let layout = &self.layout;
        let mut made = vec![layout.quarantine_dir(&run.id)];
        made.extend(archive.cloned());
        if run.from_path.is_some() && !before.had_state {
            let copied = [layout.config_file(), layout.secret_key_file()];
            made.extend(copied.into_iter().filter(|path| {
                let below = layout.stored(path);
                !before
                    .files
                    .iter()
                    .any(|there| below == std::path::Path::new(there))
            }));
        }
        made.retain(|path| path.symlink_metadata().is_ok() && path.starts_with(layout.root()));
        let below = made.iter().map(|path| layout.stored(path).to_owned());
        below.map(undo::Place::from).collect()
    }

    /// The run as it stands in the control plane of before.
    fn undone(&self, run: &MigrationRun) -> MigrationRun {
        let now_ms = self.clock.now_ms();
        let mut run = run.clone();
        run.finished_at_ms.get_or_insert(now_ms);
        if run.status == MigrationStatus::Running {
            run.status = MigrationStatus::Failed;
        }
        run.report_json = before::with_undone(now_ms, &run.report_json);
        run
    }
}

fn notes(run: &MigrationRun, is_counted: bool, unreadable: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if run.finished_at_ms.is_none() {
        notes.push(
            "the run never ended: rows it brought in itself may count among those written since it began"
                .to_owned(),
        );
    } else if !is_counted {
        notes.push(
            "the run did not count what it left: only rows whose own times are later count as written since"
                .to_owned(),
        );
    }
    notes.extend(unreadable.iter().map(|tier| {
        format!("the database of {tier} cannot be read: what was written to it since is unknown; it is set aside")
    }));
    notes
}
