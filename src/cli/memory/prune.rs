//! `zeroclaw memory prune`.

use clap::Args;
use serde_json::json;
use zeroclaw::model::AgentId;
use zeroclaw::service::{Request, Response, Service};

use crate::cli::carrier::change;
use crate::cli::output::{Column, Table};
use crate::cli::{CliError, Context, Exit};

#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Show how many would go, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: PruneArgs) -> Result<Exit, CliError> {
    let agent = args.agent.as_ref();
    let pruned = if args.dry_run {
        let service = Service::look(&context.root, context.clock.clone()).await?;
        let counted = service.prune_memories(agent, true).await;
        service.close().await;
        counted?
    } else if args.yes {
        let request = Request::MemoryPrune {
            agent: args.agent,
            dry_run: false,
        };
        let Response::MemoriesPruned(pruned) = change(context, request).await? else {
            return Err(CliError::wrong_answer());
        };
        pruned
    } else {
        let message = "memories that have expired would be deleted for good".to_owned();
        return Err(CliError::new(Exit::Refused, message)
            .hint("see how many with --dry-run, which ones with `memory list --with-expired`, then say --yes"));
    };
    if context.json() {
        context
            .out
            .json(&json!({ "items": pruned, "dry_run": args.dry_run }))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[Column::word("agent"), Column::number("expired")]);
    for one in &pruned {
        table.row([one.agent_id.to_string(), one.expired.to_string()]);
    }
    context.out.table(&table)?;
    if args.dry_run {
        context
            .out
            .note("nothing was deleted: with --yes instead of --dry-run this is done");
    }
    Ok(Exit::Done)
}
