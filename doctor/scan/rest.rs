//! Files that no reader takes, by a table of patterns; what no row fits is unknown, and named as that.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;
use zeroclaw::fs::{FsError, atomic, sidecars};

use super::{Other, Scan, matching};
use crate::doctor::finding::{Finding, Level};
use crate::doctor::names::escaped;
use crate::doctor::sources::zeroclaw::surfaces::Fate;

/// Entries looked at for files that nobody knows, at most: a root may be a whole home folder.
const MAX_LOOKED_AT: usize = 20_000;
/// Of those, named at most.
const NAMED: usize = 5;

/// What becomes of files that no reader takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Name of the surface.
    pub(crate) surface: &'static str,
    /// Where; see [`matching`].
    pub(crate) pattern: &'static str,
    /// What becomes of them.
    pub(crate) fate: Fate,
    /// Why, where that is worth saying.
    pub(crate) reason: Option<&'static str>,
}

/// Finds what the rows know and no reader takes, then what nobody knows.
///
/// # Errors
///
/// [`FsError`] when a folder cannot be listed.
pub(crate) fn find(
    root: &Path,
    rows: impl Iterator<Item = Row>,
    scan: &mut Scan,
) -> Result<(), FsError> {
    let mut claimed = HashSet::new();
    for source in &scan.sources {
        claim(&source.relative, &mut claimed);
    }
    take(root, rows, &mut claimed, scan)?;
    scan.findings.extend(unknown(root, &claimed, |_| false));
    Ok(())
}

/// Finds what the rows know; of several rows the first one has a file.
pub(super) fn take(
    root: &Path,
    rows: impl Iterator<Item = Row>,
    claimed: &mut HashSet<PathBuf>,
    scan: &mut Scan,
) -> Result<(), FsError> {
    for row in rows {
        for relative in matching(root, row.pattern)? {
            let (files, bytes) = measure(root, &relative, claimed);
            if files > 0 {
                scan.others.push(Other {
                    surface: row.surface,
                    relative: relative.clone(),
                    fate: row.fate,
                    reason: row.reason,
                    files,
                    bytes,
                });
            }
            claim(&relative, claimed);
        }
    }
    Ok(())
}

/// A path, and the logs it would have as a database.
pub(super) fn claim(relative: &Path, claimed: &mut HashSet<PathBuf>) {
    claimed.extend(sidecars(relative));
    claimed.insert(relative.to_owned());
}

/// Files at or below a path that nobody else claims, and their size; links are not followed.
fn measure(root: &Path, relative: &Path, claimed: &HashSet<PathBuf>) -> (u64, u64) {
    let path = root.join(relative);
    let is_free = |entry: &walkdir::DirEntry| {
        let below = entry.path().strip_prefix(root);
        entry.depth() == 0 || below.is_ok_and(|below| !claimed.contains(below))
    };
    if claimed.contains(relative) {
        return (0, 0);
    }
    let entries = WalkDir::new(path).into_iter().filter_entry(is_free);
    let files = entries
        .filter_map(Result::ok)
        .filter(|entry| !entry.file_type().is_dir());
    files.fold((0, 0), |(files, bytes), entry| {
        let size = entry.metadata().map_or(0, |meta| meta.len());
        (files + 1, bytes + size)
    })
}

/// What nobody knows may be anybody's: it is named once and left alone.
///
/// * `is_known`: whether somebody speaks of a path all the same.
pub(super) fn unknown(
    root: &Path,
    claimed: &HashSet<PathBuf>,
    is_known: impl Fn(&Path) -> bool,
) -> Option<Finding> {
    let is_free = |entry: &walkdir::DirEntry| {
        let below = entry.path().strip_prefix(root);
        below.is_ok_and(|below| !claimed.contains(below))
            && !is_known(entry.path())
            && !atomic::is_temp_name(entry.file_name())
    };
    let entries = WalkDir::new(root)
        .min_depth(1)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(is_free)
        .take(MAX_LOOKED_AT);
    let mut looked_at = 0;
    let mut files = Vec::new();
    for entry in entries {
        looked_at += 1;
        if let Ok(entry) = entry
            && !entry.file_type().is_dir()
            && let Ok(below) = entry.path().strip_prefix(root)
        {
            files.push(escaped(below));
        }
    }
    let first = files.first()?;
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let at_least = if looked_at == MAX_LOOKED_AT {
        "at least "
    } else {
        ""
    };
    let named: Vec<&str> = files.iter().take(NAMED).map(String::as_str).collect();
    let message = format!(
        "{at_least}{} that no table of old or new formats knows: {}{more}; left alone",
        match files.len() {
            1 => "1 file".to_owned(),
            several => format!("{several} files"),
        },
        named.join(", ")
    );
    let finding = Finding::new("unknown-files", Level::Advice, first, message);
    Some(
        finding.with_remedy(
            "nothing, if they are yours; what an old program left there is not imported",
        ),
    )
}
