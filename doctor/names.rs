//! Names of files: as text that loses nothing, and what the names of session files say.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A path as text, with bytes that are no UTF-8, and `%`, as `%XX`.
pub(crate) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The way back from [`escaped`].
pub(crate) fn unescaped(name: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .filter(|_| *first == b'%')
        {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsStr::from_bytes(&bytes))
}

/// How a session file's name ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// In use.
    Plain,
    /// Staged by the old program's importer.
    Importing,
    /// Kept by it after its import.
    Migrated,
}

/// Session key and ending of a file name; `None` for other files.
pub(crate) fn split_name(name: &[u8]) -> Option<(&[u8], Ending)> {
    if let Some(stem) = name.strip_suffix(b".jsonl") {
        return Some((stem, Ending::Plain));
    }
    if let Some(stem) = name.strip_suffix(b".jsonl.importing") {
        return Some((stem, Ending::Importing));
    }
    // On a clash of names the old program put `_1`, `_2` before the last ending.
    let stem = name.strip_suffix(b".migrated")?;
    let at = stem.windows(6).rposition(|window| window == b".jsonl")?;
    let clash = &stem[at + 6..];
    let is_clash =
        clash.is_empty() || (clash[0] == b'_' && clash[1..].iter().all(u8::is_ascii_digit));
    is_clash.then_some((&stem[..at], Ending::Migrated))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_session_files_part_into_key_and_ending() {
        assert_eq!(split_name(b"a_b.jsonl"), Some((&b"a_b"[..], Ending::Plain)));
        assert_eq!(
            split_name(b"a.jsonl.importing"),
            Some((&b"a"[..], Ending::Importing))
        );
        assert_eq!(
            split_name(b"a.jsonl.migrated"),
            Some((&b"a"[..], Ending::Migrated))
        );
        assert_eq!(
            split_name(b"a.jsonl_1.migrated"),
            Some((&b"a"[..], Ending::Migrated))
        );
        assert_eq!(split_name(b"a.jsonl_x.migrated"), None);
        assert_eq!(split_name(b"sessions.db"), None);
        assert_eq!(split_name(b".tmpAb12"), None);
    }

    #[test]
    fn a_path_with_odd_bytes_becomes_distinct_text() {
        let odd = Path::new(OsStr::from_bytes(b"u\xFF%.jsonl"));

        assert_eq!(escaped(odd), "u%FF%25.jsonl");
        assert_eq!(unescaped("u%FF%25.jsonl"), odd);
    }
}
