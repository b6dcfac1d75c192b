//! The socket: private from its first moment, never taken from a living owner.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use super::DaemonError;
use crate::fs::{FileLock, FsError, Layout, LockError};

/// Mode of the socket.
const PRIVATE: u32 = 0o600;

/// A socket that is listened on. Its name goes with it.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    listener: UnixListener,
    // Device and inode: another file of the name is not ours to remove.
    file: (u64, u64),
    // Two roots could be given one socket.
    _lock: Option<FileLock>,
}

impl Socket {
    /// Listens on the root's own socket, or on another one.
    ///
    /// What a dead owner left is replaced, in one step: there is no moment without one.
    pub(super) async fn bind(layout: &Layout, other: Option<&Path>) -> Result<Self, DaemonError> {
        let path = other.map_or_else(|| layout.daemon_socket(), Path::to_path_buf);
        // The root's own is under the root's lock.
        let lock = match other {
            Some(other) => Some(lock_beside(other)?),
            None => None,
        };
        refuse_living(&path).await?;
        let (listener, file) = listen(&path)?;
        Ok(Self {
            path,
            listener,
            file,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next client.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        let (stream, _) = self.listener.accept().await?;
        Ok(stream)
    }

    /// Listens anew where somebody deleted the socket; clients of before stay.
    pub(super) fn restore(&mut self) -> Result<bool, DaemonError> {
        if std::fs::symlink_metadata(&self.path).is_ok() {
            return Ok(false);
        }
        (self.listener, self.file) = listen(&self.path)?;
        Ok(true)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn lock_beside(socket: &Path) -> Result<FileLock, DaemonError> {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    match FileLock::exclusive(Path::new(&name), Duration::ZERO) {
        Ok(lock) => Ok(lock),
        Err(LockError::Held { .. }) => Err(DaemonError::SocketTaken {
            path: socket.to_owned(),
        }),
        Err(LockError::Fs(error)) => Err(error.into()),
    }
}

/// Whoever answers lives. What refuses to be called was left by somebody dead.
async fn refuse_living(path: &Path) -> Result<(), DaemonError> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FsError::at("look at", path)(error).into()),
    };
    if !found.file_type().is_socket() {
        return Err(DaemonError::NotASocket {
            path: path.to_owned(),
        });
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(_) | Err(_) => Err(DaemonError::SocketTaken {
            path: path.to_owned(),
        }),
    }
}

/// Born in a folder of its own that nobody else can enter, it is private before it has its name.
fn listen(path: &Path) -> Result<(UnixListener, (u64, u64)), DaemonError> {
    let at = |source| DaemonError::Socket {
        path: path.to_owned(),
        source,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let room = tempfile::Builder::new()
        .prefix(".s")
        .rand_bytes(4)
        .tempdir_in(folder)
        .map_err(at)?;
    let newborn = room.path().join("s");
    let listener = UnixListener::bind(&newborn).map_err(at)?;
    std::fs::set_permissions(&newborn, std::fs::Permissions::from_mode(PRIVATE)).map_err(at)?;
    let file = identity(&newborn).map_err(at)?;
    std::fs::rename(&newborn, path).map_err(at)?;
    Ok((listener, file))
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}
