//! `zeroclaw backup restore`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::backup::{self, RestoreOptions, RestoreReport};
use zeroclaw::service::resolve_root;

use super::key::KeyArgs;
use crate::cli::output::{Column, Fields, Table, size};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The archive
    archive: PathBuf,

    /// Restore into this root, which need not exist
    ///
    /// Default: the root that --config-dir or the environment names.
    #[arg(long, value_name = "DIR")]
    target: Option<PathBuf>,

    /// Restore this agent only
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    #[command(flatten)]
    key: KeyArgs,

    /// Show what would be written and set aside, and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Write
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: RestoreArgs) -> Result<Exit, CliError> {
    let target = match args.target {
        Some(target) => resolve_root(Some(target), &|name| std::env::var_os(name))?,
        None => context.root.clone(),
    };
    let options = RestoreOptions {
        archive: args.archive,
        key: args.key.source(),
        target,
        agent: args.agent,
        dry_run: args.dry_run,
        yes: args.yes,
    };
    let report = backup::restore(context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(Exit::Done)
}

fn show(context: &Context, report: &RestoreReport) -> Result<(), CliError> {
    let out = &context.out;
    let mut table = Table::new(&[
        Column::word("action"),
        Column::number("size"),
        Column::text("path"),
    ]);
    for step in &report.plan {
        table.row([step.action.to_string(), size(step.bytes), step.path.clone()]);
    }
    out.table(&table)?;
    out.text("\n")?;
    let mut fields = Fields::new()
        .add("archive", report.archive.display())
        .add("target", report.target.display());
    if let Some(previous) = &report.previous {
        fields = fields.add("set aside in", previous.display());
    }
    out.fields(&fields)?;
    for note in &report.notes {
        out.note(note);
    }
    if !report.written {
        out.note("nothing was written: with --yes instead of --dry-run this is done");
    }
    Ok(())
}
