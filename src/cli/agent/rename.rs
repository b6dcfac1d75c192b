//! `zeroclaw agents rename`.

use std::collections::BTreeMap;

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::agent_life::{self, RenameOptions};

use crate::cli::output::{Column, Table};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct RenameArgs {
    /// The name it has
    #[arg(value_name = "OLD")]
    agent: AgentId,

    /// The name it gets
    #[arg(value_name = "NEW")]
    name: AgentId,

    /// Show what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(context: &Context, args: RenameArgs) -> Result<Exit, CliError> {
    let options = RenameOptions {
        agent: args.agent,
        name: args.name,
        dry_run: args.dry_run,
    };
    let report = agent_life::rename(&context.root, context.clock.clone(), options).await?;
    let out = &context.out;
    if context.json() {
        out.json(&report)?;
        return Ok(Exit::Done);
    }
    out.table(&rows(&report.rows))?;
    let (old, new) = (&report.source_agent_id, &report.agent_id);
    if report.written {
        out.text(&format!("renamed {old} to {new}\n"))?;
    } else {
        out.note("nothing was changed: without --dry-run this is done");
    }
    in_config(context, &report.in_config);
    Ok(Exit::Done)
}

/// Rows of the control plane by table.
pub(super) fn rows(rows: &BTreeMap<String, i64>) -> Table {
    let mut table = Table::new(&[Column::text("table"), Column::number("rows")]);
    for (name, count) in rows {
        table.row([name.clone(), count.to_string()]);
    }
    table
}

/// Tells what a person has to change in the configuration.
pub(super) fn in_config(context: &Context, keys: &[String]) {
    if !keys.is_empty() {
        let keys = keys.join(", ");
        context
            .out
            .warn(&format!("config.toml still names it: {keys}"));
    }
}
