//! How much a folder holds.

use std::path::Path;

use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

/// What lies below a place. Links are not followed and count as themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What could not be read, and is in neither number.
    pub unreadable: u64,
}

/// Measures a file or all files below a folder; one that is not there holds nothing.
///
/// May take long over many files; asynchronous callers go through `spawn_blocking`.
#[must_use]
pub fn measure(path: &Path) -> Measured {
    let mut found = Measured::default();
    if path.symlink_metadata().is_err() {
        return found;
    }
    for entry in WalkDir::new(path) {
        let Ok(metadata) = entry.and_then(|entry| entry.metadata()) else {
            found.unreadable += 1;
            continue;
        };
        if !metadata.is_dir() {
            found.files += 1;
            found.bytes += metadata.len();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_holds_what_its_files_hold_and_nothing_behind_links() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::fs::write(other.path().join("large"), vec![0; 10_000]).unwrap();
        std::fs::create_dir(dir.path().join("below")).unwrap();
        std::fs::write(dir.path().join("a"), [0; 3]).unwrap();
        std::fs::write(dir.path().join("below/b"), [0; 4]).unwrap();
        std::os::unix::fs::symlink(other.path(), dir.path().join("below/link")).unwrap();

        let found = measure(dir.path());

        assert_eq!((found.files, found.unreadable), (3, 0));
        assert!(found.bytes < 1_000, "{found:?}");
        assert_eq!(measure(&dir.path().join("none")), Measured::default());
    }
}
