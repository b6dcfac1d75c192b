//! Copying a tree out to a disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::{Vfs, VfsError};
use crate::fs::{Beneath, FsError, atomic};
use crate::model::{PageLimit, VfsKind, VfsPath};
use crate::service::ServiceError;
use crate::service::error::InDb;
use crate::store::agent::vfs as rows;

/// What an export wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfsExport {
    /// The tree.
    pub namespace: String,
    /// What of it was wanted.
    pub path: VfsPath,
    /// Where it lies now.
    pub target: PathBuf,
    /// Files written.
    pub files: u64,
    /// Folders made, besides the target.
    pub folders: u64,
    /// Size of the files together.
    pub bytes: u64,
}

impl Vfs {
    /// Copies a folder with all below it, or one file, as they are at one instant, into an empty or new folder of a disk.
    ///
    /// Nothing is overwritten, and nothing can be written outside of the target, whatever somebody plants in it
    /// meanwhile. When it fails half way, what was written stays, to be looked at.
    ///
    /// # Errors
    ///
    /// [`VfsError`] when there is nothing at the path or the target holds something, [`ServiceError`] when reading or
    /// writing fails.
    pub async fn export(&self, path: &VfsPath, target: &Path) -> Result<VfsExport, ServiceError> {
        let top = match self.row(path).await? {
            _ if path.is_top() => None,
            Some(row) if row.entry.kind != VfsKind::Whiteout => Some(row),
            _ => return Err(VfsError::NotFound { path: path.clone() }.into()),
        };
        let mut report = VfsExport {
            namespace: self.namespace().to_string(),
            path: path.clone(),
            target: target.to_owned(),
            files: 0,
            folders: 0,
            bytes: 0,
        };
        let disk = Arc::new(open_empty(target).await?);
        let mut conn = self.db.read_instant().await?;
        if let Some(row) = top.filter(|row| row.entry.kind == VfsKind::File) {
            let name = path.name().to_owned();
            report.bytes = self.write_out(&mut conn, &row, &disk, name).await?;
            report.files = 1;
            return Ok(report);
        }
        let mut after: Option<String> = None;
        loop {
            let page = rows::list_below(
                &mut conn,
                self.namespace().as_str(),
                path,
                after.as_deref(),
                PageLimit::default(),
            );
            let page = page.await.in_db(&self.db)?;
            for entry in &page.items {
                let place = entry.path.within(path).to_owned();
                match entry.kind {
                    VfsKind::Whiteout => {}
                    VfsKind::Folder => {
                        let disk = Arc::clone(&disk);
                        blocking(target, move || disk.make_folders(&place)).await?;
                        report.folders += 1;
                    }
                    VfsKind::File => {
                        let row = rows::get(&mut conn, self.namespace().as_str(), &entry.path);
                        let row = super::file(row.await.in_db(&self.db)?, &entry.path)?;
                        report.bytes += self.write_out(&mut conn, &row, &disk, place).await?;
                        report.files += 1;
                    }
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(report);
            }
        }
    }

    async fn write_out(
        &self,
        conn: &mut crate::db::Connection,
        row: &rows::EntryRow,
        disk: &Arc<Beneath>,
        place: String,
    ) -> Result<u64, ServiceError> {
        let is_executable = row.entry.is_executable;
        let at = disk.path().join(&place);
        let file = {
            let disk = Arc::clone(disk);
            blocking(&at, move || disk.create_file(&place, is_executable)).await?
        };
        let mut file = tokio::fs::File::from_std(file);
        let bytes = self.pour(conn, row, &mut file).await?;
        file.shutdown().await.map_err(FsError::at("write", &at))?;
        file.sync_all().await.map_err(FsError::at("sync", &at))?;
        Ok(bytes)
    }
}

/// Opens a folder with nothing in it; one that is not there is made.
async fn open_empty(target: &Path) -> Result<Beneath, ServiceError> {
    let path = target.to_owned();
    let is_taken = VfsError::TargetTaken {
        path: target.to_owned(),
    };
    let opened = blocking(target, move || {
        if path.symlink_metadata().is_ok() && !path.is_dir() {
            return Ok(None);
        }
        atomic::create_dir_private(&path)?;
        let is_empty = std::fs::read_dir(&path)
            .map_err(FsError::at("list", &path))?
            .next()
            .is_none();
        if is_empty {
            Beneath::open(&path).map(Some)
        } else {
            Ok(None)
        }
    });
    opened.await?.ok_or_else(|| is_taken.into())
}

/// Runs what waits for a disk where waiting is no harm.
pub(in crate::service) async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, FsError> + Send + 'static,
) -> Result<T, ServiceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(FsError::at("work on", path)(std::io::Error::other(error)).into()),
    }
}
