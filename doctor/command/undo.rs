//! `zeroclaw doctor undo`.

use clap::Args;
use zeroclaw::fs::Layout;

use crate::cli::{CliError, Context, Exit};
use crate::doctor::undo::{Undo, UndoError, show};

#[derive(Args, Debug)]
pub(super) struct UndoArgs {
    /// The run; `zeroclaw doctor history` shows them
    run: String,

    /// Show what would be done and which rows would be lost, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do it
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
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]);
    format!(
        "Sources go back to the byte, and databases come back from the archive that the run made first; after a first \
         import there are none again. What the run had made and what was written since is kept in state/undone/RUN.\n\n\
         {codes}"
    )
}

pub(super) async fn run(args: UndoArgs, context: &Context) -> Result<Exit, CliError> {
    let undo = Undo {
        layout: Layout::new(context.root.clone()),
        run_id: &args.run,
        clock: context.clock.clone(),
    };
    let tell = |text: &str| {
        if !context.json() {
            context.out.note(text);
        }
    };
    let done = match args.yes {
        true => undo.carry_out(&tell).await,
        false => undo.look().await,
    };
    let report = done.map_err(|error| failure(&error))?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    if args.yes || args.dry_run || report.was_undone {
        return Ok(Exit::Done);
    }
    let refused = CliError::new(
        Exit::Refused,
        format!("undoing run {} needs consent", args.run),
    );
    Err(refused.hint("the same command with --yes undoes it"))
}

fn failure(error: &UndoError) -> CliError {
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
