//! `zeroclaw doctor`: its arguments, and what it prints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, MigrationRun, PageLimit, SourceReceipt};
use zeroclaw::service::{Request, Response, RunHistory};

use crate::cli::output::{Column, Fields, Table, or_dash, size, time};
use crate::cli::{CliError, Context, Exit, ask};

use super::finding::Level;
use super::preflight::PreflightError;
use super::report::Report;
use super::show::show;
use super::sources::zeroclaw::surfaces::FORMATS;
use super::task::{DoctorError, Task};

/// Find state of older installs, and import it with --fix
///
/// Without --fix it looks and changes nothing; with it, exactly what it showed is done.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = Exit::help())]
pub(crate) struct DoctorArgs {
    /// Do what a run without this flag shows
    #[arg(long)]
    fix: bool,

    /// Copy from this foreign root, which is left as it is
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,

    /// Only this surface; repeat for more
    #[arg(long, value_name = "SURFACE")]
    only: Vec<String>,

    /// Give what belongs to agent OLD to agent NEW; repeat for more
    #[arg(long, value_name = "OLD=NEW")]
    agent_map: Vec<String>,

    #[command(subcommand)]
    command: Option<DoctorCommand>,
}

#[derive(Debug, Subcommand)]
enum DoctorCommand {
    /// List import runs, or show one with its receipts
    #[command(after_long_help = Exit::help_of_named())]
    History(HistoryArgs),
}

#[derive(Args, Debug)]
struct HistoryArgs {
    /// The run to show
    run: Option<String>,

    /// List at most this many runs, 1 to 1000
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    limit: u32,
}

/// Runs the command.
///
/// # Errors
///
/// [`CliError`], which knows the exit code.
pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Result<Exit, CliError> {
    if let Some(DoctorCommand::History(args)) = args.command {
        return history(args, context).await;
    }
    let task = task(&args, context)?;
    let tell = |text: &str| {
        if !context.json() {
            context.out.note(text);
        }
    };
    let done = if args.fix {
        super::run::fix(&task, &tell).await
    } else {
        super::run::look(&task).await
    };
    let report = done.map_err(|error| failure(&error))?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(exit(&report))
}

fn task(args: &DoctorArgs, context: &Context) -> Result<Task, CliError> {
    let surfaces: Vec<&str> = FORMATS.iter().map(|format| format.surface()).collect();
    if let Some(unknown) = args
        .only
        .iter()
        .find(|only| !surfaces.contains(&only.as_str()))
    {
        let message = format!("no surface {unknown:?}; there are {}", surfaces.join(", "));
        return Err(CliError::new(Exit::Usage, message));
    }
    let mut agent_map = BTreeMap::new();
    for pair in &args.agent_map {
        let named = pair
            .split_once('=')
            .filter(|(_, new)| AgentId::new(*new).is_ok());
        let (old, new) = named.ok_or_else(|| {
            CliError::new(
                Exit::Usage,
                format!("{pair:?} is no OLD=NEW with an agent id as NEW"),
            )
        })?;
        agent_map.insert(old.to_owned(), new.to_owned());
    }
    // A foreign root is known by its path: one path, whatever way it was given.
    let from = args
        .from
        .as_ref()
        .map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
    let is_foreign =
        |path: &PathBuf| std::fs::canonicalize(&context.root).ok().as_ref() != Some(path);
    Ok(Task {
        root: context.root.clone(),
        from: from.filter(is_foreign),
        only: args.only.clone(),
        agent_map,
        clock: context.clock.clone(),
    })
}

fn failure(error: &DoctorError) -> CliError {
    let told = CliError::new(Exit::from(error.kind()), error.to_string());
    let told = match std::error::Error::source(error) {
        Some(cause) => told.because(cause),
        None => told,
    };
    match error {
        DoctorError::Service(error) => match error.hint() {
            Some(hint) => told.hint(hint),
            None => told,
        },
        DoctorError::Config(_) => {
            told.hint("set the configuration right first: it says whose the sessions are")
        }
        DoctorError::Preflight(PreflightError::OldDaemon { .. }) => {
            told.hint("stop the old daemon first, then run this again; nothing was changed")
        }
        DoctorError::Preflight(_) => {
            told.hint("make room, then run this again; nothing was changed")
        }
        DoctorError::NewerTier { .. } => told
            .hint("update zeroclaw, or restore a backup made by this release; nothing was changed"),
        DoctorError::Fs(_) | DoctorError::NoSuchRoot { .. } => told,
    }
}

/// What the process ends with: failures and refusals first, then what waits.
fn exit(report: &Report) -> Exit {
    if report.mode == "look" && report.has_pending() {
        return Exit::LegacyPending;
    }
    let is_grave = report
        .gravest()
        .is_some_and(|level| level >= Level::Warning);
    if is_grave || report.total.refused > 0 {
        Exit::Findings
    } else {
        Exit::Done
    }
}

async fn history(args: HistoryArgs, context: &Context) -> Result<Exit, CliError> {
    let request = Request::History {
        run: args.run,
        limit: PageLimit::from(args.limit),
    };
    match ask(context, request).await? {
        Response::Runs(runs) if context.json() => context.out.json(&runs)?,
        Response::Run(run) if context.json() => context.out.json(&run)?,
        Response::Runs(runs) if runs.is_empty() => context.out.note("no import runs yet"),
        Response::Runs(runs) => context.out.table(&run_table(&runs))?,
        Response::Run(history) => show_run(context, &history)?,
        _ => return Err(CliError::wrong_answer()),
    }
    Ok(Exit::Done)
}

fn run_table(runs: &[MigrationRun]) -> Table {
    let mut table = Table::new(&[
        Column::word("run"),
        Column::word("status"),
        Column::word("phase").minor(),
        Column::word("started"),
        Column::word("finished").minor(),
        Column::text("from"),
    ]);
    for run in runs {
        table.row([
            run.id.clone(),
            run.status.to_string(),
            run.phase.to_string(),
            time(run.started_at_ms),
            or_dash(run.finished_at_ms.map(time)),
            or_dash(run.from_path.as_deref()),
        ]);
    }
    table
}

fn show_run(context: &Context, history: &RunHistory) -> Result<(), CliError> {
    let run = &history.run;
    let fields = Fields::new()
        .add("run", &run.id)
        .add("status", run.status)
        .add("phase", run.phase)
        .add("started", time(run.started_at_ms))
        .add("finished", or_dash(run.finished_at_ms.map(time)))
        .add(
            "from",
            run.from_path.as_deref().unwrap_or("the root itself"),
        )
        .add("backup", or_dash(run.backup_path.as_deref()))
        .add("release", &run.app_version);
    context.out.fields(&fields)?;
    if !history.sources.is_empty() {
        context.out.text("\n")?;
        context.out.table(&receipt_table(&history.sources))?;
    }
    Ok(())
}

fn receipt_table(receipts: &[SourceReceipt]) -> Table {
    let mut table = Table::new(&[
        Column::text("source"),
        Column::word("kind").minor(),
        Column::word("status"),
        Column::number("size").minor(),
        Column::number("records"),
        Column::number("imported"),
        Column::number("present").minor(),
        Column::number("merged"),
        Column::number("refused"),
        Column::text("now at"),
    ]);
    for receipt in receipts {
        table.row([
            receipt.source_path.clone(),
            receipt.migration_kind.clone(),
            receipt.status.to_string(),
            size(u64::try_from(receipt.source_size_bytes).unwrap_or(0)),
            receipt.total.records.to_string(),
            receipt.total.imported.to_string(),
            receipt.total.present.to_string(),
            receipt.total.merged.to_string(),
            receipt.total.refused.to_string(),
            or_dash(receipt.retired_path.as_deref()),
        ]);
    }
    table
}
