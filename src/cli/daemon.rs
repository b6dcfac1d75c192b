//! `zeroclaw daemon`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use zeroclaw::daemon::{Daemon, DaemonError, Options};

use super::{CliError, Context, Exit};

/// Names the socket, for a daemon and for who calls it.
const SOCKET_VARIABLE: &str = "ZEROCLAW_SOCKET";

/// Serve this root until told to stop
///
/// Holds the root against every other writer, and answers other commands and programs on a socket that
/// only you can use: state/daemon.sock, or what ZEROCLAW_SOCKET names. Ends on SIGTERM or Ctrl-C once what
/// runs is finished; a second signal does not wait. SIGHUP reads the configuration anew.
#[derive(Args, Debug)]
#[command(after_long_help = Exit::help_of(&[
    Exit::Findings, Exit::NotInitialised, Exit::Busy, Exit::NewerSchema, Exit::Damaged, Exit::LegacyPending, Exit::NoSpace, Exit::Refused,
]))]
pub(crate) struct DaemonArgs {
    /// Wait this long for what runs once told to stop
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    drain: u64,

    /// End by itself once its last client on the socket has gone
    ///
    /// For a program that starts a daemon of its own. It ends 2 seconds after the last client, and after
    /// 30 seconds when none came.
    #[arg(long)]
    ephemeral: bool,
}

impl DaemonArgs {
    /// Serves until a signal.
    ///
    /// # Errors
    ///
    /// [`CliError`] when it does not start.
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        let options = Options {
            socket: socket_elsewhere(),
            drain: Duration::from_secs(self.drain),
            ephemeral: self.ephemeral,
        };
        let daemon = Daemon::start(&context.root, context.clock.clone(), options).await?;
        let health = daemon.health();
        let socket = daemon.socket().display().to_string();
        if context.json() {
            let ready = serde_json::json!({"ready": true, "socket": socket, "pid": health.pid, "root": health.root});
            context.out.json(&ready)?;
        } else {
            context.out.note(&format!(
                "serving {} on {socket} (pid {})",
                health.root, health.pid
            ));
        }
        if daemon.run().await {
            return Ok(Exit::Done);
        }
        context.out.warn(
            "stopped before everything that ran was finished; what was acknowledged is there",
        );
        Ok(Exit::Findings)
    }
}

/// Where the daemon listens, if not in its usual place.
pub(super) fn socket_elsewhere() -> Option<PathBuf> {
    let set = std::env::var_os(SOCKET_VARIABLE)?;
    let text = set.to_string_lossy();
    let is_set = !matches!(text.trim(), "" | "undefined" | "null");
    is_set.then(|| PathBuf::from(&set))
}

impl From<DaemonError> for CliError {
    fn from(error: DaemonError) -> Self {
        let error = match error {
            DaemonError::Service(error) => return error.into(),
            error => error,
        };
        let told = Self::new(error.kind().into(), error.to_string()).caused_by(&error);
        match error.hint() {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }
}
