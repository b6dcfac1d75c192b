//! Which paths a member of an archive may have.
//!
//! An archive is hostile until proved otherwise: these rules hold for what is written and for what is read.

use std::collections::{HashMap, HashSet};

use super::manifest::{DIGEST_NAME, MANIFEST_NAME, Member, MemberKind, Role};
use crate::fs::layout::RESTORE_PREFIX;
use crate::model::AgentId;

/// Longest path, bytes.
pub(super) const MAX_PATH_BYTES: usize = 1_024;
/// Longest part of a path, bytes: what filesystems take.
const MAX_PART_BYTES: usize = 255;
/// Longest part of a foreign name shown, characters.
const SHOWN: usize = 120;

pub(super) const GLOBAL_DB: &str = "state/state.sqlite";

/// Paths that belong to the machinery of a root, lower-case: they never travel. A trailing `/` means all below.
const RESERVED: [&str; 9] = [
    "state/daemon.lock",
    "state/daemon.sock",
    "state/migrate.lock",
    "state/restore.journal",
    "state/restored/",
    "state/import.before",
    "state/migrated/",
    "state/undone/",
    "backups/",
];

/// Cuts a foreign name to a readable length and takes what a terminal would obey out of it.
pub(super) fn shown(name: &str) -> String {
    let cut: String = name.chars().take(SHOWN).collect();
    cut.escape_debug().to_string()
}

/// Says why a path may not be a member's, if so.
pub(super) fn fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is an empty path");
    }
    if path.len() > MAX_PATH_BYTES {
        return Some("is a path too long");
    }
    if path.starts_with('/') {
        return Some("is an absolute path");
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return Some("has a character that a path may not have");
    }
    for part in path.split('/') {
        match part {
            "" | "." => return Some("is not a normal path"),
            ".." => return Some("leads out of the root"),
            _ if part.len() > MAX_PART_BYTES => return Some("has a part too long"),
            _ => {}
        }
    }
    let lower = path.to_lowercase();
    let is_reserved = RESERVED.iter().any(|reserved| match reserved {
        folder if folder.ends_with('/') => {
            lower.starts_with(folder) || lower == folder.trim_end_matches('/')
        }
        file => lower == *file,
    });
    let is_staging = lower
        .strip_prefix("state/")
        .is_some_and(|rest| rest.starts_with(RESTORE_PREFIX));
    if is_reserved || is_staging || lower == MANIFEST_NAME || lower == DIGEST_NAME {
        return Some("is a path that no member may have");
    }
    None
}

/// Holds all paths of an archive against the rules: each alone, and that no two fall on one file, also where case
/// does not count, and none is a folder of another.
pub(super) fn check_all<'a>(
    paths: impl Iterator<Item = &'a str>,
) -> Result<(), (String, &'static str)> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for path in paths {
        if let Some(reason) = fault(path) {
            return Err((path.to_owned(), reason));
        }
        if seen.insert(path.to_lowercase(), path).is_some() {
            return Err((path.to_owned(), "stands twice in the list"));
        }
    }
    let mut folders = HashSet::new();
    for lower in seen.keys() {
        folders.extend(lower.match_indices('/').map(|(at, _)| &lower[..at]));
    }
    for (lower, path) in &seen {
        if folders.contains(lower.as_str()) {
            return Err(((*path).to_owned(), "is a file and a folder at once"));
        }
    }
    Ok(())
}

/// The database a sidecar stands beside; `None` when the path is no sidecar's.
pub(super) fn database_of_sidecar(path: &str) -> Option<&str> {
    ["-wal", "-shm", "-journal"]
        .iter()
        .find_map(|end| path.strip_suffix(end))
}

/// Whether a member's path is where its kind belongs, so that a restore cannot be led to replace something else.
pub(super) fn fits(member: &Member) -> bool {
    let path = member.archive_path.as_str();
    let is_tier_path = path.eq_ignore_ascii_case(GLOBAL_DB)
        || database_of_sidecar(path).is_some_and(|db| db.eq_ignore_ascii_case(GLOBAL_DB));
    match (member.kind, member.role) {
        (MemberKind::Database, Some(Role::Global)) => path == GLOBAL_DB,
        (MemberKind::Database, Some(Role::Agent)) => path.starts_with("agents/"),
        (MemberKind::Config, _) => path == "config.toml",
        (MemberKind::Key, _) => path == ".secret_key",
        (MemberKind::Workspace, _) => is_in_workspace(path),
        (MemberKind::Database | MemberKind::Credential | MemberKind::File, _) => {
            !is_tier_path && path != "config.toml" && path != ".secret_key"
        }
    }
}

/// How the paths of an agent's workspace begin.
pub(super) fn workspace_prefix(agent: &AgentId) -> String {
    format!("agents/{agent}/workspace/")
}

/// How the paths of all that is an agent's begin: its folder, and the copies of its deleted sessions.
pub(super) fn of_whole_agent(agent: &AgentId) -> Vec<String> {
    vec![
        format!("agents/{agent}/"),
        format!("state/deleted/{agent}/"),
    ]
}

/// Whether a path is of the form `agents/<id>/workspace/…`.
pub(super) fn is_in_workspace(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("agents")
        && parts.next().is_some()
        && parts.next() == Some("workspace")
        && parts.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "a\nb",
            "a\0b",
            "state/daemon.lock",
            "State/Daemon.Lock",
            "state/restore.journal",
            "state/restored/x",
            "state/.restore-1/x",
            "state/migrated/x",
            "backups/x.tar.gz",
            "manifest.json",
            "Manifest.SHA256",
            &"x".repeat(256),
            &"x/".repeat(600),
        ] {
            assert!(fault(path).is_some(), "{path:?}");
        }
        for path in [
            "config.toml",
            "agents/a/agent/agent.sqlite",
            "agents/ünïcode name/x",
            "-rf",
        ] {
            assert_eq!(fault(path), None, "{path:?}");
        }
    }

    #[test]
    fn two_paths_of_one_file_are_refused() {
        let twice = ["a/b", "A/B"];
        let folder = ["a/b", "a"];
        let good = ["a/b", "a/c", "ab"];

        assert!(check_all(twice.into_iter()).is_err());
        assert!(check_all(folder.into_iter()).is_err());
        assert!(check_all(good.into_iter()).is_ok());
    }
}
