//! The options that encrypt an archive, and those that open one.

use std::path::PathBuf;

use clap::Args;
use zeroclaw::service::backup::{KeySource, SealSource};

#[derive(Args, Debug)]
pub(crate) struct SealArgs {
    /// Encrypt to this recipient, an age public key (age1…); may be given more than once
    #[arg(long, value_name = "RECIPIENT", conflicts_with = "passphrase_file")]
    encrypt_to: Vec<String>,

    /// Encrypt to the recipients in this file, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    recipients_file: Vec<PathBuf>,

    /// Encrypt with the passphrase on the first line of this file; - reads standard input
    ///
    /// Nobody can open the archive without it, you neither.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl SealArgs {
    /// What to encrypt to, if anything was named.
    pub(crate) fn source(&self) -> Option<SealSource> {
        if let Some(path) = &self.passphrase_file {
            return Some(SealSource::PassphraseFile(path.clone()));
        }
        let is_given = !self.encrypt_to.is_empty() || !self.recipients_file.is_empty();
        is_given.then(|| SealSource::Recipients {
            given: self.encrypt_to.clone(),
            files: self.recipients_file.clone(),
        })
    }
}

#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    /// Open an encrypted archive with the age identities in this file; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    identity: Vec<PathBuf>,

    /// Open an encrypted archive with the passphrase on the first line of this file; - reads standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl KeyArgs {
    /// Where the key is, if one was named.
    pub(crate) fn source(&self) -> Option<KeySource> {
        if let Some(path) = &self.passphrase_file {
            return Some(KeySource::PassphraseFile(path.clone()));
        }
        (!self.identity.is_empty()).then(|| KeySource::IdentityFiles(self.identity.clone()))
    }
}
