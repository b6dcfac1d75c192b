//! `zeroclaw completions`.

use clap::Args;
use clap_complete::Shell;

use super::{CliError, Exit, Out};

/// Print a completion script for a shell
///
/// For example: `zeroclaw completions bash > ~/.local/share/bash-completion/completions/zeroclaw`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the script for `command`.
    ///
    /// # Errors
    ///
    /// [`CliError`] when stdout cannot be written.
    pub(crate) fn run(self, mut command: clap::Command, out: &Out) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "zeroclaw", &mut script);
        out.bytes(&script)?;
        Ok(Exit::Done)
    }
}
