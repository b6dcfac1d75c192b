//! `zeroclaw agents delete`.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::agent_life::{self, DeleteOptions, DeleteReport};

use super::rename::{in_config, rows};
use crate::cli::backup::report::{member_table, verified};
use crate::cli::output::{Fields, size};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The agent's id
    #[arg(value_name = "ID")]
    agent: AgentId,

    /// Write the archive to this file, or into this folder
    ///
    /// Default: a new file in the folder backups of the root.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Give up what cannot go into an archive: links, sockets, archives, names that are not UTF-8
    #[arg(long)]
    drop_unarchived: bool,

    /// Show what would go, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: DeleteArgs) -> Result<Exit, CliError> {
    let options = DeleteOptions {
        agent: args.agent,
        output: args.output,
        drop_unarchived: args.drop_unarchived,
        dry_run: args.dry_run,
        yes: args.yes,
    };
    let report = agent_life::delete(&context.root, context.clock.clone(), options).await?;
    if context.json() {
        context.out.json(&report)?;
    } else {
        show(context, &report)?;
    }
    Ok(Exit::Done)
}

fn show(context: &Context, report: &DeleteReport) -> Result<(), CliError> {
    let out = &context.out;
    let archive = &report.archive;
    out.table(&member_table(&archive.members))?;
    out.text("\n")?;
    out.table(&rows(&report.rows))?;
    out.text("\n")?;
    let mut fields = Fields::new()
        .add("agent", &report.agent.agent_id)
        .add("archive", archive.archive.display());
    if report.written {
        fields = fields
            .add("size", size(archive.bytes))
            .add("verified", verified(archive));
    }
    out.fields(&fields)?;
    for left in &archive.left_out {
        out.warn(&format!("in no archive: {} ({})", left.path, left.reason));
    }
    for warning in &archive.warnings {
        out.warn(warning);
    }
    if report.mentions > 0 {
        let told = report.mentions;
        out.note(&format!("its name goes out of {told} tasks of others"));
    }
    in_config(context, &report.in_config);
    if report.written {
        let path = archive.archive.display();
        out.note(&format!(
            "`zeroclaw agents restore '{path}'` brings it back"
        ));
    } else {
        out.note("nothing was deleted: with --yes instead of --dry-run this is done");
    }
    Ok(())
}
