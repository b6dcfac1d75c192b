//! Making, changing, pausing, removing jobs, and running one now.

use std::future::Future;

use super::claim::{begun, set_next};
use super::in_hand::InHand;
use super::{Ended, Scheduler, TickReport};
use crate::db::WriteTx;
use crate::model::{
    AgentId, CRON_STORE, CronJob, CronOrigin, CronPolicy, CronState, Delivery, PayloadKind,
    Schedule, ShellOutputFormat, TaskRun, TaskStatus, TimeZoneOrigin, Timetable,
};
use crate::service::ServiceError;
use crate::service::cron::find_job;
use crate::service::error::InDb;
use crate::store::global::{agent, cron, task};

/// A job to be made.
#[derive(Clone, Debug)]
pub struct NewCronJob {
    /// Name for people; `None` for the beginning of what it does.
    pub name: Option<String>,
    /// Who runs it.
    pub agent_id: AgentId,
    /// When.
    pub schedule: Schedule,
    /// What it does.
    pub payload_kind: PayloadKind,
    /// Command, prompt or event.
    pub message: String,
    /// Model, where it is to be another than the agent's.
    pub model: Option<String>,
    /// Whether it goes after a successful run.
    pub delete_after_run: bool,
    /// How output is handed on.
    pub shell_output_format: ShellOutputFormat,
    /// Where results go.
    pub delivery: Delivery,
    /// How it is run.
    pub policy: CronPolicy,
}

/// What is to change in a job; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct CronChange {
    /// Name for people.
    pub name: Option<String>,
    /// Who runs it.
    pub agent_id: Option<AgentId>,
    /// When.
    pub schedule: Option<Schedule>,
    /// Command, prompt or event, of the kind it was.
    pub message: Option<String>,
    /// How it is run; fields without a value stay as they are.
    pub policy: CronPolicy,
}

/// Longest name made up from what a job does, characters.
const NAME_CHARS: usize = 40;

fn invalid(reason: impl Into<String>) -> ServiceError {
    ServiceError::Invalid {
        what: "job",
        reason: reason.into(),
    }
}

impl Scheduler {
    /// Makes a job; it is on, and planned.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] when its schedule cannot be followed or is never due,
    /// [`ServiceError::NotFound`] when there is no such agent.
    pub async fn add_job(&self, new: NewCronJob) -> Result<CronJob, ServiceError> {
        self.need_agent(&new.agent_id).await?;
        let now_ms = self.clock.now_ms();
        if new.message.trim().is_empty() {
            return Err(invalid("does nothing: what it is to do is empty"));
        }
        let name = new.name.unwrap_or_else(|| {
            let line = new.message.lines().next().unwrap_or_default();
            line.chars().take(NAME_CHARS).collect()
        });
        let mut job = CronJob {
            store_key: CRON_STORE.to_owned(),
            job_id: uuid::Uuid::now_v7().to_string(),
            name,
            origin: CronOrigin::Runtime,
            agent_id: Some(new.agent_id),
            enabled: true,
            disabled_reason: None,
            delete_after_run: new.delete_after_run,
            schedule: self.in_zone(new.schedule),
            session_target: "isolated".to_owned(),
            payload_kind: new.payload_kind,
            payload_message: new.message,
            payload_model: new.model,
            tools_allow: None,
            uses_memory: true,
            shell_output_format: new.shell_output_format,
            delivery: new.delivery,
            next_run_at_ms: None,
            last_run_at_ms: None,
            last_run_status: None,
            last_output: None,
            job_json: "{}".to_owned(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            policy: new.policy,
            state: CronState::default(),
        };
        self.plan_from(&mut job, now_ms)?;
        let stored = job.clone();
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    cron::insert_new(tx, &stored).await?;
                    Ok::<_, ServiceError>(())
                })
            })
            .await?;
        Ok(job)
    }

    /// Changes a job; another schedule is planned from now on.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::add_job`]; [`ServiceError::Conflict`] for a declared job, which its configuration owns.
    pub async fn change_job(
        &self,
        reference: &str,
        change: CronChange,
    ) -> Result<CronJob, ServiceError> {
        if let Some(agent) = &change.agent_id {
            self.need_agent(agent).await?;
        }
        let now_ms = self.clock.now_ms();
        let schedule = change
            .schedule
            .clone()
            .map(|schedule| self.in_zone(schedule));
        self.change(reference, move |scheduler, job| {
            owned_by_row(job)?;
            let policy = &change.policy;
            let is_replanned = schedule.is_some() || policy.stagger_ms.is_some();
            job.name = change.name.clone().unwrap_or_else(|| job.name.clone());
            job.agent_id = change.agent_id.clone().or(job.agent_id.take());
            if let Some(message) = &change.message {
                job.payload_message.clone_from(message);
            }
            if let Some(schedule) = &schedule {
                job.schedule = schedule.clone();
            }
            job.policy = overlaid(&job.policy, policy);
            job.updated_at_ms = now_ms;
            if is_replanned {
                Timetable::new(&job.schedule, &scheduler.zone, now_ms)
                    .map_err(|error| invalid(format!("cannot be followed: {error}")))?;
                if job.enabled {
                    plan_job(scheduler, job, now_ms)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Switches a job off, until it is resumed.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none.
    pub async fn pause_job(&self, reference: &str) -> Result<CronJob, ServiceError> {
        let now_ms = self.clock.now_ms();
        self.change(reference, move |_, job| {
            if job.enabled {
                job.enabled = false;
                job.disabled_reason = Some("paused".to_owned());
                job.next_run_at_ms = None;
                job.updated_at_ms = now_ms;
            }
            Ok(())
        })
        .await
    }

    /// Switches a job on; it runs from its next time on, and catches up on nothing.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, [`ServiceError::Invalid`] when it has no agent or is never due.
    pub async fn resume_job(&self, reference: &str) -> Result<CronJob, ServiceError> {
        let now_ms = self.clock.now_ms();
        self.change(reference, move |ground, job| {
            if job.enabled {
                return Ok(());
            }
            if job.agent_id.is_none() {
                return Err(invalid(
                    "has no agent to run it: give it one with `cron edit --agent`",
                ));
            }
            job.enabled = true;
            job.disabled_reason = None;
            job.updated_at_ms = now_ms;
            plan_job(ground, job, now_ms)
        })
        .await
    }

    /// Removes a job; its runs stay to be seen, and one that waits for a worker is cancelled.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, [`ServiceError::Conflict`] when it runs, or is declared.
    pub async fn remove_job(&self, reference: &str) -> Result<CronJob, ServiceError> {
        self.reap(&mut TickReport::default()).await?;
        let reference = reference.to_owned();
        let now_ms = self.clock.now_ms();
        let is_declared: Vec<String> = self.config.cron.keys().cloned().collect();
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    let job = find_job(tx, &reference).await?;
                    if job.origin == CronOrigin::Config && is_declared.contains(&job.job_id) {
                        return Err(conflict(
                            &job,
                            "to be no job of the configuration",
                            "declared in it",
                        ));
                    }
                    let_go(tx, &job, now_ms).await?;
                    cron::delete(tx, &job.store_key, &job.job_id).await?;
                    Ok(job)
                })
            })
            .await
    }

    /// Runs a job now, whatever its schedule says and whether or not it is on: a command to its end, all else is left
    /// to a worker. Gives the run. A command that runs when `stop` comes is ended, and its run cancelled.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, [`ServiceError::Conflict`] when it is in a run.
    pub async fn run_job(
        &self,
        reference: &str,
        stop: impl Future<Output = ()>,
    ) -> Result<TaskRun, ServiceError> {
        self.reap(&mut TickReport::default()).await?;
        let reference = reference.to_owned();
        let now_ms = self.clock.now_ms();
        let ground = self.ground.clone();
        let (job, task, _in_hand) = self
            .global
            .write(move |tx| {
                Box::pin(async move {
                    let mut job = find_job(tx, &reference).await?;
                    if let Some(run) = &job.state.claim_task_id {
                        return Err(conflict(&job, "in no run", &format!("in run {run}")));
                    }
                    let task = begun(&job, &ground, None, now_ms);
                    job.state.claim_task_id = Some(task.task_id.clone());
                    let in_hand = InHand::take(&ground.root, &task.task_id);
                    task::insert_new(tx, std::slice::from_ref(&task)).await?;
                    cron::update(tx, &job).await?;
                    Ok((job, task, in_hand))
                })
            })
            .await?;
        if task.status == TaskStatus::Pending {
            return Ok(task);
        }
        let task_id = task.task_id.clone();
        let cut_off = Ended {
            store_key: job.store_key.clone(),
            job_id: job.job_id.clone(),
            task: task.clone(),
        };
        let mut report = TickReport::default();
        tokio::select! {
            ended = self.run_of(job, task) => self.finish(ended, &mut report).await?,
            () = stop => {
                self.end_cut_off(cut_off, "stopped with its scheduler", &mut report).await?;
            }
        }
        let mut conn = self.global.read().await?;
        let found = task::get_many(&mut conn, &[&task_id]).await;
        let run = found.in_db(&self.global)?.pop();
        run.ok_or(ServiceError::NotFound {
            what: "run",
            name: task_id,
        })
    }

    async fn need_agent(&self, id: &AgentId) -> Result<(), ServiceError> {
        let mut conn = self.global.read().await?;
        match agent::get(&mut conn, id).await.in_db(&self.global)? {
            Some(_) => Ok(()),
            None => Err(ServiceError::NotFound {
                what: "agent",
                name: id.to_string(),
            }),
        }
    }

    /// An expression without a zone is meant in this scheduler's; that is written down, so that it stays so elsewhere.
    fn in_zone(&self, schedule: Schedule) -> Schedule {
        match schedule {
            Schedule::Cron { expr, tz: None, .. } => Schedule::Cron {
                expr,
                tz: Some(self.ground.zone.clone()),
                tz_origin: Some(TimeZoneOrigin::Host),
            },
            other => other,
        }
    }

    fn plan_from(&self, job: &mut CronJob, now_ms: i64) -> Result<(), ServiceError> {
        plan_job(&self.ground, job, now_ms)
    }

    async fn change<F>(&self, reference: &str, change: F) -> Result<CronJob, ServiceError>
    where
        F: FnOnce(&super::Ground, &mut CronJob) -> Result<(), ServiceError> + Send + 'static,
    {
        let (reference, ground) = (reference.to_owned(), self.ground.clone());
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    let mut job = find_job(tx, &reference).await?;
                    change(&ground, &mut job)?;
                    cron::update(tx, &job).await?;
                    Ok(job)
                })
            })
            .await
    }
}

/// Plans a job from `now_ms` on, or says why it cannot be.
fn plan_job(ground: &super::Ground, job: &mut CronJob, now_ms: i64) -> Result<(), ServiceError> {
    Timetable::new(&job.schedule, &ground.zone, job.created_at_ms)
        .map_err(|error| invalid(format!("cannot be followed: {error}")))?;
    set_next(ground, job, now_ms);
    if job.next_run_at_ms.is_none() {
        return Err(invalid("would never be due again"));
    }
    Ok(())
}

fn owned_by_row(job: &CronJob) -> Result<(), ServiceError> {
    match job.origin {
        CronOrigin::Runtime => Ok(()),
        CronOrigin::Config => Err(conflict(
            job,
            "to be no job of the configuration",
            "declared in it: change it there",
        )),
    }
}

fn conflict(job: &CronJob, expected: &str, found: &str) -> ServiceError {
    ServiceError::Conflict {
        what: "job",
        name: job.name.clone(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

/// Ends what waits of a job that goes; one that runs keeps it.
async fn let_go(tx: &mut WriteTx<'_>, job: &CronJob, now_ms: i64) -> Result<(), ServiceError> {
    let Some(run) = &job.state.claim_task_id else {
        return Ok(());
    };
    let Some(mut task) = task::get_many(tx, &[run]).await?.pop() else {
        return Ok(());
    };
    if task.status == TaskStatus::Pending {
        task.status = TaskStatus::Cancelled;
        task.error = Some("its job was removed".to_owned());
        task.ended_at_ms = Some(now_ms);
        cron::settle(tx, &task).await?;
    } else if !task.status.is_end() {
        return Err(conflict(job, "in no run", &format!("in run {run}")));
    }
    Ok(())
}

fn overlaid(old: &CronPolicy, new: &CronPolicy) -> CronPolicy {
    let new = new.clone();
    CronPolicy {
        stagger_ms: new.stagger_ms.or(old.stagger_ms),
        catch_up: new.catch_up.or(old.catch_up),
        catch_up_window_ms: new.catch_up_window_ms.or(old.catch_up_window_ms),
        timeout_ms: new.timeout_ms.or(old.timeout_ms),
        runs_kept: new.runs_kept.or(old.runs_kept),
        failure_alert_after: new.failure_alert_after.or(old.failure_alert_after),
        failure_alert_channel: new
            .failure_alert_channel
            .or_else(|| old.failure_alert_channel.clone()),
        failure_alert_to: new
            .failure_alert_to
            .or_else(|| old.failure_alert_to.clone()),
        failure_alert_cooldown_ms: new
            .failure_alert_cooldown_ms
            .or(old.failure_alert_cooldown_ms),
    }
}
