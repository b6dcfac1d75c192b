//! `zeroclaw sessions search`.

use clap::Args;
use zeroclaw::model::{AgentId, PageLimit, SearchHit};
use zeroclaw::service::{Request, Response, SearchAnswer};

use crate::cli::args::{LimitArgs, instant};
use crate::cli::output::{Column, Table, or_dash, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct SearchArgs {
    /// What to look for; a message must hold every word
    #[arg(required = true)]
    words: Vec<String>,

    /// Only in this agent's sessions
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only what this one said: user, assistant, system, tool
    #[arg(long)]
    role: Option<String>,

    /// Only said at this time or later: 2026-11-30, 2026-11-30T16:42:00Z or Unix milliseconds
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<i64>,

    /// Only said before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<i64>,

    /// Newest first instead of best first
    #[arg(long)]
    newest: bool,

    #[command(flatten)]
    limit: LimitArgs,
}

pub(super) async fn run(context: &Context, args: SearchArgs) -> Result<Exit, CliError> {
    let limit = args.limit.page();
    let request = Request::SessionsSearch {
        text: args.words.join(" "),
        agent: args.agent,
        newest: args.newest,
        role: args.role,
        since_ms: args.since,
        until_ms: args.until,
        limit,
    };
    let Response::Search(answer) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&answer)?;
    } else {
        show_hits(context, &answer, limit)?;
    }
    Ok(if answer.unreadable.is_empty() {
        Exit::Done
    } else {
        Exit::Findings
    })
}

fn show_hits(context: &Context, answer: &SearchAnswer, limit: PageLimit) -> Result<(), CliError> {
    let out = &context.out;
    if answer.hits.is_empty() {
        out.note("nothing found; a message must hold every word");
    } else {
        out.table(&hit_table(&answer.hits))?;
    }
    if answer.hits.len() >= limit.rows() as usize {
        out.note(&format!("the first {}; --limit shows more", limit.rows()));
    }
    for (agent, lacking) in &answer.incomplete {
        out.warn(&format!(
            "agent {agent}: the index still lacks {lacking} events; `zeroclaw doctor --fix` completes it"
        ));
    }
    for (agent, reason) in &answer.unreadable {
        out.warn(&format!("agent {agent} was not searched: {reason}"));
    }
    Ok(())
}

fn hit_table(hits: &[SearchHit]) -> Table {
    let mut table = Table::new(&[
        Column::text("session"),
        Column::word("agent"),
        Column::number("seq"),
        Column::word("when").minor(),
        Column::word("role").minor(),
        Column::text("text"),
    ]);
    for hit in hits {
        table.row([
            hit.session_id.clone(),
            hit.agent_id.to_string(),
            hit.seq.to_string(),
            time(hit.created_at_ms),
            or_dash(hit.role.as_deref()),
            hit.snippet.clone(),
        ]);
    }
    table
}
