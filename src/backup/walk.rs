//! What lies in a root besides its own databases: what goes into an archive, and what is left out and why.
//!
//! Links are not followed. SQLite files are known by their header, not by their name.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::manifest::{LeftOut, MemberKind};
use super::{names, staging};
use crate::fs::layout::{
    AGENT_ARCHIVE_PREFIX, ARCHIVE_PREFIX, ARCHIVE_SUFFIX, RESTORE_PREFIX, SEALED_SUFFIX,
};
use crate::fs::{Layout, atomic, sidecars};
use crate::model::AgentId;

/// Entries listed as left out, at most; the rest is counted.
const MAX_LEFT_OUT: usize = 1_000;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// What to look for.
pub(super) struct Search<'a> {
    /// The root.
    pub(super) layout: &'a Layout,
    /// The tiers' databases: not opened here, because closing a handle would take SQLite's locks away.
    pub(super) databases: &'a [PathBuf],
    /// Keys, the configuration and databases of other programs too.
    pub(super) with_secrets: bool,
    /// Workspaces too.
    pub(super) include_workspace: bool,
}

impl Search<'_> {
    /// Takes a secret only where secrets are wanted.
    fn secret(&self, wanted: Verdict, reason: &'static str) -> Verdict {
        match self.with_secrets {
            true => wanted,
            false => Verdict::LeaveSecret(reason),
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Files to copy.
    pub(super) files: Vec<FoundFile>,
    /// SQLite files of other programs.
    pub(super) foreign: Vec<FoundFile>,
    /// What does not go along.
    pub(super) left_out: Vec<LeftOut>,
    /// What happened on the way.
    pub(super) warnings: Vec<String>,
}

/// A file to take along.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    /// What it is.
    pub(super) kind: MemberKind,
    /// Path relative to the root, with `/`.
    pub(super) path: String,
    /// Size when it was seen.
    pub(super) bytes: u64,
    /// Permission bits.
    pub(super) mode: u32,
}

impl FoundFile {
    fn new(kind: MemberKind, path: &str, meta: &Metadata) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            bytes: meta.len(),
            mode: meta.mode() & 0o777,
        }
    }
}

/// What to do with one entry.
enum Verdict {
    Skip,
    LeaveOut(&'static str),
    LeaveSecret(&'static str),
    Descend,
    Take(MemberKind),
    Foreign,
}

/// Walks a root.
pub(super) fn walk(search: &Search<'_>) -> Found {
    walk_from(search, search.layout.root())
}

/// Walks one agent's folder, of which nothing but the workspace travels with it.
///
/// * `is_whole`: everything does.
pub(super) fn walk_agent(search: &Search<'_>, agent: &AgentId, is_whole: bool) -> Found {
    let folder = search.layout.agent_dir(agent.as_str());
    if !folder.exists() {
        // Its database lies elsewhere, and it has no workspace.
        return Found::default();
    }
    let mut found = walk_from(search, &folder);
    if is_whole {
        return found;
    }
    let mut left_out = Vec::new();
    for files in [&mut found.files, &mut found.foreign] {
        files.retain(|file| {
            let travels = names::is_in_workspace(&file.path);
            if !travels {
                left_out.push(LeftOut {
                    path: file.path.clone(),
                    reason: "no part of what moves with an agent".to_owned(),
                    is_secret: false,
                });
            }
            travels
        });
    }
    found.left_out.append(&mut left_out);
    found
}

fn walk_from(search: &Search<'_>, start: &Path) -> Found {
    let mut found = Found::default();
    let known = Known::of(search);
    let root = search.layout.root();
    let mut entries = WalkDir::new(start)
        .min_depth(1)
        .follow_links(false)
        .sort_by_file_name()
        .into_iter();
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                note_error(&mut found, root, &error);
                continue;
            }
        };
        let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let Some(path) = relative.to_str() else {
            leave_out(
                &mut found,
                &relative.to_string_lossy(),
                "its name is not UTF-8",
            );
            skip_folder(&mut entries, &entry);
            continue;
        };
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            Err(error) => {
                note_error(&mut found, root, &error);
                continue;
            }
        };
        match judge(search, &known, &entry, path, &meta) {
            Ok(Verdict::Descend) => {}
            Ok(Verdict::Skip) => skip_folder(&mut entries, &entry),
            Ok(Verdict::LeaveOut(reason)) => {
                leave_out(&mut found, path, reason);
                skip_folder(&mut entries, &entry);
            }
            Ok(Verdict::LeaveSecret(reason)) => found.left_out.push(LeftOut {
                path: path.to_owned(),
                reason: reason.to_owned(),
                is_secret: true,
            }),
            Ok(Verdict::Take(kind)) => found.files.push(FoundFile::new(kind, path, &meta)),
            Ok(Verdict::Foreign) => {
                let file = FoundFile::new(MemberKind::Database, path, &meta);
                found.foreign.push(file);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                found
                    .warnings
                    .push(format!("{path} went away while the root was read"));
            }
            Err(_) => leave_out(&mut found, path, "it cannot be read"),
        }
    }
    found.forget_foreign_sidecars();
    found
}

impl Found {
    /// Logs travel inside the copy of their database.
    fn forget_foreign_sidecars(&mut self) {
        let foreign: HashSet<&str> = self.foreign.iter().map(|file| file.path.as_str()).collect();
        let is_sidecar =
            |path: &str| names::database_of_sidecar(path).is_some_and(|db| foreign.contains(db));
        self.left_out.retain(|left| !is_sidecar(&left.path));
        self.files.retain(|file| !is_sidecar(&file.path));
    }

    /// Cuts the list of what is left out to a bounded length that still says how much there is; secrets stand first.
    pub(super) fn bound_left_out(&mut self) {
        self.left_out
            .sort_by(|a, b| b.is_secret.cmp(&a.is_secret).then_with(|| a.cmp(b)));
        if self.left_out.len() > MAX_LEFT_OUT {
            let more = self.left_out.len() - MAX_LEFT_OUT;
            self.left_out.truncate(MAX_LEFT_OUT);
            self.left_out.push(LeftOut {
                path: "…".to_owned(),
                reason: format!("{more} more files that are not part of the state"),
                is_secret: false,
            });
        }
    }
}

/// The tiers' databases, by path and by identity of the file.
struct Known {
    paths: HashSet<PathBuf>,
    files: HashSet<(u64, u64)>,
}

impl Known {
    fn of(search: &Search<'_>) -> Self {
        let mut paths = HashSet::new();
        let mut files = HashSet::new();
        for database in search.databases {
            paths.insert(database.clone());
            paths.extend(sidecars(database));
            if let Ok(meta) = std::fs::metadata(database) {
                files.insert((meta.dev(), meta.ino()));
            }
        }
        for lock in [
            search.layout.daemon_lock(),
            search.layout.migrate_lock(),
            search.layout.restore_journal(),
            search.layout.before_import_file(),
        ] {
            paths.insert(lock);
        }
        Self { paths, files }
    }
}

fn judge(
    search: &Search<'_>,
    known: &Known,
    entry: &DirEntry,
    path: &str,
    meta: &Metadata,
) -> io::Result<Verdict> {
    let layout = search.layout;
    let here = entry.path();
    if entry.file_type().is_dir() {
        return Ok(judge_folder(search, entry, path));
    }
    if known.paths.contains(here) || atomic::is_temp_name(entry.file_name()) {
        return Ok(Verdict::Skip);
    }
    if entry.file_type().is_symlink() {
        return Ok(Verdict::LeaveOut("a link; links are not followed"));
    }
    if !entry.file_type().is_file() {
        return Ok(Verdict::LeaveOut("not a regular file"));
    }
    if known.files.contains(&(meta.dev(), meta.ino())) {
        return Ok(Verdict::LeaveOut(
            "another name of a database that is in the archive",
        ));
    }
    if here == layout.config_file() {
        return Ok(search.secret(
            Verdict::Take(MemberKind::Config),
            "the configuration, which may hold keys in clear: put your own back",
        ));
    }
    if here == layout.secret_key_file() {
        return Ok(search.secret(
            Verdict::Take(MemberKind::Key),
            "the key of what is encrypted in the configuration: put it back",
        ));
    }
    if names::fault(path).is_some() {
        return Ok(Verdict::LeaveOut("its name cannot travel"));
    }
    if is_archive_name(entry.file_name()) {
        return Ok(Verdict::LeaveOut("an archive"));
    }
    if has_magic(here)? {
        return Ok(search.secret(
            Verdict::Foreign,
            "a database of another program: nobody here knows which of its columns are secret",
        ));
    }
    if names::is_in_workspace(path) {
        return Ok(Verdict::Take(MemberKind::Workspace));
    }
    // What nobody here knows may be somebody's only copy: it travels, unless it could be a secret.
    Ok(search.secret(
        Verdict::Take(MemberKind::File),
        "not part of the state, and it may hold secrets",
    ))
}

fn judge_folder(search: &Search<'_>, entry: &DirEntry, path: &str) -> Verdict {
    let layout = search.layout;
    let here = entry.path();
    let name = entry.file_name().to_str().unwrap_or_default();
    let is_restore =
        name.starts_with(RESTORE_PREFIX) && here.parent() == Some(layout.state_dir().as_path());
    if staging::is_staging_name(name) || is_restore {
        return Verdict::Skip;
    }
    if here == layout.backups_dir() {
        return Verdict::LeaveOut("archives never lie in an archive");
    }
    if here == layout.migrated_dir() || here == layout.quarantines_dir() {
        return Verdict::LeaveOut("old files that were imported");
    }
    if here == layout.restored_dir() {
        return Verdict::LeaveOut("old files that a restore set aside");
    }
    if here == layout.all_deleted_dir() {
        return Verdict::LeaveOut("copies of sessions that were deleted");
    }
    if here == layout.undone_dir() {
        return Verdict::LeaveOut("what imports had made that were undone");
    }
    let is_workspace = names::is_in_workspace(&format!("{path}/."));
    if is_workspace && !search.include_workspace {
        return Verdict::LeaveOut("a workspace; they go along only when asked for");
    }
    Verdict::Descend
}

fn is_archive_name(name: &OsStr) -> bool {
    let name = name.to_str().unwrap_or_default();
    let is_ours = name.starts_with(ARCHIVE_PREFIX) || name.starts_with(AGENT_ARCHIVE_PREFIX);
    let ends = [ARCHIVE_SUFFIX, SEALED_SUFFIX];
    is_ours && ends.iter().any(|end| name.ends_with(end))
}

/// Whether a regular file begins as a SQLite database does.
pub(super) fn has_magic(path: &Path) -> io::Result<bool> {
    let mut start = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut start) {
        Ok(()) => Ok(&start == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn leave_out(found: &mut Found, path: &str, reason: &str) {
    found.left_out.push(LeftOut {
        path: path.to_owned(),
        reason: reason.to_owned(),
        is_secret: false,
    });
}

fn skip_folder(entries: &mut walkdir::IntoIter, entry: &DirEntry) {
    if entry.file_type().is_dir() {
        entries.skip_current_dir();
    }
}

fn note_error(found: &mut Found, root: &Path, error: &walkdir::Error) {
    let path = error.path().unwrap_or(root);
    let path = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    let kind = error.io_error().map(io::Error::kind);
    if kind == Some(io::ErrorKind::NotFound) {
        let text = format!("{path} went away while the root was read");
        found.warnings.push(text);
    } else {
        leave_out(found, &path, "it cannot be read");
    }
}
