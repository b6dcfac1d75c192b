//! Writes an archive from what was gathered in a staging folder.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::BackupError;
use super::gzip::ParallelGzip;
use super::manifest::{DIGEST_NAME, MANIFEST_NAME, Manifest, Member, digest_line, hex};
use super::seal::Seal;
use super::staging::Contents;
use super::watch::watched;
use crate::fs::{FsError, atomic};

/// Modes of members, whatever else the originals' said: unpacking by hand gives private files.
const FILE_MODE: u32 = 0o600;
const PROGRAM_MODE: u32 = 0o700;
const WRITE_BYTES: usize = 256 * 1024;

/// Writes the archive of `manifest` to `path`, a file that does not exist, synced; gives its size.
///
/// * `contents`: where each member lies.
///
/// # Errors
///
/// [`BackupError::Fs`] when reading or writing fails, or a member is no longer what the manifest says.
pub(super) fn pack(
    path: &Path,
    manifest: &Manifest,
    contents: &Contents,
) -> Result<u64, BackupError> {
    let file = atomic::create_file_private(path)?;
    let sink = BufWriter::with_capacity(WRITE_BYTES, file);
    let sink = write_members(sink, path, manifest, contents)?;
    finish(sink, path)
}

/// The same, encrypted.
///
/// * `is_watched`: whether what goes into the encryption is read back as it passes by, and what came out of it from
///   the file. That is all that can be proved of an archive which only somebody else can open.
///
/// # Errors
///
/// As [`pack`], and [`BackupError::Damaged`] when something else was written than was meant.
pub(super) fn pack_sealed(
    path: &Path,
    manifest: &Manifest,
    contents: &Contents,
    seal: &Seal,
    is_watched: bool,
) -> Result<u64, BackupError> {
    let failed = |error: io::Error| FsError::at("write", path)(error);
    let file = atomic::create_file_private(path)?;
    let sink = Hashed::new(BufWriter::with_capacity(WRITE_BYTES, file));
    let sealing = seal.wrap(sink).map_err(failed)?;
    let sealing = match is_watched {
        true => watched(sealing, path, manifest, |sink| {
            write_members(sink, path, manifest, contents)
        })?,
        false => write_members(sealing, path, manifest, contents)?,
    };
    let written = sealing.finish().map_err(failed)?;
    let bytes = finish(written.inner, path)?;
    if is_watched && atomic::hash_file(path)?.1[..] != written.hash.finalize()[..] {
        return Err(BackupError::Damaged {
            archive: path.to_owned(),
            member: "the encrypted archive".to_owned(),
            reason: "is not what was written".to_owned(),
        });
    }
    Ok(bytes)
}

/// Writes all members, compressed, and gives the sink back.
fn write_members<W: Write>(
    sink: W,
    path: &Path,
    manifest: &Manifest,
    contents: &Contents,
) -> Result<W, BackupError> {
    let failed = |error: io::Error| FsError::at("write", path)(error);
    let mut tar = Builder::new(ParallelGzip::new(sink));
    let seconds = manifest.created_at_ms.max(0).unsigned_abs() / 1_000;
    let text = manifest.to_bytes();
    let digest = digest_line(&text);
    for (name, bytes) in [(MANIFEST_NAME, &text[..]), (DIGEST_NAME, digest.as_bytes())] {
        let mut header = header(bytes.len() as u64, FILE_MODE, seconds);
        tar.append_data(&mut header, name, bytes).map_err(failed)?;
    }
    for member in &manifest.members {
        let from = contents.path(&member.archive_path);
        append(&mut tar, member, &from, seconds, path)?;
    }
    let sink = tar.into_inner().and_then(ParallelGzip::finish);
    Ok(sink.map_err(failed)?)
}

/// Flushes and syncs; gives the size.
fn finish(sink: BufWriter<File>, path: &Path) -> Result<u64, BackupError> {
    let file = sink.into_inner().map_err(io::IntoInnerError::into_error);
    let file = file.map_err(FsError::at("write", path))?;
    file.sync_all().map_err(FsError::at("sync", path))?;
    let meta = file.metadata().map_err(FsError::at("look at", path))?;
    Ok(meta.len())
}

fn append<W: Write>(
    tar: &mut Builder<ParallelGzip<W>>,
    member: &Member,
    from: &Path,
    seconds: u64,
    path: &Path,
) -> Result<(), BackupError> {
    let (file, _) = atomic::open_regular(from)?;
    let mut hashed = Hashed::new(file);
    let mode = if member.is_program() {
        PROGRAM_MODE
    } else {
        FILE_MODE
    };
    let mut header = header(member.bytes, mode, seconds);
    let content = (&mut hashed).take(member.bytes);
    tar.append_data(&mut header, &member.archive_path, content)
        .map_err(FsError::at("write", path))?;
    if hex(&hashed.hash.finalize()) != member.sha256 {
        let changed = io::Error::new(io::ErrorKind::InvalidData, "it changed while it was read");
        return Err(FsError::at("read", from)(changed).into());
    }
    Ok(())
}

fn header(bytes: u64, mode: u32, seconds: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_mtime(seconds);
    header.set_size(bytes);
    header
}

/// A reader or writer whose bytes are hashed on their way.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
}

impl<T> Hashed<T> {
    fn new(inner: T) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
        }
    }
}

impl<T: Read> Read for Hashed<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
