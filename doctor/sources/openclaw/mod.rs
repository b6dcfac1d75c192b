//! Formats of OpenClaw homes, also under its earlier names.

pub(crate) mod event;
pub(crate) mod file_name;
pub(crate) mod home;
pub(crate) mod index;
pub(crate) mod key;
mod part;
pub(crate) mod scan;
pub(crate) mod session;
pub(crate) mod sessions_index;
pub(crate) mod settings;
mod shelf;
pub(crate) mod surfaces;
pub(crate) mod tolerant;
pub(crate) mod transcript;

use std::path::Path;

use ::zeroclaw::fs::FsError;

use super::{ReadError, Sink};
use crate::doctor::plan::Install;
use crate::doctor::scan::Source;
use home::Home;
use surfaces::Kind;

/// Reads one source of a home into `sink`.
pub(crate) async fn read<S: Sink>(
    kind: Kind,
    source: &Source,
    home: &Home,
    install: Install<'_>,
    sink: &mut S,
) -> Result<(), ReadError> {
    let owners = install.owners;
    match kind {
        Kind::SessionIndex => sessions_index::read(source, home, owners, sink).await,
        Kind::Transcript | Kind::PastTranscript => {
            transcript::read(source, home, owners, sink).await
        }
    }
}

/// A file's own time, Unix milliseconds.
fn modified_ms(path: &Path) -> Result<i64, FsError> {
    let modified = std::fs::metadata(path)
        .and_then(|meta| meta.modified())
        .map_err(FsError::at("stat", path))?;
    let since = modified
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
