//! `zeroclaw doctor`: its arguments, and what it prints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use zeroclaw::model::AgentId;

use crate::cli::{CliError, Context, Exit};

use super::finding::Level;
use super::preflight::PreflightError;
use super::progress::Progress;
use super::report::Report;
use super::show::show;
use super::sources::zeroclaw::surfaces::Format;
use super::stop::Stop;
use super::task::{DoctorError, Task};

mod clean;
mod history;
mod undo;

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
    History(history::HistoryArgs),

    /// Delete old files whose import is proven
    #[command(after_long_help = clean::help())]
    Clean(clean::CleanArgs),

    /// Put back what a run moved aside, and the databases of before it
    #[command(after_long_help = undo::help())]
    Undo(undo::UndoArgs),
}

/// Runs the command.
///
/// # Errors
///
/// [`CliError`], which knows the exit code.
pub(crate) async fn run(args: DoctorArgs, context: &Context) -> Result<Exit, CliError> {
    match args.command {
        Some(DoctorCommand::History(args)) => return history::run(args, context).await,
        Some(DoctorCommand::Clean(args)) => return clean::run(args, context).await,
        Some(DoctorCommand::Undo(args)) => return undo::run(args, context).await,
        None => {}
    }
    let task = task(&args, context)?;
    let done = if args.fix {
        super::run::fix(&task).await
    } else {
        super::run::look(&task).await
    };
    task.progress.end();
    let report = done.map_err(|error| failure(&error, args.fix))?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(exit(&report))
}

fn task(args: &DoctorArgs, context: &Context) -> Result<Task, CliError> {
    let surfaces: Vec<&str> = Format::all().map(Format::surface).collect();
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
    let progress = Progress::to(&context.out);
    let is_foreign =
        |path: &PathBuf| std::fs::canonicalize(&context.root).ok().as_ref() != Some(path);
    Ok(Task {
        root: context.root.clone(),
        from: from.filter(is_foreign),
        only: args.only.clone(),
        agent_map,
        clock: context.clock.clone(),
        stop: stop(&progress),
        progress,
    })
}

/// Listens to signals, and says what the first of them does.
fn stop(progress: &Progress) -> Stop {
    let progress = progress.clone();
    Stop::listen(move || {
        progress.note("stopping at the next safe point; once more stops at once");
    })
}

pub(super) fn failure(error: &DoctorError, is_fix: bool) -> CliError {
    if let DoctorError::Stopped(stopped) = error {
        let told = CliError::new(Exit::Interrupted, stopped.to_string());
        return told.hint(match is_fix {
            true => "run `zeroclaw doctor --fix` again: it goes on where it stopped",
            false => "nothing was changed",
        });
    }
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
        DoctorError::Fs(_) | DoctorError::NoSuchRoot { .. } | DoctorError::Stopped(_) => told,
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
