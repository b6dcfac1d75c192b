//! Phase five: moves proven sources aside, byte for byte, logs with their database.

use std::path::{Path, PathBuf};

use zeroclaw::fs::{FsError, atomic, sidecars};

use super::scan::Source;

/// Moves a source to where the run keeps what it took in; gives that place.
///
/// The database goes first and its logs follow, so that what is left by a crash between them is a
/// log without database, which the next run moves after it, never a database without its log.
/// A file that lies there already is kept: an equal one stands for both, beside another one the
/// source gets the next free name.
///
/// * `root`: the root of the source.
pub(crate) fn retire(root: &Path, source: &Source, aside: &Path) -> Result<PathBuf, FsError> {
    let path = root.join(&source.relative);
    let mut target = aside.join(&source.relative);
    if is_there(&path) {
        target = free_name(&path, target)?;
        move_or_drop(&path, &target)?;
    }
    zeroclaw::fs::fault("doctor-mid-retire");
    if source.format.is_sqlite() {
        for (log, aside) in sidecars(&path).iter().zip(sidecars(&target)) {
            if is_there(log) {
                let aside = free_name(log, aside)?;
                move_or_drop(log, &aside)?;
            }
        }
    }
    Ok(target)
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn is_equal(a: &Path, b: &Path) -> Result<bool, FsError> {
    Ok(atomic::hash_file(a)? == atomic::hash_file(b)?)
}

/// `target`, or `target.1`, `target.2` …: the first that is free or holds the same bytes.
fn free_name(source: &Path, target: PathBuf) -> Result<PathBuf, FsError> {
    let mut candidate = target.clone();
    for number in 1_u32.. {
        if !is_there(&candidate) || is_equal(source, &candidate)? {
            break;
        }
        let mut name = target.clone().into_os_string();
        name.push(format!(".{number}"));
        candidate = PathBuf::from(name);
    }
    Ok(candidate)
}

fn move_or_drop(source: &Path, target: &Path) -> Result<(), FsError> {
    if is_there(target) {
        // The same bytes are kept there already.
        return atomic::remove_file_synced(source);
    }
    atomic::rename_synced(source, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_kept_and_an_equal_file_stands_for_both() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("aside", "old"),
            ("aside.1", "older"),
            ("new", "new"),
            ("same", "older"),
        ] {
            std::fs::write(at(name), text).unwrap();
        }

        let target = free_name(&at("new"), at("aside")).unwrap();
        move_or_drop(&at("new"), &target).unwrap();
        assert_eq!(target, at("aside.2"));

        let target = free_name(&at("same"), at("aside")).unwrap();
        move_or_drop(&at("same"), &target).unwrap();
        assert_eq!(target, at("aside.1"));
        assert!(!at("same").exists() && at("aside").exists());
    }
}
