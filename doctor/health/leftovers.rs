//! What processes that are gone left behind: temporary files, texts of locks, logs without database, large logs.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use zeroclaw::fs::layout::RESTORE_PREFIX;
use zeroclaw::fs::{Layout, RootLock, SharedLock, atomic, sidecars};
use zeroclaw::model::AgentId;
use zeroclaw::service::StatusReport;

use super::Health;
use super::modes::entries;
use crate::doctor::finding::{Finding, Level};
use crate::doctor::names::escaped;

/// Age from which a temporary file of ours is nobody's: no step of ours takes this long between two writes.
const ABANDONED: Duration = Duration::from_secs(60 * 60);
/// The same for private copies in the folder for temporary files, where an import of days may be at work.
const LONG_ABANDONED: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How the names of such copies begin; those of imports are under locks, and go with the next import.
const SCRATCH: [&str; 2] = ["zeroclaw-check-", "zeroclaw-look-"];
/// Sixteen times what a writer lets a log grow to: somebody keeps it from being folded in, or was killed.
const LARGE_LOG: u64 = 64 * 1024 * 1024;
/// Leftovers named, at most.
const NAMED: usize = 3;

pub(super) fn look(
    layout: &Layout,
    status: Option<&StatusReport>,
    now: SystemTime,
    health: &mut Health,
) {
    temporary(layout, now, health);
    lock_text(layout, health);
    lone_logs(layout, health);
    for tier in status.iter().flat_map(|status| &status.tiers) {
        if tier.wal_bytes >= LARGE_LOG {
            health.has_rest = true;
            let agent = tier.tier.strip_prefix("agent ");
            health
                .large_logs
                .extend(agent.and_then(|agent| AgentId::new(agent).ok()));
            let message = format!("its write-ahead log has {} bytes", tier.wal_bytes);
            let finding = Finding::new("large-wal", Level::Advice, &tier.path, message);
            let remedy = "run `zeroclaw doctor --fix`, which folds it in, when no other process reads the database";
            health.findings.push(finding.with_remedy(remedy));
        }
    }
}

fn temporary(layout: &Layout, now: SystemTime, health: &mut Health) {
    let is_old = |path: &Path, age: Duration| {
        let modified = std::fs::symlink_metadata(path).and_then(|meta| meta.modified());
        modified.is_ok_and(|at| now.duration_since(at).is_ok_and(|since| since >= age))
    };
    let mut folders = vec![
        layout.root().to_owned(),
        layout.state_dir(),
        layout.backups_dir(),
    ];
    folders.extend(
        entries(&layout.agents_dir())
            .iter()
            .map(|agent| agent.join("agent")),
    );
    folders.extend(entries(&layout.state_dir().join("quarantine")));
    let mut found: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| entries(folder))
        .filter(|path| path.file_name().is_some_and(atomic::is_temp_name))
        .filter(|path| is_old(path, ABANDONED))
        .collect();
    // With a journal, a restore is unfinished and the next command goes on with it.
    if !layout.restore_journal().exists() {
        let staged = entries(&layout.state_dir()).into_iter();
        found.extend(
            staged.filter(|path| starts_with(path, RESTORE_PREFIX) && is_old(path, ABANDONED)),
        );
    }
    let me = rustix::process::geteuid().as_raw();
    let is_mine = |path: &PathBuf| {
        std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == me)
    };
    let scratch = entries(&std::env::temp_dir()).into_iter();
    found.extend(
        scratch
            .filter(|path| SCRATCH.iter().any(|prefix| starts_with(path, prefix)))
            .filter(|path| is_old(path, LONG_ABANDONED))
            .filter(is_mine),
    );
    if found.is_empty() {
        return;
    }
    let names: Vec<String> = found
        .iter()
        .take(NAMED)
        .map(|path| escaped(path.strip_prefix(layout.root()).unwrap_or(path)))
        .collect();
    let message = format!(
        "{} temporary files or folders of processes that are gone, {} among them",
        found.len(),
        names.join(", ")
    );
    let finding = Finding::new("leftover-temp", Level::Advice, &names[0], message);
    health
        .findings
        .push(finding.with_remedy("run `zeroclaw doctor --fix`: it removes them"));
    health.leftovers.append(&mut found);
}

fn starts_with(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().map(|name| name.as_encoded_bytes());
    name.is_some_and(|name| name.starts_with(prefix.as_bytes()))
}

/// A lock that nobody holds, with a text: its holder was killed.
fn lock_text(layout: &Layout, health: &mut Health) {
    let has_text = std::fs::metadata(layout.daemon_lock()).is_ok_and(|meta| meta.len() > 0);
    let is_free = matches!(RootLock::shared_if_present(layout), Ok(SharedLock::Held(_)));
    if has_text && is_free {
        health.has_rest = true;
        let place = escaped(layout.stored(&layout.daemon_lock()));
        let message =
            "names a process that was killed; nobody holds the lock, and it is in nobody's way";
        let finding = Finding::new("stale-lock", Level::Advice, place, message);
        health.findings.push(finding.with_remedy(
            "run `zeroclaw doctor --fix`, or just go on: the next writer sets it right",
        ));
    }
}

/// A log of ours without its database: that was moved or deleted by hand.
fn lone_logs(layout: &Layout, health: &mut Health) {
    let agents = entries(&layout.agents_dir()).into_iter();
    let databases = agents
        .map(|agent| agent.join("agent/agent.sqlite"))
        .chain([layout.global_db()]);
    for database in databases.filter(|database| !database.exists()) {
        let [wal, _, journal] = sidecars(&database);
        for log in [wal, journal] {
            if std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0) {
                let place = escaped(layout.stored(&log));
                let message = "a log without its database, which was moved or deleted; it may hold the last commits";
                let finding = Finding::new("lone-log", Level::Warning, place, message);
                health.findings.push(finding.with_remedy(
                    "put the database it belongs to back beside it, or restore a backup; never pair it with another one",
                ));
            }
        }
    }
}

/// Removes a file or folder that a killed process left.
pub(super) fn sweep(path: &Path) {
    let is_folder = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    let removed = if is_folder {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
    if let Err(error) = removed {
        tracing::warn!(path = %path.display(), %error, "cannot remove");
    }
}
