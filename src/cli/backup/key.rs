//! The options that open an encrypted archive.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::service::backup::KeySource;

#[derive(Args, Debug)]
pub(super) struct KeyArgs {
    /// Open an encrypted archive with the age identities in this file; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    identity: Vec<PathBuf>,

    /// Open an encrypted archive with the passphrase on the first line of this file; - reads standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl KeyArgs {
    /// Where the key is, if one was named.
    pub(super) fn source(&self) -> Option<KeySource> {
        if let Some(path) = &self.passphrase_file {
            return Some(KeySource::PassphraseFile(path.clone()));
        }
        (!self.identity.is_empty()).then(|| KeySource::IdentityFiles(self.identity.clone()))
    }
}
