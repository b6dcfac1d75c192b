//! `zeroclaw cron add`, `edit`, `pause`, `resume` and `remove`.

use clap::{ArgGroup, Args};
use serde_json::json;
use zeroclaw::model::{
    AgentId, CatchUp, CronJob, CronPolicy, Delivery, PayloadKind, Schedule, ShellOutputFormat,
    TimeZoneOrigin,
};
use zeroclaw::service::{CronChange, NewCronJob, Request, Response, Scheduler};

use super::show::job_fields;
use crate::cli::args::{instant, one_of, span_ms};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("when").args(["cron", "every", "at"])))]
pub(crate) struct WhenArgs {
    /// By a cron expression of 5, 6 or 7 fields
    ///
    /// Minute, hour, day of month, month, day of week (Sunday is 0 or 7); with 6 fields seconds stand first and
    /// Sunday is 1, with 7 the year stands last. Names (MON, JAN) mean the same in all. A time that the zone skips runs once
    /// at the end of the gap, one that it repeats runs the first time; intervals such as */15 follow real time.
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,

    /// Zone of the expression, as the IANA names it; the configured or the host's without it
    #[arg(long, value_name = "ZONE", requires = "cron")]
    tz: Option<String>,

    /// At a fixed distance, for example 90s, 10m, 1h30m or 2d
    #[arg(long, value_name = "SPAN", value_parser = span_ms)]
    every: Option<i64>,

    /// Once, at this time: RFC 3339 with its offset, or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<i64>,
}

impl WhenArgs {
    fn schedule(self) -> Option<Schedule> {
        if let Some(expr) = self.cron {
            let tz_origin = self.tz.as_ref().map(|_| TimeZoneOrigin::Job);
            return Some(Schedule::Cron {
                expr,
                tz: self.tz,
                tz_origin,
            });
        }
        if let Some(every_ms) = self.every {
            return Some(Schedule::Every {
                every_ms,
                anchor_ms: None,
            });
        }
        self.at.map(|at_ms| Schedule::At { at_ms })
    }
}

#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    /// What happens to times that nobody was there for: skip, once (the last of them) or all
    #[arg(long, value_name = "POLICY", value_parser = one_of(&["skip", "once", "all"], CatchUp::parse))]
    catch_up: Option<CatchUp>,

    /// Catch up on nothing older; 24 hours for `all` without it
    #[arg(long, value_name = "SPAN", value_parser = span_ms)]
    catch_up_window: Option<i64>,

    /// End a command after this time; 10 minutes without it
    #[arg(long, value_name = "SPAN", value_parser = span_ms)]
    timeout: Option<i64>,

    /// Spread runs over this time; each job has its own place in it
    #[arg(long, value_name = "SPAN", value_parser = span_ms)]
    stagger: Option<i64>,

    /// Keep this many runs; 0 keeps all
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
    keep_runs: Option<i64>,

    /// Tell somebody after this many failures in a row
    #[arg(long, value_name = "FAILURES", value_parser = clap::value_parser!(i64).range(1..=1_000))]
    alert_after: Option<i64>,

    /// Channel to tell it on; the job's own delivery without it
    #[arg(long, value_name = "CHANNEL")]
    alert_channel: Option<String>,

    /// Target on that channel
    #[arg(long, value_name = "TARGET", requires = "alert_channel")]
    alert_to: Option<String>,
}

impl PolicyArgs {
    fn policy(self) -> CronPolicy {
        CronPolicy {
            stagger_ms: self.stagger,
            catch_up: self.catch_up,
            catch_up_window_ms: self.catch_up_window,
            timeout_ms: self.timeout,
            runs_kept: self.keep_runs,
            failure_alert_after: self.alert_after,
            failure_alert_channel: self.alert_channel,
            failure_alert_to: self.alert_to,
            failure_alert_cooldown_ms: None,
        }
    }
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("what").args(["shell", "message", "event"]).required(true)))]
pub(crate) struct AddArgs {
    #[command(flatten)]
    when: WhenArgs,

    /// Run this command with /bin/sh, in the agent's workspace
    #[arg(long, value_name = "COMMAND")]
    shell: Option<String>,

    /// Give the agent this prompt
    #[arg(long, value_name = "PROMPT")]
    message: Option<String>,

    /// Tell the agent's session this
    #[arg(long, value_name = "TEXT")]
    event: Option<String>,

    /// Who runs it
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// Name for people; the beginning of what it does without it
    #[arg(long)]
    name: Option<String>,

    /// Model of the run
    #[arg(long, requires = "message")]
    model: Option<String>,

    /// Hand output on as it comes, without a frame
    #[arg(long, requires = "shell")]
    raw: bool,

    /// Remove the job after a successful run; for --at
    #[arg(long, requires = "at")]
    delete_after_run: bool,

    /// Announce results on this channel
    #[arg(long, value_name = "CHANNEL")]
    deliver_channel: Option<String>,

    /// Target on that channel
    #[arg(long, value_name = "TARGET", requires = "deliver_channel")]
    deliver_to: Option<String>,

    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// The job's id, its beginning, or its name
    job: String,

    #[command(flatten)]
    when: WhenArgs,

    /// What it does from now on: command, prompt or event, as it was
    #[arg(long, value_name = "TEXT")]
    does: Option<String>,

    /// Who runs it
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Name for people
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(Args, Debug)]
pub(crate) struct JobArgs {
    /// The job's id, its beginning, or its name
    pub(super) job: String,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    job: JobArgs,

    /// Show what would go, and remove nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Remove
    #[arg(long)]
    yes: bool,
}

/// Opens a scheduler, does the work, and lets it go.
pub(super) async fn scheduling<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Scheduler) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let scheduler = Scheduler::open(&context.root, context.clock.clone()).await?;
    let done = work(&scheduler).await;
    scheduler.close().await;
    done
}

fn told(context: &Context, job: &CronJob) -> Result<Exit, CliError> {
    if context.json() {
        context.out.json(job)?;
    } else {
        context.out.fields(&job_fields(job))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn add(context: &Context, args: AddArgs) -> Result<Exit, CliError> {
    let Some(schedule) = args.when.schedule() else {
        return Err(CliError::new(Exit::Usage, "nothing says when the job runs")
            .hint("give --cron, --every or --at"));
    };
    let kinds = [
        (PayloadKind::Shell, args.shell),
        (PayloadKind::AgentTurn, args.message),
        (PayloadKind::SystemEvent, args.event),
    ];
    let what = kinds
        .into_iter()
        .find_map(|(kind, text)| Some((kind, text?)));
    let (payload_kind, message) = what.ok_or_else(CliError::wrong_answer)?;
    let mut delivery = Delivery::default();
    if args.deliver_channel.is_some() {
        "announce".clone_into(&mut delivery.mode);
        delivery.channel = args.deliver_channel;
        delivery.to = args.deliver_to;
    }
    let new = NewCronJob {
        name: args.name,
        agent_id: args.agent,
        schedule,
        payload_kind,
        message,
        model: args.model,
        delete_after_run: args.delete_after_run,
        shell_output_format: match args.raw {
            true => ShellOutputFormat::Raw,
            false => ShellOutputFormat::Wrapped,
        },
        delivery,
        policy: args.policy.policy(),
    };
    let job = scheduling(context, async |jobs| Ok(jobs.add_job(new).await?)).await?;
    told(context, &job)
}

pub(super) async fn edit(context: &Context, args: EditArgs) -> Result<Exit, CliError> {
    let change = CronChange {
        name: args.name,
        agent_id: args.agent,
        schedule: args.when.schedule(),
        message: args.does,
        policy: args.policy.policy(),
    };
    let job = scheduling(context, async |jobs| {
        Ok(jobs.change_job(&args.job, change).await?)
    });
    told(context, &job.await?)
}

pub(super) async fn pause(context: &Context, args: JobArgs) -> Result<Exit, CliError> {
    let job = scheduling(context, async |jobs| Ok(jobs.pause_job(&args.job).await?));
    told(context, &job.await?)
}

pub(super) async fn resume(context: &Context, args: JobArgs) -> Result<Exit, CliError> {
    let job = scheduling(context, async |jobs| Ok(jobs.resume_job(&args.job).await?));
    told(context, &job.await?)
}

pub(super) async fn remove(context: &Context, args: RemoveArgs) -> Result<Exit, CliError> {
    let reference = &args.job.job;
    let job = if args.dry_run {
        let request = Request::CronShow {
            job: reference.clone(),
        };
        match ask(context, request).await? {
            Response::CronJob(job) => *job,
            _ => return Err(CliError::wrong_answer()),
        }
    } else if args.yes {
        scheduling(context, async |jobs| Ok(jobs.remove_job(reference).await?)).await?
    } else {
        let message = format!("job {reference} would be removed; its runs stay");
        return Err(CliError::new(Exit::Refused, message)
            .hint("see it with --dry-run, then say --yes; `cron pause` only switches it off"));
    };
    if context.json() {
        let answer = json!({ "job": job, "dry_run": args.dry_run });
        context.out.json(&answer)?;
        return Ok(Exit::Done);
    }
    context.out.fields(&job_fields(&job))?;
    if args.dry_run {
        context
            .out
            .note("nothing was removed: with --yes instead of --dry-run this is done");
    }
    Ok(Exit::Done)
}
