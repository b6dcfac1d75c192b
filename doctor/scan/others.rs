//! Files that no reader takes: those the table knows, and those that nobody knows.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;
use zeroclaw::fs::{FsError, atomic, sidecars};

use super::{Other, Scan, matching};
use crate::doctor::finding::{Finding, Level};
use crate::doctor::names::{escaped, split_name};
use crate::doctor::sources::zeroclaw::remains::REMAINS;
use crate::doctor::sources::zeroclaw::surfaces::{OTHERS, PLACES, SESSION_FOLDERS};

/// Entries looked at for files that nobody knows, at most: a root may be a whole home folder.
const MAX_LOOKED_AT: usize = 20_000;
/// Of those, named at most.
const NAMED: usize = 5;

/// What is this product's own below a root; a `/` at the end stands for all below.
const OURS: &[&str] = &[
    "state/state.sqlite",
    "state/daemon.lock",
    "state/migrate.lock",
    "state/restore.journal",
    "state/import.before",
    "state/undone/",
    "state/migrated/",
    "state/quarantine/",
    "state/restored/",
    "state/.restore-*",
    "agents/*/agent/",
    "backups/",
];

/// Finds what the table knows and no reader takes, then what nobody knows.
pub(super) fn find(root: &Path, scan: &mut Scan) -> Result<(), FsError> {
    let mut claimed = HashSet::new();
    for source in &scan.sources {
        claim(&source.relative, &mut claimed);
    }
    for (surface, pattern, fate) in OTHERS.iter().chain(REMAINS) {
        for relative in matching(root, pattern)? {
            let (files, bytes) = measure(root, &relative, &claimed);
            if files > 0 {
                scan.others.push(Other {
                    surface,
                    relative: relative.clone(),
                    fate: *fate,
                    files,
                    bytes,
                });
            }
            claim(&relative, &mut claimed);
        }
    }
    // Of stores that could not be taken, findings speak.
    let stores = PLACES.iter().map(|place| place.pattern);
    let of_sessions = SESSION_FOLDERS.map(|folder| format!("{folder}/sessions.db"));
    for pattern in stores
        .chain(OURS.iter().copied())
        .chain(of_sessions.iter().map(String::as_str))
    {
        for relative in matching(root, pattern)? {
            claim(&relative, &mut claimed);
        }
    }
    scan.findings.extend(unknown(root, &claimed));
    Ok(())
}

/// A path, and the logs it would have as a database.
fn claim(relative: &Path, claimed: &mut HashSet<PathBuf>) {
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
fn unknown(root: &Path, claimed: &HashSet<PathBuf>) -> Option<Finding> {
    let is_free = |entry: &walkdir::DirEntry| {
        let below = entry.path().strip_prefix(root);
        let is_session = SESSION_FOLDERS.iter().any(|folder| {
            let folder = root.join(folder);
            let parent = entry.path().parent();
            parent == Some(&folder) || parent == Some(&folder.join("archive"))
        }) && split_name(entry.file_name().as_encoded_bytes()).is_some();
        below.is_ok_and(|below| !claimed.contains(below))
            && !is_session
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_knows_is_told_once_and_what_is_known_is_not_among_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for file in [
            "config.toml",
            "state/state.sqlite",
            "state/state.sqlite-wal",
            "agents/atlas/agent/agent.sqlite",
            "agents/atlas/workspace/own/notes.txt",
            "data/sessions/a.jsonl",
            "data/cron/jobs.db-journal",
            "what",
            "data/strange/one",
            "data/strange/two",
        ] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let mut scan = Scan::default();

        find(root, &mut scan).unwrap();

        let unknown: Vec<&Finding> = scan.findings.iter().collect();
        assert_eq!(unknown.len(), 1);
        assert_eq!(
            unknown[0].message,
            "3 files that no table of old or new formats knows: data/strange/one, data/strange/two, what; left alone"
        );
        let workspace = scan
            .others
            .iter()
            .find(|other| other.surface == "agent workspaces");
        assert_eq!(workspace.map(|other| other.files), Some(1));
    }
}
