//! Keeps the bytes of what could not be read, with a list of where they came from.
//!
//! Two files a source: `<source>.raw` holds the bytes one after another, `<source>.index` a JSON
//! object a line: place, reason, offset, length. Both are written beside their place, synced and
//! renamed, so that a rerun after a crash writes the same again.

use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use zeroclaw::fs::{FsError, atomic};

use super::units::stable_id;

/// Longest name made of a path, bytes: a file system takes 255, and endings come behind it.
const MAX_NAME_BYTES: usize = 200;

/// A file name that stands for a path: the path itself, or its end behind a digest of the whole.
fn file_name(source: &str) -> String {
    let name = source.replace('/', "%2F");
    if name.len() <= MAX_NAME_BYTES {
        return name;
    }
    let from = (name.len() - MAX_NAME_BYTES..name.len()).find(|at| name.is_char_boundary(*at));
    let end = &name[from.unwrap_or(name.len())..];
    format!("{}-{end}", stable_id(&[source.as_bytes()]))
}

/// The quarantine of one source.
#[derive(Debug)]
pub(crate) struct Quarantine {
    folder: PathBuf,
    name: String,
    files: Option<(NamedTempFile, NamedTempFile)>,
    offset: u64,
}

impl Quarantine {
    /// For the source of that name; nothing is made before there is something to keep.
    pub(crate) fn new(folder: PathBuf, source: &str) -> Self {
        Self {
            folder,
            name: file_name(source),
            files: None,
            offset: 0,
        }
    }

    /// Keeps the bytes of one record.
    pub(crate) fn keep(&mut self, place: &str, reason: &str, raw: &[u8]) -> Result<(), FsError> {
        if self.files.is_none() {
            atomic::create_dir_private(&self.folder)?;
            let pair = (
                atomic::private_temp_in(&self.folder)?,
                atomic::private_temp_in(&self.folder)?,
            );
            self.files = Some(pair);
        }
        let Some((bytes, index)) = self.files.as_mut() else {
            return Ok(());
        };
        let entry = serde_json::json!({
            "place": place, "reason": reason, "offset": self.offset, "length": raw.len(),
        });
        let write = |file: &mut NamedTempFile, data: &[u8]| {
            let path = file.path().to_owned();
            file.write_all(data).map_err(FsError::at("write", &path))
        };
        write(bytes, raw)?;
        write(index, format!("{entry}\n").as_bytes())?;
        self.offset += raw.len() as u64;
        Ok(())
    }

    /// Puts both files in place; gives where the bytes are, if any were kept.
    pub(crate) fn finish(&mut self) -> Result<Option<PathBuf>, FsError> {
        let Some((bytes, index)) = self.files.take() else {
            return Ok(None);
        };
        let target = self.folder.join(format!("{}.raw", self.name));
        put(bytes, &target)?;
        put(index, &self.folder.join(format!("{}.index", self.name)))?;
        atomic::sync_dir(&self.folder)?;
        Ok(Some(target))
    }
}

fn put(file: NamedTempFile, target: &Path) -> Result<(), FsError> {
    file.as_file()
        .sync_all()
        .map_err(FsError::at("sync", file.path()))?;
    file.persist(target)
        .map_err(|error| FsError::at("rename", target)(error.error))?;
    Ok(())
}
