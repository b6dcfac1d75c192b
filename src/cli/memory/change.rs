//! `zeroclaw memory store`, `show` and `forget`.

use clap::Args;
use serde_json::json;
use zeroclaw::model::{AgentId, MemoryHit, NewMemory, Page};
use zeroclaw::service::{Request, Response};

use crate::cli::carrier::change;
use crate::cli::output::{Fields, or_dash, time};
use crate::cli::{CliError, Context, Exit, ask};

/// What changing commands can end with.
pub(super) const EXITS: [Exit; 7] = [
    Exit::NotInitialised,
    Exit::Busy,
    Exit::NewerSchema,
    Exit::Damaged,
    Exit::NoSpace,
    Exit::NotFound,
    Exit::Refused,
];

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// The agent
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// Its name; what the key held before is kept as superseded
    key: String,

    /// What is remembered
    content: String,

    /// core, daily, conversation or your own
    #[arg(long, default_value = "core")]
    category: String,

    /// Label
    #[arg(long, default_value = "default")]
    namespace: String,

    /// How much it weighs in a recall, 0 to 1; 0.5 without it
    #[arg(long, value_name = "SHARE")]
    importance: Option<f64>,

    /// Let it neither age nor expire
    #[arg(long)]
    pin: bool,

    /// Let it expire after this many days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    expires_in: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct NamedArgs {
    /// The agent
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// The key or the id
    #[arg(value_name = "KEY")]
    memory: String,
}

#[derive(Args, Debug)]
pub(crate) struct ForgetArgs {
    #[command(flatten)]
    named: NamedArgs,

    /// Show what would go, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

pub(super) async fn store(context: &Context, args: StoreArgs) -> Result<Exit, CliError> {
    if args
        .importance
        .is_some_and(|share| !(0.0..=1.0).contains(&share))
    {
        return Err(CliError::new(
            Exit::Usage,
            "importance is a number from 0 to 1",
        ));
    }
    let now_ms = context.clock.now_ms();
    let new = NewMemory {
        key: args.key,
        content: args.content,
        category: args.category,
        namespace: args.namespace,
        importance: args.importance,
        pinned: args.pin,
        expires_at_ms: args
            .expires_in
            .map(|days| now_ms + i64::from(days) * DAY_MS),
        ..NewMemory::default()
    };
    let request = Request::MemoryStore {
        agent: args.agent,
        memory: new,
    };
    let Response::MemoryStored(stored) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&stored)?;
    } else {
        context.out.fields(&fields(&stored))?;
    }
    Ok(Exit::Done)
}

pub(super) async fn show(context: &Context, args: NamedArgs) -> Result<Exit, CliError> {
    let items = named(ask(context, show_request(&args)).await?)?;
    if context.json() {
        context.out.json(&Page { items, next: None })?;
        return Ok(Exit::Done);
    }
    for (place, hit) in items.iter().enumerate() {
        if place > 0 {
            context.out.text("\n")?;
        }
        context.out.fields(&fields(hit))?;
    }
    Ok(Exit::Done)
}

fn show_request(args: &NamedArgs) -> Request {
    Request::MemoryShow {
        agent: args.agent.clone(),
        memory: args.memory.clone(),
    }
}

fn named(answer: Response) -> Result<Vec<MemoryHit>, CliError> {
    match answer {
        Response::MemoriesNamed(found) => Ok(found),
        _ => Err(CliError::wrong_answer()),
    }
}

fn fields(hit: &MemoryHit) -> Fields {
    let memory = &hit.memory;
    Fields::new()
        .add("key", &memory.key)
        .add("id", &memory.memory_id)
        .add("agent", &hit.agent_id)
        .add("category", &memory.category)
        .add("namespace", &memory.namespace)
        .add("importance", or_dash(memory.importance))
        .add("marks", super::marks(hit))
        .add("superseded by", or_dash(memory.superseded_by.as_deref()))
        .add("updated", time(memory.updated_at_ms))
        .add("expires", or_dash(memory.expires_at_ms.map(time)))
        .add("content", &memory.content)
}

pub(super) async fn forget(context: &Context, args: ForgetArgs) -> Result<Exit, CliError> {
    let NamedArgs { agent, memory } = &args.named;
    let gone = if args.dry_run {
        named(ask(context, show_request(&args.named)).await?)?
    } else if args.yes {
        let request = Request::MemoryForget {
            agent: agent.clone(),
            memory: memory.clone(),
        };
        named(change(context, request).await?)?
    } else {
        let message = format!("{memory} would be forgotten for good, with all it held before");
        return Err(CliError::new(Exit::Refused, message)
            .hint("see what would go with --dry-run, then say --yes"));
    };
    if context.json() {
        context
            .out
            .json(&json!({ "items": gone, "dry_run": args.dry_run }))?;
        return Ok(Exit::Done);
    }
    context.out.table(&super::memory_table(&gone))?;
    if args.dry_run {
        context
            .out
            .note("nothing was deleted: with --yes instead of --dry-run this is done");
    }
    Ok(Exit::Done)
}
