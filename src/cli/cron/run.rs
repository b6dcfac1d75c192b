//! `zeroclaw cron run` and `tick`.

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use zeroclaw::model::{TaskRun, TaskStatus};
use zeroclaw::service::TickReport;

use super::change::{JobArgs, scheduling};
use crate::cli::output::{Fields, or_dash, span};
use crate::cli::{CliError, Context, Exit};

/// Comes with the interrupt key or a request to terminate; both are listened to from the call on.
fn stopped() -> impl Future<Output = ()> {
    let signals = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    async move {
        match signals {
            (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            },
            // Then they end the process, and a later tick records what ran.
            _ => std::future::pending().await,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct TickArgs {}

pub(super) async fn run(context: &Context, args: JobArgs) -> Result<Exit, CliError> {
    let task = scheduling(context, async |jobs| {
        Ok(jobs.run_job(&args.job, stopped()).await?)
    })
    .await?;
    if context.json() {
        context.out.json(&task)?;
    } else {
        context.out.fields(&run_fields(&task))?;
    }
    Ok(match task.status {
        TaskStatus::Succeeded | TaskStatus::Pending => Exit::Done,
        TaskStatus::Cancelled => Exit::Interrupted,
        _ => Exit::Findings,
    })
}

fn run_fields(task: &TaskRun) -> Fields {
    Fields::new()
        .add("run", &task.task_id)
        .add("job", or_dash(task.source_id.as_deref()))
        .add("agent", or_dash(task.agent_id.as_ref()))
        .add("status", task.status)
        .add("took", or_dash(task.duration_ms.map(span)))
        .add("error", or_dash(task.error.as_deref()))
        .add("output", or_dash(task.output.as_deref()))
}

pub(super) async fn tick(context: &Context, _: TickArgs) -> Result<Exit, CliError> {
    let (hear, heard) = tokio::sync::watch::channel(false);
    let stopped = stopped();
    let stop = async move {
        stopped.await;
        hear.send_replace(true);
    };
    let report = scheduling(context, async |jobs| Ok(jobs.tick_until(stop).await?)).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        context.out.fields(&tick_fields(&report))?;
        for refused in report.refused.iter().chain(&report.reconciled.refused) {
            context.out.warn(refused);
        }
        for alert in &report.alerts {
            let told = format!("{} failed {} times in a row", alert.name, alert.failures);
            context.out.warn(&told);
        }
    }
    if *heard.borrow() {
        return Ok(Exit::Interrupted);
    }
    let is_fine = report.failed + report.timed_out + report.lost == 0
        && report.refused.is_empty()
        && report.reconciled.refused.is_empty();
    Ok(match is_fine {
        true => Exit::Done,
        false => Exit::Findings,
    })
}

fn tick_fields(report: &TickReport) -> Fields {
    let changed = &report.reconciled;
    Fields::new()
        .add("succeeded", report.succeeded)
        .add("failed", report.failed)
        .add("timed out", report.timed_out)
        .add("cancelled", report.cancelled)
        .add("wait for a worker", report.offered)
        .add("passed over", report.passed_over)
        .add("lost", report.lost)
        .add("declared anew", changed.added.len())
        .add("declared otherwise", changed.changed.len())
        .add("no longer declared", changed.gone.len())
}
