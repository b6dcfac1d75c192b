//! `zeroclaw agents import`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::agent_move::{self, ImportOptions, ImportReport};

use crate::cli::backup::key::KeyArgs;
use crate::cli::output::{Column, Fields, Table, size};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The archive
    archive: PathBuf,

    /// Take this agent, where the archive is a backup of a whole root
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Give it this name
    ///
    /// Default: the name it has in the archive.
    #[arg(long = "as", value_name = "NEW")]
    name: Option<AgentId>,

    #[command(flatten)]
    key: KeyArgs,

    /// Show what would be written, and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Write
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: ImportArgs) -> Result<Exit, CliError> {
    let options = ImportOptions {
        archive: args.archive,
        key: args.key.source(),
        target: context.root.clone(),
        agent: args.agent,
        name: args.name,
        whole: None,
        dry_run: args.dry_run,
        yes: args.yes,
    };
    let report = agent_move::import(context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(Exit::Done)
}

pub(super) fn show(context: &Context, report: &ImportReport) -> Result<(), CliError> {
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
        .add("target", report.target.display())
        .add("agent", &report.agent_id);
    if report.source_agent_id != report.agent_id {
        fields = fields.add("named before", &report.source_agent_id);
    }
    if let Some(agent) = &report.agent {
        fields = fields.add("status", agent.status);
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
