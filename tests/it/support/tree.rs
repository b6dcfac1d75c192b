//! Proof that a folder did not change.

use std::fmt;
use std::fs;
use std::path::Path;

use super::recipe::sha256_hex;

/// One thing below a folder.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TreeEntry {
    /// The path below the folder, as the system's own bytes.
    pub(crate) path: Vec<u8>,
    /// SHA-256 of a file's content or of a link's target; empty for a folder.
    pub(crate) sha256: String,
    /// Kind and permission bits; 0 where the system has none.
    pub(crate) mode: u32,
    /// Bytes of a file; 0 for anything else.
    pub(crate) size: u64,
}

impl fmt::Debug for TreeEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:06o} {:>9} {:.12} {}",
            self.mode,
            self.size,
            self.sha256,
            self.path.escape_ascii()
        )
    }
}

/// Every file, link and folder below `dir`, sorted by path. Links are described, not followed.
pub(crate) fn tree_hash(dir: &Path) -> Vec<TreeEntry> {
    let mut entries: Vec<TreeEntry> = walkdir::WalkDir::new(dir)
        .min_depth(1)
        .follow_links(false)
        .into_iter()
        .map(|entry| describe(dir, &entry.unwrap()))
        .collect();
    entries.sort();
    entries
}

fn describe(dir: &Path, entry: &walkdir::DirEntry) -> TreeEntry {
    let metadata = entry.metadata().unwrap();
    let (sha256, size) = if metadata.is_file() {
        (sha256_hex(&fs::read(entry.path()).unwrap()), metadata.len())
    } else if metadata.is_symlink() {
        (
            sha256_hex(
                fs::read_link(entry.path())
                    .unwrap()
                    .as_os_str()
                    .as_encoded_bytes(),
            ),
            0,
        )
    } else {
        (String::new(), 0)
    };
    TreeEntry {
        path: entry
            .path()
            .strip_prefix(dir)
            .unwrap()
            .as_os_str()
            .as_encoded_bytes()
            .to_vec(),
        sha256,
        mode: mode_of(&metadata),
        size,
    }
}

#[cfg(unix)]
fn mode_of(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(metadata)
}

#[cfg(not(unix))]
fn mode_of(_metadata: &fs::Metadata) -> u32 {
    0
}

/// Fails with the differing entries only.
#[track_caller]
pub(crate) fn assert_same_tree(before: &[TreeEntry], after: &[TreeEntry]) {
    let gone: Vec<_> = before
        .iter()
        .filter(|entry| !after.contains(entry))
        .collect();
    let new: Vec<_> = after
        .iter()
        .filter(|entry| !before.contains(entry))
        .collect();
    assert!(
        gone.is_empty() && new.is_empty(),
        "the folder changed\nbefore: {gone:#?}\nafter: {new:#?}"
    );
}
