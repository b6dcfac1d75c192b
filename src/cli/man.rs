//! `zeroclaw man`.

use clap::Args;

use super::{CliError, Exit, Out};

/// Print a manual page
///
/// Without COMMAND the page of the whole program, with it the page of that command, for example
/// `zeroclaw man sessions list | man -l -`.
#[derive(Args, Debug)]
#[command(after_long_help = Exit::help_of(&[Exit::NotFound]))]
pub(crate) struct ManArgs {
    /// The command the page is for
    #[arg(value_name = "COMMAND")]
    path: Vec<String>,
}

impl ManArgs {
    /// Prints the page of `command` or of one below it.
    ///
    /// # Errors
    ///
    /// [`CliError`] when there is no such command or stdout cannot be written.
    pub(crate) fn run(self, mut command: clap::Command, out: &Out) -> Result<Exit, CliError> {
        // Gives every command its full name and the global flags.
        command.build();
        for name in &self.path {
            let found = command.find_subcommand(name).cloned();
            command = found.ok_or_else(|| {
                CliError::new(
                    Exit::NotFound,
                    format!("no command {:?}", self.path.join(" ")),
                )
                .hint("`zeroclaw help` lists the commands")
            })?;
        }
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| CliError::new(Exit::Internal, "no page").because(&error))?;
        out.bytes(&page)?;
        Ok(Exit::Done)
    }
}
