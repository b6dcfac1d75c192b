//! Why a daemon does not serve.

use std::io;
use std::path::PathBuf;

use crate::fs::{FsError, LockError};
use crate::model::ErrorKind;
use crate::service::ServiceError;

/// A daemon that did not start, or could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The root could not be opened.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Somebody answers on the socket already.
    #[error("somebody else answers on {}", .path.display())]
    SocketTaken {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is no socket has its name.
    #[error("{} is no socket", .path.display())]
    NotASocket {
        /// Its name.
        path: PathBuf,
    },
    /// The socket could not be made.
    #[error("failed to make the socket {}", .path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Signals cannot be heard.
    #[error("failed to listen to signals")]
    Signals(#[source] io::Error),
    /// A file or folder failed.
    #[error(transparent)]
    Fs(#[from] FsError),
}

impl DaemonError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Service(error) => error.kind(),
            Self::SocketTaken { .. } => ErrorKind::Busy,
            Self::NotASocket { .. } => ErrorKind::Refused,
            Self::Socket { .. } | Self::Signals(_) => ErrorKind::Internal,
            Self::Fs(error) => error.kind().into(),
        }
    }

    /// What the operator can do about it, if anything.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Service(error) => error.hint(),
            Self::SocketTaken { .. } => {
                Some("stop that process, or name another socket in ZEROCLAW_SOCKET".to_owned())
            }
            Self::NotASocket { .. } | Self::Socket { .. } => {
                Some("name another socket in ZEROCLAW_SOCKET; its path must be short".to_owned())
            }
            Self::Signals(_) | Self::Fs(_) => None,
        }
    }
}

impl From<LockError> for DaemonError {
    fn from(error: LockError) -> Self {
        Self::Service(error.into())
    }
}
