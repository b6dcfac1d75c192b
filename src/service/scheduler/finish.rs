//! Ends a run: its row, what its job says of it, what comes next, and who is to be told.

use super::{Ended, FailureAlert, Ground, Scheduler, TickReport};
use crate::db::WriteTx;
use crate::model::{
    CronJob, DeliveryRoute, DiagnosticEvent, DiagnosticLevel, NewDelivery, TaskRun, TaskStatus,
};
use crate::service::{ServiceError, delivery};
use crate::store::StoreError;
use crate::store::global::{cron, diagnostic, task};

/// Time between two alerts of a job that names none.
const ALERT_COOLDOWN_MS: i64 = 60 * 60 * 1_000;

/// The log that alerts go to.
const LOG: &str = "scheduler";

impl Scheduler {
    /// Ends a run of this process.
    pub(super) async fn finish(
        &self,
        ended: Ended,
        report: &mut TickReport,
    ) -> Result<(), ServiceError> {
        match ended.task.status {
            TaskStatus::Succeeded => report.succeeded += 1,
            TaskStatus::TimedOut => report.timed_out += 1,
            _ => report.failed += 1,
        }
        self.settle(ended, report).await
    }

    /// Writes the end of a run, unless it has ended otherwise meanwhile, and lets the job go.
    pub(super) async fn settle(
        &self,
        ended: Ended,
        report: &mut TickReport,
    ) -> Result<(), ServiceError> {
        let ground = self.ground.clone();
        let now_ms = self.clock.now_ms();
        let alert = self
            .global
            .write(move |tx| {
                Box::pin(async move {
                    let alert = settle(tx, &ground, ended, now_ms).await?;
                    if let Some(message) = alert.as_ref().and_then(message) {
                        delivery::insert(tx, &message, now_ms).await?;
                    }
                    Ok::<_, ServiceError>(alert)
                })
            })
            .await?;
        if let Some(alert) = &alert {
            tracing::warn!(job = %alert.job_id, failures = alert.failures, "a job keeps failing");
        }
        report.alerts.extend(alert);
        Ok(())
    }
}

async fn settle(
    tx: &mut WriteTx<'_>,
    ground: &Ground,
    ended: Ended,
    now_ms: i64,
) -> Result<Option<FailureAlert>, StoreError> {
    let mut run = ended.task;
    if !cron::settle(tx, &run).await?
        && let Some(stored) = task::get_many(tx, &[&run.task_id]).await?.pop()
    {
        run = stored;
    }
    let Some(mut job) = cron::get(tx, &ended.store_key, &ended.job_id).await? else {
        return Ok(None);
    };
    // Somebody let it go already, or it is in another run by now.
    if job.state.claim_task_id.as_deref() != Some(&run.task_id) {
        return Ok(None);
    }
    job.state.claim_task_id = None;
    note(&mut job, &run, now_ms);
    let alert = alert(&mut job, &run, now_ms);
    if let Some(alert) = &alert {
        diagnostic::insert_new(tx, &[event(alert, &run)]).await?;
    }
    let is_over = job.enabled && job.next_run_at_ms.is_none();
    if is_over && job.delete_after_run && run.status == TaskStatus::Succeeded {
        cron::delete(tx, &job.store_key, &job.job_id).await?;
        return Ok(alert);
    }
    if is_over {
        job.enabled = false;
        job.disabled_reason = Some(match run.status {
            TaskStatus::Succeeded => "done".to_owned(),
            other => format!("done, {}", word(other)),
        });
    }
    cron::update(tx, &job).await?;
    trim(tx, ground, &job).await?;
    Ok(alert)
}

/// Deletes what the job's history is not to keep.
pub(super) async fn trim(
    tx: &mut WriteTx<'_>,
    ground: &Ground,
    job: &CronJob,
) -> Result<(), StoreError> {
    let kept = job.policy.runs_kept.unwrap_or(ground.runs_kept);
    if kept > 0 {
        cron::trim_runs(tx, &job.job_id, kept).await?;
    }
    Ok(())
}

/// The words that jobs have for the ends of runs.
fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Succeeded => "ok",
        TaskStatus::TimedOut => "timeout",
        TaskStatus::Lost => "lost",
        TaskStatus::Cancelled => "cancelled",
        _ => "error",
    }
}

fn note(job: &mut CronJob, run: &TaskRun, now_ms: i64) {
    job.last_run_at_ms = run.started_at_ms.or(Some(now_ms));
    job.last_run_status = Some(word(run.status).to_owned());
    job.last_output = run.output.clone().or_else(|| run.error.clone());
    match run.status {
        TaskStatus::Succeeded => job.state.consecutive_failures = 0,
        TaskStatus::Cancelled => {}
        _ => job.state.consecutive_failures += 1,
    }
}

/// Whether somebody is to be told: enough failures in a row, and not told a short while ago.
fn alert(job: &mut CronJob, run: &TaskRun, now_ms: i64) -> Option<FailureAlert> {
    let failures = job.state.consecutive_failures;
    let after = job.policy.failure_alert_after?;
    if failures < after || matches!(run.status, TaskStatus::Succeeded | TaskStatus::Cancelled) {
        return None;
    }
    let cooldown_ms = job
        .policy
        .failure_alert_cooldown_ms
        .unwrap_or(ALERT_COOLDOWN_MS);
    let told_ms = job.state.failure_alerted_at_ms;
    // A mark in the future was set by a clock that was wrong.
    if told_ms.is_some_and(|told| told <= now_ms && now_ms - told < cooldown_ms) {
        return None;
    }
    job.state.failure_alerted_at_ms = Some(now_ms);
    let own = &job.policy;
    let is_own = own.failure_alert_channel.is_some();
    let delivery = &job.delivery;
    Some(FailureAlert {
        job_id: job.job_id.clone(),
        name: job.name.clone(),
        agent_id: job.agent_id.clone(),
        failures,
        error: run.error.clone(),
        channel: match is_own {
            true => own.failure_alert_channel.clone(),
            false => delivery.channel.clone(),
        },
        to: match is_own {
            true => own.failure_alert_to.clone(),
            false => delivery.to.clone(),
        },
        at_ms: now_ms,
    })
}

/// What is to be sent of an alert; nothing where no channel and target are configured: then the log alone tells it.
fn message(alert: &FailureAlert) -> Option<NewDelivery> {
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let route = DeliveryRoute {
        channel: named(&alert.channel)?,
        account_id: None,
        target: named(&alert.to)?,
        thread_id: None,
        agent_id: alert.agent_id.clone(),
        session_key: None,
    };
    let error = alert.error.as_deref().unwrap_or("no reason was given");
    let entry = serde_json::json!({
        "text": format!("Scheduled job {} failed {} times in a row: {error}", alert.name, alert.failures),
        "job_id": alert.job_id,
    });
    // One for each time it is raised, whoever comes to tell it.
    let key = format!("cron-alert:{}:{}", alert.job_id, alert.at_ms);
    let mut new = NewDelivery::new(route, entry.to_string()).with_key(key);
    new.entry_kind = Some("cron_alert".to_owned());
    Some(new)
}

fn event(alert: &FailureAlert, run: &TaskRun) -> DiagnosticEvent {
    let payload = serde_json::json!({
        "message": format!("job {} failed {} times in a row", alert.name, alert.failures),
        "job_id": alert.job_id,
        "task_id": run.task_id,
        "error": alert.error,
    });
    DiagnosticEvent {
        scope: LOG.to_owned(),
        event_key: format!("failure-alert:{}", run.task_id),
        created_at_ms: alert.at_ms,
        sequence: 0,
        level: DiagnosticLevel::Warn,
        category: Some("cron".to_owned()),
        action: Some("failure_alert".to_owned()),
        outcome: Some("failure".to_owned()),
        agent_id: alert.agent_id.clone(),
        payload_json: payload.to_string(),
    }
}
