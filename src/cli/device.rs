//! `zeroclaw devices`.

use clap::{Args, Subcommand};
use zeroclaw::model::PairedDevice;
use zeroclaw::service::{Request, Response};

use super::carrier::change;
use super::output::{Column, Table, or_dash, time};
use super::{CliError, Context, Exit, ask};

/// Show paired devices, and revoke one
#[derive(Debug, Subcommand)]
pub(crate) enum DevicesCommand {
    /// List devices and whether their tokens open
    ///
    /// Of a token only the start of its SHA-256 is shown, to tell two of one device apart.
    #[command(after_long_help = Exit::help_of_look())]
    List,
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

impl DevicesCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::List => list(context).await,
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
