//! `zeroclaw devices`.

use clap::{Args, Subcommand};
use zeroclaw::model::{PairedDevice, PairingRequest};
use zeroclaw::service::{Request, Response};

use super::args::span_ms;
use super::carrier::change;
use super::output::{Column, Fields, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// Pair devices, show them, and revoke one
#[derive(Debug, Subcommand)]
pub(crate) enum DevicesCommand {
    /// List devices and whether their tokens open
    ///
    /// Of a token only the start of its SHA-256 is shown, to tell two of one device apart.
    #[command(after_long_help = Exit::help_of_look())]
    List,
    /// Make a code that pairs one device
    ///
    /// The device presents it to the daemon's HTTP side: `POST /pair` with `{"code": "…", "name": "…"}` gives its
    /// token, once. Five wrong codes void every code that is open.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::Usage]))]
    Pair(PairArgs),
    /// List devices that ask to be paired, newest first
    ///
    /// A device without a code asks with `POST /pair/request`. What is over stays to be seen for a day.
    #[command(after_long_help = Exit::help_of_look())]
    Requests,
    /// Let a device that asks collect its token
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Approve(RequestArgs),
    /// Turn a device away that asks
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound, Exit::Refused]))]
    Deny(RequestArgs),
    /// Take back every token of a device
    ///
    /// It has to be paired again. What is revoked stays so, also when an old file lists it as paired.
    #[command(after_long_help = Exit::help_of(&[Exit::NotInitialised, Exit::Busy, Exit::NotFound]))]
    Revoke(RevokeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RevokeArgs {
    /// Id of the device
    device: String,
}

#[derive(Args, Debug)]
pub(crate) struct PairArgs {
    /// What the device shall be called
    ///
    /// Default: what it says.
    #[arg(long)]
    name: Option<String>,

    /// How long the code opens: 90s, 10m, at most 24h
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = span_ms)]
    expires: i64,
}

#[derive(Args, Debug)]
pub(crate) struct RequestArgs {
    /// Id of its request
    request: String,
}

impl DevicesCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List => list(context).await,
            Self::Pair(args) => pair(context, args).await,
            Self::Requests => requests(context).await,
            Self::Approve(args) => {
                let request = Request::DevicesApprove {
                    request: args.request,
                };
                decided(context, request).await
            }
            Self::Deny(args) => {
                let request = Request::DevicesDeny {
                    request: args.request,
                };
                decided(context, request).await
            }
            Self::Revoke(args) => revoke(context, args).await,
        }
    }
}

async fn list(context: &Context) -> Result<Exit, CliError> {
    let Response::Devices(devices) = ask(context, Request::DevicesList).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&devices)?;
    } else if devices.is_empty() {
        context.out.note("no devices");
    } else {
        context.out.table(&table(&devices))?;
    }
    Ok(Exit::Done)
}

fn table(devices: &[PairedDevice]) -> Table {
    let mut table = Table::new(&[
        Column::word("device"),
        Column::text("name"),
        Column::text("type").minor(),
        Column::word("token").minor(),
        Column::word("status"),
        Column::word("last seen"),
        Column::word("from").minor(),
        Column::text("reason"),
    ]);
    for device in devices {
        table.row([
            device.device_id.clone(),
            or_dash(device.display_name.as_deref()),
            or_dash(device.device_type.as_deref()),
            device.token.to_string(),
            device.status.to_string(),
            or_dash(device.last_seen_at_ms.map(time)),
            or_dash(device.remote_ip.as_deref()),
            or_dash(device.status_reason.as_deref()),
        ]);
    }
    table
}

async fn pair(context: &Context, args: PairArgs) -> Result<Exit, CliError> {
    let request = Request::DevicesPair {
        name: args.name,
        life_ms: Some(args.expires),
    };
    let Response::CodeIssued(issued) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&issued)?;
        return Ok(Exit::Done);
    }
    let fields = Fields::new()
        .add("code", issued.code.expose())
        .add("until", time(issued.expires_at_ms));
    context.out.fields(&fields)?;
    match issued.listen {
        Some(address) => context.out.note(&format!(
            "the device sends it to http://{address}/pair, where the daemon listens"
        )),
        None => context.out.warn(
            "no daemon will hear it: config.toml has no `[state.http]` with `listen = \"127.0.0.1:42680\"`",
        ),
    }
    Ok(Exit::Done)
}

async fn requests(context: &Context) -> Result<Exit, CliError> {
    let Response::PairingRequests(requests) = ask(context, Request::DevicesRequests).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&requests)?;
    } else if requests.is_empty() {
        context.out.note("no device asks to be paired");
    } else {
        context.out.table(&request_table(&requests))?;
    }
    Ok(Exit::Done)
}

fn request_table(requests: &[PairingRequest]) -> Table {
    let mut table = Table::new(&[
        Column::word("request"),
        Column::text("name"),
        Column::text("type").minor(),
        Column::word("from"),
        Column::word("status"),
        Column::word("asked"),
        Column::word("until"),
    ]);
    for request in requests {
        table.row([
            request.request_id.clone(),
            or_dash(request.display_name.as_deref()),
            or_dash(request.device_type.as_deref()),
            or_dash(request.remote_ip.as_deref()),
            request.status.to_string(),
            time(request.created_at_ms),
            time(request.expires_at_ms),
        ]);
    }
    table
}

async fn decided(context: &Context, request: Request) -> Result<Exit, CliError> {
    let Response::PairingDecided(request) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&request)?;
    } else {
        let fields = Fields::new()
            .add("request", &request.request_id)
            .add("name", or_dash(request.display_name.as_deref()))
            .add("status", request.status);
        context.out.fields(&fields)?;
    }
    Ok(Exit::Done)
}

async fn revoke(context: &Context, args: RevokeArgs) -> Result<Exit, CliError> {
    let request = Request::DevicesRevoke {
        device: args.device,
    };
    let Response::DeviceRevoked(answer) = change(context, request).await? else {
        return Err(CliError::wrong_answer());
    };
    if context.json() {
        context.out.json(&answer)?;
    } else if answer.revoked == 0 {
        context.out.text("it had no token that opens\n")?;
    } else {
        context
            .out
            .text(&format!("revoked {} tokens\n", answer.revoked))?;
    }
    Ok(Exit::Done)
}
