//! Which process holds the lock of a database, as far as the system tells without anything being opened.
//!
//! SQLite locks ranges of bytes: in a database with a write-ahead log the writer has one of the `-shm` file, else one
//! far behind the database's end (<https://www.sqlite.org/walformat.html>, section 2.3.1; `os.h`, PENDING_BYTE). Linux
//! lists all such locks in `/proc/locks`; opening the files to ask would drop this process's own.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

use super::sidecars;

/// Byte of the `-shm` file that a writer has.
const WAL_WRITE_LOCK: u64 = 120;
/// Byte that a writer has where there is no log: RESERVED, one behind PENDING.
const RESERVED_BYTE: u64 = 0x4000_0001;

/// The process that has the right to write a database: its number and, where it can be read, its name.
///
/// `None` where nobody has it any more, or the system does not tell.
#[must_use]
pub fn database_writer(database: &Path) -> Option<String> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let [_, shm, _] = sidecars(database);
    let candidates = [(shm.as_path(), WAL_WRITE_LOCK), (database, RESERVED_BYTE)];
    let pid = candidates
        .into_iter()
        .find_map(|(path, byte)| holder_of(&locks, &place_of(path)?, byte))?;
    if pid == std::process::id() {
        return Some("this process".to_owned());
    }
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name: String = name.trim().chars().filter(|c| !c.is_control()).collect();
    Some(if name.is_empty() {
        format!("process {pid}")
    } else {
        format!("process {pid} ({name})")
    })
}

/// A file as `/proc/locks` names it: `fe:00:10551313`.
fn place_of(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok()?;
    let (device, inode) = (meta.dev(), meta.ino());
    Some(format!(
        "{:02x}:{:02x}:{inode}",
        major(device),
        minor(device)
    ))
}

/// Who has the write lock of a byte, by the text of `/proc/locks`.
fn holder_of(locks: &str, place: &str, byte: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let kinds = [words.next()?, words.next()?, words.next()?];
        // A process of another container has the number 0 or -1 here.
        let pid: u32 = words.next()?.parse().ok().filter(|pid| *pid != 0)?;
        let is_here = words.next()? == place;
        let first: u64 = words.next()?.parse().ok()?;
        let last = match words.next()? {
            "EOF" => u64::MAX,
            last => last.parse().ok()?,
        };
        let is_it = kinds[0] == "POSIX" && kinds[2] == "WRITE" && is_here;
        (is_it && (first..=last).contains(&byte)).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_is_told_from_readers_waiters_and_other_files() {
        let locks = "1: POSIX  ADVISORY  READ 11 fe:00:77 120 120\n\
                     2: FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n\
                     3: POSIX  ADVISORY  WRITE 13 fe:00:78 120 120\n\
                     4: POSIX  ADVISORY  WRITE 14 fe:00:77 123 123\n\
                     5: POSIX  ADVISORY  WRITE 15 fe:00:77 120 120\n\
                     5: -> POSIX  ADVISORY  WRITE 16 fe:00:77 120 120\n\
                     6: POSIX  ADVISORY  WRITE 0 fe:00:79 0 EOF\n\
                     nonsense\n";

        assert_eq!(holder_of(locks, "fe:00:77", 120), Some(15));
        assert_eq!(holder_of(locks, "fe:00:77", 121), None);
        assert_eq!(holder_of(locks, "fe:00:79", 5), None);
        assert_eq!(holder_of("", "fe:00:77", 120), None);
    }
}
