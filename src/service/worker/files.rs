//! One type for the files of a worker, whatever its mode.

use std::collections::BTreeSet;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{DiskFiles, ScratchFiles};
use crate::model::{Page, PageLimit, VfsEntry, VfsKind, VfsPath};
use crate::service::vfs::{Removal, Vfs, VfsError, WriteMode, refuse_top};
use crate::service::{MAX_CALL_BYTES, ServiceError};

/// The files a worker sees. All modes answer alike: the same calls give the same results and the same refusals.
#[derive(Clone, Debug)]
pub struct Files(FilesKind);

/// What lies behind [`Files`].
#[derive(Clone, Debug)]
pub enum FilesKind {
    /// A folder on disk.
    Disk(DiskFiles),
    /// A layer over a folder on disk.
    Scratch(ScratchFiles),
    /// A tree in the database.
    Vfs(Vfs),
}

impl Files {
    pub(super) fn disk(files: DiskFiles) -> Self {
        Self(FilesKind::Disk(files))
    }

    pub(super) fn scratch(files: ScratchFiles) -> Self {
        Self(FilesKind::Scratch(files))
    }

    pub(super) fn vfs(files: Vfs) -> Self {
        Self(FilesKind::Vfs(files))
    }

    /// What lies behind them.
    #[must_use]
    pub fn kind(&self) -> &FilesKind {
        &self.0
    }

    /// What stands at a path; `None` for nothing, and for the top, which always is a folder.
    ///
    /// # Errors
    ///
    /// [`VfsError::Denied`] where reading is not allowed, [`ServiceError`] when the disk or SQLite fails.
    pub async fn stat(&self, path: &VfsPath) -> Result<Option<VfsEntry>, ServiceError> {
        if path.is_top() {
            return Ok(None);
        }
        let found = match &self.0 {
            FilesKind::Disk(files) => files.stat(path).await?,
            FilesKind::Scratch(files) => files.stat(path).await?,
            FilesKind::Vfs(files) => files.stat(path).await?,
        };
        Ok(found.filter(|entry| entry.kind != VfsKind::Whiteout))
    }

    /// Lists a folder by path.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when there is no such folder, otherwise as [`Files::stat`].
    pub async fn list(
        &self,
        folder: &VfsPath,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<VfsEntry>, ServiceError> {
        let whole = match &self.0 {
            FilesKind::Vfs(files) => return files.list(folder, after, limit).await,
            FilesKind::Disk(files) => {
                self.need_folder(folder).await?;
                files.list(folder).await?
            }
            FilesKind::Scratch(files) => {
                self.need_folder(folder).await?;
                files.list(folder).await?
            }
        };
        let after = after.unwrap_or_default();
        let rest = whole
            .into_iter()
            .filter(|entry| entry.path.as_str() > after)
            .take(limit.rows() as usize + 1);
        Ok(Page::cut(rest.collect(), limit, |entry| {
            entry.path.to_string()
        }))
    }

    /// Reads up to `most` bytes of a file from `offset` on, at most [`MAX_CALL_BYTES`]; none behind its end.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when there is no such file, otherwise as [`Files::stat`].
    pub async fn read(
        &self,
        path: &VfsPath,
        offset: u64,
        most: usize,
    ) -> Result<Vec<u8>, ServiceError> {
        let most = most.min(MAX_CALL_BYTES);
        match &self.0 {
            FilesKind::Disk(files) => {
                self.need_file(path).await?;
                files.read(path, offset, most).await
            }
            FilesKind::Scratch(files) => {
                self.need_file(path).await?;
                files.read(path, offset, most).await
            }
            FilesKind::Vfs(files) => files.read(path, offset, most).await,
        }
    }

    /// Copies a file to a sink, in bounded memory; gives its size.
    ///
    /// # Errors
    ///
    /// As [`Files::read`], and [`VfsError::Stream`] when the sink fails.
    pub async fn copy_to(
        &self,
        path: &VfsPath,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64, ServiceError> {
        match &self.0 {
            FilesKind::Disk(files) => {
                self.need_file(path).await?;
                files.copy_to(path, sink).await
            }
            FilesKind::Scratch(files) => {
                self.need_file(path).await?;
                files.copy_to(path, sink).await
            }
            FilesKind::Vfs(files) => files.copy_to(path, sink).await,
        }
    }

    /// Writes a file of these bytes in place of one that may be there; folders above it are made.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when a folder is there, a file is above, writing is not allowed, or the bytes are more than
    /// [`MAX_CALL_BYTES`]; [`ServiceError`] when the disk or SQLite fails.
    pub async fn write(
        &self,
        path: &VfsPath,
        bytes: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), ServiceError> {
        self.room_for_file(path).await?;
        match &self.0 {
            FilesKind::Disk(files) => files.write(path, bytes, mode).await,
            FilesKind::Scratch(files) => files.upper().write(path, bytes, mode).await.map(drop),
            FilesKind::Vfs(files) => files.write(path, bytes, mode).await.map(drop),
        }
    }

    /// Writes a file of what a source gives, in bounded memory. It appears whole, or not at all when the source fails.
    ///
    /// # Errors
    ///
    /// As [`Files::write`], and [`VfsError::Stream`] when the source fails.
    pub async fn write_from(
        &self,
        path: &VfsPath,
        source: &mut (impl AsyncRead + Unpin + Send),
        mode: WriteMode,
    ) -> Result<(), ServiceError> {
        self.room_for_file(path).await?;
        match &self.0 {
            FilesKind::Disk(files) => files.write_from(path, source, mode).await,
            FilesKind::Scratch(files) => {
                files.upper().write_from(path, source, mode).await.map(drop)
            }
            FilesKind::Vfs(files) => files.write_from(path, source, mode).await.map(drop),
        }
    }

    /// Writes at the end of a file; makes it, and folders above it, where it is missing.
    ///
    /// # Errors
    ///
    /// As [`Files::write`].
    pub async fn append(&self, path: &VfsPath, bytes: Vec<u8>) -> Result<(), ServiceError> {
        self.room_for_file(path).await?;
        match &self.0 {
            FilesKind::Disk(files) => files.append(path, bytes).await,
            FilesKind::Scratch(files) => files.append(path, bytes).await,
            FilesKind::Vfs(files) => files.append(path, bytes).await.map(drop),
        }
    }

    /// Makes a folder and those above it where they are missing.
    ///
    /// # Errors
    ///
    /// As [`Files::write`].
    pub async fn make_folder(&self, path: &VfsPath) -> Result<(), ServiceError> {
        self.room_below(path).await?;
        match &self.0 {
            FilesKind::Disk(files) => files.make_folder(path).await,
            FilesKind::Scratch(files) => files.upper().make_folder(path).await,
            FilesKind::Vfs(files) => files.make_folder(path).await,
        }
    }

    /// Gives a file, or a folder with all that is in it, another place. A file takes the place of a file; anything else in
    /// the way is refused.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when nothing is there, something is in the way, or a folder would go into itself; otherwise as
    /// [`Files::write`].
    pub async fn rename(&self, from: &VfsPath, to: &VfsPath) -> Result<(), ServiceError> {
        if let FilesKind::Vfs(files) = &self.0 {
            return files.rename(from, to).await;
        }
        refuse_top(from)?;
        refuse_top(to)?;
        let moved = self.need(from).await?;
        if from == to {
            return Ok(());
        }
        if to.is_below(from) {
            let (from, to) = (from.clone(), to.clone());
            return Err(VfsError::IntoItself { from, to }.into());
        }
        match self.stat(to).await? {
            None => self.room_below(&to.parent().unwrap_or_default()).await?,
            Some(there) if there.kind == VfsKind::File && moved.kind == VfsKind::File => {}
            Some(_) => return Err(VfsError::Taken { path: to.clone() }.into()),
        }
        match &self.0 {
            FilesKind::Disk(files) => files.rename(&moved, to).await,
            FilesKind::Scratch(files) => files.rename(&moved, to).await,
            FilesKind::Vfs(_) => Ok(()),
        }
    }

    /// Removes a file or folder; gives how many entries went.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when nothing is there, or a folder that is to go alone is not empty; otherwise as [`Files::write`].
    pub async fn remove(&self, path: &VfsPath, removal: Removal) -> Result<u64, ServiceError> {
        if let FilesKind::Vfs(files) = &self.0 {
            return files.remove(path, removal).await;
        }
        let is_folder = path.is_top() || self.need(path).await?.kind == VfsKind::Folder;
        if is_folder && removal == Removal::Alone {
            let one = PageLimit::from(1);
            let is_full = path.is_top() || !self.list(path, None, one).await?.items.is_empty();
            if is_full {
                return Err(VfsError::NotEmpty { path: path.clone() }.into());
            }
        }
        match &self.0 {
            FilesKind::Disk(files) => files.remove(path, is_folder).await,
            FilesKind::Scratch(files) => files.remove(path, is_folder).await,
            FilesKind::Vfs(_) => Ok(0),
        }
    }

    async fn need(&self, path: &VfsPath) -> Result<VfsEntry, ServiceError> {
        let found = self.stat(path).await?;
        Ok(found.ok_or_else(|| VfsError::NotFound { path: path.clone() })?)
    }

    async fn need_file(&self, path: &VfsPath) -> Result<(), ServiceError> {
        refuse_top(path)?;
        match self.need(path).await?.kind {
            VfsKind::File => Ok(()),
            _ => Err(VfsError::IsFolder { path: path.clone() }.into()),
        }
    }

    async fn need_folder(&self, path: &VfsPath) -> Result<(), ServiceError> {
        if path.is_top() || self.need(path).await?.kind == VfsKind::Folder {
            return Ok(());
        }
        Err(VfsError::NotFolder { path: path.clone() }.into())
    }

    /// A file may stand here: no folder does, and no file above it.
    async fn room_for_file(&self, path: &VfsPath) -> Result<(), ServiceError> {
        if matches!(self.0, FilesKind::Vfs(_)) {
            return Ok(());
        }
        refuse_top(path)?;
        if !self.may_look() {
            return Ok(());
        }
        if matches!(self.stat(path).await?, Some(entry) if entry.kind == VfsKind::Folder) {
            return Err(VfsError::IsFolder { path: path.clone() }.into());
        }
        self.room_below(&path.parent().unwrap_or_default()).await
    }

    /// A folder is here or may be made: it and all above it are no files.
    async fn room_below(&self, folder: &VfsPath) -> Result<(), ServiceError> {
        if matches!(self.0, FilesKind::Vfs(_)) || !self.may_look() {
            return Ok(());
        }
        let whole: BTreeSet<_> = folder.ancestors().chain([folder.clone()]).collect();
        for path in whole.into_iter().filter(|path| !path.is_top()) {
            match self.stat(&path).await? {
                None => return Ok(()),
                Some(entry) if entry.kind == VfsKind::Folder => {}
                Some(_) => return Err(VfsError::NotFolder { path }.into()),
            }
        }
        Ok(())
    }

    /// Who may only write is told nothing of what is there: the disk refuses by itself.
    fn may_look(&self) -> bool {
        match &self.0 {
            FilesKind::Disk(files) => files.access().reads(),
            FilesKind::Scratch(_) | FilesKind::Vfs(_) => true,
        }
    }
}
