//! Files that live in an agent's database.
//!
//! A [`Vfs`] is one tree of one agent. Each change is one transaction and on disk when it returns. A file too large for
//! one call is streamed: [`Vfs::write_from`] gathers it out of sight and lets it appear whole.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::Db;
use crate::model::{
    AgentId, Page, PageLimit, VfsEntry, VfsHit, VfsKind, VfsNamespace, VfsPath, VfsTree,
};
use crate::store::agent::vfs::content::{self, CHUNK_BYTES, INLINE_BYTES};
use crate::store::agent::vfs::{self as rows, EntryRow};

pub use self::error::VfsError;
pub use self::export::VfsExport;
pub(super) use self::export::blocking;
pub use self::part::{VfsPart, VfsRemoved};
use self::tree::Place;
pub use self::tree::Removal;
pub(super) use self::tree::refuse_top;

mod error;
mod export;
mod part;
mod tree;

/// Most bytes one call reads or writes; more is streamed.
pub const MAX_CALL_BYTES: usize = 16 * 1024 * 1024;

/// Bytes of an upload that share a transaction: few enough to be held in memory, many enough that the sync after each
/// is no matter.
const UPLOAD_BYTES: usize = 64 * CHUNK_BYTES;

/// An upload older than this was cut off: nobody streams one file for a day.
const UPLOAD_LIFE_MS: i64 = 24 * 60 * 60 * 1_000;

/// One tree of files of one agent.
#[derive(Clone, Debug)]
pub struct Vfs {
    db: Arc<Db>,
    clock: Clock,
    namespace: VfsNamespace,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteMode {
    /// Whether a disk should let it be started.
    pub is_executable: bool,
}

impl Service {
    /// A tree of an agent's files.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError::Open`] when its database cannot be opened.
    pub async fn vfs(&self, agent: &AgentId, namespace: VfsNamespace) -> Result<Vfs, ServiceError> {
        let db = self.agent(agent).await?;
        Ok(Vfs::new(db, self.clock().clone(), namespace))
    }

    /// The trees of an agent, by name.
    pub(super) async fn vfs_trees(&self, agent: &AgentId) -> Result<Vec<VfsTree>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        rows::trees(&mut conn).await.in_db(&db)
    }

    /// Files of an agent that hold all words of a text.
    pub(super) async fn search_vfs(
        &self,
        agent: &AgentId,
        namespace: Option<&VfsNamespace>,
        text: &str,
        limit: PageLimit,
    ) -> Result<Vec<VfsHit>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let namespace = namespace.map(VfsNamespace::as_str);
        rows::search::search(&mut conn, namespace, text, limit)
            .await
            .in_db(&db)
    }
}

impl Vfs {
    pub(super) fn new(db: Arc<Db>, clock: Clock, namespace: VfsNamespace) -> Self {
        Self {
            db,
            clock,
            namespace,
        }
    }

    /// Its name.
    #[must_use]
    pub fn namespace(&self) -> &VfsNamespace {
        &self.namespace
    }

    /// What stands at a path; `None` for nothing, and for the top, which always is a folder.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn stat(&self, path: &VfsPath) -> Result<Option<VfsEntry>, ServiceError> {
        Ok(self.row(path).await?.map(|row| row.entry))
    }

    pub(super) async fn row(&self, path: &VfsPath) -> Result<Option<EntryRow>, ServiceError> {
        let mut conn = self.db.read().await?;
        rows::get(&mut conn, self.namespace.as_str(), path)
            .await
            .in_db(&self.db)
    }

    /// Lists a folder by path. A folder that is not there is refused; the top always is.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when there is no such folder, [`ServiceError`] when SQLite fails.
    pub async fn list(
        &self,
        folder: &VfsPath,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<VfsEntry>, ServiceError> {
        self.need_folder(folder).await?;
        let mut conn = self.db.read().await?;
        rows::list(&mut conn, self.namespace.as_str(), folder, after, limit)
            .await
            .in_db(&self.db)
    }

    /// Lists a folder by path, whiteouts too; one that is not there is empty.
    pub(super) async fn children(
        &self,
        folder: &VfsPath,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<VfsEntry>, ServiceError> {
        let mut conn = self.db.read().await?;
        rows::list(&mut conn, self.namespace.as_str(), folder, after, limit)
            .await
            .in_db(&self.db)
    }

    /// Lists all below a folder by path, folders before what is in them.
    ///
    /// # Errors
    ///
    /// As [`Vfs::list`].
    pub async fn list_below(
        &self,
        folder: &VfsPath,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<VfsEntry>, ServiceError> {
        self.need_folder(folder).await?;
        let mut conn = self.db.read().await?;
        rows::list_below(&mut conn, self.namespace.as_str(), folder, after, limit)
            .await
            .in_db(&self.db)
    }

    /// Lists all whose path begins with a text, by path.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn list_prefix(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<VfsEntry>, ServiceError> {
        let mut conn = self.db.read().await?;
        rows::list_prefix(&mut conn, self.namespace.as_str(), prefix, after, limit)
            .await
            .in_db(&self.db)
    }

    async fn need_folder(&self, folder: &VfsPath) -> Result<(), ServiceError> {
        if folder.is_top() {
            return Ok(());
        }
        let path = folder.clone();
        match self.stat(folder).await?.map(|entry| entry.kind) {
            Some(VfsKind::Folder) => Ok(()),
            Some(VfsKind::File) => Err(VfsError::NotFolder { path }.into()),
            Some(VfsKind::Whiteout) | None => Err(VfsError::NotFound { path }.into()),
        }
    }

    /// Reads up to `most` bytes of a file from `offset` on, at most [`MAX_CALL_BYTES`]; none behind its end.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when there is no such file, [`ServiceError`] when SQLite fails.
    pub async fn read(
        &self,
        path: &VfsPath,
        offset: u64,
        most: usize,
    ) -> Result<Vec<u8>, ServiceError> {
        // One instant for the row and its bytes.
        let mut conn = self.db.read_instant().await?;
        let row = rows::get(&mut conn, self.namespace.as_str(), path)
            .await
            .in_db(&self.db)?;
        let row = file(row, path)?;
        content::read(&mut conn, &row, offset, most.min(MAX_CALL_BYTES))
            .await
            .in_db(&self.db)
    }

    /// Copies a file as it is now to a sink, in bounded memory; gives its size.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when there is no such file or the sink fails, [`ServiceError`] when SQLite fails.
    pub async fn copy_to(
        &self,
        path: &VfsPath,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64, ServiceError> {
        let mut conn = self.db.read_instant().await?;
        let row = rows::get(&mut conn, self.namespace.as_str(), path)
            .await
            .in_db(&self.db)?;
        let row = file(row, path)?;
        self.pour(&mut conn, &row, sink).await
    }

    async fn pour(
        &self,
        conn: &mut crate::db::Connection,
        row: &EntryRow,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64, ServiceError> {
        let failed = |source| VfsError::Stream {
            path: row.entry.path.clone(),
            side: "sink",
            source,
        };
        let mut offset = 0;
        loop {
            let part = content::read(conn, row, offset, UPLOAD_BYTES)
                .await
                .in_db(&self.db)?;
            if part.is_empty() {
                sink.flush().await.map_err(failed)?;
                return Ok(offset);
            }
            sink.write_all(&part).await.map_err(failed)?;
            offset += part.len() as u64;
        }
    }

    /// Writes a file of these bytes in place of one that may be there; folders above it are made.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when a folder is there, a file is above, or the bytes are more than [`MAX_CALL_BYTES`];
    /// [`ServiceError`] when SQLite fails.
    pub async fn write(
        &self,
        path: &VfsPath,
        bytes: Vec<u8>,
        mode: WriteMode,
    ) -> Result<VfsEntry, ServiceError> {
        refuse_large(&bytes)?;
        let (namespace, path, now_ms) = self.place(path);
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let place = Place {
                        namespace: namespace.as_str(),
                        path: &path,
                        now_ms,
                    };
                    let row = tree::ensure_file(tx, place).await?;
                    content::replace(tx, row.entry_no, &bytes, now_ms).await?;
                    rows::set_executable(tx, row.entry_no, mode.is_executable).await?;
                    Ok(tree::find(tx, place.namespace, place.path).await?.entry)
                })
            })
            .await
    }

    /// Writes at the end of a file; makes it, and folders above it, where it is missing.
    ///
    /// # Errors
    ///
    /// As [`Vfs::write`].
    pub async fn append(&self, path: &VfsPath, bytes: Vec<u8>) -> Result<VfsEntry, ServiceError> {
        refuse_large(&bytes)?;
        let (namespace, path, now_ms) = self.place(path);
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let place = Place {
                        namespace: namespace.as_str(),
                        path: &path,
                        now_ms,
                    };
                    let row = tree::ensure_file(tx, place).await?;
                    content::append(tx, &row, &bytes, now_ms).await?;
                    Ok(tree::find(tx, place.namespace, place.path).await?.entry)
                })
            })
            .await
    }

    /// Writes a file of what a source gives, in bounded memory. It appears whole, or not at all when the source fails.
    ///
    /// # Errors
    ///
    /// As [`Vfs::write`], and [`VfsError::Stream`] when the source fails.
    pub async fn write_from(
        &self,
        path: &VfsPath,
        source: &mut (impl AsyncRead + Unpin + Send),
        mode: WriteMode,
    ) -> Result<VfsEntry, ServiceError> {
        tree::refuse_top(path)?;
        let mut part = fill(path, source, UPLOAD_BYTES).await?;
        if part.len() <= INLINE_BYTES {
            return self.write(path, part, mode).await;
        }
        let entry_no = self.begin_upload().await?;
        let sent = async {
            while !part.is_empty() {
                self.send(entry_no, path, std::mem::take(&mut part)).await?;
                part = fill(path, source, UPLOAD_BYTES).await?;
            }
            self.land(entry_no, path, mode).await
        };
        let landed = sent.await;
        if landed.is_err() {
            // The first error is the one to tell; the sweep takes what stays.
            let dropped: Result<(), ServiceError> = self
                .db
                .write(move |tx| Box::pin(async move { Ok(rows::delete(tx, entry_no).await?) }))
                .await;
            if let Err(error) = dropped {
                tracing::debug!(%error, "an upload is left for the sweep");
            }
        }
        landed
    }

    async fn begin_upload(&self) -> Result<i64, ServiceError> {
        let now_ms = self.clock.now_ms();
        let upload = VfsPath::new(&uuid::Uuid::new_v4().to_string()).map_err(VfsError::Name)?;
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    rows::sweep(tx, now_ms - UPLOAD_LIFE_MS).await?;
                    Ok(rows::stage(tx, &upload, content::chunk_bytes(), now_ms).await?)
                })
            })
            .await
    }

    async fn send(&self, entry_no: i64, path: &VfsPath, part: Vec<u8>) -> Result<(), ServiceError> {
        let path = path.clone();
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let row = rows::staged(tx, entry_no).await?;
                    let row = row.ok_or(VfsError::Swept { path })?;
                    Ok(content::extend(tx, &row, &part).await?)
                })
            })
            .await
    }

    async fn land(
        &self,
        entry_no: i64,
        path: &VfsPath,
        mode: WriteMode,
    ) -> Result<VfsEntry, ServiceError> {
        let (namespace, path, now_ms) = self.place(path);
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let place = Place {
                        namespace: namespace.as_str(),
                        path: &path,
                        now_ms,
                    };
                    let old = tree::clear_for_file(tx, place).await?;
                    let mut new = place.new_entry(VfsKind::File);
                    new.is_executable = mode.is_executable;
                    new.created_at_ms = old.map_or(now_ms, |old| old.entry.created_at_ms);
                    if !rows::land(tx, entry_no, &new).await? {
                        return Err(VfsError::Swept { path }.into());
                    }
                    Ok(tree::find(tx, place.namespace, place.path).await?.entry)
                })
            })
            .await
    }

    /// Makes a folder and those above it where they are missing.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when a file is in the way, [`ServiceError`] when SQLite fails.
    pub async fn make_folder(&self, path: &VfsPath) -> Result<(), ServiceError> {
        let (namespace, path, now_ms) = self.place(path);
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let place = Place {
                        namespace: namespace.as_str(),
                        path: &path,
                        now_ms,
                    };
                    tree::ensure_folder(tx, place).await
                })
            })
            .await
    }

    /// Gives a file, or a folder with all that is in it, another place; folders above that are made.
    ///
    /// A file takes the place of a file. Anything else in the way is refused.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when nothing is there, something is in the way, or a folder would go into itself;
    /// [`ServiceError`] when SQLite fails.
    pub async fn rename(&self, from: &VfsPath, to: &VfsPath) -> Result<(), ServiceError> {
        let from = from.clone();
        let (namespace, to, now_ms) = self.place(to);
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let place = Place {
                        namespace: namespace.as_str(),
                        path: &to,
                        now_ms,
                    };
                    tree::rename(tx, &from, place).await
                })
            })
            .await
    }

    /// Removes a file or folder; gives how many entries went.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when nothing is there, or a folder that is to go alone is not empty; [`ServiceError`] when SQLite
    /// fails.
    pub async fn remove(&self, path: &VfsPath, removal: Removal) -> Result<u64, ServiceError> {
        let (namespace, path, _) = self.place(path);
        self.db
            .write(move |tx| {
                Box::pin(async move { tree::remove(tx, namespace.as_str(), &path, removal).await })
            })
            .await
    }

    /// Takes away what this layer has at a place, and hides what it lies over if that would show.
    pub(super) async fn hide(&self, path: &VfsPath, shows: bool) -> Result<(), ServiceError> {
        let (namespace, path, now_ms) = self.place(path);
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let place = Place {
                        namespace: namespace.as_str(),
                        path: &path,
                        now_ms,
                    };
                    tree::hide(tx, place, shows).await
                })
            })
            .await
    }

    /// How many entries [`Vfs::remove`] would take with [`Removal::Tree`].
    ///
    /// # Errors
    ///
    /// [`VfsError`] when nothing is there, [`ServiceError`] when SQLite fails.
    pub async fn measure(&self, path: &VfsPath) -> Result<u64, ServiceError> {
        let itself = match self.stat(path).await? {
            _ if path.is_top() => 0,
            Some(entry) if entry.kind != VfsKind::Whiteout => 1,
            _ => return Err(VfsError::NotFound { path: path.clone() }.into()),
        };
        let mut conn = self.db.read().await?;
        let (below, _) = rows::measure(&mut conn, self.namespace.as_str(), path)
            .await
            .in_db(&self.db)?;
        Ok(itself + u64::try_from(below).unwrap_or(0))
    }

    /// Files of this tree whose name or text hold all words, best match first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn search(&self, text: &str, limit: PageLimit) -> Result<Vec<VfsHit>, ServiceError> {
        let mut conn = self.db.read().await?;
        rows::search::search(&mut conn, Some(self.namespace.as_str()), text, limit)
            .await
            .in_db(&self.db)
    }

    /// What a transaction takes along.
    fn place(&self, path: &VfsPath) -> (VfsNamespace, VfsPath, i64) {
        (self.namespace.clone(), path.clone(), self.clock.now_ms())
    }
}

/// The row of a file, and nothing else.
fn file(row: Option<EntryRow>, path: &VfsPath) -> Result<EntryRow, ServiceError> {
    tree::refuse_top(path)?;
    let path = path.clone();
    match row {
        Some(row) if row.entry.kind == VfsKind::File => Ok(row),
        Some(row) if row.entry.kind == VfsKind::Folder => Err(VfsError::IsFolder { path }.into()),
        _ => Err(VfsError::NotFound { path }.into()),
    }
}

fn refuse_large(bytes: &[u8]) -> Result<(), ServiceError> {
    if bytes.len() > MAX_CALL_BYTES {
        return Err(VfsError::TooLarge {
            bytes: bytes.len() as u64,
            limit: MAX_CALL_BYTES as u64,
        }
        .into());
    }
    Ok(())
}

/// Reads up to `most` bytes; fewer only at the source's end.
async fn fill(
    path: &VfsPath,
    source: &mut (impl AsyncRead + Unpin + Send),
    most: usize,
) -> Result<Vec<u8>, ServiceError> {
    let mut part = Vec::new();
    source
        .take(most as u64)
        .read_to_end(&mut part)
        .await
        .map_err(|source| VfsError::Stream {
            path: path.clone(),
            side: "source",
            source,
        })?;
    Ok(part)
}
