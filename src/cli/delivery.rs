//! `zeroclaw delivery`.

use clap::{Args, Subcommand};
use zeroclaw::model::{DeliveryEntry, DeliveryStatus};
use zeroclaw::service::{Request, Response};

use super::args::{LimitArgs, one_of};
use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Show messages on their way through channels, and decide about those that stay
#[derive(Debug, Subcommand)]
pub(crate) enum DeliveryCommand {
    /// List messages, newest first
    ///
    /// `dead` ones are not sent any more: the channel will never take them, they failed too often, they are too old, or
    /// somebody gave them up. Of an `unknown` one nobody knows whether it was sent, because its sender died on the way;
    /// it is not sent again by itself.
    #[command(after_long_help = Exit::help_of_look())]
    List(ListArgs),
    /// Show one message, with what is to be sent
    #[command(after_long_help = Exit::help_of_named())]
    Show(ShowArgs),
    /// Send a message anew that is dead, unknown or waiting, or all dead ones
    ///
    /// An unknown one may come twice. --all leaves those alone. Without --yes nothing changes and the exit code is 10.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Retry(RetryArgs),
    /// Note that an unknown message was sent
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Confirm(ShowArgs),
    /// Give up a message that waits or is unknown
    ///
    /// It is dead then and can still be seen. Without --yes nothing changes and the exit code is 10.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Drop(DropArgs),
    /// Delete dead messages
    ///
    /// Without --yes they are counted, nothing is deleted, and the exit code is 10. Sent ones go by themselves after a
    /// week, unknown ones stay until somebody decides.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::Refused]))]
    Prune(PruneArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Only messages that stand so
    #[arg(long, value_name = "STATUS", value_parser = one_of(DeliveryStatus::WORDS, DeliveryStatus::parse))]
    status: Option<DeliveryStatus>,

    /// Only messages through this channel
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    #[command(flatten)]
    limit: LimitArgs,

    /// Go on behind this cursor of an earlier page
    #[arg(long, value_name = "CURSOR")]
    before: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Id of the message
    message: String,
}

#[derive(Args, Debug)]
pub(crate) struct RetryArgs {
    /// Id of the message
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    message: Option<String>,

    /// All dead messages
    #[arg(long)]
    all: bool,

    /// With --all, only those through this channel
    #[arg(long, value_name = "NAME", requires = "all")]
    channel: Option<String>,

    /// Send
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DropArgs {
    /// Id of the message
    message: String,

    /// Give it up
    #[arg(long)]
    yes: bool,
}

#[derive(Args, Debug)]
pub(crate) struct PruneArgs {
    /// Only those that have been dead for more days than this
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(i64).range(0..=36_500))]
    older_than_days: i64,

    /// Count what would be deleted, and delete nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Delete
    #[arg(long)]
    yes: bool,
}

impl DeliveryCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List(args) => list(context, args).await,
            Self::Show(args) => {
                let request = Request::DeliveryShow {
                    message: args.message,
                };
                show(context, ask(context, request).await?)
            }
            Self::Retry(args) => retry(context, args).await,
            Self::Confirm(args) => {
                let request = Request::DeliveryConfirm {
                    message: args.message,
                };
                show(context, change(context, request).await?)
            }
            Self::Drop(args) if !args.yes => Err(consent("giving a message up needs consent")),
            Self::Drop(args) => {
                let request = Request::DeliveryDrop {
                    message: args.message,
                };
                show(context, change(context, request).await?)
            }
            Self::Prune(args) => prune(context, args).await,
        }
    }
}

fn consent(message: impl Into<String>) -> CliError {
    let refused = CliError::new(Exit::Refused, message);
    refused.hint("the same command with --yes does it")
}

async fn list(context: &Context, args: ListArgs) -> Result<Exit, CliError> {
    let request = Request::DeliveryList {
        status: args.status,
        channel: args.channel,
        before: args.before,
        limit: args.limit.page(),
    };
    let Response::Deliveries(page) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&page)?;
    } else if page.items.is_empty() {
        context.out.note("no messages");
    } else {
        context.out.table(&table(&page.items))?;
    }
    if let Some(cursor) = &page.next {
        context.offer_next("--before", cursor);
    }
    Ok(Exit::Done)
}

fn table(entries: &[DeliveryEntry]) -> Table {
    let mut table = Table::new(&[
        Column::word("message"),
        Column::word("status"),
        Column::text("channel"),
        Column::text("target"),
        Column::word("agent").minor(),
        Column::number("failed").minor(),
        Column::word("enqueued"),
        Column::text("last error"),
    ]);
    for entry in entries {
        table.row([
            entry.id.clone(),
            status(entry),
            entry.route.channel.clone(),
            entry.route.target.clone(),
            or_dash(entry.route.agent_id.as_ref()),
            entry.retry_count.to_string(),
            time(entry.enqueued_at_ms),
            or_dash(entry.last_error.as_deref()),
        ]);
    }
    table
}

fn status(entry: &DeliveryEntry) -> String {
    match entry.dead_reason {
        Some(reason) => format!("{} ({reason})", entry.status),
        None => entry.status.to_string(),
    }
}

fn show(context: &Context, answer: Response) -> Result<Exit, CliError> {
    let Response::Delivery(entry) = answer else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&entry)?;
        return Ok(Exit::Done);
    }
    context.out.fields(&fields(&entry))?;
    if let Some(text) = &entry.entry_json {
        context.out.text("\n")?;
        context.out.fields(&Fields::new().add("message", text))?;
    }
    if entry.status == DeliveryStatus::Unknown {
        let told = "nobody knows whether it was sent: `zeroclaw delivery confirm ID` if it was, `retry ID --yes` if not";
        context.out.note(told);
    }
    Ok(Exit::Done)
}

fn fields(entry: &DeliveryEntry) -> Fields {
    let route = &entry.route;
    let started = entry.platform_send_started_at_ms.map(time);
    Fields::new()
        .add("id", &entry.id)
        .add("status", status(entry))
        .add("kind", or_dash(entry.entry_kind.as_deref()))
        .add("channel", &route.channel)
        .add("account", or_dash(route.account_id.as_deref()))
        .add("target", &route.target)
        .add("thread", or_dash(route.thread_id.as_deref()))
        .add("agent", or_dash(route.agent_id.as_ref()))
        .add("session", or_dash(route.session_key.as_deref()))
        .add("task", or_dash(entry.task_id.as_deref()))
        .add(
            "may come twice",
            if entry.may_resend { "yes" } else { "no" },
        )
        .add("failed attempts", entry.retry_count)
        .add("next attempt", time(entry.next_attempt_at_ms))
        .add("too old from", time(entry.expires_at_ms))
        .add("send began", or_dash(started))
        .add("sent", or_dash(entry.sent_at_ms.map(time)))
        .add(
            "channel's id",
            or_dash(entry.platform_message_id.as_deref()),
        )
        .add("last error", or_dash(entry.last_error.as_deref()))
        .add("enqueued", time(entry.enqueued_at_ms))
}

async fn retry(context: &Context, args: RetryArgs) -> Result<Exit, CliError> {
    if !args.yes {
        return Err(consent("sending anew needs consent"));
    }
    if let Some(message) = args.message {
        return show(
            context,
            change(context, Request::DeliveryRetry { message }).await?,
        );
    }
    let request = Request::DeliveryRetryDead {
        channel: args.channel,
    };
    let Response::DeliveriesRetried(answer) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&answer)?;
    } else {
        context
            .out
            .text(&format!("{} messages wait again\n", answer.messages))?;
    }
    Ok(Exit::Done)
}

async fn prune(context: &Context, args: PruneArgs) -> Result<Exit, CliError> {
    let before_ms = context.clock.now_ms() - args.older_than_days * DAY_MS;
    let request = Request::DeliveryPrune {
        // Up to this moment: what died in its very millisecond counts.
        before_ms: before_ms.saturating_add(1),
        is_dry_run: !args.yes,
    };
    let answer = match args.yes {
        true => change(context, request).await?,
        false => ask(context, request).await?,
    };
    let Response::DeliveriesPruned(answer) = answer else {
        return Err(CliError::wrong_answer());
    };
    let verb = if args.yes { "deleted" } else { "to delete" };
    if context.json() {
        context.out.json(&answer)?;
    } else {
        let text = format!("{verb}: {} dead messages\n", answer.messages);
        context.out.text(&text)?;
    }
    if !args.yes && !args.dry_run && answer.messages > 0 {
        return Err(consent("deleting dead messages needs consent"));
    }
    Ok(Exit::Done)
}
