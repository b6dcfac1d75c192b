//! `zeroclaw commitments`.

use clap::{Args, Subcommand};
use zeroclaw::model::{AgentId, Commitment, CommitmentStatus};
use zeroclaw::service::{Request, Response};

use super::args::{LimitArgs, one_of};
use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// Show what agents have promised or noticed, to come back to in its time
#[derive(Debug, Subcommand)]
pub(crate) enum CommitmentsCommand {
    /// List commitments, newest first
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
    /// Show one commitment
    #[command(after_long_help = Exit::help_of_named())]
    Show(NamedArgs),
    /// Drop a commitment, so that nobody comes back to it
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Dismiss(NamedArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only commitments that stand so
    #[arg(long, value_name = "STATUS", value_parser = one_of(CommitmentStatus::WORDS, CommitmentStatus::parse))]
    status: Option<CommitmentStatus>,

    /// Only this agent's
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct NamedArgs {
    /// Id of the commitment
    commitment: String,
}

impl CommitmentsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => {
                let request = Request::CommitmentsShow {
                    commitment: args.commitment,
                };
                show(context, ask(context, request).await?)
            }
            Self::Dismiss(args) => {
                let request = Request::CommitmentsDismiss {
                    commitment: args.commitment,
                };
                show(context, change(context, request).await?)
            }
        }
    }
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::CommitmentsList {
        status: args.status,
        agent: args.agent,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Commitments(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no commitments");
    } else {
        context.out.table(&table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn table(commitments: &[Commitment]) -> Table {
    let mut table = Table::new(&[
        Column::word("commitment"),
        Column::word("agent"),
        Column::word("status"),
        Column::text("kind").minor(),
        Column::word("due from"),
        Column::word("due until"),
        Column::text("channel").minor(),
        Column::text("reason"),
    ]);
    for commitment in commitments {
        let what = &commitment.what;
        table.row([
            commitment.id.clone(),
            what.agent_id.to_string(),
            commitment.status.to_string(),
            what.kind.clone(),
            time(what.due_earliest_ms),
            time(what.due_latest_ms),
            what.channel.clone(),
            what.reason.clone(),
        ]);
    }
    table
}

fn show(context: &Context, answer: Response) -> Result<Exit, CliError> {
    let Response::Commitment(commitment) = answer else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&commitment)?;
        return Ok(Exit::Done);
    }
    let what = &commitment.what;
    let fields = Fields::new()
        .add("commitment", &commitment.id)
        .add("agent", &what.agent_id)
        .add("status", commitment.status)
        .add("kind", &what.kind)
        .add("sensitivity", &what.sensitivity)
        .add("source", &what.source)
        .add("session", &what.session_key)
        .add("channel", &what.channel)
        .add("recipient", or_dash(what.recipient_id.as_deref()))
        .add("reason", &what.reason)
        .add("suggested text", &what.suggested_text)
        .add("confidence", what.confidence)
        .add("due from", time(what.due_earliest_ms))
        .add("due until", time(what.due_latest_ms))
        .add("time zone", &what.due_timezone)
        .add(
            "put off until",
            or_dash(commitment.snoozed_until_ms.map(time)),
        )
        .add("attempts", commitment.attempts)
        .add("created", time(commitment.created_at_ms))
        .add("updated", time(commitment.updated_at_ms));
    context.out.fields(&fields)?;
    Ok(Exit::Done)
}
