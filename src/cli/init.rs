//! `zeroclaw init`.

use clap::Args;
use serde::Serialize;
use zeroclaw::service::{HolderKind, Service};

use super::{CliError, Context, Exit};

/// Make a fresh root
///
/// Makes the state folder and an empty control plane, readable by you alone. In a root that exists
/// already it brings an older control plane up to date and changes nothing else. Files of an older
/// install are not touched: see `zeroclaw doctor`.
#[derive(Args, Debug)]
#[command(after_long_help = Exit::help_of(&[Exit::Busy, Exit::NewerSchema, Exit::Damaged, Exit::NoSpace]))]
pub(crate) struct InitArgs {}

/// What `--json` prints.
#[derive(Serialize)]
struct Initialised {
    root: String,
    created: bool,
}

impl InitArgs {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        let (service, is_new) =
            Service::init(&context.root, context.clock.clone(), HolderKind::Cli).await?;
        service.close().await;
        let answer = Initialised {
            root: context.root.display().to_string(),
            created: is_new,
        };
        if context.json() {
            context.out.json(&answer)?;
        } else if is_new {
            context.out.text(&format!("created {}\n", answer.root))?;
        } else {
            context
                .out
                .text(&format!("already there: {}\n", answer.root))?;
        }
        Ok(Exit::Done)
    }
}
