//! How a file that holds memories is taken apart: the same way for whoever indexes it.
//!
//! A line that starts with `#` is a heading; `- **<key>**: <content>` is an entry, and so is every other line that is not
//! blank. People edit these files, so an entry is known by its text and not by its line.

use std::collections::HashMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::{IndexedEntry, IndexedFile};

/// The file of an agent's long-lived memories; all others are daily ones.
pub const CORE_MEMORY_FILE: &str = "MEMORY.md";

/// Takes a file apart line by line.
#[derive(Debug)]
pub struct MemoryFileParser {
    category: &'static str,
    hasher: Sha256,
    lines: i64,
    seen: HashMap<String, u64>,
    entries: Vec<IndexedEntry>,
}

impl MemoryFileParser {
    /// Begins a file of this name, without folders.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let is_core = name == CORE_MEMORY_FILE;
        Self {
            category: if is_core { "core" } else { "daily" },
            hasher: Sha256::new(),
            lines: 0,
            seen: HashMap::new(),
            entries: Vec::new(),
        }
    }

    /// Takes the next line, without its end; bytes that are no UTF-8 are taken leniently.
    pub fn line(&mut self, bytes: &[u8]) {
        self.lines += 1;
        self.hasher.update(bytes);
        self.hasher.update(b"\n");
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return;
        }
        let (key, said) = parted(text);
        let occurrence = self.seen.entry(text.to_owned()).or_default();
        let id = entry_id(text, *occurrence);
        *occurrence += 1;
        self.entries.push(IndexedEntry {
            id,
            start_line: self.lines,
            end_line: self.lines,
            category: self.category.to_owned(),
            key: key.map(str::to_owned),
            text: said.to_owned(),
        });
    }

    /// The file, once all its lines were taken. Its hash is that of its lines, whatever ended them.
    #[must_use]
    pub fn finish(self, path: String, mtime_ms: i64, size_bytes: i64) -> IndexedFile {
        IndexedFile {
            path,
            hash: hex(&self.hasher.finalize()),
            mtime_ms,
            size_bytes,
            entries: self.entries,
        }
    }
}

/// Identity within the file: 32 hex digits over parts that cannot run together.
fn entry_id(text: &str, occurrence: u64) -> String {
    let mut hasher = Sha256::new();
    for part in [text.as_bytes(), &occurrence.to_le_bytes()] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize()[..16])
}

/// Key and content of an entry; the whole line where it has no key.
fn parted(line: &str) -> (Option<&str>, &str) {
    line.strip_prefix("- **")
        .and_then(|rest| rest.split_once("**:"))
        .map_or((None, line), |(key, said)| (Some(key), said.trim()))
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_key_only_in_its_own_form() {
        assert_eq!(parted("- **a b**: x **y**: z"), (Some("a b"), "x **y**: z"));
        assert_eq!(parted("- plain"), (None, "- plain"));
        assert_eq!(parted("- **open"), (None, "- **open"));
    }
}
