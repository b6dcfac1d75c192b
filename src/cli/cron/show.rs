//! `zeroclaw cron show`.

use zeroclaw::model::CronJob;
use zeroclaw::service::{Request, Response};

use super::change::JobArgs;
use super::{schedule, state};
use crate::cli::output::{Fields, or_dash, span, time};
use crate::cli::{CliError, Context, Exit, ask};

pub(super) async fn show(context: &Context, args: JobArgs) -> Result<Exit, CliError> {
    let Response::CronJob(job) = ask(context, Request::CronShow { job: args.job }).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&job)?;
    } else {
        context.out.fields(&job_fields(&job))?;
    }
    Ok(Exit::Done)
}

/// All of a job, one line each.
pub(super) fn job_fields(job: &CronJob) -> Fields {
    let policy = &job.policy;
    let delivery = match (&job.delivery.channel, &job.delivery.to) {
        (Some(channel), Some(to)) => format!("{} to {to} on {channel}", job.delivery.mode),
        (Some(channel), None) => format!("{} on {channel}", job.delivery.mode),
        _ => job.delivery.mode.clone(),
    };
    Fields::new()
        .add("job", &job.job_id)
        .add("name", &job.name)
        .add("declared by", job.origin)
        .add("agent", or_dash(job.agent_id.as_ref()))
        .add("state", state(job))
        .add("schedule", schedule(&job.schedule))
        .add("kind", job.payload_kind)
        .add("does", &job.payload_message)
        .add("model", or_dash(job.payload_model.as_deref()))
        .add("delivery", delivery)
        .add("next run", or_dash(job.next_run_at_ms.map(time)))
        .add("in run", or_dash(job.state.claim_task_id.as_deref()))
        .add("last run", or_dash(job.last_run_at_ms.map(time)))
        .add("last status", or_dash(job.last_run_status.as_deref()))
        .add("failures in a row", job.state.consecutive_failures)
        .add("catches up", or_dash(policy.catch_up))
        .add("window", or_dash(policy.catch_up_window_ms.map(span)))
        .add("time limit", or_dash(policy.timeout_ms.map(span)))
        .add("stagger", or_dash(policy.stagger_ms.map(span)))
        .add("runs kept", or_dash(policy.runs_kept))
        .add("alert after", or_dash(policy.failure_alert_after))
        .add(
            "last alert",
            or_dash(job.state.failure_alerted_at_ms.map(time)),
        )
        .add("last output", or_dash(job.last_output.as_deref()))
}
