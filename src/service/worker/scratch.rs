//! A layer in the database over a folder on disk, which stays as it is.
//!
//! Reads fall through to the disk, changes stay above. What is removed is hidden by a whiteout; a folder made anew where
//! one was removed is opaque, and hides all below it. A file of the disk that is appended to or renamed is copied up first.

use std::collections::BTreeMap;

use tokio::io::AsyncWrite;

use super::DiskFiles;
use crate::model::{PageLimit, VfsEntry, VfsKind, VfsPath};
use crate::service::ServiceError;
use crate::service::vfs::{Vfs, VfsError, WriteMode};

/// Most files and folders that renaming one folder copies up.
const MAX_COPIED: usize = 10_000;

/// Bytes that wait between reading a file and writing it.
const PIPE_BYTES: usize = 256 * 1024;

/// Files of a disk under a layer.
#[derive(Clone, Debug)]
pub struct ScratchFiles {
    upper: Vfs,
    lower: DiskFiles,
}

/// What the layer says of a place.
enum Upper {
    /// Here is something, or nothing on purpose.
    Says(Option<VfsEntry>),
    /// Ask the disk.
    Silent,
}

impl ScratchFiles {
    pub(super) fn new(upper: Vfs, lower: DiskFiles) -> Self {
        Self { upper, lower }
    }

    /// The layer, a tree of its own.
    #[must_use]
    pub fn upper(&self) -> &Vfs {
        &self.upper
    }

    /// Whether the layer hides what the disk has below the folders above a place.
    async fn is_hidden(&self, path: &VfsPath) -> Result<bool, ServiceError> {
        for above in path.ancestors() {
            match self.upper.row(&above).await? {
                None => return Ok(false),
                Some(row) if row.entry.kind != VfsKind::Folder || row.is_opaque => return Ok(true),
                Some(_) => {}
            }
        }
        Ok(false)
    }

    async fn ask_upper(&self, path: &VfsPath) -> Result<Upper, ServiceError> {
        Ok(match self.upper.row(path).await? {
            Some(row) if row.entry.kind == VfsKind::Whiteout => Upper::Says(None),
            Some(row) => Upper::Says(Some(row.entry)),
            None if self.is_hidden(path).await? => Upper::Says(None),
            None => Upper::Silent,
        })
    }

    pub(super) async fn stat(&self, path: &VfsPath) -> Result<Option<VfsEntry>, ServiceError> {
        match self.ask_upper(path).await? {
            Upper::Says(entry) => Ok(entry),
            Upper::Silent => self.lower.stat(path).await,
        }
    }

    /// All in a folder that is there, by path.
    pub(super) async fn list(&self, folder: &VfsPath) -> Result<Vec<VfsEntry>, ServiceError> {
        let row = self.upper.row(folder).await?;
        let is_opaque = row.is_some_and(|row| row.is_opaque) || self.is_hidden(folder).await?;
        let mut merged = BTreeMap::new();
        let is_below = folder.is_top()
            || matches!(self.lower.stat(folder).await?, Some(entry) if entry.kind == VfsKind::Folder);
        if !is_opaque && is_below {
            let lower = self.lower.list(folder).await?;
            merged.extend(lower.into_iter().map(|entry| (entry.path.clone(), entry)));
        }
        for entry in self.upper_in(folder).await? {
            if entry.kind == VfsKind::Whiteout {
                merged.remove(&entry.path);
            } else {
                merged.insert(entry.path.clone(), entry);
            }
        }
        Ok(merged.into_values().collect())
    }

    async fn upper_in(&self, folder: &VfsPath) -> Result<Vec<VfsEntry>, ServiceError> {
        let mut entries = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let limit = PageLimit::from(1_000);
            let page = self.upper.children(folder, after.as_deref(), limit).await?;
            entries.extend(page.items);
            after = page.next;
            if after.is_none() {
                return Ok(entries);
            }
        }
    }

    pub(super) async fn read(
        &self,
        path: &VfsPath,
        offset: u64,
        most: usize,
    ) -> Result<Vec<u8>, ServiceError> {
        match self.ask_upper(path).await? {
            Upper::Says(_) => self.upper.read(path, offset, most).await,
            Upper::Silent => self.lower.read(path, offset, most).await,
        }
    }

    pub(super) async fn copy_to(
        &self,
        path: &VfsPath,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64, ServiceError> {
        match self.ask_upper(path).await? {
            Upper::Says(_) => self.upper.copy_to(path, sink).await,
            Upper::Silent => self.lower.copy_to(path, sink).await,
        }
    }

    pub(super) async fn append(&self, path: &VfsPath, bytes: Vec<u8>) -> Result<(), ServiceError> {
        if let Upper::Silent = self.ask_upper(path).await?
            && let Some(below) = self.lower.stat(path).await?
        {
            self.copy(&below, path).await?;
        }
        self.upper.append(path, bytes).await.map(drop)
    }

    /// Copies a file that is seen here to a place of the layer.
    async fn copy(&self, from: &VfsEntry, to: &VfsPath) -> Result<(), ServiceError> {
        let mode = WriteMode {
            is_executable: from.is_executable,
        };
        if let Upper::Silent = self.ask_upper(&from.path).await? {
            let mut file = self.lower.open_file(&from.path).await?;
            return self.upper.write_from(to, &mut file, mode).await.map(drop);
        }
        let (mut write_end, mut read_end) = tokio::io::duplex(PIPE_BYTES);
        let out = async move {
            let copied = self.upper.copy_to(&from.path, &mut write_end).await;
            // Dropped here: the reader sees the end.
            drop(write_end);
            copied
        };
        let (copied, written) = tokio::join!(out, self.upper.write_from(to, &mut read_end, mode));
        copied?;
        written.map(drop)
    }

    /// The new place first, then the old one is hidden: a crash in between leaves both.
    pub(super) async fn rename(&self, from: &VfsEntry, to: &VfsPath) -> Result<(), ServiceError> {
        for entry in self.tree(from).await? {
            let place = entry.path.moved(&from.path, to).map_err(VfsError::Name)?;
            match entry.kind {
                VfsKind::Folder => self.upper.make_folder(&place).await?,
                _ => self.copy(&entry, &place).await?,
            }
        }
        let is_folder = from.kind == VfsKind::Folder;
        self.remove(&from.path, is_folder).await.map(drop)
    }

    /// An entry and all below it, folders before what is in them.
    async fn tree(&self, top: &VfsEntry) -> Result<Vec<VfsEntry>, ServiceError> {
        let mut found = vec![top.clone()];
        let mut next = 0;
        while next < found.len() {
            if found[next].kind == VfsKind::Folder {
                let folder = found[next].path.clone();
                found.extend(self.list(&folder).await?);
            }
            if found.len() > MAX_COPIED {
                return Err(VfsError::TooMany {
                    path: top.path.clone(),
                    limit: MAX_COPIED as u64,
                }
                .into());
            }
            next += 1;
        }
        Ok(found)
    }

    /// Removes what is seen here; gives how many entries went.
    pub(super) async fn remove(
        &self,
        path: &VfsPath,
        is_folder: bool,
    ) -> Result<u64, ServiceError> {
        let mut removed = 0;
        if path.is_top() {
            for entry in self.list(path).await? {
                let is_folder = entry.kind == VfsKind::Folder;
                removed += Box::pin(self.remove(&entry.path, is_folder)).await?;
            }
            return Ok(removed);
        }
        removed += 1;
        if is_folder {
            removed += self.count_below(path).await?;
        }
        // Whatever the layer has at the place itself, the folders above decide whether the disk shows through.
        let shows = !self.is_hidden(path).await? && self.lower.stat(path).await?.is_some();
        self.upper.hide(path, shows).await?;
        Ok(removed)
    }

    async fn count_below(&self, folder: &VfsPath) -> Result<u64, ServiceError> {
        let mut count = 0;
        let mut folders = vec![folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in self.list(&folder).await? {
                count += 1;
                if entry.kind == VfsKind::Folder {
                    folders.push(entry.path);
                }
            }
        }
        Ok(count)
    }
}
