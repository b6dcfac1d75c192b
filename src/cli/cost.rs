//! `zeroclaw costs`.

use clap::Args;
use zeroclaw::model::{AgentId, CostGrouping, CostSums, UsageCost};
use zeroclaw::service::{CostReport, Request, Response};

use super::args::{LimitArgs, one_of};
use super::output::{Column, Table, or_dash, time};
use super::{CliError, Context, Exit, ask, moment};

const GROUPINGS: &[&str] = &["agent", "model", "day"];

/// Show what calls of models cost, as recorded then
///
/// Newest first, or with --by added up. The last line is the sum of all that fit, whatever --limit
/// shows. Days are UTC.
#[derive(Args, Debug)]
#[command(after_long_help = Exit::help_of_look())]
pub(crate) struct CostsArgs {
    /// Add up by agent, model or day
    #[arg(long, value_name = "WHAT", value_parser = one_of(GROUPINGS, CostGrouping::parse))]
    by: Option<CostGrouping>,

    /// Only of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    /// Only from this day or instant on
    #[arg(long, value_name = "WHEN", value_parser = moment::start)]
    from: Option<i64>,

    /// Only to the end of this day, or before this instant
    #[arg(long, value_name = "WHEN", value_parser = moment::end)]
    to: Option<i64>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR", conflicts_with = "by")]
    before: Option<String>,
}

impl CostsArgs {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self.by {
            Some(by) => self.report(by, context).await,
            None => self.list(context).await,
        }
    }

    async fn list(self, context: &Context) -> Result<Exit, CliError> {
        let request = Request::CostsList {
            agent: self.agent,
            from_ms: self.from,
            to_ms: self.to,
            before: self.before,
            limit: self.limit.page(),
        };
        let Response::Costs(costs) = ask(context, request).await? else {
            return Err(CliError::wrong_answer());
        };
        if context.json() {
            context.out.json(&costs)?;
        } else if costs.page.items.is_empty() {
            context.out.note("no costs");
        } else {
            context.out.table(&cost_table(&costs.page.items))?;
            context.out.heading(&sum_line(&costs.total))?;
        }
        if let Some(cursor) = &costs.page.next {
            context.offer_next("--before", cursor);
        }
        Ok(Exit::Done)
    }

    async fn report(self, by: CostGrouping, context: &Context) -> Result<Exit, CliError> {
        let request = Request::CostsReport {
            by,
            agent: self.agent,
            from_ms: self.from,
            to_ms: self.to,
        };
        let Response::CostReport(report) = ask(context, request).await? else {
            return Err(CliError::wrong_answer());
        };
        if context.json() {
            context.out.json(&report)?;
        } else if report.groups.is_empty() {
            context.out.note("no costs");
        } else {
            context.out.table(&group_table(&report))?;
            context.out.heading(&sum_line(&report.total))?;
        }
        Ok(Exit::Done)
    }
}

/// Six digits: prices of single calls are fractions of a cent. `--json` has them exact.
fn dollars(cost: f64) -> String {
    format!("{cost:.6}")
}

fn cost_table(costs: &[UsageCost]) -> Table {
    let mut table = Table::new(&[
        Column::word("time"),
        Column::word("agent"),
        Column::text("model"),
        Column::number("in"),
        Column::number("cached").minor(),
        Column::number("out"),
        Column::number("USD"),
    ]);
    for cost in costs {
        table.row([
            time(cost.recorded_at_ms),
            or_dash(cost.agent_id.as_ref()),
            cost.model.clone(),
            cost.input_tokens.to_string(),
            cost.cached_input_tokens.to_string(),
            cost.output_tokens.to_string(),
            if cost.has_price {
                dollars(cost.cost_usd)
            } else {
                "no price".to_owned()
            },
        ]);
    }
    table
}

fn group_table(report: &CostReport) -> Table {
    let mut table = Table::new(&[
        Column::text(match report.by {
            CostGrouping::Agent => "agent",
            CostGrouping::Model => "model",
            CostGrouping::Day => "day",
        }),
        Column::number("calls"),
        Column::number("in"),
        Column::number("cached").minor(),
        Column::number("out"),
        Column::number("no price").minor(),
        Column::number("USD"),
    ]);
    for group in &report.groups {
        let sums = &group.sums;
        table.row([
            or_dash(group.group.as_deref()),
            sums.calls.to_string(),
            sums.input_tokens.to_string(),
            sums.cached_input_tokens.to_string(),
            sums.output_tokens.to_string(),
            sums.unpriced_calls.to_string(),
            dollars(sums.cost_usd),
        ]);
    }
    table
}

fn sum_line(total: &CostSums) -> String {
    let unpriced = match total.unpriced_calls {
        0 => String::new(),
        calls => format!(" ({calls} more without a known price)"),
    };
    format!(
        "{} USD for {} calls{unpriced}, {} tokens in, {} out",
        dollars(total.cost_usd),
        total.calls - total.unpriced_calls,
        total.input_tokens,
        total.output_tokens
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grouping_is_a_word_of_the_command_line() {
        assert!(
            GROUPINGS
                .iter()
                .all(|word| CostGrouping::parse(word).is_some())
        );
    }

    #[test]
    fn the_sum_says_what_it_lacks() {
        let total = CostSums {
            calls: 3,
            unpriced_calls: 1,
            input_tokens: 20,
            output_tokens: 10,
            cost_usd: 0.0045,
            ..CostSums::default()
        };

        assert_eq!(
            sum_line(&total),
            "0.004500 USD for 2 calls (1 more without a known price), 20 tokens in, 10 out"
        );
    }
}
