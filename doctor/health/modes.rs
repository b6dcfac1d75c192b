//! Who may read and write what is private: databases, their logs, locks, archives, keys.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroclaw::fs::layout::{AGENT_ARCHIVE_PREFIX, ARCHIVE_PREFIX};
use zeroclaw::fs::{Layout, sidecars};

use super::Health;
use crate::doctor::finding::{Finding, Level};
use crate::doctor::names::escaped;

/// Bits of the group and of everybody else.
const OTHERS: u32 = 0o077;

/// Files with keys and tokens, below the root: name, or its beginning and end.
const KEYS: &[(&str, &str)] = &[
    ("config.toml", ""),
    (".secret_key", ""),
    ("data/.secret_key", ""),
    ("auth-profiles.json", ""),
    ("otp-secret", ""),
    ("acp-bridge-token", ""),
    ("data/webauthn_credentials.json", ""),
    ("data/daemon.sock", ""),
    ("auth-", "-pending.json"),
    ("ms365_token_cache_", ".json"),
];

/// Finds what is less private than it should be, and what belongs to the wrong user.
pub(super) fn look(layout: &Layout, health: &mut Health) {
    let me = rustix::process::geteuid().as_raw();
    let Ok(home) = std::fs::metadata(layout.root()) else {
        return;
    };
    // Left by a run as root in somebody's home: that user can neither read nor replace it.
    let strange = match home.uid() {
        0 => Vec::new(),
        _ => of_root(layout),
    };
    let foreign: Vec<String> = strange
        .iter()
        .map(|path| escaped(path.strip_prefix(layout.root()).unwrap_or(path)))
        .collect();
    if me == 0 {
        health.strange = strange;
    }
    let mut kept = Vec::new();
    for path in private_paths(layout) {
        let Ok(meta) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        let name = escaped(path.strip_prefix(layout.root()).unwrap_or(&path));
        if meta.is_symlink() {
            continue;
        }
        let mode = meta.permissions().mode() & 0o7777;
        if mode & OTHERS == 0 {
            continue;
        }
        let may = me == 0 || meta.uid() == me;
        let message = format!("others can get at it (mode {mode:04o})");
        let finding = Finding::new("loose-mode", Level::Warning, &name, message);
        if may {
            health.loose.push(path);
            kept.push(
                finding
                    .with_remedy("run `zeroclaw doctor --fix`: it takes the rights of others away"),
            );
        } else {
            let remedy = format!(
                "it belongs to user {}, who alone can do it: `chmod go= {name}`",
                meta.uid()
            );
            kept.push(finding.with_remedy(remedy));
        }
    }
    health.findings.extend(kept);
    if let Some(first) = foreign.first() {
        let more = match foreign.len() {
            1 => String::new(),
            several => format!(" and {} more", several - 1),
        };
        let message = format!(
            "belongs to root{more}, though the root is of user {}",
            home.uid()
        );
        let remedy = if me == 0 {
            "run `zeroclaw doctor --fix` as root again: it gives the files back".to_owned()
        } else {
            format!(
                "`sudo chown -R --from=root {}:{} {}`",
                home.uid(),
                home.gid(),
                layout.root().display()
            )
        };
        let finding = Finding::new("foreign-owner", Level::Warning, first, message);
        health.findings.push(finding.with_remedy(remedy));
    }
    root_folder(layout, &home, health);
}

/// The root folder itself is the user's: how open it is may be meant.
fn root_folder(layout: &Layout, home: &std::fs::Metadata, health: &mut Health) {
    let mode = home.permissions().mode() & 0o7777;
    if mode & 0o022 != 0 {
        let message = format!("others can put files into the root (mode {mode:04o})");
        let place = layout.root().display().to_string();
        let finding = Finding::new("open-root", Level::Advice, place, message);
        let remedy =
            "if nobody else needs to: `chmod go-w` it; it stays as it is, since it may be meant";
        health.findings.push(finding.with_remedy(remedy));
    }
}

/// Everything of a root that is private, there or not.
fn private_paths(layout: &Layout) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for (start, end) in KEYS {
        let path = layout.root().join(start);
        if end.is_empty() {
            paths.push(path);
        } else {
            paths.extend(entries(layout.root()).into_iter().filter(|path| {
                let name = path.file_name().map(|name| name.as_encoded_bytes());
                name.is_some_and(|name| {
                    name.starts_with(start.as_bytes()) && name.ends_with(end.as_bytes())
                })
            }));
        }
    }
    // Before there is state, that folder is the old program's alone.
    if layout.global_db().exists() {
        paths.push(layout.state_dir());
        with_logs(layout.global_db(), &mut paths);
        paths.extend([
            layout.daemon_lock(),
            layout.migrate_lock(),
            layout.restore_journal(),
        ]);
        let sockets = entries(&layout.state_dir()).into_iter();
        paths.extend(sockets.filter(|path| {
            std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
        }));
    }
    for agent in entries(&layout.agents_dir()) {
        let database = agent.join("agent/agent.sqlite");
        if database.exists() {
            paths.extend(database.parent().map(Path::to_path_buf));
            with_logs(database, &mut paths);
        }
    }
    let archives = entries(&layout.backups_dir()).into_iter().filter(|path| {
        let name = path.file_name().map(|name| name.as_encoded_bytes());
        name.is_some_and(|name| {
            [ARCHIVE_PREFIX, AGENT_ARCHIVE_PREFIX]
                .iter()
                .any(|prefix| name.starts_with(prefix.as_bytes()))
        })
    });
    paths.extend(archives);
    paths
}

/// What this product made below a root that belongs to root, parents first.
fn of_root(layout: &Layout) -> Vec<PathBuf> {
    let folders = [
        layout.state_dir(),
        layout.backups_dir(),
        layout.agents_dir(),
    ];
    let is_ours = |entry: &walkdir::DirEntry| {
        // Workspaces are the agents' own, whoever wrote there.
        entry.depth() != 2 || entry.file_name() != "workspace"
    };
    let entries = folders.iter().flat_map(|folder| {
        walkdir::WalkDir::new(folder)
            .into_iter()
            .filter_entry(is_ours)
    });
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.metadata().is_ok_and(|meta| meta.uid() == 0))
        .map(walkdir::DirEntry::into_path)
        .collect()
}

fn with_logs(database: PathBuf, paths: &mut Vec<PathBuf>) {
    paths.extend(sidecars(&database));
    paths.push(database);
}

/// Paths in a folder, in order; none where it cannot be read.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Takes the rights of group and others away; gives none to anybody.
pub(super) fn tighten(path: &Path) {
    let Ok(meta) = std::fs::symlink_metadata(path) else {
        return;
    };
    let mode = meta.permissions().mode() & 0o7777;
    if !meta.is_symlink() && mode & OTHERS != 0 {
        let private = std::fs::Permissions::from_mode(mode & !OTHERS);
        if let Err(error) = std::fs::set_permissions(path, private) {
            tracing::warn!(path = %path.display(), %error, "cannot tighten");
        }
    }
}

/// Gives a file to whom the folder it lies in, or one above it, belongs to.
pub(super) fn give_back(path: &Path) {
    let owner = path
        .ancestors()
        .skip(1)
        .filter_map(|folder| std::fs::metadata(folder).ok())
        .find(|meta| meta.uid() != 0);
    if let Some(owner) = owner
        && let Err(error) = std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid()))
    {
        tracing::warn!(path = %path.display(), %error, "cannot give back");
    }
}
