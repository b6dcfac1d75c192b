//! One file that a reader takes, and what tells it from another.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zeroclaw::fs::{FsError, atomic, sidecars};

use super::is_regular;
use crate::doctor::names::{escaped, unescaped};
use crate::doctor::sources::zeroclaw::paired_tokens::PairedTokens;
use crate::doctor::sources::zeroclaw::surfaces::Format;
use crate::doctor::units::hex;

/// What is to happen with a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Its records come in.
    Import,
    /// It repeats what another source says; it is moved aside with a receipt.
    Discard(String),
    /// It cannot be judged before another source; it stays.
    Wait(String),
}

/// One file that a reader takes.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// What it is.
    pub(crate) format: Format,
    /// What is read.
    pub(crate) path: PathBuf,
    /// What is named, and moved aside in the end, below its root: the same file but for a
    /// log whose database is read elsewhere.
    pub(crate) relative: PathBuf,
    /// Session key, for a session file.
    pub(crate) key: String,
    /// Whether the old program still read this place.
    pub(crate) is_current_place: bool,
    /// Size with its logs, bytes.
    pub(crate) bytes: u64,
    /// SHA-256 of its content with its logs, hex.
    pub(crate) sha256: String,
    /// What is to happen with it.
    pub(crate) disposition: Disposition,
}

impl Source {
    /// Its identity in receipts: root, surface, place and content.
    pub(crate) fn source_key(&self, root_tag: &str) -> String {
        // A configuration that came along from a foreign root lists the same tokens here.
        let root_tag = match self.format {
            Format::PairedTokens => "list",
            _ => root_tag,
        };
        format!(
            "{root_tag}:{}:{}:{}",
            self.format.surface(),
            escaped(&self.relative),
            &self.sha256[..12]
        )
    }

    /// Whether it stays where it is once its records are in: by its format, or because it is not
    /// below the root.
    pub(crate) fn stays(&self) -> bool {
        self.format.about().stays || self.relative.is_absolute()
    }

    /// Its path for people: below its root, bytes that are no text escaped.
    pub(crate) fn name(&self) -> String {
        escaped(&self.relative)
    }
}

pub(crate) fn source(
    root: &Path,
    relative: &Path,
    format: Format,
    key: String,
    disposition: Disposition,
) -> Result<Source, FsError> {
    let path = root.join(relative);
    let (bytes, sha256) = content(root, &path, format)?;
    Ok(Source {
        format,
        path,
        relative: relative.to_owned(),
        key,
        is_current_place: true,
        bytes,
        sha256,
        disposition,
    })
}

/// Size and digest of what counts of a source's file.
pub(crate) fn content(root: &Path, path: &Path, format: Format) -> Result<(u64, String), FsError> {
    match format {
        Format::PairedTokens => Ok(PairedTokens::load(root)?.content()),
        _ => digest(path, format.is_sqlite()),
    }
}

/// Size and digest of a file; for a database together with its logs, which hold part of it.
pub(crate) fn digest(path: &Path, with_logs: bool) -> Result<(u64, String), FsError> {
    let (mut bytes, main) = atomic::hash_file(path)?;
    let [wal, _, journal] = sidecars(path);
    let logs: Vec<PathBuf> = [wal, journal]
        .into_iter()
        .filter(|log| with_logs && is_regular(log))
        .collect();
    let mut hasher = Sha256::new();
    let mut has_log = false;
    for log in logs {
        let (log_bytes, log_hash) = atomic::hash_file(&log)?;
        if log_bytes > 0 {
            has_log = true;
            bytes += log_bytes;
            hasher.update(log_hash);
        }
    }
    if !has_log {
        return Ok((bytes, hex(&main)));
    }
    hasher.update(main);
    Ok((bytes, hex(&hasher.finalize())))
}

/// A database of which a cut-off run may have left only logs, by its name in a receipt.
pub(crate) fn moved(root: &Path, name: &str) -> Source {
    let relative = unescaped(name);
    Source {
        format: Format::SessionsDb,
        path: root.join(&relative),
        relative,
        key: String::new(),
        is_current_place: true,
        bytes: 0,
        sha256: "0".repeat(64),
        disposition: Disposition::Import,
    }
}
