//! `zeroclaw audit`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, AuditEvent};
use zeroclaw::service::{Request, Response};

use super::args::LimitArgs;
use super::output::{Column, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// Show what was done to memories, and by whom
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List events, newest first
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only what this agent did
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only of this kind, such as `recall`
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

impl AuditCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::AuditList {
        agent: args.agent,
        operation: args.operation,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Audit(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no events");
    } else {
        context.out.table(&table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn table(events: &[AuditEvent]) -> Table {
    let mut table = Table::new(&[
        Column::word("when"),
        Column::word("agent"),
        Column::word("operation"),
        Column::text("key"),
        Column::text("namespace").minor(),
        Column::text("session").minor(),
        Column::text("details").minor(),
    ]);
    for event in events {
        table.row([
            time(event.at_ms),
            or_dash(event.agent_id.as_ref()),
            event.operation.clone(),
            or_dash(event.subject_key.as_deref()),
            or_dash(event.namespace.as_deref()),
            or_dash(event.session_hint.as_deref()),
            or_dash(event.metadata.as_deref()),
        ]);
    }
    table
}
