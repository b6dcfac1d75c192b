//! Files of a workspace on disk, behind the access the configuration grants.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt};

use crate::config::FileAccess;
use crate::fs::{Beneath, Found, FsError, FsErrorKind, Taken, atomic};
use crate::model::{VfsEntry, VfsKind, VfsPath};
use crate::service::ServiceError;
use crate::service::vfs::{VfsError, WriteMode, blocking};

/// Bytes of a stream that are written at a time.
const COPY_BYTES: u64 = 256 * 1024;

/// A folder of the disk that nothing can leave.
#[derive(Clone, Debug)]
pub struct DiskFiles {
    top: Arc<Beneath>,
    access: FileAccess,
}

impl DiskFiles {
    /// Opens a workspace; one that is the agent's own and missing is made.
    pub(super) async fn open(path: PathBuf, access: FileAccess) -> Result<Self, ServiceError> {
        let at = path.clone();
        let top = blocking(&at, move || {
            if access.writes() {
                atomic::create_dir_private(&path)?;
            }
            Beneath::open(&path)
        });
        Ok(Self {
            top: Arc::new(top.await?),
            access,
        })
    }

    /// What may be done here.
    #[must_use]
    pub fn access(&self) -> FileAccess {
        self.access
    }

    /// Runs one call on the disk.
    async fn on_disk<T: Send + 'static>(
        &self,
        path: &VfsPath,
        work: impl FnOnce(&Beneath, &str) -> Result<T, FsError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let top = Arc::clone(&self.top);
        let place = path.to_string();
        let at = top.path().join(&place);
        blocking(&at, move || work(&top, &place)).await
    }

    fn may_read(&self, path: &VfsPath) -> Result<(), ServiceError> {
        if self.access.reads() {
            return Ok(());
        }
        Err(VfsError::NoAccess {
            path: path.clone(),
            what: "read",
        }
        .into())
    }

    fn may_write(&self, path: &VfsPath) -> Result<(), ServiceError> {
        if self.access.writes() {
            return Ok(());
        }
        Err(VfsError::NoAccess {
            path: path.clone(),
            what: "write",
        }
        .into())
    }

    pub(super) async fn stat(&self, path: &VfsPath) -> Result<Option<VfsEntry>, ServiceError> {
        self.may_read(path)?;
        let found = self.on_disk(path, |top, place| match top.look(place) {
            // What leads outside is not here.
            Err(error) if error.kind() == FsErrorKind::Permission && is_escape(&error) => Ok(None),
            other => other,
        });
        Ok(found.await?.map(|found| entry(path.clone(), found)))
    }

    /// All in a folder, by path.
    pub(super) async fn list(&self, folder: &VfsPath) -> Result<Vec<VfsEntry>, ServiceError> {
        self.may_read(folder)?;
        let items = self.on_disk(folder, |top, place| top.list(place)).await?;
        let mut entries = Vec::with_capacity(items.len());
        for (name, found) in items {
            let path = VfsPath::new(&format!("{folder}/{name}")).map_err(VfsError::Name)?;
            entries.push(entry(path, found));
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    pub(super) async fn open_file(&self, path: &VfsPath) -> Result<tokio::fs::File, ServiceError> {
        self.may_read(path)?;
        let file = self
            .on_disk(path, |top, place| top.open_file(place))
            .await?;
        Ok(tokio::fs::File::from_std(file))
    }

    pub(super) async fn read(
        &self,
        path: &VfsPath,
        offset: u64,
        most: usize,
    ) -> Result<Vec<u8>, ServiceError> {
        let mut file = self.open_file(path).await?;
        let failed = |source| VfsError::Stream {
            path: path.clone(),
            side: "source",
            source,
        };
        file.seek(std::io::SeekFrom::Start(offset))
            .await
            .map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(most as u64)
            .read_to_end(&mut bytes)
            .await
            .map_err(failed)?;
        Ok(bytes)
    }

    pub(super) async fn copy_to(
        &self,
        path: &VfsPath,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64, ServiceError> {
        let mut file = self.open_file(path).await?;
        let copied = tokio::io::copy(&mut file, sink).await;
        Ok(copied.map_err(|source| VfsError::Stream {
            path: path.clone(),
            side: "sink",
            source,
        })?)
    }

    pub(super) async fn write(
        &self,
        path: &VfsPath,
        bytes: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), ServiceError> {
        self.may_write(path)?;
        self.on_disk(path, move |top, place| {
            top.write_file(place, &mut bytes.as_slice(), mode.is_executable)
        })
        .await
        .map(drop)
    }

    /// Streams beside the file and swaps it in at the end.
    pub(super) async fn write_from(
        &self,
        path: &VfsPath,
        source: &mut (impl AsyncRead + Unpin + Send),
        mode: WriteMode,
    ) -> Result<(), ServiceError> {
        self.may_write(path)?;
        let (temp, file) = self
            .on_disk(path, move |top, place| {
                top.begin_file(place, mode.is_executable)
            })
            .await?;
        let filled = fill(path, source, tokio::fs::File::from_std(file)).await;
        let ended = match filled {
            Ok(()) => {
                self.on_disk(path, {
                    let temp = temp.clone();
                    move |top, place| top.end_file(&temp, place)
                })
                .await
            }
            Err(error) => Err(error),
        };
        if ended.is_err() {
            // The first error is the one to tell.
            let _ = self
                .on_disk(path, move |top, _| top.remove_file(&temp))
                .await;
        }
        ended
    }

    pub(super) async fn append(&self, path: &VfsPath, bytes: Vec<u8>) -> Result<(), ServiceError> {
        self.may_write(path)?;
        self.on_disk(path, move |top, place| top.append(place, &bytes))
            .await
            .map(drop)
    }

    pub(super) async fn make_folder(&self, path: &VfsPath) -> Result<(), ServiceError> {
        self.may_write(path)?;
        self.on_disk(path, |top, place| top.make_folders(place))
            .await
    }

    pub(super) async fn rename(&self, from: &VfsEntry, to: &VfsPath) -> Result<(), ServiceError> {
        self.may_write(&from.path)?;
        let taken = match from.kind {
            VfsKind::File => Taken::Replace,
            _ => Taken::Refuse,
        };
        let from = from.path.to_string();
        self.on_disk(to, move |top, to| {
            if let Some((above, _)) = to.rsplit_once('/') {
                top.make_folders(above)?;
            }
            top.rename(&from, to, taken)
        })
        .await
    }

    pub(super) async fn remove(
        &self,
        path: &VfsPath,
        is_folder: bool,
    ) -> Result<u64, ServiceError> {
        self.may_write(path)?;
        self.on_disk(path, move |top, place| {
            if place.is_empty() {
                return top.remove_all();
            }
            if is_folder {
                return top.remove_folder(place);
            }
            top.remove_file(place).map(|()| 1)
        })
        .await
    }
}

/// Writes all a source gives, synced.
async fn fill(
    path: &VfsPath,
    source: &mut (impl AsyncRead + Unpin + Send),
    mut file: tokio::fs::File,
) -> Result<(), ServiceError> {
    let failed = |side| {
        let path = path.clone();
        move |source| VfsError::Stream { path, side, source }
    };
    let mut part = Vec::new();
    loop {
        part.clear();
        let count = (&mut *source)
            .take(COPY_BYTES)
            .read_to_end(&mut part)
            .await
            .map_err(failed("source"))?;
        if count == 0 {
            break;
        }
        file.write_all(&part).await.map_err(failed("sink"))?;
    }
    file.flush().await.map_err(failed("sink"))?;
    Ok(file.sync_all().await.map_err(failed("sink"))?)
}

fn is_escape(error: &FsError) -> bool {
    // A right that is missing comes with a code of the system, an escape is said by us.
    error.source.raw_os_error().is_none()
}

fn entry(path: VfsPath, found: Found) -> VfsEntry {
    VfsEntry {
        namespace: "disk".to_owned(),
        path,
        kind: if found.is_folder {
            VfsKind::Folder
        } else {
            VfsKind::File
        },
        size_bytes: i64::try_from(found.size_bytes).unwrap_or(i64::MAX),
        is_executable: found.is_executable,
        created_at_ms: found.modified_at_ms,
        updated_at_ms: found.modified_at_ms,
    }
}
