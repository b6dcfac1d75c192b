//! Who may write a root: a lock of the operating system on one file.
//!
//! The lock is the truth, and it goes with its process however that ends. The text in the file only tells people
//! who holds it. A new file of the same name would carry a second lock, so whoever has a lock looks whether its file
//! still has the name; only where a root is to vanish without a trace is the file removed, under its lock.
//!
//! Taking a lock may block the thread; asynchronous callers go through `spawn_blocking`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::{FsError, FsErrorKind, Layout, atomic, process};

/// Pause between two tries for a lock that is held: short to a person, nothing to a processor.
const POLL: Duration = Duration::from_millis(25);
/// More than any text ever written; a longer one was not written by this product.
const MAX_TEXT_BYTES: u64 = 4096;

/// What the holder of a root is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HolderKind {
    /// The daemon, for its life.
    Daemon,
    /// A command, for its moment.
    Cli,
    /// An import run.
    Doctor,
    /// A backup that writes its record.
    Backup,
    /// A restore.
    Restore,
}

impl HolderKind {
    /// The word in the lock's text.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daemon => "daemon",
            Self::Cli => "cli",
            Self::Doctor => "doctor",
            Self::Backup => "backup",
            Self::Restore => "restore",
        }
    }
}

/// Who asks for a root.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// What it is about to do.
    pub kind: HolderKind,
    /// Since when, in Unix milliseconds.
    pub since_ms: i64,
}

/// What the holder wrote into the lock file, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockText {
    /// See [`HolderKind::as_str`]; other releases may know other words.
    pub kind: String,
    /// The process.
    pub pid: u32,
    /// Start of the process in clock ticks since boot, where the system tells.
    #[serde(default)]
    pub start_ticks: Option<u64>,
    /// The boot of the machine, where the system tells.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// Release of the program.
    pub version: String,
    /// Since when, in Unix milliseconds.
    pub since_ms: i64,
}

impl LockText {
    fn of(holder: Holder) -> Self {
        let own = process::own();
        Self {
            kind: holder.kind.as_str().to_owned(),
            pid: own.pid,
            start_ticks: own.start_ticks,
            boot_id: own.boot_id,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since_ms: holder.since_ms,
        }
    }
}

impl SharedLock {
    /// Whether no writer lives: the lock is held against them, or nobody ever wrote this root.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        !matches!(self, Self::WriterAlive(_))
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another holder lives.
    #[error("{} is held by {}{}", path.display(), describe(holder.as_deref()), after(*waited))]
    Held {
        /// The lock file.
        path: PathBuf,
        /// What its text says, if it can be read.
        holder: Option<Box<LockText>>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The lock file could not be used.
    #[error(transparent)]
    Fs(#[from] FsError),
}

fn describe(holder: Option<&LockText>) -> String {
    match holder {
        Some(text) => format!("{} (pid {}, version {})", text.kind, text.pid, text.version),
        None => "another process".to_owned(),
    }
}

fn after(waited: Duration) -> String {
    if waited.is_zero() {
        String::new()
    } else {
        format!(", waited {:.1} s", waited.as_secs_f64())
    }
}

/// The right to write a root. Ends when dropped.
#[derive(Debug)]
pub struct RootLock {
    file: File,
}

/// What a command that only looks learns from the lock.
#[derive(Debug)]
pub enum SharedLock {
    /// Nobody ever wrote this root; the file is not made.
    NoFile,
    /// No writer lives, and none can start until this is dropped.
    Held(File),
    /// A writer lives; its text, if it can be read.
    WriterAlive(Option<LockText>),
}

impl RootLock {
    /// Takes the root for writing, or says at once who has it. Makes the state folder and the lock file if missing.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] when anybody holds the lock, also for reading; [`LockError::Fs`] when the file cannot be used.
    pub fn try_exclusive(layout: &Layout, holder: Holder) -> Result<Self, LockError> {
        Self::exclusive(layout, holder, Duration::ZERO)
    }

    /// Takes the root for writing, waiting up to `wait` for its holder to let go.
    ///
    /// # Errors
    ///
    /// As [`try_exclusive`](Self::try_exclusive), after `wait`.
    pub fn exclusive(layout: &Layout, holder: Holder, wait: Duration) -> Result<Self, LockError> {
        let path = layout.daemon_lock();
        atomic::create_dir_private(&layout.state_dir())?;
        let mut file = lock_named(&path, wait)?;

        write_text(&mut file, &LockText::of(holder)).map_err(FsError::at("write", &path))?;
        Ok(Self { file })
    }

    /// Removes the lock files of a root that holds no state any more, and lets go.
    ///
    /// # Errors
    ///
    /// [`FsError`] when a file cannot be removed.
    pub fn remove(self, layout: &Layout) -> Result<(), FsError> {
        for path in [layout.migrate_lock(), layout.daemon_lock()] {
            match atomic::remove_file_synced(&path) {
                Err(error) if error.kind() != FsErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps writers out while a command looks. Makes nothing, waits for nobody.
    ///
    /// # Errors
    ///
    /// [`LockError::Fs`] when the lock file exists and cannot be used.
    pub fn shared_if_present(layout: &Layout) -> Result<SharedLock, LockError> {
        let path = layout.daemon_lock();
        let mut file = match no_follow().read(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SharedLock::NoFile),
            Err(error) => return Err(FsError::at("open", &path)(error).into()),
        };
        match file.try_lock_shared() {
            // Removed since it was opened: there is no root any more.
            Ok(()) if !has_name(&file, &path)? => Ok(SharedLock::NoFile),
            Ok(()) => Ok(SharedLock::Held(file)),
            Err(TryLockError::WouldBlock) => Ok(SharedLock::WriterAlive(read_text(&mut file))),
            Err(TryLockError::Error(error)) => Err(FsError::at("lock", &path)(error).into()),
        }
    }
}

impl Drop for RootLock {
    fn drop(&mut self) {
        // A text without a lock then means that its writer was killed. Nothing depends on it, so failing is no harm.
        let _ = self.file.set_len(0);
    }
}

/// A lock around one piece of work, such as a schema migration. Ends when dropped.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock on `path`, waiting up to `wait`. Makes the file if missing; its folder must exist.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] after `wait`; [`LockError::Fs`] when the file cannot be used.
    pub fn exclusive(path: &Path, wait: Duration) -> Result<Self, LockError> {
        let file = lock_named(path, wait)?;
        Ok(Self { _file: file })
    }
}

/// A lock file that is a link would put the lock, and the text, somewhere else.
fn no_follow() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

fn open_for_writing(path: &Path) -> Result<File, FsError> {
    atomic::precreate_private(path)?;
    no_follow()
        .read(true)
        .write(true)
        .open(path)
        .map_err(FsError::at("open", path))
}

/// Opens and locks the file that has the name once the lock is there: one that was removed while it was waited for
/// would keep nobody out.
fn lock_named(path: &Path, wait: Duration) -> Result<File, LockError> {
    loop {
        let mut file = open_for_writing(path)?;
        lock_within(&mut file, path, wait)?;
        if has_name(&file, path)? {
            return Ok(file);
        }
    }
}

/// Whether an open file is still the one of that name.
fn has_name(file: &File, path: &Path) -> Result<bool, FsError> {
    let here = file.metadata().map_err(FsError::at("look at", path))?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((here.dev(), here.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FsError::at("look at", path)(error)),
    }
}

fn lock_within(file: &mut File, path: &Path, wait: Duration) -> Result<(), LockError> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(FsError::at("lock", path)(error).into()),
            Err(TryLockError::WouldBlock) => {}
        }
        let left = wait.saturating_sub(start.elapsed());
        if left.is_zero() {
            let waited = if wait.is_zero() {
                wait
            } else {
                start.elapsed()
            };
            return Err(LockError::Held {
                path: path.to_path_buf(),
                holder: read_text(file).map(Box::new),
                waited,
            });
        }
        thread::sleep(left.min(POLL));
    }
}

fn write_text(file: &mut File, text: &LockText) -> io::Result<()> {
    let mut line = serde_json::to_vec(text)?;
    line.push(b'\n');
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&line)
}

/// Gives `None` for a text that is missing, half written or foreign: it only helps people.
fn read_text(file: &mut File) -> Option<LockText> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).ok()?;
    file.take(MAX_TEXT_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests;
