//! Reads an archive on its way into the encryption.
//!
//! Only the recipients can open what is encrypted to them, so it cannot be read back afterwards. An extra recipient of
//! our own, forgotten at the end, was left out: nobody but the named ones shall be able to open an archive, not even
//! for a moment.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::BackupError;
use super::archive::Opened;
use super::manifest::Manifest;
use super::verify;

/// Writes on the way at once; each is at most what one member of the compression takes.
const QUEUE: usize = 2;

/// Runs `write` on a sink that passes all on to `sink`, while what passes is read as an archive that must hold what
/// `manifest` says; gives the sink back.
///
/// # Errors
///
/// What `write` fails with, or [`BackupError::Damaged`] when something else passed.
pub(super) fn watched<W: Write>(
    sink: W,
    path: &Path,
    manifest: &Manifest,
    write: impl FnOnce(Tee<W>) -> Result<Tee<W>, BackupError>,
) -> Result<W, BackupError> {
    let (sender, receiver) = sync_channel(QUEUE);
    thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            let passing = BufReader::new(Passing::new(receiver));
            let opened = Opened::passing_by(Box::new(passing), path)?;
            verify::prove_same(opened, path, manifest)
        });
        let written = write(Tee {
            sink,
            copy: Some(sender),
        });
        // Dropping the sender is the end of what passes.
        let sink = written.map(|tee| tee.sink);
        let seen = watcher.join().map_err(|_| BackupError::Stopped)?;
        let sink = sink?;
        seen.map(|()| sink)
    })
}

/// A sink, and a copy of what it took.
pub(super) struct Tee<W> {
    sink: W,
    copy: Option<SyncSender<Vec<u8>>>,
}

impl<W: Write> Write for Tee<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        let sent = self
            .copy
            .as_ref()
            .map(|it| it.send(bytes[..written].to_vec()));
        if let Some(Err(_)) = sent {
            // The watcher has seen enough; what it says decides in the end.
            self.copy = None;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// What passed, to be read.
struct Passing {
    parts: Receiver<Vec<u8>>,
    part: io::Cursor<Vec<u8>>,
}

impl Passing {
    fn new(parts: Receiver<Vec<u8>>) -> Self {
        Self {
            parts,
            part: io::Cursor::default(),
        }
    }
}

impl Read for Passing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.parts.recv() {
                Ok(part) => self.part = io::Cursor::new(part),
                Err(_) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::backup::manifest::{DIGEST_NAME, FORMAT_VERSION, MANIFEST_NAME, Scope, digest_line};

    fn manifest(id: &str) -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            mentions: Vec::new(),
            app_version: "0.0.0".to_owned(),
            id: id.to_owned(),
            created_at_ms: 0,
            created_at: String::new(),
            scope: Scope::Root,
            agent: None,
            has_secrets: false,
            members: Vec::new(),
            left_out: Vec::new(),
        }
    }

    fn archive(manifest: &Manifest) -> Vec<u8> {
        let text = manifest.to_bytes();
        let digest = digest_line(&text);
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (name, bytes) in [(MANIFEST_NAME, &text[..]), (DIGEST_NAME, digest.as_bytes())] {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o600);
            header.set_size(bytes.len() as u64);
            tar.append_data(&mut header, name, bytes).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    fn pass(bytes: &[u8], expected: &Manifest) -> Result<Vec<u8>, BackupError> {
        watched(Vec::new(), Path::new("a.age"), expected, |mut tee| {
            for part in bytes.chunks(100) {
                tee.write_all(part).unwrap();
            }
            Ok(tee)
        })
    }

    #[test]
    fn what_passes_whole_comes_out_as_it_was() {
        let manifest = manifest("one");
        let bytes = archive(&manifest);

        assert!(pass(&bytes, &manifest).unwrap() == bytes);
    }

    #[test]
    fn another_archive_half_of_one_and_noise_do_not_pass() {
        let manifest = manifest("one");
        let bytes = archive(&manifest);
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 1;
        let other = archive(&self::manifest("two"));
        let noise = vec![7; 5 << 20];
        for bytes in [&bytes[..bytes.len() - 9], &flipped, &other, &noise, &[]] {
            let refused = pass(bytes, &manifest).unwrap_err();
            assert!(
                matches!(refused, BackupError::Damaged { .. }),
                "{refused:?}"
            );
        }
    }

    #[test]
    fn a_failed_write_is_told_and_not_what_the_watcher_made_of_it() {
        let failed = watched(Vec::new(), Path::new("a.age"), &manifest("one"), |_| {
            Err(BackupError::AgentsChanging { tries: 1 })
        });

        assert!(matches!(failed, Err(BackupError::AgentsChanging { .. })));
    }
}
