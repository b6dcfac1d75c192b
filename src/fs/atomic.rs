//! Files and folders that are private from birth, and changes that are whole or absent after a crash.
//!
//! Modes are given to the call that creates: a chmod afterwards leaves a moment in which others can read. A process
//! of the superuser gives what it creates to the owner of the folder it creates it in, so that a run under `sudo`
//! leaves nothing behind that its user cannot open.
//!
//! Nothing here replaces a file unless it says so: only [`write_private`] does.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

pub use self::rename::{persist_new, rename_synced};
use super::FsError;

mod rename;

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const PROGRAM_MODE: u32 = 0o700;
const COPY_BUFFER_BYTES: usize = 256 * 1024;

/// How the names of all temporary files begin; a file of such a name is left over from a killed process.
pub const TEMP_PREFIX: &str = ".zeroclaw-tmp-";

/// Tells whether a file name is one of [`private_temp_in`].
#[must_use]
pub fn is_temp_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes())
}

/// Creates a folder and those missing above it, each 0700 and synced into its parent. Existing ones are left alone.
///
/// # Errors
///
/// [`FsError`] when a folder cannot be made, or something that is not a folder stands in the way.
pub fn create_dir_private(path: &Path) -> Result<(), FsError> {
    let mut missing = Vec::new();
    let mut existing = path;
    while !is_dir(existing)? {
        missing.push(existing);
        existing = parent(existing);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let owner = inherited_owner(existing)?;
    for folder in missing.into_iter().rev() {
        create_one_dir(folder, owner)?;
        sync_dir(parent(folder))?;
    }
    Ok(())
}

/// Creates a file that must not exist, mode 0600, open for reading and writing.
///
/// # Errors
///
/// [`FsError`] of kind `AlreadyExists` when the name is taken, also by a dangling link; otherwise what went wrong.
pub fn create_file_private(path: &Path) -> Result<File, FsError> {
    create_file(path, FILE_MODE)
}

/// Creates a program that must not exist, mode 0700, open for reading and writing.
///
/// # Errors
///
/// As [`create_file_private`].
pub fn create_program_private(path: &Path) -> Result<File, FsError> {
    create_file(path, PROGRAM_MODE)
}

fn create_file(path: &Path, mode: u32) -> Result<File, FsError> {
    let owner = inherited_owner(parent(path))?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(FsError::at("create file", path))?;
    give_to(&file, owner, path)?;
    Ok(file)
}

/// Makes sure that a private file exists before another library opens it; an existing one is left alone.
///
/// SQLite gives `-wal`, `-shm` and `-journal` the mode of their database, so this decides theirs too.
///
/// # Errors
///
/// [`FsError`] when the file does not exist and cannot be made.
pub fn precreate_private(path: &Path) -> Result<(), FsError> {
    match create_file_private(path) {
        Ok(_) => sync_dir(parent(path)),
        Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates a private file of a name of its own in `dir`; it goes when the handle is dropped before it is persisted.
///
/// # Errors
///
/// [`FsError`] when the file cannot be made.
pub fn private_temp_in(dir: &Path) -> Result<NamedTempFile, FsError> {
    let owner = inherited_owner(dir)?;
    let temp = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .tempfile_in(dir)
        .map_err(FsError::at("create a temporary file in", dir))?;
    give_to(temp.as_file(), owner, temp.path())?;
    Ok(temp)
}

/// Writes a private file of these bytes in place of what is there. After a crash the old or the new content is there.
///
/// # Errors
///
/// [`FsError`] when any step fails; the old file is then untouched and no temporary file remains.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    let mut temp = private_temp_in(parent(path))?;
    temp.write_all(bytes).map_err(FsError::at("write", path))?;
    temp.as_file()
        .sync_all()
        .map_err(FsError::at("sync", path))?;
    temp.persist(path)
        .map_err(|error| FsError::at("replace", path)(error.error))?;
    sync_dir(parent(path))
}

/// Makes the names in a folder durable.
///
/// # Errors
///
/// [`FsError`] when the folder cannot be opened or synced.
pub fn sync_dir(dir: &Path) -> Result<(), FsError> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    match synced {
        // Some FUSE and shared-folder filesystems cannot sync a folder and say EINVAL: nothing better can be done there.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
        other => other.map_err(FsError::at("sync folder", dir)),
    }
}

/// Removes a file that must exist, and makes that durable.
///
/// # Errors
///
/// [`FsError`] when the file cannot be removed or its folder not synced.
pub fn remove_file_synced(path: &Path) -> Result<(), FsError> {
    fs::remove_file(path).map_err(FsError::at("remove", path))?;
    sync_dir(parent(path))
}

/// Copies a regular file to a new private one, synced; gives the bytes copied and their SHA-256.
///
/// Of a file that grows meanwhile goes along what there was when it was opened: a log may grow faster than it is read.
///
/// # Errors
///
/// [`FsError`] of kind `AlreadyExists` when `to` exists; otherwise what went wrong, and the part copied is removed.
pub fn copy_private(from: &Path, to: &Path) -> Result<(u64, [u8; 32]), FsError> {
    let sum = copy_scratch(from, to)?;
    let synced = open_regular(to)
        .and_then(|(copy, _)| sync_file(&copy, to))
        .and_then(|()| sync_dir(parent(to)));
    if let Err(error) = synced {
        let _ = fs::remove_file(to);
        return Err(error);
    }
    Ok(sum)
}

/// The same without waiting for the disk, for copies that a crash may take: two syncs a file made
/// 10,000 small ones cost most of a minute.
///
/// # Errors
///
/// As [`copy_private`].
pub fn copy_scratch(from: &Path, to: &Path) -> Result<(u64, [u8; 32]), FsError> {
    let (source, meta) = open_regular(from)?;
    let mut source = source.take(meta.len());
    let mut copy = create_file_private(to)?;
    let copied = copy_hashed(&mut source, from, &mut copy, to);
    if copied.is_err() {
        // The first error is the one to tell; a part that cannot be removed either does not change it.
        let _ = fs::remove_file(to);
    }
    copied
}

/// Reads a regular file to its end; gives its bytes and their SHA-256.
///
/// # Errors
///
/// [`FsError`] when the file is not a regular one or cannot be read.
pub fn hash_file(path: &Path) -> Result<(u64, [u8; 32]), FsError> {
    let (mut file, _) = open_regular(path)?;
    copy_hashed(&mut file, path, &mut io::sink(), path)
}

/// The folder a path stands in; `.` for a bare name.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

fn is_dir(path: &Path) -> Result<bool, FsError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(FsError::at("create folder", path)(
            io::ErrorKind::NotADirectory.into(),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FsError::at("look at", path)(error)),
    }
}

fn create_one_dir(path: &Path, owner: Option<Owner>) -> Result<(), FsError> {
    match DirBuilder::new().mode(DIR_MODE).create(path) {
        Ok(()) => {}
        // Another process was faster; a dangling link is no folder and stays an error.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
            return Ok(());
        }
        Err(error) => return Err(FsError::at("create folder", path)(error)),
    }
    if owner.is_some() {
        let dir = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::DIRECTORY).bits().cast_signed())
            .open(path)
            .map_err(FsError::at("open folder", path))?;
        give_to(&dir, owner, path)?;
    }
    Ok(())
}

/// User and group that something new should belong to.
#[derive(Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

/// The owner of `dir` when the superuser creates in somebody else's folder; otherwise the system's choice stands.
fn inherited_owner(dir: &Path) -> Result<Option<Owner>, FsError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let metadata = fs::metadata(dir).map_err(FsError::at("look at", dir))?;
    let owner = Owner {
        uid: metadata.uid(),
        gid: metadata.gid(),
    };
    Ok(Some(owner).filter(|owner| owner.uid != 0))
}

/// Works on the open handle: a path could have been swapped for a link meanwhile.
fn give_to(file: &File, owner: Option<Owner>, path: &Path) -> Result<(), FsError> {
    match owner {
        Some(Owner { uid, gid }) => fchown(file, Some(uid), Some(gid))
            .map_err(FsError::at("hand over to the owner of the folder", path)),
        None => Ok(()),
    }
}

fn sync_file(file: &File, path: &Path) -> Result<(), FsError> {
    file.sync_all().map_err(FsError::at("sync", path))
}

/// Opens a regular file to read; refuses links and everything whose opening could block or act.
///
/// # Errors
///
/// [`FsError`] when the file is not a regular one or cannot be opened.
pub fn open_regular(path: &Path) -> Result<(File, Metadata), FsError> {
    let refuse = || {
        FsError::at("read", path)(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    };
    if !fs::symlink_metadata(path)
        .map_err(FsError::at("look at", path))?
        .is_file()
    {
        return Err(refuse());
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
        .map_err(FsError::at("open", path))?;
    let metadata = file.metadata().map_err(FsError::at("look at", path))?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(refuse())
    }
}

fn copy_hashed(
    source: &mut impl Read,
    from: &Path,
    sink: &mut impl Write,
    to: &Path,
) -> Result<(u64, [u8; 32]), FsError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; COPY_BUFFER_BYTES];
    let mut total = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => return Ok((total, hash.finalize().into())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(FsError::at("read", from)(error)),
        };
        let part = &buffer[..read];
        hash.update(part);
        sink.write_all(part).map_err(FsError::at("write", to))?;
        total += read as u64;
    }
}

#[cfg(test)]
mod tests;
