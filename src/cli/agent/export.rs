//! `zeroclaw agents export`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::agent_move::{self, ExportOptions, ExportReport};

use crate::cli::backup::key::SealArgs;
use crate::cli::backup::report::{encrypted, member_table, verified};
use crate::cli::output::{Fields, size, span};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The agent's id
    #[arg(value_name = "ID")]
    agent: AgentId,

    /// Write to this file, or into this folder
    ///
    /// Default: a new file in the folder backups of the root.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Take the agent's workspace along
    #[arg(long)]
    include_workspace: bool,

    #[command(flatten)]
    seal: SealArgs,
}

pub(super) async fn run(context: &Context, args: ExportArgs) -> Result<Exit, CliError> {
    let options = ExportOptions {
        agent: args.agent,
        output: args.output,
        include_workspace: args.include_workspace,
        seal: args.seal.source(),
    };
    let report = agent_move::export(&context.root, context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(Exit::Done)
}

fn show(context: &Context, report: &ExportReport) -> Result<(), CliError> {
    let out = &context.out;
    let archive = &report.archive;
    out.table(&member_table(&archive.members))?;
    out.text("\n")?;
    let took = i64::try_from(archive.duration_ms).unwrap_or(i64::MAX);
    let fields = Fields::new()
        .add("archive", archive.archive.display())
        .add("agent", &report.agent.agent_id)
        .add("status", report.agent.status)
        .add("size", size(archive.bytes))
        .add(
            "content",
            "all its conversations: keep it as safe as the root",
        )
        .add("encrypted", encrypted(archive))
        .add("verified", verified(archive))
        .add("took", span(took));
    out.fields(&fields)?;
    for left in &archive.left_out {
        out.note(&format!("left out {}: {}", left.path, left.reason));
    }
    for warning in &archive.warnings {
        out.warn(warning);
    }
    for note in &report.notes {
        out.note(note);
    }
    out.note("the agent is still here too; `zeroclaw agents import ARCHIVE` takes it in elsewhere");
    Ok(())
}
