//! `zeroclaw vfs`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, Page, VfsEntry, VfsHit, VfsNamespace, VfsPath, VfsTree};
use zeroclaw::service::{Request, Response};

use super::args::LimitArgs;
use super::output::{Column, Table, size, time};
use super::{CliError, Context, Exit, ask};

mod change;
mod copy;
mod upload;

/// See, read and change files that live in an agent's database
#[derive(Debug, Subcommand)]
pub(crate) enum VfsCommand {
    /// List a folder, or the trees there are
    ///
    /// An agent's files are in trees of their own, each a namespace; most are in `default`. Folders
    /// end in `/`. A whiteout is what a worker's layer hides of the tree it lies over.
    #[command(after_long_help = Exit::help_of_named())]
    Ls(LsArgs),
    /// Print a file
    ///
    /// Prints the bytes as they are. With --json one object: what `ls` says of the file, and `text`,
    /// which is null when the file is not text or larger than 16 MiB.
    #[command(after_long_help = Exit::help_of_named())]
    Cat(copy::CatArgs),
    /// Store a file of the disk, or what stdin gives
    ///
    /// The file appears whole or not at all, in place of one that may be there. Missing folders are
    /// made.
    #[command(after_long_help = Exit::help_of(&change::EXITS))]
    Put(change::PutArgs),
    /// Remove a file or folder
    #[command(after_long_help = Exit::help_of(&change::EXITS))]
    Rm(change::RmArgs),
    /// Copy a tree, a folder or a file out to the disk
    ///
    /// The target must be empty or not there yet: nothing is overwritten. What is copied is as it was
    /// at one instant.
    #[command(after_long_help = Exit::help_of(&change::EXITS))]
    Export(copy::ExportArgs),
    /// Search names, and the text of files up to 64 KiB
    ///
    /// Finds files whose name or text hold all the words, best match first.
    #[command(after_long_help = Exit::help_of_named())]
    Search(SearchArgs),
}

/// Whose files, and which tree.
#[derive(Args, Debug)]
pub(crate) struct TreeArgs {
    /// The agent
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// The tree
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: VfsNamespace,
}

#[derive(Args, Debug)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    tree: TreeArgs,

    /// The folder
    #[arg(default_value = "")]
    path: VfsPath,

    /// List all below it
    #[arg(short, long)]
    recursive: bool,

    /// List the trees of the agent instead
    #[arg(long, conflicts_with_all = ["path", "recursive", "after"])]
    trees: bool,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// What to look for; a file must hold every word
    #[arg(required = true)]
    words: Vec<String>,

    /// The agent
    #[arg(long, value_name = "ID")]
    agent: AgentId,

    /// Only in this tree
    #[arg(long, value_name = "NAME")]
    namespace: Option<VfsNamespace>,

    #[command(flatten)]
    limit: LimitArgs,
}

impl VfsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::Ls(args) if args.trees => trees(context, args).await,
            Self::Ls(args) => list(context, args).await,
            Self::Cat(args) => copy::cat(context, args).await,
            Self::Put(args) => change::put(context, args).await,
            Self::Rm(args) => change::remove(context, args).await,
            Self::Export(args) => copy::export(context, args).await,
            Self::Search(args) => search(context, args).await,
        }
    }
}

async fn trees(context: &Context, args: LsArgs) -> Result<Exit, CliError> {
    let agent = args.tree.agent;
    let Response::VfsTrees(trees) = ask(context, Request::VfsTrees { agent }).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&trees)?;
    } else if trees.is_empty() {
        context.out.note("no files");
    } else {
        context.out.table(&tree_table(&trees))?;
    }
    Ok(Exit::Done)
}

fn tree_table(trees: &[VfsTree]) -> Table {
    let mut table = Table::new(&[
        Column::text("namespace"),
        Column::number("files"),
        Column::number("size"),
        Column::word("updated"),
    ]);
    for tree in trees {
        table.row([
            tree.namespace.clone(),
            tree.files.to_string(),
            size(bytes(tree.size_bytes)),
            time(tree.updated_at_ms),
        ]);
    }
    table
}

async fn list(context: &Context, args: LsArgs) -> Result<Exit, CliError> {
    let request = Request::VfsList {
        agent: args.tree.agent,
        namespace: args.tree.namespace,
        path: args.path,
        recursive: args.recursive,
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::VfsEntries(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    show(context, &page)?;
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

fn show(context: &Context, page: &Page<VfsEntry>) -> Result<(), CliError> {
    if context.json() {
        return context.out.json(page);
    }
    if page.items.is_empty() {
        context.out.note("nothing here");
        return Ok(());
    }
    let mut table = Table::new(&[
        Column::word("kind"),
        Column::number("size"),
        Column::word("updated"),
        Column::text("path"),
    ]);
    for entry in &page.items {
        table.row(cells(entry));
    }
    context.out.table(&table)
}

fn cells(entry: &VfsEntry) -> [String; 4] {
    use zeroclaw::model::VfsKind;

    let (kind, bytes, end) = match entry.kind {
        VfsKind::File if entry.is_executable => {
            ("program".to_owned(), size(bytes(entry.size_bytes)), "")
        }
        VfsKind::File => ("file".to_owned(), size(bytes(entry.size_bytes)), ""),
        VfsKind::Folder => ("folder".to_owned(), "-".to_owned(), "/"),
        VfsKind::Whiteout => ("whiteout".to_owned(), "-".to_owned(), ""),
    };
    let path = format!("{}{end}", entry.path);
    [kind, bytes, time(entry.updated_at_ms), path]
}

async fn search(context: &Context, args: SearchArgs) -> Result<Exit, CliError> {
    let request = Request::VfsSearch {
        agent: args.agent,
        namespace: args.namespace,
        text: args.words.join(" "),
        limit: args.limit.page(),
    };
    let Response::VfsHits(hits) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&hits)?;
    } else if hits.is_empty() {
        context
            .out
            .note("nothing found; a file must hold every word");
    } else {
        context.out.table(&hit_table(&hits))?;
    }
    Ok(Exit::Done)
}

fn hit_table(hits: &[VfsHit]) -> Table {
    let mut table = Table::new(&[
        Column::word("namespace").minor(),
        Column::word("updated"),
        Column::text("path"),
        Column::text("text"),
    ]);
    for hit in hits {
        table.row([
            hit.entry.namespace.clone(),
            time(hit.entry.updated_at_ms),
            hit.entry.path.to_string(),
            hit.snippet.clone(),
        ]);
    }
    table
}

/// A size of a column, which is never negative.
fn bytes(size: i64) -> u64 {
    u64::try_from(size).unwrap_or(0)
}
