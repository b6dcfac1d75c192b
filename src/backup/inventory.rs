//! Which archives lie in a folder. Of each only the list of contents is read, within the bounds of [`super::archive`].

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::BackupError;
use super::archive::Opened;
use super::manifest::{Manifest, MemberKind, Role};
use crate::fs::layout::{ARCHIVE_PREFIX, ARCHIVE_SUFFIX, SEALED_SUFFIX};
use crate::fs::{FsError, FsErrorKind, atomic};

/// Most archives of one folder: beyond it something else is wrong, and each costs a read.
const MAX_ARCHIVES: usize = 10_000;
/// How every gzip file begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file that is an archive, or has the name of one.
#[derive(Debug)]
pub struct Archive {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it says of itself, or why it cannot be read.
    pub contents: Result<Contents, BackupError>,
    identity: Identity,
}

/// What an archive's manifest says, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Identity of the backup.
    pub id: String,
    /// When it was begun.
    pub created_at_ms: i64,
    /// Release that wrote it.
    pub app_version: String,
    /// Whether secrets are inside.
    pub has_secrets: bool,
    /// How many databases are inside.
    pub databases: usize,
    /// Whether the control plane is among them.
    pub has_global: bool,
}

impl Contents {
    fn of(manifest: &Manifest) -> Self {
        let databases = manifest.members.iter();
        let databases = databases.filter(|member| member.kind == MemberKind::Database);
        Self {
            id: manifest.id.clone(),
            created_at_ms: manifest.created_at_ms,
            app_version: manifest.app_version.clone(),
            has_secrets: manifest.has_secrets,
            databases: databases.clone().count(),
            has_global: databases
                .map(|member| member.role)
                .any(|role| role == Some(Role::Global)),
        }
    }
}

/// Which file it is, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    bytes: u64,
}

impl Identity {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
        }
    }
}

/// Lists the archives of a folder by name, without those of folders in it. Links are passed over.
///
/// # Errors
///
/// [`BackupError::NoFolder`], or what the file system says. A file that cannot be read says so in its entry.
pub async fn inventory(folder: &Path) -> Result<Vec<Archive>, BackupError> {
    let folder = folder.to_owned();
    let listed = tokio::task::spawn_blocking(move || list(&folder));
    listed.await.map_err(|_| BackupError::Stopped)?
}

/// Reads an archive to its end and proves every digest. Its databases are not opened; [`super::verify()`] does that.
///
/// # Errors
///
/// [`BackupError::Damaged`] names the first thing that is wrong.
pub async fn read_through(archive: &Path) -> Result<(), BackupError> {
    let path = archive.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        Opened::open(&path, None)?.read_members(|_| None, |_, _| Ok(()))
    });
    read.await.map_err(|_| BackupError::Stopped)?
}

impl Archive {
    /// Deletes the file, if it is still the one that was listed; one that is gone already is fine.
    ///
    /// # Errors
    ///
    /// [`FsError`] when it cannot be removed, or another file has its name now.
    pub fn delete(&self) -> Result<(), FsError> {
        let deleted = self.delete_listed();
        match deleted {
            Err(error) if error.kind() == FsErrorKind::NotFound => Ok(()),
            deleted => deleted,
        }
    }

    fn delete_listed(&self) -> Result<(), FsError> {
        let meta = std::fs::symlink_metadata(&self.path);
        let meta = meta.map_err(FsError::at("look at", &self.path))?;
        if !meta.is_file() || Identity::of(&meta) != self.identity {
            let other = io::Error::other("another file has its name now");
            return Err(FsError::at("delete", &self.path)(other));
        }
        atomic::remove_file_synced(&self.path)
    }
}

fn list(folder: &Path) -> Result<Vec<Archive>, BackupError> {
    if !folder.is_dir() {
        return Err(BackupError::NoFolder {
            path: folder.to_owned(),
        });
    }
    let failed = |error: io::Error| FsError::at("list", folder)(error);
    let mut archives = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        archives.extend(look_at(path));
        if archives.len() > MAX_ARCHIVES {
            let text = format!("it holds more than {MAX_ARCHIVES} archives");
            return Err(failed(io::Error::other(text)).into());
        }
    }
    archives.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(archives)
}

/// `None` for what is no archive, and for what went away meanwhile.
fn look_at(path: PathBuf) -> Option<Archive> {
    let meta = std::fs::symlink_metadata(&path).ok()?;
    let has_name = has_archive_name(&path);
    if !meta.is_file() || !(has_name || is_gzip(&path)) {
        return None;
    }
    let contents = Opened::open(&path, None).map(|opened| Contents::of(opened.manifest()));
    // Any file may be gzip; only one that is named like an archive is missed when it is none.
    if matches!(contents, Err(BackupError::NoArchive { .. })) || (contents.is_err() && !has_name) {
        return None;
    }
    Some(Archive {
        path,
        bytes: meta.len(),
        contents,
        identity: Identity::of(&meta),
    })
}

fn has_archive_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let ends = [ARCHIVE_SUFFIX, SEALED_SUFFIX];
    name.starts_with(ARCHIVE_PREFIX.as_bytes())
        || ends.iter().any(|end| name.ends_with(end.as_bytes()))
}

fn is_gzip(path: &Path) -> bool {
    let mut start = [0; GZIP_MAGIC.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == GZIP_MAGIC
}
