//! `zeroclaw sessions trajectory`, `zeroclaw sessions parent-stream`.

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::{Request, Response};

use crate::cli::args::LimitArgs;
use crate::cli::output::{Column, Table, or_dash, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct StreamArgs {
    /// The session's id, its key, or the start of its id
    session: String,

    /// Its agent, where the name fits sessions of several
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only of this run
    #[arg(long)]
    run: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

pub(super) async fn trajectory(context: &Context, args: StreamArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsTrajectory {
        agent: args.agent,
        session: args.session,
        run: args.run,
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::Trajectory(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    let mut table = empty_table();
    for event in &page.items {
        table.row([
            event.seq.to_string(),
            or_dash(event.run_id.as_deref()),
            time(event.created_at_ms),
            event.event_json.clone(),
        ]);
    }
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no steps of a runtime are kept");
    } else {
        context.out.table(&table)?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

pub(super) async fn parent_stream(context: &Context, args: StreamArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsParentStream {
        agent: args.agent,
        session: args.session,
        run: args.run,
        after: args.after,
        limit: args.limit.page(),
    };
    let Response::ParentStream(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    let mut table = empty_table();
    for event in &page.items {
        table.row([
            event.seq.to_string(),
            event.run_id.clone(),
            time(event.created_at_ms),
            event.event_json.clone(),
        ]);
    }
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("nothing that a child told is kept");
    } else {
        context.out.table(&table)?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--after", cursor);
    }
    Ok(Exit::Done)
}

fn empty_table() -> Table {
    Table::new(&[
        Column::number("seq"),
        Column::text("run"),
        Column::word("stored"),
        Column::text("event"),
    ])
}
