//! `zeroclaw logs`.

use clap::Args;
use zeroclaw::model::{AgentId, DiagnosticEvent, DiagnosticLevel};
use zeroclaw::service::{Request, Response};

use super::args::{LimitArgs, one_of};
use super::moment::Since;
use super::output::{Column, Table, or_dash, time};
use super::{CliError, Context, Exit, ask, moment};

const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "error"];

/// Show the log of what a runtime did
///
/// Newest first. What tools were given and gave may be inside; `--json` shows each event whole.
#[derive(Args, Debug)]
#[command(after_long_help = Exit::help_of_look())]
pub(crate) struct LogsArgs {
    /// Only this grave and graver
    #[arg(long, value_parser = one_of(LEVELS, DiagnosticLevel::parse))]
    level: Option<DiagnosticLevel>,

    /// Only of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only of this part of the runtime, for example tool or channel
    #[arg(long, value_name = "WORD")]
    category: Option<String>,

    /// Only from this day or instant on, or of this last while: 2026-11-30, 90m, 12h, 7d
    #[arg(long, value_name = "WHEN", value_parser = moment::since)]
    since: Option<Since>,

    /// Only with this text in them
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

impl LogsArgs {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        let request = Request::LogsList {
            level: self.level,
            agent: self.agent,
            category: self.category,
            since_ms: self.since.map(|since| since.at_ms(context.clock.now_ms())),
            contains: self.contains,
            before: self.before,
            limit: self.limit.page(),
        };
        let Response::Diagnostics(page) = ask(context, request).await? else {
            return Err(CliError::wrong_answer());
        };
        if context.json() {
            context.out.json(&page)?;
        } else if page.items.is_empty() {
            context.out.note("no events");
        } else {
            context.out.table(&event_table(&page.items))?;
        }
        if let Some(cursor) = &page.next {
            context.offer_next("--before", cursor);
        }
        Ok(Exit::Done)
    }
}

fn event_table(events: &[DiagnosticEvent]) -> Table {
    let mut table = Table::new(&[
        Column::word("time"),
        Column::word("level"),
        Column::word("agent"),
        Column::word("category").minor(),
        Column::word("action").minor(),
        Column::word("outcome").minor(),
        Column::text("message"),
    ]);
    for event in events {
        table.row([
            time(event.created_at_ms),
            event.level.to_string(),
            or_dash(event.agent_id.as_ref()),
            or_dash(event.category.as_deref()),
            or_dash(event.action.as_deref()),
            or_dash(event.outcome.as_deref()),
            or_dash(event.message()),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_a_word_of_the_command_line() {
        assert_eq!(LEVELS, DiagnosticLevel::ALL.map(DiagnosticLevel::as_str));
    }
}
