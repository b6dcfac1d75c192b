//! `zeroclaw sessions delete` and `prune`.

use clap::Args;
use zeroclaw::model::AgentId;
use zeroclaw::service::{Removed, Request, Response, RetentionReport, RetentionRules};

use super::TargetArgs;
use crate::cli::carrier::change;
use crate::cli::output::{Column, Fields, Table, or_dash, size, time};
use crate::cli::{CliError, Context, Exit, ask};

#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Keep no copy: it is gone for good
    ///
    /// Without it a copy is kept in state/deleted for 30 days, and `sessions import` takes it in again.
    #[arg(long)]
    without_copy: bool,

    /// Delete it although it is pinned
    #[arg(long)]
    even_pinned: bool,

    /// Show what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    #[command(flatten)]
    rules: RuleArgs,

    /// Delete by age although nothing was said for long
    ///
    /// After 30 days of silence the clock may have jumped instead: look at it first.
    #[arg(long)]
    clock_is_right: bool,

    /// Show what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Clone, Copy, Debug)]
#[command(
    next_help_heading = "Rules of each agent, 0 switches one off; without any, those of `[state.retention]`"
)]
struct RuleArgs {
    /// Delete sessions not changed for more days than this
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    max_age_days: Option<i64>,

    /// Keep this many of the newest
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_sessions: Option<i64>,

    /// Delete the oldest until what was said in the others is no more bytes than this
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    max_bytes: Option<i64>,
}

impl RuleArgs {
    /// The rules, if any was named; those of the configuration count for nothing then.
    fn rules(self) -> Option<RetentionRules> {
        let named = [self.max_age_days, self.max_sessions, self.max_bytes];
        let is_any_named = named.iter().any(Option::is_some);
        is_any_named.then_some(RetentionRules {
            max_age_days: self.max_age_days.unwrap_or(0),
            max_sessions: self.max_sessions.unwrap_or(0),
            max_bytes: self.max_bytes.unwrap_or(0),
        })
    }
}

pub(super) async fn delete(context: &Context, args: DeleteArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsDelete {
        agent: args.target.agent,
        session: args.target.session,
        even_pinned: args.even_pinned,
        without_copy: args.without_copy,
        dry_run: !args.yes,
    };
    let Response::SessionRemoved(removed) = look_or_change(context, args.yes, request).await?
    else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&removed)?;
    } else {
        show(context, &removed)?;
    }
    if !args.yes && !args.dry_run {
        return Err(consent("deleting a session needs consent"));
    }
    Ok(Exit::Done)
}

/// With consent the request changes something, without it only says what it would.
async fn look_or_change(
    context: &Context,
    has_consent: bool,
    request: Request,
) -> Result<Response, CliError> {
    match has_consent {
        true => change(context, request).await,
        false => ask(context, request).await,
    }
}

fn consent(message: impl Into<String>) -> CliError {
    let refused = CliError::new(Exit::Refused, message);
    refused.hint("the same command with --yes deletes")
}

fn show(context: &Context, removed: &Removed) -> Result<(), CliError> {
    let copy = removed.copy.as_ref().map(|copy| copy.display());
    let fields = super::session_fields(&removed.session)
        .add("size", size(u64::try_from(removed.bytes).unwrap_or(0)))
        .add("deleted", if removed.deleted { "yes" } else { "no" })
        .add("copy", or_dash(copy));
    context.out.fields(&fields)?;
    if removed.copy.is_some() {
        let told = "the copy stays for 30 days; `zeroclaw sessions import FILE` takes it in again";
        context.out.note(told);
    }
    Ok(())
}

pub(super) async fn prune(context: &Context, args: PruneArgs) -> Result<Exit, CliError> {
    let request = Request::SessionsPrune {
        agent: args.agent,
        rules: args.rules.rules(),
        clock_is_right: args.clock_is_right,
        dry_run: !args.yes,
    };
    let Response::SessionsPruned(report) = look_or_change(context, args.yes, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&report)?;
    } else {
        show_plan(context, &report)?;
    }
    let count = report.items.len();
    if !report.written && !args.dry_run && count > 0 {
        return Err(match report.clock_doubt {
            Some(doubt) if args.yes => CliError::new(Exit::Refused, doubt)
                .hint("if the clock is right, add --clock-is-right"),
            _ => consent(format!("deleting {count} sessions needs consent")),
        });
    }
    let is_left = report.items.iter().any(|item| item.error.is_some());
    Ok(if is_left { Exit::Findings } else { Exit::Done })
}

fn show_plan(context: &Context, report: &RetentionReport) -> Result<(), CliError> {
    let out = &context.out;
    if !report.items.is_empty() {
        out.table(&plan_table(report))?;
        out.text("\n")?;
    }
    let bytes: i64 = report.items.iter().map(|item| item.bytes).sum();
    let verb = if report.written {
        "deleted"
    } else {
        "to delete"
    };
    let size = size(u64::try_from(bytes).unwrap_or(0));
    let fields = Fields::new()
        .add("sessions", report.sessions)
        .add("pinned or in a turn", report.protected)
        .add(verb, format!("{}, {size}", report.items.len()))
        .add("copies past their time", report.expired_copies.len());
    out.fields(&fields)?;
    if !report.rules_on {
        out.note(
            "no rule is on: `[state.retention]` in config.toml, or --max-age-days, --max-sessions or --max-bytes, switches one on",
        );
    }
    for item in &report.items {
        if let Some(error) = &item.error {
            out.warn(error);
        }
    }
    if let Some(doubt) = &report.clock_doubt {
        out.warn(doubt);
    }
    if !report.written {
        out.note("nothing was deleted");
    }
    Ok(())
}

fn plan_table(report: &RetentionReport) -> Table {
    let mut table = Table::new(&[
        Column::text("session"),
        Column::word("agent"),
        Column::word("updated"),
        Column::number("size"),
        Column::word("because of"),
        Column::text("key").minor(),
    ]);
    for item in &report.items {
        table.row([
            item.session_id.clone(),
            item.agent_id.to_string(),
            time(item.updated_at_ms),
            size(u64::try_from(item.bytes).unwrap_or(0)),
            item.reason.as_str().to_owned(),
            item.session_key.clone(),
        ]);
    }
    table
}
