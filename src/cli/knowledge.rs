//! `zeroclaw knowledge`.

use clap::{Args, Subcommand};
use zeroclaw::model::{KnowledgeEdge, KnowledgeNode};
use zeroclaw::service::{Request, Response};

use super::args::LimitArgs;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// Show the knowledge graph
#[derive(Debug, Subcommand)]
pub(crate) enum KnowledgeCommand {
    /// List nodes, newest update first
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
    /// Show one node and how it belongs to others
    #[command(after_long_help = Exit::help_of_named())]
    Show(ShowArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only nodes of this type, such as `decision`
    #[arg(long = "type", value_name = "TYPE")]
    node_type: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Id of the node
    node: String,
}

impl KnowledgeCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => show(context, args.node).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::KnowledgeList {
        node_type: args.node_type,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Knowledge(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no nodes");
    } else {
        context.out.table(&node_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn node_table(nodes: &[KnowledgeNode]) -> Table {
    let mut table = Table::new(&[
        Column::word("node"),
        Column::word("type"),
        Column::text("title"),
        Column::text("tags").minor(),
        Column::word("updated"),
        Column::text("content"),
    ]);
    for node in nodes {
        table.row([
            node.node_id.clone(),
            node.node_type.clone(),
            node.title.clone(),
            node.tags.join(", "),
            time(node.updated_at_ms),
            node.content.clone(),
        ]);
    }
    table
}

async fn show(context: &Context, node: String) -> Result<Exit, CliError> {
    let Response::KnowledgeNode(overview) = ask(context, Request::KnowledgeShow { node }).await?
    else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&overview)?;
        return Ok(Exit::Done);
    }
    context.out.fields(&fields(&overview.node))?;
    if !overview.edges.is_empty() {
        context.out.text("\n")?;
        context.out.table(&edge_table(&overview.edges))?;
    }
    Ok(Exit::Done)
}

fn fields(node: &KnowledgeNode) -> Fields {
    Fields::new()
        .add("node", &node.node_id)
        .add("type", &node.node_type)
        .add("title", &node.title)
        .add("tags", node.tags.join(", "))
        .add("project", or_dash(node.source_project.as_deref()))
        .add("created", or_dash(node.created_at_ms.map(time)))
        .add("updated", time(node.updated_at_ms))
        .add("content", &node.content)
}

fn edge_table(edges: &[KnowledgeEdge]) -> Table {
    let mut table = Table::new(&[
        Column::word("from"),
        Column::word("relation"),
        Column::word("to"),
    ]);
    for edge in edges {
        table.row([
            edge.from_id.clone(),
            edge.relation.clone(),
            edge.to_id.clone(),
        ]);
    }
    table
}
