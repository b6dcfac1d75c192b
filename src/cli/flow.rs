//! `zeroclaw flows`.

use clap::{Args, Subcommand};
use zeroclaw::model::{FlowEvent, FlowProposal, FlowRun, FlowStatus};
use zeroclaw::service::{FlowClaimInfo, FlowOverview, Request, Response};

use super::args::{LimitArgs, one_of};
use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// Who decides where a person does it by a command.
const OPERATOR: &str = "operator";

/// Show runs of standing procedures and what they propose, and decide what they wait for
#[derive(Debug, Subcommand)]
pub(crate) enum FlowsCommand {
    /// List runs, newest update first
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
    /// Show one run, what happened in it and what it proposes
    #[command(after_long_help = Exit::help_of_named())]
    Show(ShowArgs),
    /// List proposals to make or change procedures, newest update first
    #[command(after_long_help = Exit::help_of_look())]
    Proposals(ProposalsArgs),
    /// List who drives runs now, oldest first
    ///
    /// A claim whose driver is proven gone is void: its run is interrupted with the next sweep, and can be taken up again.
    #[command(after_long_help = Exit::help_of_look())]
    Claims,
    /// Approve what a run waits for, or let a paused one go on
    ///
    /// It waits for a driver then.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Approve(ShowArgs),
    /// Refuse what a run waits for: it is cancelled
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Deny(DenyArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only runs that stand so
    #[arg(long, value_name = "STATUS", value_parser = one_of(FlowStatus::WORDS, FlowStatus::parse))]
    status: Option<FlowStatus>,

    /// Only runs of the procedure of this name
    #[arg(long, value_name = "NAME")]
    procedure: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Id of the run
    run: String,
}

#[derive(Args, Debug)]
pub(crate) struct ProposalsArgs {
    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DenyArgs {
    /// Id of the run
    run: String,

    /// Why, for who reads what happened
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl FlowsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => show(context, args.run).await,
            Self::Proposals(args) => proposals(context, args).await,
            Self::Claims => claims(context).await,
            Self::Approve(args) => {
                let request = Request::FlowsApprove {
                    run: args.run,
                    actor: OPERATOR.to_owned(),
                };
                decide(context, request).await
            }
            Self::Deny(args) => {
                let request = Request::FlowsDeny {
                    run: args.run,
                    actor: OPERATOR.to_owned(),
                    reason: args.reason,
                };
                decide(context, request).await
            }
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::FlowsList {
        status: args.status,
        procedure: args.procedure,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Flows(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no runs");
    } else {
        context.out.table(&run_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn run_table(runs: &[FlowRun]) -> Table {
    let mut table = Table::new(&[
        Column::word("run"),
        Column::text("procedure"),
        Column::word("status"),
        Column::word("step").minor(),
        Column::word("set off by").minor(),
        Column::word("started").minor(),
        Column::word("updated"),
    ]);
    for run in runs {
        table.row([
            run.flow_id.clone(),
            run.controller_id.clone(),
            status(run),
            step(run),
            or_dash(run.trigger_source.as_deref()),
            or_dash(run.started_at_ms.map(time)),
            time(run.updated_at_ms),
        ]);
    }
    table
}

/// The driver's own word where it says more.
fn status(run: &FlowRun) -> String {
    match run.status_detail.as_deref() {
        Some(detail) if detail != run.status.as_str() => format!("{} ({detail})", run.status),
        _ => run.status.to_string(),
    }
}

fn step(run: &FlowRun) -> String {
    match (run.current_step, run.total_steps) {
        (Some(current), Some(total)) => format!("{current}/{total}"),
        (Some(current), None) => current.to_string(),
        _ => "-".to_owned(),
    }
}

async fn show(context: &Context, run: String) -> Result<Exit, CliError> {
    let Response::Flow(overview) = ask(context, Request::FlowsShow { run }).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&overview)?;
        return Ok(Exit::Done);
    }
    context.out.fields(&fields(&overview))?;
    if !overview.events.is_empty() {
        context.out.text("\n")?;
        context.out.table(&event_table(&overview.events))?;
    }
    if !overview.proposals.is_empty() {
        context.out.text("\n")?;
        context.out.table(&proposal_table(&overview.proposals))?;
    }
    Ok(Exit::Done)
}

fn fields(overview: &FlowOverview) -> Fields {
    run_fields(&overview.run)
}

fn run_fields(run: &FlowRun) -> Fields {
    Fields::new()
        .add("run", &run.flow_id)
        .add("procedure", &run.controller_id)
        .add("status", status(run))
        .add("revision", run.revision)
        .add("step", step(run))
        .add("set off by", or_dash(run.trigger_source.as_deref()))
        .add("started", or_dash(run.started_at_ms.map(time)))
        .add("waiting since", or_dash(run.waiting_since_ms.map(time)))
        .add("updated", time(run.updated_at_ms))
        .add("ended", or_dash(run.ended_at_ms.map(time)))
}

fn event_table(events: &[FlowEvent]) -> Table {
    let mut table = Table::new(&[
        Column::word("when"),
        Column::word("event"),
        Column::word("by"),
        Column::text("reason"),
        Column::text("details").minor(),
    ]);
    for event in events {
        table.row([
            or_dash(event.at_ms.map(time)),
            event.kind.clone(),
            or_dash(event.actor.as_deref()),
            or_dash(event.reason.as_deref()),
            event.payload_json.clone(),
        ]);
    }
    table
}

async fn claims(context: &Context) -> Result<Exit, CliError> {
    let Response::FlowClaims(claims) = ask(context, Request::FlowsClaims).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&claims)?;
    } else if claims.is_empty() {
        context.out.note("nobody drives a run");
    } else {
        context.out.table(&claim_table(&claims))?;
    }
    Ok(Exit::Done)
}

fn claim_table(claims: &[FlowClaimInfo]) -> Table {
    let mut table = Table::new(&[
        Column::word("run"),
        Column::text("procedure"),
        Column::text("driver"),
        Column::word("since"),
        Column::word("driver is"),
    ]);
    for claim in claims {
        table.row([
            claim.flow_id.clone(),
            claim.controller_id.clone(),
            claim.owner.clone(),
            time(claim.claimed_at_ms),
            if claim.is_void { "gone" } else { "not gone" }.to_owned(),
        ]);
    }
    table
}

async fn decide(context: &Context, request: Request) -> Result<Exit, CliError> {
    let Response::FlowDecided(run) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&run)?;
    } else {
        context.out.fields(&run_fields(&run))?;
    }
    Ok(Exit::Done)
}

async fn proposals(context: &Context, args: ProposalsArgs) -> Result<Exit, CliError> {
    let request = Request::FlowsProposals {
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Proposals(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no proposals");
    } else {
        context.out.table(&proposal_table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn proposal_table(proposals: &[FlowProposal]) -> Table {
    let mut table = Table::new(&[
        Column::word("proposal"),
        Column::word("kind"),
        Column::text("procedure"),
        Column::word("status"),
        Column::word("run").minor(),
        Column::word("updated"),
        Column::text("reason"),
    ]);
    for proposal in proposals {
        table.row([
            proposal.proposal_id.clone(),
            proposal.kind.clone(),
            proposal.controller_id.clone(),
            proposal.status.to_string(),
            or_dash(proposal.source_flow_id.as_deref()),
            time(proposal.updated_at_ms),
            or_dash(proposal.status_reason.as_deref()),
        ]);
    }
    table
}
