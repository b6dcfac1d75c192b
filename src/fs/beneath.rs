//! Files below one folder and never outside of it, whatever links and names say.
//!
//! A path is resolved by the kernel in one step (`openat2` with `RESOLVE_BENEATH`), so that nobody can swap a folder for
//! a link between a check and its use. Links that stay inside are followed. What is made, renamed or removed is named
//! relative to the open folder it stands in, and a link there is replaced or removed itself, never followed.
//!
//! Where the kernel cannot (before Linux 5.6, other systems, some sandboxes), the path is walked folder by folder without
//! following any link: stricter, and as safe.
//!
//! Comparing canonical paths was left out: between the comparison and the use a link can be planted.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::FsError;
use super::atomic::TEMP_PREFIX;

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const PROGRAM_MODE: u32 = 0o700;
/// Permission bits that an overwritten file keeps.
const KEPT_MODE: u32 = 0o777;
/// Folders within folders that are removed at once: each holds a descriptor open.
const MAX_DEPTH: usize = 256;
/// The kernel gives up when somebody renames folders meanwhile; then it is asked again, this often.
const TRIES: usize = 16;

/// How a path is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the kernel, in one step.
    #[cfg(target_os = "linux")]
    Kernel,
    /// Folder by folder, without links.
    Walk,
}

/// A folder that nothing reached through it can leave.
#[derive(Debug)]
pub struct Beneath {
    top: OwnedFd,
    path: PathBuf,
    way: Way,
}

/// What stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whether it is a folder; else it is a regular file.
    pub is_folder: bool,
    /// Size of a file; 0 for a folder.
    pub size_bytes: u64,
    /// Whether its owner may start it.
    pub is_executable: bool,
    /// Last change of its bytes, Unix milliseconds.
    pub modified_at_ms: i64,
}

/// What becomes of a file that stands where another goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is replaced.
    Replace,
    /// It stays, and the call fails with `AlreadyExists`.
    Refuse,
}

impl Beneath {
    /// Opens an existing folder.
    ///
    /// # Errors
    ///
    /// [`FsError`] when it is no folder or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, FsError> {
        let top = rustix::fs::open(path, dir_flags(), Mode::empty())
            .map_err(|error| at("open folder", path, error))?;
        Ok(Self {
            way: way(&top),
            top,
            path: path.to_owned(),
        })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What stands at `place`; `None` for nothing, and for what is neither file nor folder.
    ///
    /// # Errors
    ///
    /// [`FsError`] when it cannot be looked at, of kind `Permission` when it leads outside.
    pub fn look(&self, place: &str) -> Result<Option<Found>, FsError> {
        match self.resolve(place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(found) => {
                let stat = rustix::fs::fstat(&found).map_err(self.at("look at", place))?;
                Ok(found_of(&stat))
            }
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(self.at("look at", place)(error)),
        }
    }

    /// Names and kinds in a folder, sorted by name. What leads outside, is neither file nor folder, or has a name that is
    /// not UTF-8 is left out.
    ///
    /// # Errors
    ///
    /// [`FsError`] when the folder cannot be read.
    pub fn list(&self, folder: &str) -> Result<Vec<(String, Found)>, FsError> {
        let failed = |error| self.at("list", folder)(error);
        let open = self.folder(folder)?;
        let mut items = Vec::new();
        for item in Dir::read_from(&open).map_err(failed)? {
            let item = item.map_err(failed)?;
            let Ok(name) = item.file_name().to_str() else {
                tracing::warn!(folder = %self.path.join(folder).display(), "a name that is not UTF-8 is left out");
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            // A name may be gone again by now, or lead outside: neither is here.
            if let Ok(Some(found)) = self.look(&joined(folder, name)) {
                items.push((name.to_owned(), found));
            }
        }
        items.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(items)
    }

    /// Opens a regular file to read.
    ///
    /// # Errors
    ///
    /// [`FsError`] when there is none or it cannot be opened, of kind `Permission` when it leads outside.
    pub fn open_file(&self, place: &str) -> Result<File, FsError> {
        // Without waiting: the other end of a pipe may never come.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self
            .resolve(place, flags, Mode::empty())
            .map_err(self.at("open", place))?;
        self.regular(file, place)
    }

    /// Creates a file that must not exist, open to write; folders above it must exist.
    ///
    /// # Errors
    ///
    /// [`FsError`] of kind `AlreadyExists` when the name is taken, also by a link; otherwise what went wrong.
    pub fn create_file(&self, place: &str, is_executable: bool) -> Result<File, FsError> {
        let (folder, name) = self.parent_of(place)?;
        let mode = if is_executable {
            PROGRAM_MODE
        } else {
            FILE_MODE
        };
        let file = rustix::fs::openat(&folder, name, create_flags(), Mode::from(mode))
            .map_err(self.at("create file", place))?;
        Ok(File::from(file))
    }

    /// Writes a file of these bytes, in place of one that may be there. After a crash the old or the new one is there.
    ///
    /// Missing folders are made. A file that is replaced leaves its permissions to the new one.
    ///
    /// # Errors
    ///
    /// [`FsError`] when any step fails; the old file is then untouched. A folder in its place is refused.
    pub fn write_file(
        &self,
        place: &str,
        bytes: &mut dyn Read,
        is_executable: bool,
    ) -> Result<u64, FsError> {
        let (temp, file) = self.begin_file(place, is_executable)?;
        let written = self
            .fill(file, bytes, place)
            .and_then(|count| self.end_file(&temp, place).map(|()| count));
        if written.is_err() {
            // The first error is the one to tell.
            let _ = self.remove_file(&temp);
        }
        written
    }

    /// Begins a file under a name of its own, in the folder it is for; missing folders are made. Gives that name's place.
    ///
    /// # Errors
    ///
    /// [`FsError`] when any step fails. A folder in its place is refused.
    pub fn begin_file(&self, place: &str, is_executable: bool) -> Result<(String, File), FsError> {
        let (above, _) = split(place);
        self.make_folders(above)?;
        let (folder, name) = self.parent_of(place)?;
        let mode = self.mode_for(&folder, name, is_executable, place)?;
        let temp = format!("{TEMP_PREFIX}{}", uuid::Uuid::new_v4().simple());
        let file = rustix::fs::openat(&folder, &temp, create_flags(), mode)
            .map_err(self.at("create file", place))?;
        // The process's mask may have taken bits that the file it replaces has.
        rustix::fs::fchmod(&file, mode).map_err(self.at("create file", place))?;
        Ok((joined(above, &temp), File::from(file)))
    }

    /// Gives a file that was begun and synced its name, in place of what is there.
    ///
    /// # Errors
    ///
    /// [`FsError`] when it cannot be renamed.
    pub fn end_file(&self, temp: &str, place: &str) -> Result<(), FsError> {
        let (folder, name) = self.parent_of(place)?;
        let (_, temp) = split(temp);
        rustix::fs::renameat(&folder, temp, &folder, name).map_err(self.at("replace", place))?;
        rustix::fs::fsync(&folder).map_err(self.at("sync folder of", place))
    }

    fn fill(&self, mut file: File, bytes: &mut dyn Read, place: &str) -> Result<u64, FsError> {
        let failed = |error| FsError::at("write", &self.path.join(place))(error);
        let count = io::copy(bytes, &mut file).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(count)
    }

    /// The permissions of a new file, or those of the regular file it replaces.
    fn mode_for(
        &self,
        folder: &OwnedFd,
        name: &str,
        is_executable: bool,
        place: &str,
    ) -> Result<Mode, FsError> {
        let new = if is_executable {
            PROGRAM_MODE
        } else {
            FILE_MODE
        };
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => Err(self.at("write", place)(Errno::ISDIR)),
                FileType::RegularFile => Ok(Mode::from(stat.st_mode & KEPT_MODE)),
                _ => Ok(Mode::from(new)),
            },
            Err(Errno::NOENT) => Ok(Mode::from(new)),
            Err(error) => Err(self.at("look at", place)(error)),
        }
    }

    /// Writes at the end of a file; makes it, and folders above it, where it is missing. Gives its new size.
    ///
    /// # Errors
    ///
    /// [`FsError`] when any step fails.
    pub fn append(&self, place: &str, bytes: &[u8]) -> Result<u64, FsError> {
        let (above, _) = split(place);
        self.make_folders(above)?;
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let file = self
            .resolve(place, flags, Mode::from(FILE_MODE))
            .map_err(self.at("open", place))?;
        let mut file = self.regular(file, place)?;
        let failed = |error| FsError::at("write", &self.path.join(place))(error);
        file.write_all(bytes).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        Ok(file.metadata().map_err(failed)?.len())
    }

    /// Makes a folder and those missing above it, each 0700.
    ///
    /// # Errors
    ///
    /// [`FsError`] when one cannot be made, or something else stands in the way.
    pub fn make_folders(&self, folder: &str) -> Result<(), FsError> {
        if folder.is_empty() || matches!(self.look(folder)?, Some(found) if found.is_folder) {
            return Ok(());
        }
        let ends = folder.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([folder.len()]) {
            let place = &folder[..end];
            let (parent, name) = self.parent_of(place)?;
            match rustix::fs::mkdirat(&parent, name, Mode::from(DIR_MODE)) {
                Ok(()) => rustix::fs::fsync(&parent).map_err(self.at("sync folder of", place))?,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(self.at("create folder", place)(error)),
            }
        }
        // What stood there already may be a file, or lead outside.
        self.folder(folder).map(|_| ())
    }

    /// Gives a file or folder another place; folders above that must exist.
    ///
    /// # Errors
    ///
    /// [`FsError`] when any step fails; of kind `AlreadyExists` where something is in the way.
    pub fn rename(&self, from: &str, to: &str, taken: Taken) -> Result<(), FsError> {
        let (old_folder, old) = self.parent_of(from)?;
        let (new_folder, new) = self.parent_of(to)?;
        let renamed = match taken {
            Taken::Replace => rustix::fs::renameat(&old_folder, old, &new_folder, new),
            Taken::Refuse => rename_new(&old_folder, old, &new_folder, new),
        };
        renamed.map_err(self.at("rename", from))?;
        rustix::fs::fsync(&new_folder).map_err(self.at("sync folder of", to))
    }

    /// Removes a file or link; what a link leads to stays.
    ///
    /// # Errors
    ///
    /// [`FsError`] when it is a folder or cannot be removed.
    pub fn remove_file(&self, place: &str) -> Result<(), FsError> {
        let (folder, name) = self.parent_of(place)?;
        rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(self.at("remove", place))?;
        rustix::fs::fsync(&folder).map_err(self.at("sync folder of", place))
    }

    /// Removes a folder with all that is in it; links in it are removed, what they lead to stays. Gives how many names
    /// went.
    ///
    /// # Errors
    ///
    /// [`FsError`] when a step fails; what was removed before is gone.
    pub fn remove_folder(&self, place: &str) -> Result<u64, FsError> {
        let (folder, name) = self.parent_of(place)?;
        let removed = remove_tree(&folder, name, 0).map_err(self.at("remove", place))?;
        rustix::fs::fsync(&folder).map_err(self.at("sync folder of", place))?;
        Ok(removed)
    }

    /// Removes all that is in the folder itself; gives how many names went.
    ///
    /// # Errors
    ///
    /// As [`Beneath::remove_folder`].
    pub fn remove_all(&self) -> Result<u64, FsError> {
        let mut removed = 0;
        for item in Dir::read_from(&self.top).map_err(self.at("list", ""))? {
            let item = item.map_err(self.at("list", ""))?;
            let name = item.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            removed += remove_any(&self.top, name, 0).map_err(self.at("remove what is in", ""))?;
        }
        rustix::fs::fsync(&self.top).map_err(self.at("sync folder of", ""))?;
        Ok(removed)
    }

    /// Opens a folder, to name things in it.
    fn folder(&self, place: &str) -> Result<OwnedFd, FsError> {
        let place_or_top = if place.is_empty() { "." } else { place };
        self.resolve(place_or_top, dir_flags(), Mode::empty())
            .map_err(self.at("open folder", place))
    }

    /// The open folder that `place` stands in, and its name there.
    fn parent_of<'a>(&self, place: &'a str) -> Result<(OwnedFd, &'a str), FsError> {
        let (above, name) = split(place);
        if matches!(name, "" | "." | "..") {
            return Err(self.at("name", place)(Errno::INVAL));
        }
        Ok((self.folder(above)?, name))
    }

    fn regular(&self, file: OwnedFd, place: &str) -> Result<File, FsError> {
        let stat = rustix::fs::fstat(&file).map_err(self.at("look at", place))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            FileType::Directory => Err(self.at("open", place)(Errno::ISDIR)),
            _ => Err(self.at("open", place)(Errno::INVAL)),
        }
    }

    fn resolve(&self, place: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        match self.way {
            #[cfg(target_os = "linux")]
            Way::Kernel => resolve_by_kernel(&self.top, place, flags, mode),
            Way::Walk => walk(&self.top, place, flags, mode),
        }
    }

    /// Names the place in a failure; what leads outside is said to.
    fn at(&self, action: &'static str, place: &str) -> impl FnOnce(Errno) -> FsError {
        let path = self.path.join(place);
        move |error| at(action, &path, error)
    }
}

fn at(action: &'static str, path: &Path, error: Errno) -> FsError {
    let source = match error {
        Errno::XDEV | Errno::LOOP => io::Error::new(
            io::ErrorKind::PermissionDenied,
            "a link on the way leads outside of the folder",
        ),
        other => other.into(),
    };
    FsError::at(action, path)(source)
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

fn create_flags() -> OFlags {
    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn split(place: &str) -> (&str, &str) {
    place.rsplit_once('/').unwrap_or(("", place))
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

fn found_of(stat: &Stat) -> Option<Found> {
    let is_folder = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => true,
        FileType::RegularFile => false,
        _ => return None,
    };
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Some(Found {
        is_folder,
        size_bytes: if is_folder { 0 } else { size },
        is_executable: !is_folder && stat.st_mode & 0o100 != 0,
        modified_at_ms: stat.st_mtime.saturating_mul(1_000) + nanos / 1_000_000,
    })
}

#[cfg(target_os = "linux")]
fn way(top: &OwnedFd) -> Way {
    match resolve_by_kernel(top, ".", dir_flags(), Mode::empty()) {
        // Sandboxes that have not heard of the call say that it is not permitted.
        Err(Errno::NOSYS | Errno::PERM) => Way::Walk,
        _ => Way::Kernel,
    }
}

#[cfg(not(target_os = "linux"))]
fn way(_: &OwnedFd) -> Way {
    Way::Walk
}

#[cfg(target_os = "linux")]
fn resolve_by_kernel(
    top: &OwnedFd,
    place: &str,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut last = Errno::AGAIN;
    for _ in 0..TRIES {
        match openat2(top, place, flags, mode, resolve) {
            Err(error @ (Errno::AGAIN | Errno::INTR)) => last = error,
            other => return other,
        }
    }
    Err(last)
}

/// Follows names one by one; a link anywhere ends the walk with `LOOP`.
fn walk(top: &OwnedFd, place: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let (above, last) = split(place);
    let mut folder = rustix::fs::openat(top, ".", dir_flags(), Mode::empty())?;
    for name in above.split('/').filter(|name| !name.is_empty()) {
        folder = step(&folder, name, dir_flags(), Mode::empty())?;
    }
    if last == "." && above.is_empty() {
        return Ok(folder);
    }
    step(&folder, last, flags, mode)
}

fn step(folder: &OwnedFd, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    if matches!(name, "" | "." | "..") {
        return Err(Errno::INVAL);
    }
    let is_link = |fd: &OwnedFd| {
        rustix::fs::fstat(fd)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    let opened = rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, mode);
    match opened {
        // With `PATH` the link itself is opened.
        Ok(fd) if is_link(&fd) => Err(Errno::LOOP),
        // Some kernels say that a link is no folder.
        Err(Errno::NOTDIR) if names_link(folder, name) => Err(Errno::LOOP),
        other => other,
    }
}

fn names_link(folder: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

/// Renames without replacing; where the filesystem cannot promise that, it is looked first.
fn rename_new(
    old_folder: &OwnedFd,
    old: &str,
    new_folder: &OwnedFd,
    new: &str,
) -> Result<(), Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(old_folder, old, new_folder, new, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {}
            other => return other,
        }
    }
    match rustix::fs::statat(new_folder, new, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(old_folder, old, new_folder, new),
        Err(error) => Err(error),
    }
}

/// Removes a name, with all below it when it is a folder.
fn remove_any(folder: &OwnedFd, name: &CStr, depth: usize) -> Result<u64, Errno> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => Ok(1),
        // Linux says that it is a folder, others that it is not permitted.
        Err(Errno::ISDIR | Errno::PERM) => {
            let name = name.to_str().map_err(|_| Errno::ILSEQ)?;
            remove_tree(folder, name, depth)
        }
        Err(error) => Err(error),
    }
}

fn remove_tree(folder: &OwnedFd, name: &str, depth: usize) -> Result<u64, Errno> {
    if depth > MAX_DEPTH {
        return Err(Errno::NAMETOOLONG);
    }
    let open = rustix::fs::openat(folder, name, dir_flags() | OFlags::NOFOLLOW, Mode::empty())?;
    let mut removed = 0;
    for item in Dir::read_from(open.as_fd())? {
        let item = item?;
        let inner = item.file_name();
        if matches!(inner.to_bytes(), b"." | b"..") {
            continue;
        }
        removed += remove_any(&open, inner, depth + 1)?;
    }
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?;
    Ok(removed + 1)
}

#[cfg(test)]
mod tests;
