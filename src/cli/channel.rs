//! `zeroclaw channels`.

use clap::{Args, Subcommand};
use zeroclaw::model::{ChannelAllowEntry, ChannelPairingRequest, ChannelPeer};
use zeroclaw::service::{Request, Response};

use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// What changing commands can end with.
const EXITS: [Exit; 4] = [
    Exit::NotInitialised,
    Exit::Busy,
    Exit::NotFound,
    Exit::NoSpace,
];

/// Say who may write to agents through channels
#[derive(Debug, Subcommand)]
pub(crate) enum ChannelsCommand {
    /// List strangers who wrote and wait for your word, oldest first
    ///
    /// Each was told a code; who shows it to you is who wrote. A request is over after an hour.
    #[command(after_long_help = Exit::help_of_look())]
    Requests(OfChannelArgs),
    /// Let the stranger in who was told a code
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Approve(CodeArgs),
    /// Turn the stranger away who was told a code; they may ask again
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Deny(CodeArgs),
    /// List those who may write
    #[command(after_long_help = Exit::help_of_look())]
    Allowed(OfChannelArgs),
    /// Let somebody write who did not ask
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Allow(PeerArgs),
    /// Let somebody write no more
    #[command(after_long_help = Exit::help_of(&EXITS))]
    Remove(PeerArgs),
}

#[derive(Args, Debug)]
pub(crate) struct OfChannelArgs {
    /// Only of this channel, for example telegram
    #[arg(long)]
    channel: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct CodeArgs {
    /// The channel, for example telegram
    channel: String,

    /// The code the stranger shows
    code: String,
}

#[derive(Args, Debug)]
pub(crate) struct PeerArgs {
    /// The channel, for example telegram
    channel: String,

    /// Who, in the channel's own terms
    peer: String,

    /// The account on that channel
    #[arg(long, default_value = "default")]
    account: String,
}

impl From<PeerArgs> for ChannelPeer {
    fn from(args: PeerArgs) -> Self {
        Self {
            channel: args.channel,
            account_id: args.account,
            peer_id: args.peer,
        }
    }
}

impl ChannelsCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::Requests(args) => requests(context, args).await,
            Self::Approve(CodeArgs { channel, code }) => {
                decided(context, Request::ChannelsApprove { channel, code }).await
            }
            Self::Deny(CodeArgs { channel, code }) => {
                decided(context, Request::ChannelsDeny { channel, code }).await
            }
            Self::Allowed(args) => allowed(context, args).await,
            Self::Allow(args) => {
                let peer = args.into();
                changed(context, Request::ChannelsAllow { peer }, "allowed").await
            }
            Self::Remove(args) => {
                let peer = args.into();
                changed(context, Request::ChannelsRemove { peer }, "removed").await
            }
        }
    }
}

async fn requests(context: &Context, args: OfChannelArgs) -> Result<Exit, CliError> {
    let request = Request::ChannelsRequests {
        channel: args.channel,
    };
    let Response::ChannelRequests(requests) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&requests)?;
    } else if requests.is_empty() {
        context.out.note("nobody waits");
    } else {
        context.out.table(&request_table(&requests))?;
    }
    Ok(Exit::Done)
}

fn request_table(requests: &[ChannelPairingRequest]) -> Table {
    let mut table = Table::new(&[
        Column::word("code"),
        Column::word("channel"),
        Column::word("account").minor(),
        Column::text("who"),
        Column::word("first wrote"),
        Column::word("last wrote").minor(),
        Column::text("known of them").minor(),
    ]);
    for request in requests {
        table.row([
            request.code.clone(),
            request.peer.channel.clone(),
            request.peer.account_id.clone(),
            request.peer.peer_id.clone(),
            time(request.created_at_ms),
            time(request.last_seen_at_ms),
            or_dash(request.meta_json.as_deref()),
        ]);
    }
    table
}

async fn allowed(context: &Context, args: OfChannelArgs) -> Result<Exit, CliError> {
    let request = Request::ChannelsAllowed {
        channel: args.channel,
    };
    let Response::ChannelAllowed(allowed) = ask(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&allowed)?;
    } else if allowed.is_empty() {
        context.out.note("nobody may write");
    } else {
        context.out.table(&allowed_table(&allowed))?;
    }
    Ok(Exit::Done)
}

fn allowed_table(allowed: &[ChannelAllowEntry]) -> Table {
    let mut table = Table::new(&[
        Column::word("channel"),
        Column::word("account").minor(),
        Column::text("who"),
        Column::word("since"),
    ]);
    for entry in allowed {
        table.row([
            entry.peer.channel.clone(),
            entry.peer.account_id.clone(),
            entry.peer.peer_id.clone(),
            time(entry.updated_at_ms),
        ]);
    }
    table
}

async fn decided(context: &Context, request: Request) -> Result<Exit, CliError> {
    let is_approved = matches!(request, Request::ChannelsApprove { .. });
    let Response::ChannelDecided(request) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&request)?;
    } else {
        let word = if is_approved {
            "allowed"
        } else {
            "turned away"
        };
        let fields = Fields::new()
            .add(word, &request.peer.peer_id)
            .add("channel", &request.peer.channel)
            .add("account", &request.peer.account_id);
        context.out.fields(&fields)?;
    }
    Ok(Exit::Done)
}

async fn changed(context: &Context, request: Request, word: &str) -> Result<Exit, CliError> {
    let is_changed = match change(context, request).await? {
        Response::Changed(is_changed) => is_changed,
        Response::Done(()) => true,
        _ => return Err(CliError::wrong_answer()),
    };
    if context.json() {
        context
            .out
            .json(&serde_json::json!({ "changed": is_changed }))?;
    } else if is_changed {
        context.out.text(&format!("{word}\n"))?;
    } else {
        context.out.text("was so already\n")?;
    }
    Ok(Exit::Done)
}
