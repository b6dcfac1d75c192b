//! Takes what is due: the run, the claim and the next time in one transaction.

use super::in_hand::InHand;
use super::plan::{Passed, Rules, plan, shift};
use super::{Ended, FARTHEST_AHEAD_MS, Ground, Scheduler, TickReport, finish, owner_is_gone};
use crate::db::WriteTx;
use crate::model::{CronJob, PayloadKind, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus};
use crate::service::ServiceError;
use crate::service::error::InDb;
use crate::store::StoreError;
use crate::store::global::{cron, task};

/// Jobs looked at in one transaction: enough to fill every place, few enough that others get their turn.
const LOOKED_AT: u32 = 64;

/// What one transaction took.
#[derive(Debug, Default)]
pub(super) struct Claimed {
    /// Commands to run.
    pub(super) runs: Vec<Taken>,
    /// Jobs that were due and are settled or begun.
    pub(super) looked_at: usize,
    /// Runs that wait for a worker.
    pub(super) offered: u64,
    pub(super) passed_over: u64,
    pub(super) refused: Vec<String>,
    /// Whether nothing else was due.
    pub(super) is_all: bool,
}

/// A command that is to run.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) job: CronJob,
    pub(super) task: TaskRun,
    pub(super) in_hand: InHand,
}

impl Scheduler {
    /// Takes what was due at `due_ms`, commands as far as there is room for them, and offers what is for agents.
    pub(super) async fn claim(&self, due_ms: i64) -> Result<Claimed, ServiceError> {
        let ground = self.ground.clone();
        let now_ms = self.clock.now_ms();
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    let due = cron::due(tx, due_ms, LOOKED_AT).await?;
                    let mut claimed = Claimed {
                        is_all: due.len() < LOOKED_AT as usize,
                        ..Claimed::default()
                    };
                    for job in due {
                        // Asked under the lock of the transaction: ticks that overlap never begin more than that.
                        if InHand::count(&ground.root) >= ground.most {
                            claimed.is_all = false;
                            break;
                        }
                        claimed.looked_at += 1;
                        take(tx, &ground, job, (now_ms, due_ms), &mut claimed).await?;
                    }
                    Ok(claimed)
                })
            })
            .await
    }

    /// Ends the claims of runs that have ended elsewhere, or whose process is gone.
    pub(super) async fn reap(&self, report: &mut TickReport) -> Result<(), ServiceError> {
        let mut over = Vec::new();
        let mut conn = self.global.read().await?;
        for job in cron::claimed(&mut conn).await.in_db(&self.global)? {
            let Some(task_id) = job.state.claim_task_id.clone() else {
                continue;
            };
            // Asked before the row is read: a run that was let go by then has its end there, if it has one.
            let is_in_hand = InHand::has(&self.ground.root, &task_id);
            let found = task::get_many(&mut conn, &[&task_id])
                .await
                .in_db(&self.global)?;
            let Some(mut task) = found.into_iter().next() else {
                tracing::warn!(job = %job.job_id, %task_id, "its run is gone from the ledger");
                self.release(job).await?;
                continue;
            };
            if !task.status.is_end() {
                let is_own = task.origin.owner().as_ref() == Some(&self.ground.own);
                let is_command = job.payload_kind == PayloadKind::Shell;
                if owner_is_gone(&task) {
                    self.mark_lost(&mut task, "the process that ran it is gone");
                } else if is_own && is_command && !is_in_hand {
                    self.mark_lost(&mut task, "its end could not be recorded");
                } else {
                    continue;
                }
            }
            over.push(Ended {
                store_key: job.store_key,
                job_id: job.job_id,
                task,
            });
        }
        drop(conn);
        for ended in over {
            report.lost += u64::from(ended.task.status == TaskStatus::Lost);
            self.settle(ended, report).await?;
        }
        Ok(())
    }

    fn mark_lost(&self, task: &mut TaskRun, why: &str) {
        let now_ms = self.clock.now_ms();
        task.status = TaskStatus::Lost;
        task.status_detail = Some("interrupted".to_owned());
        task.error = Some(format!(
            "{why}; how far it came is not known, and it is not repeated"
        ));
        task.ended_at_ms = Some(now_ms);
    }

    async fn release(&self, mut job: CronJob) -> Result<(), ServiceError> {
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    job.state.claim_task_id = None;
                    cron::update(tx, &job).await?;
                    Ok(())
                })
            })
            .await
    }

    /// Gives a time to jobs that have none, and anew to those that a wrong clock put far ahead.
    pub(super) async fn plan_new(&self) -> Result<(), ServiceError> {
        let now_ms = self.clock.now_ms();
        let future_ms = now_ms.saturating_add(FARTHEST_AHEAD_MS);
        let mut conn = self.global.read().await?;
        let found = cron::unplanned(&mut conn, future_ms)
            .await
            .in_db(&self.global)?;
        drop(conn);
        if found.is_empty() {
            return Ok(());
        }
        let ground = self.ground.clone();
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    for mut job in cron::unplanned(tx, future_ms).await? {
                        if job.state.last_occurrence_at_ms > Some(future_ms) {
                            job.state.last_occurrence_at_ms = None;
                        }
                        set_next(&ground, &mut job, now_ms);
                        cron::update(tx, &job).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}

/// Plans a job anew from `now_ms` on; one that is never due again, or cannot be followed, is switched off.
pub(super) fn set_next(ground: &Ground, job: &mut CronJob, now_ms: i64) {
    let shift = shift(&job.job_id, job.policy.stagger_ms);
    let behind = job
        .state
        .last_occurrence_at_ms
        .map_or(now_ms - shift, |last| last.max(now_ms - shift));
    match ground.table(job) {
        Ok(table) => {
            job.next_run_at_ms = table.next_after(behind).map(|next| next + shift);
            if job.next_run_at_ms.is_none() {
                switch_off(job, "never due again");
            }
        }
        Err(error) => switch_off(job, &error.to_string()),
    }
}

fn switch_off(job: &mut CronJob, reason: &str) {
    job.enabled = false;
    job.disabled_reason = Some(reason.to_owned());
    job.next_run_at_ms = None;
}

/// The identity of the run of an occurrence.
fn key(job: &CronJob, occurrence_ms: i64) -> String {
    format!("{}@{occurrence_ms}", job.store_key)
}

async fn take(
    tx: &mut WriteTx<'_>,
    ground: &Ground,
    mut job: CronJob,
    (now_ms, due_ms): (i64, i64),
    claimed: &mut Claimed,
) -> Result<(), StoreError> {
    let table = match ground.table(&job) {
        Ok(table) => table,
        Err(error) => {
            claimed.refused.push(format!("{}: {error}", job.job_id));
            switch_off(&mut job, &error.to_string());
            cron::update(tx, &job).await?;
            return Ok(());
        }
    };
    let shift = shift(&job.job_id, job.policy.stagger_ms);
    let first = job.next_run_at_ms.unwrap_or(due_ms).saturating_sub(shift);
    if job
        .state
        .last_occurrence_at_ms
        .is_some_and(|last| first <= last)
    {
        set_next(ground, &mut job, due_ms);
        cron::update(tx, &job).await?;
        return Ok(());
    }
    let rules = Rules {
        catch_up: job.policy.catch_up.unwrap_or(ground.catch_up),
        window_ms: job.policy.catch_up_window_ms,
    };
    let plan = plan(&table, first, due_ms - shift, rules);
    if let Some(passed) = plan.passed {
        let record = passed_over(&job, passed, now_ms);
        task::insert_new(tx, &[record]).await?;
        claimed.passed_over += u64::from(passed.count);
        job.state.last_occurrence_at_ms = Some(passed.last_ms);
    }
    job.next_run_at_ms = plan.next.map(|next| next + shift);
    let mut run = None;
    if let Some(occurrence_ms) = plan.run {
        job.state.last_occurrence_at_ms = Some(occurrence_ms);
        let key = key(&job, occurrence_ms);
        // One that ran before a wrong clock was put right does not run again.
        if !cron::has_run(tx, &job.job_id, &key).await? {
            run = Some(begun(&job, ground, Some((occurrence_ms, key)), now_ms));
        }
    }
    match run {
        Some(run) => {
            job.state.claim_task_id = Some(run.task_id.clone());
            let in_hand = InHand::take(&ground.root, &run.task_id);
            task::insert_new(tx, std::slice::from_ref(&run)).await?;
            cron::update(tx, &job).await?;
            match job.payload_kind {
                PayloadKind::Shell => claimed.runs.push(Taken {
                    job,
                    task: run,
                    in_hand,
                }),
                PayloadKind::AgentTurn | PayloadKind::SystemEvent => claimed.offered += 1,
            }
        }
        None => {
            if job.next_run_at_ms.is_none() {
                switch_off(&mut job, "skipped");
            }
            job.last_run_status = Some("skipped".to_owned());
            cron::update(tx, &job).await?;
            finish::trim(tx, ground, &job).await?;
        }
    }
    Ok(())
}

/// The row of a run that begins, or that waits for a worker.
pub(super) fn begun(
    job: &CronJob,
    ground: &Ground,
    occurrence: Option<(i64, String)>,
    now_ms: i64,
) -> TaskRun {
    let is_own = job.payload_kind == PayloadKind::Shell;
    let (occurrence_ms, key) = occurrence.unzip();
    let detail = match is_own {
        true => serde_json::json!({ "occurrence_at_ms": occurrence_ms }),
        // All that a worker needs, as it was when the occurrence came.
        false => serde_json::json!({
            "occurrence_at_ms": occurrence_ms,
            "message": job.payload_message,
            "model": job.payload_model,
            "session_target": job.session_target,
            "tools_allow": job.tools_allow,
            "uses_memory": job.uses_memory,
            "delivery": job.delivery,
        }),
    };
    let mut origin = TaskOrigin {
        task_kind: Some(job.payload_kind.as_str().to_owned()),
        idempotency_key: key,
        caller_chain: job.agent_id.as_ref().map(|agent| vec![agent.to_string()]),
        ..TaskOrigin::default()
    };
    if is_own {
        origin.set_owner(&ground.own);
    }
    TaskRun {
        task_id: uuid::Uuid::now_v7().to_string(),
        owner_kind: TaskOwnerKind::Cron,
        source_id: Some(job.job_id.clone()),
        agent_id: job.agent_id.clone(),
        label: Some(job.name.clone()),
        status: match is_own {
            true => TaskStatus::Running,
            false => TaskStatus::Pending,
        },
        status_detail: None,
        created_at_ms: now_ms,
        started_at_ms: is_own.then_some(now_ms),
        ended_at_ms: None,
        duration_ms: None,
        output: None,
        error: None,
        detail_json: Some(detail.to_string()),
        origin,
    }
}

/// The record of occurrences that do not run.
fn passed_over(job: &CronJob, passed: Passed, now_ms: i64) -> TaskRun {
    let detail = serde_json::json!({
        "passed_over": passed.count,
        "first_at_ms": passed.first_ms,
        "last_at_ms": passed.last_ms,
    });
    let times = if passed.count == 1 { "time" } else { "times" };
    TaskRun {
        task_id: uuid::Uuid::now_v7().to_string(),
        owner_kind: TaskOwnerKind::Cron,
        source_id: Some(job.job_id.clone()),
        agent_id: job.agent_id.clone(),
        label: Some(job.name.clone()),
        status: TaskStatus::Cancelled,
        status_detail: Some("skipped".to_owned()),
        created_at_ms: now_ms,
        started_at_ms: Some(now_ms),
        ended_at_ms: Some(now_ms),
        duration_ms: None,
        output: None,
        error: Some(format!("was due {} {times} and did not run", passed.count)),
        detail_json: Some(detail.to_string()),
        origin: TaskOrigin {
            task_kind: Some(job.payload_kind.as_str().to_owned()),
            ..TaskOrigin::default()
        },
    }
}
