//! `zeroclaw doctor clean`.

use clap::Args;
use zeroclaw::fs::Layout;

use crate::cli::{CliError, Context, Exit};
use crate::doctor::clean::{Clean, CleanError, show};

#[derive(Args, Debug)]
pub(super) struct CleanArgs {
    /// Only this run; one that was undone must be named
    run: Option<String>,

    /// Only runs that ended so many days ago
    #[arg(long, value_name = "DAYS")]
    older_than: Option<u32>,

    /// Show what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

/// The long help's end.
pub(super) fn help() -> String {
    let codes = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NotFound,
        Exit::Refused,
    ]);
    format!(
        "A file goes only when its bytes are those of a source whose every record came in and was read back. Runs whose \
         old files are deleted can no longer be undone. Of a run that was undone, what it had made goes.\n\n{codes}"
    )
}

pub(super) async fn run(args: CleanArgs, context: &Context) -> Result<Exit, CliError> {
    let clean = Clean {
        layout: Layout::new(context.root.clone()),
        run_id: args.run.as_deref(),
        older_than_days: args.older_than,
        clock: context.clock.clone(),
    };
    let done = match args.yes {
        true => clean.carry_out().await,
        false => clean.look().await,
    };
    let report = done.map_err(|error| failure(&error))?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    if args.yes || args.dry_run || report.files == 0 {
        return Ok(Exit::Done);
    }
    let refused = CliError::new(
        Exit::Refused,
        format!("deleting {} files needs consent", report.files),
    );
    Err(refused.hint("the same command with --yes deletes them"))
}

fn failure(error: &CleanError) -> CliError {
    let told = CliError::new(Exit::from(error.kind()), error.to_string());
    let told = match std::error::Error::source(error) {
        Some(cause) => told.because(cause),
        None => told,
    };
    match error.hint() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}
