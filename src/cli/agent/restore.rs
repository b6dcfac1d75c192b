//! `zeroclaw agents restore`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::agent_move::{self, ImportOptions, Jobs};

use super::import::show;
use super::rename::rows;
use crate::cli::backup::key::KeyArgs;
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The archive that `agents delete` made
    archive: PathBuf,

    /// Give it this name
    ///
    /// Default: the name it had.
    #[arg(long = "as", value_name = "NEW")]
    name: Option<AgentId>,

    /// Leave its scheduled jobs switched on where they were
    #[arg(long)]
    enable_cron: bool,

    #[command(flatten)]
    key: KeyArgs,

    /// Show what would be written, and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Write
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: RestoreArgs) -> Result<Exit, CliError> {
    let options = ImportOptions {
        archive: args.archive,
        key: args.key.source(),
        target: context.root.clone(),
        agent: None,
        name: args.name,
        whole: Some(match args.enable_cron {
            true => Jobs::AsTheyWere,
            false => Jobs::Off,
        }),
        dry_run: args.dry_run,
        yes: args.yes,
    };
    let report = agent_move::import(context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        if !report.rows.is_empty() {
            context.out.table(&rows(&report.rows))?;
            context.out.text("\n")?;
        }
        show(context, &report)?;
    }
    Ok(Exit::Done)
}
