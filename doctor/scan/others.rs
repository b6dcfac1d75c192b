//! Files that no reader takes: those the table knows, and those that nobody knows.

use std::collections::HashSet;
use std::path::Path;

use zeroclaw::fs::FsError;

use super::rest::{Row, claim, take, unknown};
use super::{Scan, matching};
use crate::doctor::names::split_name;
use crate::doctor::sources::zeroclaw::remains::REMAINS;
use crate::doctor::sources::zeroclaw::surfaces::{OTHERS, PLACES, SESSION_FOLDERS};

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
    let rows = OTHERS.iter().chain(REMAINS);
    let rows = rows.map(|(surface, pattern, fate)| Row {
        surface,
        pattern,
        fate: *fate,
        reason: None,
    });
    take(root, rows, &mut claimed, scan)?;
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
    let is_session = |path: &Path| {
        let name = path.file_name().unwrap_or_default();
        SESSION_FOLDERS.iter().any(|folder| {
            let folder = root.join(folder);
            let parent = path.parent();
            parent == Some(&folder) || parent == Some(&folder.join("archive"))
        }) && split_name(name.as_encoded_bytes()).is_some()
    };
    scan.findings.extend(unknown(root, &claimed, is_session));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Finding;

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
