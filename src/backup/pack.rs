//! Writes an archive from what was gathered in a staging folder.

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::Path;

use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::BackupError;
use super::gzip::ParallelGzip;
use super::manifest::{DIGEST_NAME, MANIFEST_NAME, Manifest, Member, digest_line, hex};
use crate::fs::{FsError, atomic};

/// Modes of members, whatever else the originals' said: unpacking by hand gives private files.
const FILE_MODE: u32 = 0o600;
const PROGRAM_MODE: u32 = 0o700;
const WRITE_BYTES: usize = 256 * 1024;

/// Writes the archive of `manifest` to `path`, a file that does not exist, synced; gives its size.
///
/// * `tree`: where each member lies under its path in the archive.
///
/// # Errors
///
/// [`BackupError::Fs`] when reading or writing fails, or a member is no longer what the manifest says.
pub(super) fn pack(path: &Path, manifest: &Manifest, tree: &Path) -> Result<u64, BackupError> {
    let failed = |error: io::Error| FsError::at("write", path)(error);
    let file = atomic::create_file_private(path)?;
    let sink = ParallelGzip::new(BufWriter::with_capacity(WRITE_BYTES, file));
    let mut tar = Builder::new(sink);
    let seconds = manifest.created_at_ms.max(0).unsigned_abs() / 1_000;

    let text = manifest.to_bytes();
    let digest = digest_line(&text);
    for (name, bytes) in [(MANIFEST_NAME, &text[..]), (DIGEST_NAME, digest.as_bytes())] {
        let mut header = header(bytes.len() as u64, FILE_MODE, seconds);
        tar.append_data(&mut header, name, bytes).map_err(failed)?;
    }
    for member in &manifest.members {
        append(
            &mut tar,
            member,
            &tree.join(&member.archive_path),
            seconds,
            path,
        )?;
    }
    let file = tar
        .into_inner()
        .and_then(ParallelGzip::finish)
        .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
        .map_err(failed)?;
    file.sync_all().map_err(FsError::at("sync", path))?;
    let meta = file.metadata().map_err(FsError::at("look at", path))?;
    Ok(meta.len())
}

fn append(
    tar: &mut Builder<ParallelGzip<BufWriter<File>>>,
    member: &Member,
    from: &Path,
    seconds: u64,
    path: &Path,
) -> Result<(), BackupError> {
    let file = File::open(from).map_err(FsError::at("read", from))?;
    let mut hashed = Hashed {
        file,
        hash: Sha256::new(),
    };
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

/// A file whose bytes are hashed on their way.
struct Hashed {
    file: File,
    hash: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}
