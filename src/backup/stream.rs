//! The tar stream inside an archive, member by member, with a bound on everything.
//!
//! The tar crate parses single headers here. Its iterator was left out, because it collects long names and attributes
//! without a bound.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::manifest::hex;
use super::names::{self, MAX_PATH_BYTES};
use crate::fs::{FsError, atomic};

const BLOCK: usize = 512;
/// Largest long name or set of attributes before a member, bytes.
pub(super) const MAX_EXTENSION_BYTES: u64 = 2 * MAX_PATH_BYTES as u64;
/// Allowed to a member beside its content: headers, what fills blocks up, and a long name or attributes.
pub(super) const OVERHEAD_BYTES: u64 = 5 * BLOCK as u64 + MAX_EXTENSION_BYTES;
/// Zeros that other tools put behind the end mark, at most.
pub(super) const MAX_PADDING_BYTES: u64 = 1 << 20;
/// Attributes that change nothing of what is restored.
const HARMLESS_ATTRIBUTES: [&str; 8] = [
    "mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment",
];
const COPY_BYTES: usize = 256 * 1024;

/// The inflated archive, with a cap.
pub(super) struct Stream {
    inflated: MultiGzDecoder<Box<dyn BufRead + Send>>,
    left: u64,
}

/// What a tar header announces.
pub(super) struct Entry {
    /// Its path.
    pub(super) name: String,
    /// Its size.
    pub(super) bytes: u64,
}

/// What can go wrong between an archive and a file.
pub(super) enum ReadFault {
    /// The archive is not what it should be.
    Archive(String),
    /// The file cannot be written.
    Target(FsError),
}

impl Stream {
    /// Begins to inflate `content`, of which at most `cap` bytes come.
    pub(super) fn new(content: Box<dyn BufRead + Send>, cap: u64) -> Self {
        Self {
            inflated: MultiGzDecoder::new(content),
            left: cap,
        }
    }

    /// Allows `bytes` more from here on.
    pub(super) fn cap(&mut self, bytes: u64) {
        self.left = bytes;
    }

    /// Reads a whole small member, which must be the next.
    pub(super) fn small(&mut self, name: &str, max_bytes: u64) -> Result<Vec<u8>, String> {
        let Some(entry) = self.next_entry()? else {
            return Err("is missing".to_owned());
        };
        if entry.name != name {
            return Err(format!(
                "is not where it must be; {:?} is there",
                names::shown(&entry.name)
            ));
        }
        if entry.bytes > max_bytes {
            return Err(format!("is larger than {max_bytes} bytes"));
        }
        self.bytes(entry.bytes)
    }

    /// The next member's header; `None` at the end, after which nothing but padding may follow.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, String> {
        let mut long_name = None;
        loop {
            let mut block = [0; BLOCK];
            self.read_exact(&mut block).map_err(cut)?;
            if block.iter().all(|byte| *byte == 0) {
                return match long_name {
                    Some(_) => Err("a name has no member".to_owned()),
                    None => self.end().map(|()| None),
                };
            }
            let header = Header::from_byte_slice(&block);
            let bytes = proved_header(header)?;
            match header.entry_type() {
                EntryType::Regular => {
                    let name = long_name.unwrap_or_else(|| header.path_bytes().into_owned());
                    let name =
                        String::from_utf8(name).map_err(|_| "a name is not UTF-8".to_owned())?;
                    return Ok(Some(Entry { name, bytes }));
                }
                kind @ (EntryType::GNULongName | EntryType::XHeader) => {
                    if bytes > MAX_EXTENSION_BYTES || long_name.is_some() {
                        return Err("a name or its attributes are too long".to_owned());
                    }
                    let text = self.bytes(bytes)?;
                    long_name = match kind {
                        EntryType::GNULongName => Some(until_nul(&text).to_vec()),
                        _ => attributes_path(&text)?,
                    };
                }
                other => {
                    let name = names::shown(&String::from_utf8_lossy(&header.path_bytes()));
                    return Err(format!("{name:?} is {}", kind_name(other)));
                }
            }
        }
    }

    /// Reads a member's content and what fills its last block up; gives its SHA-256.
    ///
    /// * `target`: a path that does not exist, for the content; `None` reads past it.
    /// * `is_program`: whether that may be run.
    pub(super) fn content(
        &mut self,
        bytes: u64,
        target: Option<&Path>,
        is_program: bool,
    ) -> Result<String, ReadFault> {
        let mut file = match target {
            Some(path) => Some((create(path, is_program).map_err(ReadFault::Target)?, path)),
            None => None,
        };
        let mut hash = Sha256::new();
        let mut buffer = vec![0; COPY_BYTES];
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).map_or(COPY_BYTES, |left| left.min(COPY_BYTES));
            let part = &mut buffer[..part];
            self.read_exact(part)
                .map_err(|error| ReadFault::Archive(cut(error)))?;
            hash.update(&*part);
            if let Some((file, path)) = &mut file {
                file.write_all(part)
                    .map_err(|error| ReadFault::Target(FsError::at("write", path)(error)))?;
            }
            left -= part.len() as u64;
        }
        self.skip_padding(bytes).map_err(ReadFault::Archive)?;
        Ok(hex(&hash.finalize()))
    }

    fn bytes(&mut self, bytes: u64) -> Result<Vec<u8>, String> {
        let mut text = Vec::new();
        let read = self.by_ref().take(bytes).read_to_end(&mut text);
        let read = read.map_err(cut)?;
        if read as u64 != bytes {
            return Err("the archive is cut short".to_owned());
        }
        self.skip_padding(bytes)?;
        Ok(text)
    }

    fn skip_padding(&mut self, bytes: u64) -> Result<(), String> {
        let over = usize::try_from(bytes % BLOCK as u64).unwrap_or(0);
        if over == 0 {
            return Ok(());
        }
        self.read_exact(&mut [0; BLOCK][over..]).map_err(cut)
    }

    /// After the first block of the end mark: the second, then nothing but a few zeros.
    fn end(&mut self) -> Result<(), String> {
        let mut block = [0; BLOCK];
        self.read_exact(&mut block).map_err(cut)?;
        if block.iter().any(|byte| *byte != 0) {
            return Err("the end mark is broken".to_owned());
        }
        self.left = self.left.min(MAX_PADDING_BYTES);
        loop {
            match self.read(&mut block) {
                Ok(0) => return Ok(()),
                Ok(read) if block[..read].iter().all(|byte| *byte == 0) => {}
                Ok(_) => return Err("data follows the end of the archive".to_owned()),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(cut(error));
                }
                Err(error) => {
                    return Err(format!(
                        "what follows the end of the archive is no part of it: {error}"
                    ));
                }
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        // One byte more than allowed tells a bomb from an end.
        let wanted = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX);
        let wanted = wanted.min(buffer.len());
        let read = self.inflated.read(&mut buffer[..wanted])?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => {
                return Err(io::Error::other(
                    "it inflates to more than its manifest lists",
                ));
            }
        }
        Ok(read)
    }
}

fn create(path: &Path, is_program: bool) -> Result<File, FsError> {
    if let Some(folder) = path.parent() {
        atomic::create_dir_private(folder)?;
    }
    match is_program {
        true => atomic::create_program_private(path),
        false => atomic::create_file_private(path),
    }
}

/// Proves a header's sum and modes; gives the size it announces.
fn proved_header(header: &Header) -> Result<u64, String> {
    let broken = |_| "a header is broken".to_owned();
    let sum: u32 = header
        .as_bytes()
        .iter()
        .enumerate()
        // The field of the sum itself counts as blanks.
        .map(|(at, byte)| {
            if (148..156).contains(&at) {
                32
            } else {
                u32::from(*byte)
            }
        })
        .sum();
    if header.cksum().map_err(broken)? != sum {
        return Err("a header does not match its sum".to_owned());
    }
    if header.mode().map_err(broken)? & !0o777 != 0 {
        return Err("a member has a mode beyond plain permissions".to_owned());
    }
    header.size().map_err(broken)
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
}

/// The `path` among PAX attributes (`<length> <key>=<value>\n`); refuses those that change what a member is.
fn attributes_path(mut text: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let broken = || "a member has broken attributes".to_owned();
    let mut path = None;
    while !text.is_empty() {
        let blank = text
            .iter()
            .position(|byte| *byte == b' ')
            .ok_or_else(broken)?;
        let length = std::str::from_utf8(&text[..blank]).ok();
        let length: usize = length
            .and_then(|text| text.parse().ok())
            .ok_or_else(broken)?;
        if length <= blank + 1 || length > text.len() || text[length - 1] != b'\n' {
            return Err(broken());
        }
        let record = &text[blank + 1..length - 1];
        let equals = record
            .iter()
            .position(|byte| *byte == b'=')
            .ok_or_else(broken)?;
        let key = std::str::from_utf8(&record[..equals]).map_err(|_| broken())?;
        match key {
            "path" => path = Some(record[equals + 1..].to_vec()),
            _ if HARMLESS_ATTRIBUTES.contains(&key) => {}
            _ => {
                return Err(format!(
                    "a member has the attribute {:?}",
                    names::shown(key)
                ));
            }
        }
        text = &text[length..];
    }
    Ok(path)
}

fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink | EntryType::Link => "a link",
        EntryType::Directory => "a folder",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a pipe",
        _ => "no regular file",
    }
}

fn cut(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the archive is cut short".to_owned(),
        _ => format!("the archive cannot be read on: {error}"),
    }
}
