//! `zeroclaw tasks cancel`, `wait`, `sweep` and `leases`.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use zeroclaw::model::{CancelOutcome, TaskRun};
use zeroclaw::service::{Request, Response, Service, TaskDesk};

use super::status;
use crate::cli::args::span_ms;
use crate::cli::carrier::{change, looking};
use crate::cli::output::{Column, Fields, Table, or_dash, time};
use crate::cli::{CliError, Context, Exit, ask};

/// How often a task that is waited for is looked at. Each look lets the root go again.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

#[derive(Args, Debug)]
pub(crate) struct CancelArgs {
    /// Its id, or the start of it
    task: String,

    /// Show what would be asked to stop, and ask nobody
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Cancel it
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct WaitArgs {
    /// Its id, or the start of it
    task: String,

    /// Give up after this long: 90s, 10m, or a number of seconds
    #[arg(long, value_name = "SPAN", default_value = "60s", value_parser = span_or_seconds)]
    timeout: Duration,
}

/// What cancelling did.
#[derive(Serialize)]
struct Cancelled<'a> {
    task_id: &'a str,
    /// How it stood before.
    status: &'a str,
    /// `null` for a dry run.
    outcome: Option<CancelOutcome>,
}

async fn find(context: &Context, task: &str) -> Result<TaskRun, CliError> {
    let request = Request::TasksShow {
        task: task.to_owned(),
    };
    match ask(context, request).await? {
        Response::Task(shown) => Ok(shown.task),
        _ => Err(CliError::wrong_answer()),
    }
}

pub(super) async fn cancel(context: &Context, args: CancelArgs) -> Result<Exit, CliError> {
    let found = find(context, &args.task).await?;
    let outcome = if args.yes {
        // Beside whoever holds the root: its workers are who is to stop.
        let desk = TaskDesk::open(&context.root, context.clock.clone()).await?;
        let outcome = desk.tasks().cancel(&found.task_id).await;
        desk.close().await;
        Some(outcome?)
    } else {
        None
    };
    if context.json() {
        context.out.json(&Cancelled {
            task_id: &found.task_id,
            status: found.status.as_str(),
            outcome,
        })?;
    } else {
        let said = match outcome {
            Some(CancelOutcome::Cancelled) => "cancelled",
            Some(CancelOutcome::Requested) => "its worker is asked to stop",
            Some(CancelOutcome::AlreadyEnded) => "had ended before",
            None => "would be asked to stop",
        };
        let told = Fields::new()
            .add("task", &found.task_id)
            .add("was", status(&found))
            .add("outcome", said);
        context.out.fields(&told)?;
    }
    if !args.yes && !args.dry_run {
        let refused = CliError::new(Exit::Refused, "cancelling a task needs consent");
        return Err(refused.hint("the same command with --yes cancels"));
    }
    Ok(Exit::Done)
}

fn span_or_seconds(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let ms = span_ms(text)?;
    Ok(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

pub(super) async fn wait(context: &Context, args: WaitArgs) -> Result<Exit, CliError> {
    let until = Instant::now() + args.timeout;
    let id = find(context, &args.task).await?.task_id;
    loop {
        let found = looking(context, async |service: &Service| {
            Ok(service.tasks().get(&id).await?)
        })
        .await?;
        let is_over = Instant::now() >= until;
        if found.status.is_end() || is_over {
            if context.json() {
                context.out.json(&found)?;
            } else {
                context.out.fields(&fields_of(&found))?;
            }
            if found.status.is_end() {
                return Ok(Exit::Done);
            }
            let waited = format!(
                "task {id} has not ended within {} s",
                args.timeout.as_secs()
            );
            return Err(CliError::new(Exit::Busy, waited));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn fields_of(task: &TaskRun) -> Fields {
    Fields::new()
        .add("task", &task.task_id)
        .add("status", status(task))
        .add("ended", or_dash(task.ended_at_ms.map(time)))
        .add("output", or_dash(task.output.as_deref()))
        .add("error", or_dash(task.error.as_deref()))
}

pub(super) async fn sweep(context: &Context) -> Result<Exit, CliError> {
    let Response::Swept(report) = change(context, Request::TasksSweep).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&report)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[Column::text("task"), Column::word("became")]);
    for swept in report.recovered.iter().chain(&report.ended) {
        table.row([swept.task_id.clone(), swept.status.to_string()]);
    }
    for task_id in &report.left {
        table.row([task_id.clone(), "left as it is".to_owned()]);
    }
    if report.recovered.is_empty() && report.ended.is_empty() && report.left.is_empty() {
        context
            .out
            .note("no task was left by a worker that is gone");
    } else {
        context.out.table(&table)?;
    }
    Ok(Exit::Done)
}

pub(super) async fn leases(context: &Context) -> Result<Exit, CliError> {
    let Response::Leases(leases) = ask(context, Request::LeasesList).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&leases)?;
        return Ok(Exit::Done);
    }
    if leases.is_empty() {
        context.out.note("nobody holds a lease");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        Column::word("scope"),
        Column::text("key"),
        Column::text("held by"),
        Column::number("process"),
        Column::word("counts"),
        Column::word("since"),
    ]);
    for shown in &leases {
        let lease = &shown.lease;
        table.row([
            lease.scope.clone(),
            lease.lease_key.clone(),
            lease.owner.clone(),
            or_dash(lease.process.as_ref().map(|process| process.pid)),
            if shown.is_void { "no" } else { "yes" }.to_owned(),
            time(lease.created_at_ms),
        ]);
    }
    context.out.table(&table)?;
    Ok(Exit::Done)
}
