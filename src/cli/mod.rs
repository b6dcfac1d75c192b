//! The command line: arguments become a request, its answer becomes output.
//!
//! One file a command family. No file here knows SQL or computes a path; what is asked goes through
//! [`carrier`], what is said goes through [`output`], and every failure ends in [`Exit`]'s table.

mod agent;
mod args;
mod audit;
mod backup;
mod carrier;
mod channel;
mod commitment;
mod completions;
mod context;
mod cost;
mod cron;
mod daemon;
mod db;
mod delivery;
mod device;
mod error;
mod exit;
mod flow;
mod init;
mod knowledge;
mod logging;
mod logs;
mod man;
mod memory;
mod moment;
pub(crate) mod output;
mod plugin;
mod session;
mod status;
mod task;
mod vfs;

pub(crate) use args::{Command, Globals};
pub(crate) use carrier::ask;
pub(crate) use completions::CompletionsArgs;
pub(crate) use context::Context;
pub(crate) use daemon::DaemonArgs;
pub(crate) use error::CliError;
pub(crate) use exit::Exit;
pub(crate) use logging::start_logging;
pub(crate) use man::ManArgs;
pub(crate) use output::Out;
