//! A write-ahead log that the 0.8 upgrade parted from its database.
//!
//! The upgrade moved `brain.db` and `devices.db` below `data` and their logs to the workspace of `default`;
//! then the databases went on without them, so a log must never be put beside its database again. The pair is whole
//! only in the copy the upgrade had made before: `backup-<time>/legacy-workspace`. That copy is read,
//! and stays; the log is what is moved aside once its rows are in.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, atomic, sidecars};

/// The old workspace, below the copy's folder.
const OLD_WORKSPACE: &str = "legacy-workspace";

/// The database in a safety copy whose log is, byte for byte, the one at `log`; below `root`.
///
/// * `in_workspace`: where the old workspace has the database.
pub(crate) fn database_of(
    root: &Path,
    in_workspace: &str,
    log: &Path,
) -> Result<Option<PathBuf>, FsError> {
    let wanted = atomic::hash_file(log)?;
    let mut copies = Vec::new();
    for entry in std::fs::read_dir(root).map_err(FsError::at("list", root))? {
        let name = entry.map_err(FsError::at("list", root))?.file_name();
        if name.as_bytes().starts_with(b"backup-") {
            copies.push(PathBuf::from(name).join(OLD_WORKSPACE).join(in_workspace));
        }
    }
    copies.sort();
    for database in copies {
        let path = root.join(&database);
        let [wal, ..] = sidecars(&path);
        if path.is_file() && wal.is_file() && atomic::hash_file(&wal)? == wanted {
            return Ok(Some(database));
        }
    }
    Ok(None)
}
