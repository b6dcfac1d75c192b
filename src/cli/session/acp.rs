//! `zeroclaw sessions acp`.

use clap::Args;
use zeroclaw::model::{AcpSession, AcpState, AgentId};
use zeroclaw::service::{Request, Response};

use crate::cli::args::{LimitArgs, one_of};
use crate::cli::output::{Column, Table, or_dash, time};
use crate::cli::{CliError, Context, Exit, ask};

const STATES: &[&str] = &["open", "ended"];

#[derive(Args, Debug)]
pub(crate) struct AcpArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only in this state
    #[arg(long, value_parser = one_of(STATES, AcpState::parse))]
    state: Option<AcpState>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

pub(super) async fn run(context: &Context, args: AcpArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsAcp {
        agent: args.agent,
        state: args.state,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::AcpSessions(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no ACP sessions");
    } else {
        context.out.table(&table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn table(sessions: &[AcpSession]) -> Table {
    let mut table = Table::new(&[
        Column::text("session"),
        Column::word("agent"),
        Column::word("state"),
        Column::number("tokens").minor(),
        Column::word("active"),
        Column::word("ended").minor(),
        Column::text("folder"),
    ]);
    for session in sessions {
        table.row([
            session.session_id.clone(),
            session.agent_id.to_string(),
            session.state.to_string(),
            session.token_count.to_string(),
            time(session.last_activity_at_ms),
            or_dash(session.ended_at_ms.map(time)),
            session.cwd.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_offered_is_known_to_the_library() {
        assert!(STATES.iter().all(|word| AcpState::parse(word).is_some()));
    }
}
