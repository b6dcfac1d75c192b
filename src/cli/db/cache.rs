//! `zeroclaw db cache`.

use clap::{Args, Subcommand};
use serde_json::json;
use zeroclaw::model::{AgentId, CacheCleared};
use zeroclaw::service::{Request, Response, Service};

use crate::cli::args::LimitArgs;
use crate::cli::carrier::change;
use crate::cli::output::{Column, Table, or_dash, size, time};
use crate::cli::{CliError, Context, Exit, ask};

/// What clearing can end with.
const EXITS: [Exit; 7] = [
    Exit::NotInitialised,
    Exit::Busy,
    Exit::NewerSchema,
    Exit::Damaged,
    Exit::NoSpace,
    Exit::NotFound,
    Exit::Refused,
];

/// List and clear caches
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List what an agent has cached, by scope and key
    ///
    /// What has expired is not there any more.
    #[command(after_long_help = Exit::help_of_named())]
    List(ListArgs),
    /// Delete what is cached; runtimes compute it again
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Clear(ClearArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// The agent
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// Only of this scope
    #[arg(long)]
    scope: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ClearArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only of this scope
    #[arg(long)]
    scope: Option<String>,

    /// Show what would go, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

impl CacheCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Clear(args) => clear(context, args).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::CacheList {
        agent: args.agent,
        scope: args.scope,
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::Cache(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("nothing is cached");
    } else {
        let mut table = Table::new(&[
            Column::text("scope"),
            Column::text("key"),
            Column::number("size"),
            Column::word("stored"),
            Column::word("expires"),
        ]);
        for entry in &page.items {
            table.row([
                entry.scope.clone(),
                entry.key.clone(),
                size(entry.size_bytes.unsigned_abs()),
                time(entry.updated_at_ms),
                or_dash(entry.expires_at_ms.map(time)),
            ]);
        }
        context.out.table(&table)?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

async fn clear(context: &Context, args: ClearArgs) -> Result<Exit, CliError> {
    let (agent, scope) = (args.agent.as_ref(), args.scope.as_deref());
    let cleared = if args.dry_run {
        let service = Service::look(&context.root, context.clock.clone()).await?;
        let counted = service.clear_cache(agent, scope, true).await;
        service.close().await;
        counted?
    } else if args.yes {
        let request = Request::CacheClear {
            agent: args.agent,
            scope: args.scope,
            dry_run: false,
        };
        let Response::CacheCleared(cleared) = change(context, request).await? else {
            return Err(CliError::wrong_answer());
        };
        cleared
    } else {
        return Err(
            CliError::new(Exit::Refused, "caches would be cleared".to_owned())
                .hint("see how much would go with --dry-run, then say --yes"),
        );
    };
    show(context, &cleared, args.dry_run)
}

fn show(context: &Context, cleared: &[CacheCleared], is_dry_run: bool) -> Result<Exit, CliError> {
    if context.json() {
        context
            .out
            .json(&json!({ "items": cleared, "dry_run": is_dry_run }))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[Column::word("agent"), Column::number("entries")]);
    for one in cleared {
        table.row([one.agent_id.to_string(), one.entries.to_string()]);
    }
    context.out.table(&table)?;
    if is_dry_run {
        context
            .out
            .note("nothing was deleted: with --yes instead of --dry-run this is done");
    }
    Ok(Exit::Done)
}
