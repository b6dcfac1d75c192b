//! Runs scheduled jobs: each occurrence once, whoever else runs them at the same time, and whatever crashes.
//!
//! A scheduler opens its own connection to the control plane and, like a worker, does not own the root: several may run
//! beside each other and beside a daemon. What keeps them apart is one transaction: the row of the run, the job's claim
//! and its next time change together, under `BEGIN IMMEDIATE`. So an occurrence has one run or none, and a run that was
//! begun is never begun again. A run whose process is proven gone is recorded as lost and is not repeated: nobody knows
//! how far it came.
//!
//! Occurrences that come while a job runs, or while nobody looks, are missed; the job's catch-up policy says what becomes
//! of them. Where they do not run, a record says which. Jobs for agents are not run here: their runs wait in the ledger for a
//! worker.
//!
//! When the clock goes back, occurrences up to the last one do not come again. A job that stands more than
//! [`FARTHEST_AHEAD_MS`] ahead of the clock was put there by a clock that was wrong, and is planned anew.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::task::{AbortHandle, JoinSet};

use self::claim::Taken;
use self::in_hand::InHand;
use super::error::InDb;
use super::{ServiceError, open};
use crate::clock::Clock;
use crate::config::Config;
use crate::db::{Access, Db};
use crate::fs::{Layout, LockError, RootLock, SharedLock, host_zone, process};
use crate::model::{
    AgentId, CancelState, CatchUp, CronJob, Liveness, ProcessIdentity, ScheduleError, TaskRun,
    TaskStatus, Tier, Timetable, zone_name,
};
use crate::store::global::task;

pub use self::manage::{CronChange, NewCronJob};
pub use self::reconcile::Reconciled;

mod claim;
mod finish;
mod in_hand;
mod manage;
mod plan;
mod reconcile;
mod run;
mod shell;

/// How long a scheduler waits for a command, an import or a restore that has the root for itself.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Pause between two looks at who has it.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// How often commands that run are looked up for somebody's wish to stop them.
const CANCEL_POLL: Duration = Duration::from_secs(1);

/// A job that stands further ahead of the clock than this is planned anew: more than a zone or a day can be wrong by.
const FARTHEST_AHEAD_MS: i64 = 2 * 24 * 60 * 60 * 1_000;

/// A scheduler's connection and rules.
///
/// Call [`Scheduler::close`] at the end.
#[derive(Debug)]
pub struct Scheduler {
    layout: Layout,
    clock: Clock,
    config: Config,
    has_config: bool,
    global: Arc<Db>,
    ground: Ground,
    // Held for its drop.
    _hold: SharedLock,
}

/// What every decision about a job needs beside the job.
#[derive(Clone, Debug)]
struct Ground {
    /// Zone of expressions that name none.
    zone: String,
    catch_up: CatchUp,
    runs_kept: i64,
    /// Commands that run at once.
    most: usize,
    /// This process.
    own: ProcessIdentity,
    root: PathBuf,
}

impl Ground {
    fn of(config: &Config, root: &std::path::Path) -> Self {
        let configured = config.scheduler.timezone.as_deref().and_then(zone_name);
        Self {
            zone: configured.map_or_else(host_zone, str::to_owned),
            catch_up: match config.scheduler.catch_up {
                true => CatchUp::Once,
                false => CatchUp::Skip,
            },
            runs_kept: config.scheduler.runs_kept,
            most: config.scheduler.max_concurrent,
            own: process::own(),
            root: root.to_owned(),
        }
    }

    fn table(&self, job: &CronJob) -> Result<Timetable, ScheduleError> {
        Timetable::new(&job.schedule, &self.zone, job.created_at_ms)
    }
}

/// Whether the process that a run names is proven gone.
fn owner_is_gone(run: &TaskRun) -> bool {
    let owner = run.origin.owner();
    owner.is_some_and(|owner| process::liveness(&owner) == Liveness::Gone)
}

/// Somebody is to be told that a job keeps failing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureAlert {
    /// The job.
    pub job_id: String,
    /// Its name.
    pub name: String,
    /// Who runs it.
    pub agent_id: Option<AgentId>,
    /// Failures in a row.
    pub failures: i64,
    /// What went wrong the last time.
    pub error: Option<String>,
    /// Channel to tell it on; `None` where none is configured.
    pub channel: Option<String>,
    /// Target on that channel.
    pub to: Option<String>,
    /// When it was raised.
    pub at_ms: i64,
}

/// What one tick did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickReport {
    /// Commands that ended well.
    pub succeeded: u64,
    /// Commands that ended badly.
    pub failed: u64,
    /// Commands that took too long.
    pub timed_out: u64,
    /// Commands that were ended before their time.
    pub cancelled: u64,
    /// Runs that wait for a worker now.
    pub offered: u64,
    /// Occurrences that were passed over, with a record.
    pub passed_over: u64,
    /// Runs whose process was gone.
    pub lost: u64,
    /// Jobs that were switched off because their schedule cannot be followed.
    pub refused: Vec<String>,
    /// Whom to tell of what keeps failing.
    pub alerts: Vec<FailureAlert>,
    /// What the configuration changed.
    pub reconciled: Reconciled,
}

impl Scheduler {
    /// Opens what a scheduler needs.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotInitialised`] when there is no root, [`ServiceError::Lock`] when something has the root for
    /// itself that is no daemon, [`ServiceError::Config`] when the configuration cannot be read.
    pub async fn open(root: &std::path::Path, clock: Clock) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        open::finish_cut_off(&layout, &clock).await?;
        if !open::is_initialised(&layout) {
            return Err(ServiceError::NotInitialised {
                root: root.to_owned(),
            });
        }
        let hold = hold(&layout).await?;
        let read = Config::load(&layout.config_file())?;
        let has_config = read.is_some();
        let config = read.unwrap_or_default();
        let access = Access::Write(open::write_access(&layout, &clock, &config));
        let global = Db::open(&layout.global_db(), &Tier::Global, access).await?;
        Ok(Self {
            ground: Ground::of(&config, root),
            global: Arc::new(global),
            layout,
            clock,
            config,
            has_config,
            _hold: hold,
        })
    }

    /// Runs all that is due, once, and returns when it has ended.
    ///
    /// What becomes due meanwhile is left to the next tick.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails. What had begun then is recorded as lost by a later tick.
    pub async fn tick(&self) -> Result<TickReport, ServiceError> {
        self.tick_until(std::future::pending()).await
    }

    /// The same until `stop`: commands that run then are ended, and recorded as cancelled.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::tick`].
    pub async fn tick_until(
        &self,
        stop: impl Future<Output = ()>,
    ) -> Result<TickReport, ServiceError> {
        let mut report = TickReport::default();
        if !self.config.scheduler.enabled {
            return Ok(report);
        }
        report.reconciled = self.reconcile().await?;
        self.reap(&mut report).await?;
        self.plan_new().await?;
        let due_ms = self.clock.now_ms();
        let mut running = JoinSet::new();
        let mut begun: Vec<Begun> = Vec::new();
        let mut look = tokio::time::interval(CANCEL_POLL);
        tokio::pin!(stop);
        loop {
            let mut is_more_due = false;
            if InHand::count(&self.ground.root) < self.ground.most {
                let claimed = self.claim(due_ms).await?;
                report.offered += claimed.offered;
                report.passed_over += claimed.passed_over;
                report.refused.extend(claimed.refused);
                is_more_due = !claimed.is_all && claimed.looked_at > 0;
                for Taken { job, task, in_hand } in claimed.runs {
                    let cut_off = Ended {
                        store_key: job.store_key.clone(),
                        job_id: job.job_id.clone(),
                        task: task.clone(),
                    };
                    begun.push(Begun {
                        cut_off,
                        command: running.spawn(self.run_of(job, task)),
                        _in_hand: in_hand,
                    });
                }
            }
            // Where another tick has all places, what is due is left to it or to the next.
            match running.is_empty() {
                true if is_more_due => continue,
                true => break,
                false => {}
            }
            tokio::select! {
                joined = running.join_next() => {
                    if let Some(Ok(ended)) = joined {
                        let id = &ended.task.task_id;
                        let at = begun.iter().position(|begun| begun.cut_off.task.task_id == *id);
                        // In hand until its end is committed.
                        let _of_it = at.map(|at| begun.swap_remove(at));
                        self.finish(ended, &mut report).await?;
                    }
                }
                _ = look.tick() => self.end_cancelled(&mut begun, &mut report).await?,
                () = &mut stop => {
                    running.shutdown().await;
                    for begun in begun.drain(..) {
                        self.cut_off(begun, "stopped with its scheduler", &mut report).await?;
                    }
                    break;
                }
            }
        }
        // Only what broke off in this program, by a defect, is left.
        for begun in begun {
            self.cut_off(begun, "broke off", &mut report).await?;
        }
        Ok(report)
    }

    /// Ends commands that somebody asked to stop.
    async fn end_cancelled(
        &self,
        begun: &mut Vec<Begun>,
        report: &mut TickReport,
    ) -> Result<(), ServiceError> {
        let ids: Vec<&str> = begun
            .iter()
            .map(|begun| begun.cut_off.task.task_id.as_str())
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut conn = self.global.read().await?;
        let asked = task::get_many(&mut conn, &ids).await.in_db(&self.global)?;
        drop(conn);
        let is_asked = |id: &str| {
            asked
                .iter()
                .any(|run| run.task_id == id && run.origin.cancel_state != CancelState::None)
        };
        let (over, still): (Vec<_>, Vec<_>) = std::mem::take(begun)
            .into_iter()
            .partition(|begun| is_asked(&begun.cut_off.task.task_id));
        *begun = still;
        for begun in over {
            begun.command.abort();
            self.cut_off(begun, "cancelled", report).await?;
        }
        Ok(())
    }

    async fn cut_off(
        &self,
        begun: Begun,
        why: &str,
        report: &mut TickReport,
    ) -> Result<(), ServiceError> {
        self.end_cut_off(begun.cut_off, why, report).await
    }

    async fn end_cut_off(
        &self,
        mut ended: Ended,
        why: &str,
        report: &mut TickReport,
    ) -> Result<(), ServiceError> {
        ended.task.status = TaskStatus::Cancelled;
        ended.task.status_detail = Some("interrupted".to_owned());
        ended.task.error = Some(why.to_owned());
        ended.task.ended_at_ms = Some(self.clock.now_ms());
        report.cancelled += 1;
        self.settle(ended, report).await
    }

    /// The clock it was opened with.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Finishes queued writes and closes its connection.
    pub async fn close(self) {
        if let Ok(db) = Arc::try_unwrap(self.global) {
            db.close().await;
        }
    }
}

/// Keeps restores and other writers of the whole root out, or waits for them; a daemon is no reason to wait.
async fn hold(layout: &Layout) -> Result<SharedLock, ServiceError> {
    let since = Instant::now();
    loop {
        let holder = match RootLock::shared_if_present(layout)? {
            SharedLock::WriterAlive(text) => text,
            hold => return Ok(hold),
        };
        if holder.as_ref().is_some_and(|text| text.kind == "daemon") {
            return Ok(SharedLock::WriterAlive(holder));
        }
        if since.elapsed() > LOCK_WAIT {
            return Err(LockError::Held {
                path: layout.daemon_lock(),
                holder: holder.map(Box::new),
                waited: since.elapsed(),
            }
            .into());
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
}

/// A command that runs.
#[derive(Debug)]
struct Begun {
    /// What is to be said of it where it does not end by itself.
    cut_off: Ended,
    command: AbortHandle,
    _in_hand: InHand,
}

/// A run and its job, for those who end it.
#[derive(Debug)]
struct Ended {
    store_key: String,
    job_id: String,
    task: TaskRun,
}
