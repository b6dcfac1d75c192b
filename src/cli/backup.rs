//! `zeroclaw backup`.

use clap::Subcommand;

use super::{CliError, Context, Exit};

mod create;
mod key;
mod list;
mod report;
mod restore;
mod verify;

/// Write, prove and bring back archives of the whole root
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Write an archive of both tiers, the configuration and the keys
    ///
    /// One compressed file, readable by you alone, with every database as a consistent copy of one
    /// instant. It is read back and proved before it gets its name, and never overwrites a file.
    /// With --encrypt-to or --passphrase-file it is in the age format, and needs that key to come back.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::Refused,
    ]))]
    Create(create::CreateArgs),
    /// Prove an archive
    ///
    /// Checks its structure and every digest, and opens every database in it: integrity, references,
    /// owner, rows. Ends with 6 when anything is wrong, and names it; with 2 when an encrypted archive
    /// lacks its key or was given another.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
    ]))]
    Verify(verify::VerifyArgs),
    /// Bring an archive back
    ///
    /// The archive is proved first. What is replaced is set aside, never deleted, and a restore that
    /// is cut off leaves all old or all new. Without --yes nothing is written.
    #[command(after_long_help = Exit::help_of(&[
        Exit::NotInitialised,
        Exit::Busy,
        Exit::NewerSchema,
        Exit::Damaged,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Restore(restore::RestoreArgs),
    /// List backups, verifications and restores, newest first
    #[command(after_long_help = Exit::help_of_look())]
    List(list::ListArgs),
}

impl BackupCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::Create(args) => create::run(context, args).await,
            Self::Verify(args) => verify::run(context, args).await,
            Self::Restore(args) => restore::run(context, args).await,
            Self::List(args) => list::run(context, args).await,
        }
    }
}
