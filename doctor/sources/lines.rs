//! Splitting a file into lines: on `\n` only, as bytes, in bounded memory.
//!
//! U+2028 and a lone `\r` are part of a line. A byte order mark at the start and a `\r` before the
//! `\n` are not.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use zeroclaw::fs::FsError;

/// Longest line taken, bytes; a longer one is refused, not cut.
pub(crate) const MAX_LINE_BYTES: usize = 256 * 1024 * 1024;

/// How much of a refused line is kept in memory for the quarantine.
const KEPT_BYTES: usize = 1024 * 1024;

/// One line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: u64,
    /// Bytes before it in the file.
    pub(crate) offset: u64,
    /// Its bytes, without line end; the first part of them when it is too long.
    pub(crate) bytes: Vec<u8>,
    /// Whether a `\n` ended it.
    pub(crate) is_ended: bool,
    /// Whether it is longer than [`MAX_LINE_BYTES`].
    pub(crate) is_too_long: bool,
}

impl Line {
    /// Whether there is nothing in it but white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.bytes.iter().all(u8::is_ascii_whitespace)
    }

    /// `line 3 at byte 120`.
    pub(crate) fn place(&self) -> String {
        format!("line {} at byte {}", self.number, self.offset)
    }
}

/// Reads a file line by line.
#[derive(Debug)]
pub(crate) struct Lines {
    file: BufReader<File>,
    path: std::path::PathBuf,
    number: u64,
    offset: u64,
}

impl Lines {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> Result<Self, FsError> {
        let file = File::open(path).map_err(FsError::at("open", path))?;
        let file = BufReader::with_capacity(256 * 1024, file);
        Ok(Self {
            file,
            path: path.to_owned(),
            number: 0,
            offset: 0,
        })
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Line>, FsError> {
        let start = self.offset;
        let mut bytes = Vec::new();
        let mut is_too_long = false;
        let mut is_ended = false;
        loop {
            let chunk = self
                .file
                .fill_buf()
                .map_err(FsError::at("read", &self.path))?;
            if chunk.is_empty() {
                break;
            }
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(chunk.len(), |end| end + 1);
            is_too_long |= bytes.len() + taken > MAX_LINE_BYTES;
            if is_too_long {
                bytes.truncate(KEPT_BYTES);
            } else {
                bytes.extend_from_slice(&chunk[..taken]);
            }
            self.file.consume(taken);
            self.offset += taken as u64;
            if end.is_some() {
                is_ended = true;
                break;
            }
        }
        if self.offset == start {
            return Ok(None);
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        if start == 0 && bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
        }
        self.number += 1;
        Ok(Some(Line {
            number: self.number,
            offset: start,
            bytes,
            is_ended,
            is_too_long,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(u64, Vec<u8>, bool)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, bytes).unwrap();
        let mut lines = Lines::open(&path).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.offset, line.bytes, line.is_ended));
        }
        all
    }

    #[test]
    fn a_file_is_split_on_line_feeds_and_nothing_else() {
        let text = "\u{FEFF}a\r\nb\u{2028}c\rd\n\ne";

        let found = lines(text.as_bytes());

        assert_eq!(found[0], (0, b"a".to_vec(), true));
        assert_eq!(found[1], (6, "b\u{2028}c\rd".into(), true));
        assert_eq!(found[2], (14, Vec::new(), true));
        assert_eq!(found[3], (15, b"e".to_vec(), false));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn an_empty_file_has_no_line() {
        assert!(lines(b"").is_empty());
        assert_eq!(lines(b"\n"), vec![(0, Vec::new(), true)]);
    }
}
