//! Reads an archive that may be hostile.
//!
//! Only regular files pass, only under the paths that the manifest lists, only as large as it says, and only with the
//! content whose SHA-256 it gives. What is inflated is capped before the first byte of it is asked for, so neither a
//! bomb nor a million empty members costs more than the file is long.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::BackupError;
use super::manifest::{
    DIGEST_NAME, FORMAT_VERSION, MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest, ManifestFault,
    Member, digest_line,
};
use super::names;
use super::seal::{Encryption, Key, Unsealed, unseal};
use super::stream::{MAX_EXTENSION_BYTES, MAX_PADDING_BYTES, OVERHEAD_BYTES, ReadFault, Stream};
use crate::fs::{FsError, FsErrorKind};

/// Bytes read from the file at once.
const READ_BYTES: usize = 256 * 1024;

/// An archive whose manifest is read and proved.
pub(super) struct Opened {
    path: PathBuf,
    stream: Stream,
    manifest: Manifest,
    bytes: u64,
    encryption: Option<Encryption>,
}

impl Opened {
    /// Opens an archive and reads its list of contents.
    ///
    /// * `key`: for an encrypted one; not looked at for others.
    ///
    /// # Errors
    ///
    /// [`BackupError::NoArchive`], [`BackupError::Newer`] or [`BackupError::Damaged`]; [`BackupError::Encrypted`] or
    /// [`BackupError::WrongKey`] without the key that fits.
    pub(super) fn open(path: &Path, key: Option<&Key>) -> Result<Self, BackupError> {
        let (file, bytes) = open_file(path)?;
        let file = BufReader::with_capacity(READ_BYTES, file);
        let Unsealed {
            content,
            encryption,
        } = unseal(file, path, key)?;
        Self::of(content, path, bytes, encryption)
    }

    /// Reads the list of contents of what is on its way into the archive at `path`.
    ///
    /// # Errors
    ///
    /// As [`Opened::open`].
    pub(super) fn passing_by(
        content: Box<dyn BufRead + Send>,
        path: &Path,
    ) -> Result<Self, BackupError> {
        Self::of(content, path, 0, None)
    }

    fn of(
        content: Box<dyn BufRead + Send>,
        path: &Path,
        bytes: u64,
        encryption: Option<Encryption>,
    ) -> Result<Self, BackupError> {
        let mut stream = Stream::new(content, MAX_MANIFEST_BYTES + 4 * OVERHEAD_BYTES);
        let damaged = |member: &str, reason: String| BackupError::Damaged {
            archive: path.to_owned(),
            member: member.to_owned(),
            reason,
        };
        let text = stream
            .small(MANIFEST_NAME, MAX_MANIFEST_BYTES)
            .map_err(|reason| damaged(MANIFEST_NAME, reason))?;
        let digest = stream
            .small(DIGEST_NAME, MAX_EXTENSION_BYTES)
            .map_err(|reason| damaged(DIGEST_NAME, reason))?;
        if digest != digest_line(&text).as_bytes() {
            let reason = format!("does not match its SHA-256 in {DIGEST_NAME}");
            return Err(damaged(MANIFEST_NAME, reason));
        }
        let manifest = Manifest::parse(&text).map_err(|fault| match fault {
            ManifestFault::Newer { found, release } => BackupError::Newer {
                archive: path.to_owned(),
                member: MANIFEST_NAME.to_owned(),
                found,
                known: FORMAT_VERSION,
                release,
            },
            ManifestFault::Bad { member, reason } => damaged(&member, reason),
        })?;
        stream.cap(room(&manifest));
        Ok(Self {
            path: path.to_owned(),
            stream,
            manifest,
            bytes,
            encryption,
        })
    }

    /// The proved list of contents.
    pub(super) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How the archive is encrypted, if it is.
    pub(super) fn encryption(&self) -> Option<Encryption> {
        self.encryption
    }

    /// Size of the archive.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads every member to the end of the archive, and proves each against the manifest.
    ///
    /// * `place`: where a member's content goes, a path that does not exist; `None` reads past it.
    /// * `proved`: called after each member whose content is right.
    ///
    /// # Errors
    ///
    /// [`BackupError::Damaged`] at the first thing that is wrong, or what `proved` returns.
    pub(super) fn read_members(
        mut self,
        mut place: impl FnMut(&Member) -> Option<PathBuf>,
        mut proved: impl FnMut(&Member, Option<&Path>) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        let archive = self.path;
        let damaged = |member: &str, reason: String| BackupError::Damaged {
            archive: archive.clone(),
            member: names::shown(member),
            reason,
        };
        let mut missing: HashMap<&str, &Member> = HashMap::new();
        for member in &self.manifest.members {
            missing.insert(&member.archive_path, member);
        }
        let mut last = DIGEST_NAME.to_owned();
        loop {
            let entry = self.stream.next_entry();
            let entry = entry.map_err(|reason| damaged(&last, format!("after it, {reason}")))?;
            let Some(entry) = entry else { break };
            let Some(member) = missing.remove(entry.name.as_str()) else {
                let reason = match self.manifest.member(&entry.name) {
                    Some(_) => "is there twice",
                    None => "is not listed in the manifest",
                };
                return Err(damaged(&entry.name, reason.to_owned()));
            };
            if entry.bytes != member.bytes {
                let reason = format!(
                    "has {} bytes, the manifest says {}",
                    entry.bytes, member.bytes
                );
                return Err(damaged(&entry.name, reason));
            }
            let target = place(member);
            let digest = self
                .stream
                .content(entry.bytes, target.as_deref(), member.is_program());
            let digest = digest.map_err(|error| match error {
                ReadFault::Archive(reason) => damaged(&entry.name, reason),
                ReadFault::Target(error) => error.into(),
            })?;
            if digest != member.sha256.to_ascii_lowercase() {
                let reason = "its content does not match the SHA-256 in the manifest";
                return Err(damaged(&entry.name, reason.to_owned()));
            }
            proved(member, target.as_deref())?;
            last = entry.name;
        }
        if let Some(path) = missing.keys().min() {
            return Err(damaged(
                path,
                "is listed in the manifest and missing".into(),
            ));
        }
        Ok(())
    }
}

/// Opens a regular file; the name of a folder, a device or a pipe is no archive.
fn open_file(path: &Path) -> Result<(File, u64), BackupError> {
    let meta = std::fs::metadata(path).map_err(FsError::at("read", path));
    let meta = meta.map_err(|error| match error.kind() {
        FsErrorKind::NotFound => BackupError::NoArchive {
            path: path.to_owned(),
        },
        _ => error.into(),
    })?;
    if !meta.is_file() {
        return Err(BackupError::Damaged {
            archive: path.to_owned(),
            member: MANIFEST_NAME.to_owned(),
            reason: "is missing; this is no regular file".to_owned(),
        });
    }
    let file = File::open(path).map_err(FsError::at("read", path))?;
    Ok((file, meta.len()))
}

/// What all listed members may inflate to at most.
fn room(manifest: &Manifest) -> u64 {
    let members = manifest
        .members
        .iter()
        .map(|member| member.bytes.saturating_add(OVERHEAD_BYTES));
    members.fold(MAX_PADDING_BYTES, u64::saturating_add)
}
