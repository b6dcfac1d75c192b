//! `zeroclaw cron run` and `tick`.

use clap::Args;
use zeroclaw::model::{TaskRun, TaskStatus};
use zeroclaw::service::TickReport;

use super::change::{JobArgs, scheduling};
use crate::cli::output::{Fields, or_dash, span};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct TickArgs {}

pub(super) async fn run(context: &Context, args: JobArgs) -> Result<Exit, CliError> {
    let task = scheduling(context, async |jobs| Ok(jobs.run_job(&args.job).await?)).await?;
    if context.json() {
        context.out.json(&task)?;
    } else {
        context.out.fields(&run_fields(&task))?;
    }
    Ok(match task.status {
        TaskStatus::Succeeded | TaskStatus::Pending => Exit::Done,
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
    let report = scheduling(context, async |jobs| Ok(jobs.tick().await?)).await?;
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
        .add("wait for a worker", report.offered)
        .add("passed over", report.passed_over)
        .add("lost", report.lost)
        .add("declared anew", changed.added.len())
        .add("declared otherwise", changed.changed.len())
        .add("no longer declared", changed.gone.len())
}
