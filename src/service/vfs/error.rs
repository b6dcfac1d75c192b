//! Why a file or folder was not read or changed.

use std::path::PathBuf;

use crate::model::{AgentId, ErrorKind, VfsNameError, VfsPath};

/// A file operation that was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VfsError {
    /// Nothing is there.
    #[error("no file or folder {path:?}", path = .path.as_str())]
    NotFound {
        /// The place.
        path: VfsPath,
    },
    /// Something is there already.
    #[error("there is something at {:?} already", .path.as_str())]
    Taken {
        /// The place.
        path: VfsPath,
    },
    /// A folder is where a file was meant.
    #[error("{:?} is a folder", .path.as_str())]
    IsFolder {
        /// The place.
        path: VfsPath,
    },
    /// A file is where a folder was meant.
    #[error("{:?} is no folder", .path.as_str())]
    NotFolder {
        /// The place.
        path: VfsPath,
    },
    /// A folder with something in it was to go alone.
    #[error("the folder {:?} is not empty", .path.as_str())]
    NotEmpty {
        /// The place.
        path: VfsPath,
    },
    /// A folder was to go into itself.
    #[error("{:?} lies inside of {:?}", .to.as_str(), .from.as_str())]
    IntoItself {
        /// The folder.
        from: VfsPath,
        /// Where it was to go.
        to: VfsPath,
    },
    /// More bytes than one call takes.
    #[error("{bytes} bytes are more than the {limit} one call takes")]
    TooLarge {
        /// What was given.
        bytes: u64,
        /// The most that is taken.
        limit: u64,
    },
    /// A path or namespace breaks the rule of its kind.
    #[error(transparent)]
    Name(#[from] VfsNameError),
    /// An export's target holds something.
    #[error("{} is not an empty folder", .path.display())]
    TargetTaken {
        /// The target.
        path: PathBuf,
    },
    /// The stream a file was to be read from, or written to, failed.
    #[error("the {side} of {:?} failed", .path.as_str())]
    Stream {
        /// The file.
        path: VfsPath,
        /// `source` or `sink`.
        side: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The configuration gives no such right.
    #[error("agent {agent} has no access to {what}")]
    Denied {
        /// Who asked.
        agent: AgentId,
        /// For what.
        what: String,
    },
    /// Files of others that may be read, or written, but not this.
    #[error("no right to {what} {:?} here", .path.as_str())]
    NoAccess {
        /// The place.
        path: VfsPath,
        /// `read` or `write`.
        what: &'static str,
    },
    /// More files than one step copies.
    #[error("{:?} holds more than {limit} files and folders", .path.as_str())]
    TooMany {
        /// The folder.
        path: VfsPath,
        /// The most that are taken.
        limit: u64,
    },
    /// An upload was swept away while it went on.
    #[error("the upload of {:?} took too long and was dropped", .path.as_str())]
    Swept {
        /// The place it was for.
        path: VfsPath,
    },
}

impl VfsError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Name(_) => ErrorKind::Usage,
            Self::Stream { source, .. } => match crate::fs::FsErrorKind::of(source) {
                crate::fs::FsErrorKind::NoSpace => ErrorKind::NoSpace,
                _ => ErrorKind::Internal,
            },
            _ => ErrorKind::Refused,
        }
    }

    /// What the operator can do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound { .. } => {
                Some("`zeroclaw vfs ls --agent ID --recursive` shows what there is")
            }
            Self::NotEmpty { .. } => Some("--recursive takes what is in it along"),
            Self::TooLarge { .. } => Some("stream it instead"),
            Self::Denied { .. } | Self::NoAccess { .. } => Some(
                "[agents.<id>.workspace] in config.toml gives it: `access`, or `unrestricted_filesystem`",
            ),
            Self::TargetTaken { .. } => Some("name a folder that is empty or not there yet"),
            _ => None,
        }
    }
}
