//! `zeroclaw memory reindex`.

use clap::Args;
use zeroclaw::model::{AgentId, Reindexed};
use zeroclaw::service::{Request, Response};

use crate::cli::carrier::change;
use crate::cli::output::{Column, Table};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct ReindexArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Write every entry and all words anew, whatever has changed
    #[arg(long)]
    rebuild: bool,
}

pub(super) async fn run(context: &Context, args: ReindexArgs) -> Result<Exit, CliError> {
    let request = Request::MemoryReindex {
        agent: args.agent,
        rebuild: args.rebuild,
    };
    let Response::Reindexed(done) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&done)?;
    } else {
        context.out.table(&table(&done))?;
    }
    for one in &done {
        for file in &one.skipped {
            context
                .out
                .warn(&format!("{} was left out: {}", file.path, file.reason));
        }
    }
    let is_whole = done.iter().all(|one| one.skipped.is_empty());
    Ok(if is_whole { Exit::Done } else { Exit::Findings })
}

fn table(done: &[Reindexed]) -> Table {
    let mut table = Table::new(&[
        Column::word("agent"),
        Column::number("files"),
        Column::number("entries"),
        Column::number("indexed"),
        Column::number("removed"),
        Column::word("workspace"),
    ]);
    for one in done {
        let there = if one.has_workspace { "read" } else { "missing" };
        table.row([
            one.agent_id.to_string(),
            one.files.to_string(),
            one.entries.to_string(),
            one.indexed.to_string(),
            one.removed.to_string(),
            there.to_owned(),
        ]);
    }
    table
}
