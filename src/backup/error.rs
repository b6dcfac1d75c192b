//! Why a backup, a verification or a restore failed.

use crate::fs::FsError;
use crate::model::ErrorKind;

/// A failed backup, verification or restore.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl BackupError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }

    /// What the operator can do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        None
    }
}
