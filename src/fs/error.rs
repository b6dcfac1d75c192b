//! Input and output errors that know what was attempted, and on which path.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::ErrorKind;

/// Why a file operation failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}", path.display())]
pub struct FsError {
    /// What was touched.
    pub path: PathBuf,
    /// What was attempted, as a verb: `create folder`, `sync`.
    pub action: &'static str,
    /// What the operating system said.
    pub source: io::Error,
}

/// The kinds of [`FsError`] that callers treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FsErrorKind {
    /// The file or a folder above it does not exist.
    NotFound,
    /// Something stands where the new file should go.
    AlreadyExists,
    /// The process may not do this.
    Permission,
    /// The disk or the quota is full.
    NoSpace,
    /// The filesystem is mounted read-only.
    ReadOnly,
    /// Anything else.
    Other,
}

impl FsError {
    /// Gives a closure for `map_err` that adds path and action to an [`io::Error`].
    pub fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self {
            path,
            action,
            source,
        }
    }

    /// Classifies the cause.
    #[must_use]
    pub fn kind(&self) -> FsErrorKind {
        FsErrorKind::of(&self.source)
    }
}

impl FsErrorKind {
    /// Classifies an [`io::Error`].
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::AlreadyExists => Self::AlreadyExists,
            io::ErrorKind::PermissionDenied => Self::Permission,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace,
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            _ => Self::Other,
        }
    }
}

impl From<FsErrorKind> for ErrorKind {
    fn from(kind: FsErrorKind) -> Self {
        match kind {
            FsErrorKind::NoSpace | FsErrorKind::ReadOnly => Self::NoSpace,
            FsErrorKind::NotFound => Self::NotFound,
            FsErrorKind::AlreadyExists | FsErrorKind::Permission => Self::Refused,
            FsErrorKind::Other => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn codes_of_the_operating_system_become_kinds() {
        let kinds = [
            (Errno::NOENT, FsErrorKind::NotFound),
            (Errno::EXIST, FsErrorKind::AlreadyExists),
            (Errno::ACCESS, FsErrorKind::Permission),
            (Errno::PERM, FsErrorKind::Permission),
            (Errno::NOSPC, FsErrorKind::NoSpace),
            (Errno::DQUOT, FsErrorKind::NoSpace),
            (Errno::ROFS, FsErrorKind::ReadOnly),
            (Errno::IO, FsErrorKind::Other),
        ];
        for (errno, kind) in kinds {
            assert_eq!(FsErrorKind::of(&io::Error::from(errno)), kind, "{errno:?}");
        }
    }

    #[test]
    fn the_text_names_action_and_path_and_leaves_the_cause_to_source() {
        let error = FsError::at("create file", Path::new("/r/x"))(io::Error::from(Errno::NOSPC));

        assert_eq!(error.to_string(), "cannot create file /r/x");
        assert!(error.source().is_some());
        assert_eq!(error.kind(), FsErrorKind::NoSpace);
    }
}
