//! `zeroclaw cron`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, CronJob, Schedule, TaskRun, TimeZoneOrigin};
use zeroclaw::service::{Request, Response};

use super::args::LimitArgs;
use super::output::{Column, Table, or_dash, span, time};
use super::task::status;
use super::{CliError, Context, Exit, ask};

mod change;
mod run;
mod show;

/// What changing commands can end with.
const EXITS: [Exit; 7] = [
    Exit::NotInitialised,
    Exit::Busy,
    Exit::NewerSchema,
    Exit::Damaged,
    Exit::NoSpace,
    Exit::NotFound,
    Exit::Refused,
];

/// Make, show and run scheduled jobs
#[derive(Debug, Subcommand)]
pub(crate) enum CronCommand {
    /// List jobs
    #[command(after_long_help = Exit::help_of_named())]
    List(ListArgs),
    /// List runs, newest first
    #[command(after_long_help = Exit::help_of_look())]
    Runs(RunsArgs),
    /// Show all of a job
    #[command(after_long_help = Exit::help_of_named())]
    Show(change::JobArgs),
    /// Make a job
    ///
    /// A command runs in the agent's workspace, with a small environment, for a bounded time; 64 KiB of its
    /// output are kept. What is for the agent itself waits for a worker.
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Add(Box<change::AddArgs>),
    /// Change a job
    ///
    /// Another schedule is planned from now on. A job of the configuration is changed there.
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Edit(Box<change::EditArgs>),
    /// Switch a job off, until it is resumed
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Pause(change::JobArgs),
    /// Switch a job on, from its next time on
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Resume(change::JobArgs),
    /// Remove a job; its runs stay to be seen
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Remove(change::RemoveArgs),
    /// Run a job now, on or off
    ///
    /// A command is run to its end, and its result shown; all else is left to a worker. Its schedule stays
    /// as it is.
    #[command(after_long_help = Exit::help_of(&[&EXITS[..], &[Exit::Findings, Exit::Interrupted]].concat()))]
    Run(change::JobArgs),
    /// Run all that is due, once
    ///
    /// For a timer of the system, every minute for example. Brings declared jobs in line with the
    /// configuration, records runs whose process is gone, runs commands that are due, and leaves jobs of agents to
    /// a worker. Several may run at the same time, beside a daemon too: each time of a job runs once.
    #[command(after_long_help = Exit::help_of(&[&EXITS[..], &[Exit::Findings, Exit::Interrupted]].concat()))]
    Tick(run::TickArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// Only of the job with this id
    job: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

impl CronCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Runs(args) => runs(context, args).await,
            Self::Show(args) => show::show(context, args).await,
            Self::Add(args) => change::add(context, *args).await,
            Self::Edit(args) => change::edit(context, *args).await,
            Self::Pause(args) => change::pause(context, args).await,
            Self::Resume(args) => change::resume(context, args).await,
            Self::Remove(args) => change::remove(context, args).await,
            Self::Run(args) => run::run(context, args).await,
            Self::Tick(args) => run::tick(context, args).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::CronList { agent: args.agent };
    let Response::CronJobs(jobs) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&jobs)?;
    } else if jobs.is_empty() {
        context.out.note("no jobs");
    } else {
        context.out.table(&job_table(&jobs))?;
    }
    Ok(Exit::Done)
}

fn job_table(jobs: &[CronJob]) -> Table {
    let mut table = Table::new(&[
        Column::text("job"),
        Column::text("name").minor(),
        Column::word("agent"),
        Column::text("state"),
        Column::text("schedule"),
        Column::word("next run"),
        Column::word("last run").minor(),
        Column::word("last status").minor(),
    ]);
    for job in jobs {
        table.row([
            job.job_id.clone(),
            job.name.clone(),
            or_dash(job.agent_id.as_ref()),
            state(job),
            schedule(&job.schedule),
            or_dash(job.next_run_at_ms.map(time)),
            or_dash(job.last_run_at_ms.map(time)),
            or_dash(job.last_run_status.as_deref()),
        ]);
    }
    table
}

fn state(job: &CronJob) -> String {
    match (job.enabled, &job.disabled_reason) {
        (true, _) => "on".to_owned(),
        (false, Some(reason)) => format!("off: {reason}"),
        (false, None) => "off".to_owned(),
    }
}

fn schedule(schedule: &Schedule) -> String {
    match schedule {
        Schedule::Cron {
            expr,
            tz: Some(tz),
            tz_origin: Some(TimeZoneOrigin::Host),
        } => format!("{expr} ({tz}, the host's)"),
        Schedule::Cron {
            expr, tz: Some(tz), ..
        } => format!("{expr} ({tz})"),
        Schedule::Cron { expr, tz: None, .. } => expr.clone(),
        Schedule::Every { every_ms, .. } => format!("every {}", span(*every_ms)),
        Schedule::At { at_ms } => format!("at {}", time(*at_ms)),
    }
}

async fn runs(context: &Context, args: RunsArgs) -> Result<Exit, CliError> {
    let request = Request::CronRuns {
        job: args.job,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Tasks(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context
            .out
            .note("no runs; `zeroclaw cron list` shows the jobs");
    } else {
        context.out.table(&run_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn run_table(runs: &[TaskRun]) -> Table {
    let mut table = Table::new(&[
        Column::word("started"),
        Column::text("job"),
        Column::word("agent").minor(),
        Column::word("status"),
        Column::number("took"),
        Column::text("output or error"),
    ]);
    for run in runs {
        let told = run.error.as_deref().or(run.output.as_deref());
        table.row([
            time(run.started_at_ms.unwrap_or(run.created_at_ms)),
            or_dash(run.source_id.as_deref()),
            or_dash(run.agent_id.as_ref()),
            status(run),
            or_dash(run.duration_ms.map(span)),
            or_dash(told.map(str::trim)),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_say_when_and_by_whose_clock() {
        let cron = |tz: Option<&str>, tz_origin| {
            schedule(&Schedule::Cron {
                expr: "0 9 * * 1".to_owned(),
                tz: tz.map(str::to_owned),
                tz_origin,
            })
        };

        assert_eq!(cron(None, None), "0 9 * * 1");
        assert_eq!(
            cron(Some("Asia/Tokyo"), Some(TimeZoneOrigin::Job)),
            "0 9 * * 1 (Asia/Tokyo)"
        );
        assert_eq!(
            cron(Some("UTC"), Some(TimeZoneOrigin::Host)),
            "0 9 * * 1 (UTC, the host's)"
        );
        let every = Schedule::Every {
            every_ms: 5_400_000,
            anchor_ms: None,
        };
        assert_eq!(schedule(&every), "every 1 h 30 m");
        assert_eq!(
            schedule(&Schedule::At { at_ms: 0 }),
            "at 1970-01-01T00:00:00Z"
        );
    }
}
