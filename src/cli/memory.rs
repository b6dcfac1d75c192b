//! `zeroclaw memory`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, MemoryHit, Page};
use zeroclaw::service::{Request, Response};

use super::args::LimitArgs;
use super::output::{Column, Table, time};
use super::{CliError, Context, Exit, ask};

mod change;
mod indexed;
mod prune;
mod reindex;

/// Store, show, find and forget memories
#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List memories, newest update first
    ///
    /// Without --agent the memories of all agents, retired ones too.
    #[command(after_long_help = Exit::help_of_named())]
    List(ListArgs),
    /// Search memories that still hold
    ///
    /// Finds memories whose key or content hold all the words, best match first.
    #[command(after_long_help = Exit::help_of_named())]
    Search(SearchArgs),
    /// Store a memory under a key
    ///
    /// What the key held before is kept as superseded. The same content again brings the labels up to
    /// date.
    #[command(after_long_help = Exit::help_of(&change::EXITS))]
    Store(change::StoreArgs),
    /// Show all that a key holds and held, or the memory of an id
    #[command(after_long_help = Exit::help_of_named())]
    Show(change::NamedArgs),
    /// Delete all that a key holds and held, or the memory of an id
    #[command(after_long_help = Exit::help_of(&change::EXITS))]
    Forget(change::ForgetArgs),
    /// Delete memories that have expired and are not pinned
    #[command(after_long_help = Exit::help_of(&change::EXITS))]
    Prune(prune::PruneArgs),
    /// List or search entries of files that hold memories
    ///
    /// Such files stay yours to edit; `zeroclaw memory reindex` indexes what has changed.
    /// Without words all entries, by file and line.
    #[command(after_long_help = Exit::help_of_named())]
    Indexed(indexed::IndexedArgs),
    /// Index MEMORY.md and memory/**/*.md of workspaces anew
    ///
    /// Only files that have changed are written; rows of files that are gone go. The index can be
    /// searched all the while. Ends with 1 when a file could not be indexed.
    #[command(after_long_help = Exit::help_of(&[
        Exit::Findings,
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
    ]))]
    Reindex(reindex::ReindexArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only of this category, for example core, daily or conversation
    #[arg(long)]
    category: Option<String>,

    /// Show superseded memories too
    #[arg(long)]
    superseded: bool,

    /// Show expired memories too
    #[arg(long)]
    with_expired: bool,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// What to look for; a memory must hold every word
    #[arg(required = true)]
    words: Vec<String>,

    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Find expired memories too
    #[arg(long)]
    with_expired: bool,

    #[command(flatten)]
    limit: LimitArgs,
}

impl MemoryCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Search(args) => search(context, args).await,
            Self::Store(args) => change::store(context, args).await,
            Self::Show(args) => change::show(context, args).await,
            Self::Forget(args) => change::forget(context, args).await,
            Self::Prune(args) => prune::run(context, args).await,
            Self::Indexed(args) => indexed::run(context, args).await,
            Self::Reindex(args) => reindex::run(context, args).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::MemoryList {
        agent: args.agent,
        category: args.category,
        with_superseded: args.superseded,
        with_expired: args.with_expired,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Memories(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    show(context, &page, "no memories")?;
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

async fn search(context: &Context, args: SearchArgs) -> Result<Exit, CliError> {
    let request = Request::MemorySearch {
        text: args.words.join(" "),
        agent: args.agent,
        with_expired: args.with_expired,
        limit: args.limit.page(),
    };
    let Response::Memories(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    show(
        context,
        &page,
        "nothing found; a memory must hold every word",
    )?;
    Ok(Exit::Done)
}

fn show(context: &Context, page: &Page<MemoryHit>, none: &str) -> Result<(), CliError> {
    if context.json() {
        return context.out.json(page);
    }
    if page.items.is_empty() {
        context.out.note(none);
        return Ok(());
    }
    context.out.table(&memory_table(&page.items))
}

fn memory_table(hits: &[MemoryHit]) -> Table {
    let mut table = Table::new(&[
        Column::word("agent"),
        Column::text("key"),
        Column::word("category").minor(),
        Column::word("updated"),
        Column::word("marks").minor(),
        Column::text("content"),
    ]);
    for hit in hits {
        let memory = &hit.memory;
        table.row([
            hit.agent_id.to_string(),
            memory.key.clone(),
            memory.category.clone(),
            time(memory.updated_at_ms),
            marks(hit),
            memory.content.clone(),
        ]);
    }
    table
}

/// What sets a memory apart from a plain one.
fn marks(hit: &MemoryHit) -> String {
    let memory = &hit.memory;
    let marks: Vec<&str> = [
        memory.pinned.then_some("pinned"),
        (!memory.is_trusted).then_some("untrusted"),
        memory.superseded_by.is_some().then_some("superseded"),
        memory.expires_at_ms.is_some().then_some("expires"),
        hit.embedding_dims.is_some().then_some("vector"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if marks.is_empty() {
        "-".to_owned()
    } else {
        marks.join(",")
    }
}
