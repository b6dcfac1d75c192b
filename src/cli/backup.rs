//! `zeroclaw backup`.

use clap::Subcommand;

use super::{CliError, Context, Exit};

mod create;
pub(crate) mod key;
mod list;
mod prune;
pub(super) mod report;
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
    ///
    /// With --archives the archives in a folder are listed too, whoever made them.
    #[command(after_long_help = Exit::help_of_named())]
    List(list::ListArgs),
    /// Delete archives that no rule keeps
    ///
    /// The rules count archives, never ages: --keep-daily 7 keeps the newest archive of each of the
    /// last seven days that have one. Days, ISO weeks and months are those of UTC. An archive stays
    /// if one rule keeps it. The newest good one always stays, and so do those dated in the future,
    /// those made by an import, those with a name of your own, and files that cannot be read.
    ///
    /// Without --yes the plan is printed, nothing is deleted, and the exit code is 10. All archives
    /// of the folder count together: give each root a folder of its own.
    #[command(after_long_help = Exit::help_of(&[
        Exit::Findings,
        Exit::NotInitialised,
        Exit::NoSpace,
        Exit::NotFound,
        Exit::Refused,
    ]))]
    Prune(prune::PruneArgs),
}

impl BackupCommand {
    pub(super) async fn run(self, context: &Context) -> Result<Exit, CliError> {
        match self {
            Self::Create(args) => create::run(context, args).await,
            Self::Verify(args) => verify::run(context, args).await,
            Self::Restore(args) => restore::run(context, args).await,
            Self::List(args) => list::run(context, args).await,
            Self::Prune(args) => prune::run(context, args).await,
        }
    }
}
