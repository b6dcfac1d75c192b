//! What a root lies on: kinds of filesystem that databases cannot trust, folders that are synced, free space.

use std::path::{Path, PathBuf};

use zeroclaw::fs::Layout;
use zeroclaw::fs::space::{self, FilesystemKind};
use zeroclaw::service::StatusReport;

use crate::doctor::finding::{Finding, Level};

/// Less free space than this stops ordinary work soon, bytes.
const SCARCE: u64 = 64 * 1024 * 1024;

/// Names of folders that programs keep equal on several machines.
const SYNCED_NAMES: &[&str] = &[
    "Dropbox",
    "Google Drive",
    "GoogleDrive",
    "My Drive",
    "OneDrive",
    "iCloud Drive",
    "Mobile Documents",
    "CloudStorage",
    "Nextcloud",
    "ownCloud",
    "pCloudDrive",
    "MEGA",
];

/// What such programs leave in the folder they keep.
const SYNC_MARKS: &[&str] = &[
    ".dropbox",
    ".dropbox.cache",
    ".stfolder",
    ".owncloudsync.log",
    ".nextcloudsync.log",
];

/// Says what is unfit about the place of a root.
pub(super) fn look(layout: &Layout, status: Option<&StatusReport>, findings: &mut Vec<Finding>) {
    let root = layout.root();
    // What cannot be asked is left to the write that will tell.
    if let Ok(kind) = space::filesystem(root) {
        findings.extend(unfit(root, kind));
    }
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    if let Some(folder) = synced(&real) {
        let message = format!(
            "the root lies in {}, which is synced with other machines: a copy of a database taken in the middle of a \
             write, or put back over it, is damage",
            folder.display()
        );
        findings.push(
            Finding::new("synced-folder", Level::Warning, place(root), message)
                .with_remedy("move the root out of it, or leave it out of the syncing; send archives of `zeroclaw backup create` instead"),
        );
    }
    let needed = status.map_or(0, largest).max(SCARCE);
    if let Ok(free) = space::free_bytes(root)
        && free < needed
    {
        let message = format!("{free} bytes free; {needed} are needed for ordinary work");
        findings.push(
            Finding::new("low-space", Level::Warning, place(root), message)
                .with_remedy("make room; `zeroclaw backup prune` shows archives that may go"),
        );
    }
    if space::is_read_only(root).unwrap_or(false) {
        let message = "the filesystem is mounted read-only: reading works, nothing else";
        findings.push(
            Finding::new("read-only", Level::Warning, place(root), message)
                .with_remedy("mount it to write, if anything is to be written"),
        );
    }
}

fn place(root: &Path) -> String {
    root.display().to_string()
}

/// A backup or a rebuilt index needs room for the largest database once more.
fn largest(status: &StatusReport) -> u64 {
    let sizes = status.tiers.iter().map(|tier| tier.size_bytes);
    sizes.max().unwrap_or(0)
}

fn unfit(root: &Path, kind: FilesystemKind) -> Option<Finding> {
    let (code, message, remedy) = match kind {
        FilesystemKind::Local => return None,
        FilesystemKind::Network(name) => (
            "network-filesystem",
            format!(
                "the root is on another machine's disk ({name}): locks cannot be trusted there, and two machines at work on it damage it"
            ),
            "move the root to a disk of this machine; until then only one machine may use it",
        ),
        FilesystemKind::CrossVm(name) => (
            "shared-filesystem",
            format!(
                "the root is on a disk shared between a virtual machine and its host ({name}): their locks do not meet"
            ),
            "move the root to a disk or volume of its own; until then only one side may use it",
        ),
        FilesystemKind::Volatile(name) => (
            "volatile-filesystem",
            format!("the root is in memory ({name}): ALL OF IT IS GONE after a reboot"),
            "move the root to a disk, or back it up to one: `zeroclaw backup create --output FILE`",
        ),
    };
    Some(Finding::new(code, Level::Warning, place(root), message).with_remedy(remedy))
}

/// The folder at or above `path` that is synced with other machines.
fn synced(path: &Path) -> Option<PathBuf> {
    let is_synced = |folder: &&Path| {
        let name = folder.file_name().and_then(|name| name.to_str());
        let is_named = name.is_some_and(|name| {
            SYNCED_NAMES.iter().any(|known| {
                let rest = name.strip_prefix(known);
                // Firms add their own: `OneDrive - Example Ltd`, `Dropbox (Personal)`.
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '-']))
            })
        });
        is_named || SYNC_MARKS.iter().any(|mark| folder.join(mark).exists())
    };
    path.ancestors().find(is_synced).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c44_unfit_filesystems_are_warned_of_by_kind() {
        const MOUNTS: &[u8] = b"22 1 254:0 / / rw - ext4 /dev/vda rw
23 22 0:20 / /run rw - tmpfs tmpfs rw
24 22 0:21 / /nfs rw - nfs4 server:/a rw
25 22 0:22 / /share rw - virtiofs share rw
26 22 0:23 / /plan rw - 9p host rw
27 22 0:24 / /ssh rw - fuse.sshfs me@host: rw
";
        let code = |path: &str| {
            let path = Path::new(path);
            unfit(path, space::filesystem_from_mountinfo(MOUNTS, path)).map(|finding| finding.code)
        };

        assert_eq!(code("/home/me/.zeroclaw"), None);
        assert_eq!(code("/run/zeroclaw"), Some("volatile-filesystem"));
        assert_eq!(code("/nfs/zeroclaw"), Some("network-filesystem"));
        assert_eq!(code("/ssh/zeroclaw"), Some("network-filesystem"));
        assert_eq!(code("/share/zeroclaw"), Some("shared-filesystem"));
        assert_eq!(code("/plan/zeroclaw"), Some("shared-filesystem"));
    }

    #[test]
    fn c44_synced_folders_are_known_by_name_and_by_mark() {
        let folder = tempfile::tempdir().unwrap();
        let marked = folder.path().join("kept");
        std::fs::create_dir_all(marked.join(".stfolder")).unwrap();

        assert_eq!(synced(&marked.join("a/.zeroclaw")), Some(marked));
        let named = |path: &str| synced(Path::new(path)).is_some();
        assert!(named("/nowhere/me/Dropbox/.zeroclaw"));
        assert!(named("/nowhere/me/OneDrive - Example Ltd/.zeroclaw"));
        assert!(named("/nowhere/me/Library/Mobile Documents/x"));
        assert!(!named("/nowhere/me/Dropboxes/.zeroclaw"));
    }
}
