//! The `zeroclaw` command: parse, run, report, exit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use cli::{CliError, Context, Exit, Globals, Out};

mod cli;
#[path = "../doctor/mod.rs"]
mod doctor;

/// Keep the state of a personal agent in SQLite: import it, look at it, back it up
///
/// All durable state of a root lies in two kinds of database: one control plane, and one data plane
/// for each agent. `zeroclaw doctor --fix` is the way in for files of older installs, `zeroclaw
/// backup` the way out and back.
///
/// The root is --config-dir, else ZEROCLAW_CONFIG_DIR, else the folder that ZEROCLAW_DATA_DIR or
/// ZEROCLAW_WORKSPACE belong to, else ~/.zeroclaw.
#[derive(Debug, Parser)]
#[command(
    name = "zeroclaw",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_long_help = Exit::help()
)]
struct App {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    State(cli::Command),
    #[command(display_order = 3)]
    Doctor(doctor::DoctorArgs),
    #[command(display_order = 5)]
    Daemon(cli::DaemonArgs),
    #[command(display_order = 90)]
    Completions(cli::CompletionsArgs),
    #[command(display_order = 91)]
    Man(cli::ManArgs),
}

fn main() -> ExitCode {
    let app = match App::try_parse() {
        Ok(app) => app,
        Err(error) => return Out::from_environment().usage(&error).into(),
    };
    let out = Out::new(&app.globals);
    // The panic hook has told what happened; a defect has its own exit code.
    let ran = catch_unwind(AssertUnwindSafe(|| start(app, &out)));
    let exit = match ran {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => out.report(&error),
        Err(_) => Exit::Internal,
    };
    exit.into()
}

fn start(app: App, out: &Out) -> Result<Exit, CliError> {
    cli::start_logging(&app.globals, out)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            CliError::new(Exit::Internal, "cannot start the runtime").because(&error)
        })?;
    let ended = runtime.block_on(run(app, out));
    if let Err(error) = &ended
        && error.exit() == Exit::Interrupted
    {
        // Threads that still copy or compress write what goes with the next run: nobody waits for them.
        runtime.shutdown_background();
    }
    ended
}

async fn run(app: App, out: &Out) -> Result<Exit, CliError> {
    match app.command {
        Command::Completions(args) => args.run(App::command(), out),
        Command::Man(args) => args.run(App::command(), out),
        Command::State(command) => {
            let context = Context::new(&app.globals, out)?;
            Box::pin(command.run(&context)).await
        }
        Command::Doctor(args) => {
            let context = Context::new(&app.globals, out)?;
            Box::pin(doctor::run(args, &context)).await
        }
        Command::Daemon(args) => {
            let context = Context::new(&app.globals, out)?;
            // Only here both are known: what is left of old installs, and that a daemon is to start.
            Box::pin(doctor::admit(&context)).await?;
            Box::pin(args.run(&context)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        App::command().debug_assert();
    }

    #[test]
    fn every_first_line_of_help_is_a_phrase_without_period() {
        fn check(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands() {
                let path = format!("{path} {}", sub.get_name());
                let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
                let first = about.chars().next();
                assert!(first.is_some_and(char::is_uppercase), "{path}: {about:?}");
                assert!(!about.ends_with('.'), "{path}: {about:?}");
                check(sub, &path);
            }
        }

        check(&App::command(), "zeroclaw");
    }
}
