//! Moves that never replace anything, within a filesystem and across two.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::{
    DIR_MODE, FILE_MODE, copy_hashed, create_dir_private, hash_file, open_regular, parent,
    private_temp_in, remove_file_synced, sync_dir, sync_file,
};
use crate::fs::FsError;

/// Gives the finished file `temp` its final name on the same filesystem, and never replaces anything.
///
/// Both folders are synced; `temp` is gone afterwards. A crash between leaves both names of one file.
///
/// # Errors
///
/// [`FsError`] of kind `AlreadyExists` when `dest` exists; otherwise what went wrong. `temp` is then still there.
pub fn persist_new(temp: &Path, dest: &Path) -> Result<(), FsError> {
    File::open(temp)
        .and_then(|file| file.sync_all())
        .map_err(FsError::at("sync", temp))?;
    rename_no_replace(temp, dest).map_err(FsError::at("create file", dest))?;
    sync_both(parent(temp), parent(dest))
}

/// Moves a file or folder, makes the folders above its new place, and never replaces anything.
///
/// On another filesystem a regular file is copied, synced and read back before the old one goes; anything else is
/// refused there.
///
/// # Errors
///
/// [`FsError`] of kind `AlreadyExists` when `to` exists; otherwise what went wrong. `from` is then still there.
pub fn rename_synced(from: &Path, to: &Path) -> Result<(), FsError> {
    create_dir_private(parent(to))?;
    match rename_no_replace(from, to) {
        Ok(()) => sync_both(parent(from), parent(to)),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => move_across(from, to),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(FsError::at("move to", to)(error))
        }
        Err(error) => Err(FsError::at("move", from)(error)),
    }
}

fn sync_both(from: &Path, to: &Path) -> Result<(), FsError> {
    // The new name first: after a crash between, the file has two names rather than none.
    sync_dir(to)?;
    if from == to { Ok(()) } else { sync_dir(from) }
}

/// Renames in one step of the kernel where it can refuse to replace, else in two that cannot replace either.
fn rename_no_replace(from: &Path, to: &Path) -> io::Result<()> {
    match rename_exclusive(from, to) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_by_link(from, to),
        other => other.map_err(io::Error::from),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_exclusive(from: &Path, to: &Path) -> Result<(), Errno> {
    rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_exclusive(_from: &Path, _to: &Path) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

pub(super) fn rename_by_link(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(from)?.is_dir() {
        return rename_dir(from, to);
    }
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if is_without_links(&error) => rename_over_placeholder(from, to),
        Err(error) => Err(error),
    }
}

/// FAT and many shared folders have no hard links; Linux says EPERM for them.
fn is_without_links(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::Unsupported,
        io::ErrorKind::TooManyLinks,
    ];
    kinds.contains(&error.kind())
}

pub(super) fn rename_over_placeholder(from: &Path, to: &Path) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(to)?;
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

/// A rename replaces an empty folder, so an empty folder made here reserves the name and refuses an existing one.
fn rename_dir(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIR_MODE).create(to)?;
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_dir(to);
    })
}

/// Copies beside the destination, proves the copy, names it, and only then removes the source.
pub(super) fn move_across(from: &Path, to: &Path) -> Result<(), FsError> {
    let (mut source, before) = open_regular(from)?;
    let temp = private_temp_in(parent(to))?;
    let mut copy = temp.as_file();
    let written = copy_hashed(&mut source, from, &mut copy, temp.path())?;
    if let Ok(modified) = before.modified() {
        temp.as_file()
            .set_modified(modified)
            .map_err(FsError::at("set the time of", to))?;
    }
    sync_file(temp.as_file(), to)?;

    let length = fs::metadata(from)
        .map_err(FsError::at("look at", from))?
        .len();
    if hash_file(temp.path())? != written || length != written.0 {
        return Err(FsError::at("prove the copy of", from)(
            io::ErrorKind::InvalidData.into(),
        ));
    }
    let temp: PathBuf = temp
        .into_temp_path()
        .keep()
        .map_err(|error| FsError::at("keep", to)(error.error))?;
    if let Err(error) = persist_new(&temp, to) {
        let _ = fs::remove_file(&temp);
        return Err(error);
    }
    remove_file_synced(from)
}
