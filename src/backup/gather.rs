//! Everything of a root that goes into an archive besides its own databases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::create::BackupJob;
use super::manifest::{LeftOut, Member, MemberKind, Role, hex};
use super::staging::Staging;
use super::walk::{self, Found, FoundFile};
use super::{BackupError, capture, names};
use crate::fs::{FsError, FsErrorKind, atomic, sidecars};

/// Copies everything that is no tier into the staging folder.
pub(super) async fn gather(
    job: &BackupJob,
    staging: &Staging,
    members: &mut Vec<Member>,
    found: &mut Found,
) -> Result<(), BackupError> {
    let root = job.layout.root();
    let is_extra = |path: &str| job.extra.iter().any(|extra| extra == Path::new(path));
    for file in std::mem::take(&mut found.foreign) {
        if is_extra(&file.path) {
            // Below, with what may be lost of it if it cannot be read.
            continue;
        }
        let target = staging.place(&file.path)?;
        let from = root.join(&file.path);
        let captured = capture::capture_foreign(&from, &target, &file.path, file.mode, false).await;
        match captured {
            Ok(member) => members.push(member),
            Err(error) => {
                capture::discard(&target)?;
                found
                    .warnings
                    .push(format!("{} is left out: {error}", file.path));
                found.left_out.push(LeftOut {
                    path: file.path,
                    reason: "a database of another program that cannot be read".to_owned(),
                    is_secret: false,
                });
            }
        }
    }
    for file in std::mem::take(&mut found.files) {
        if let Some(member) = copy(staging, root, &file, &mut found.warnings).await? {
            members.push(member);
        }
    }
    // Sorted: a database comes before its logs, which then are in its copy.
    for extra in extra_files(root, &job.extra)? {
        let extra = &extra;
        add_extra(staging, root, extra, members, found).await?;
    }
    found.left_out.retain(|left| {
        !members
            .iter()
            .any(|member| member.archive_path == left.path)
    });
    Ok(())
}

/// The files among `extra`, and those in its folders; links are not followed.
fn extra_files(root: &Path, extra: &[PathBuf]) -> Result<BTreeSet<PathBuf>, BackupError> {
    let mut files = BTreeSet::new();
    for path in extra {
        let from = root.join(path);
        if !std::fs::symlink_metadata(&from).is_ok_and(|meta| meta.is_dir()) {
            files.insert(path.clone());
            continue;
        }
        for entry in WalkDir::new(&from).min_depth(1).follow_links(false) {
            let entry = entry.map_err(|error| FsError::at("read", &from)(error.into()))?;
            let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
            if entry.file_type().is_file() {
                files.insert(below.to_owned());
            }
        }
    }
    Ok(files)
}

/// Takes a file along that nobody writes: a database as a copy, or byte for byte with its logs if it cannot be read.
async fn add_extra(
    staging: &Staging,
    root: &Path,
    extra: &Path,
    members: &mut Vec<Member>,
    found: &mut Found,
) -> Result<(), BackupError> {
    let Some(path) = extra.to_str().filter(|path| names::fault(path).is_none()) else {
        let path = extra.to_string_lossy();
        found
            .warnings
            .push(format!("{path} is left out: its name cannot travel"));
        return Ok(());
    };
    let has = |members: &[Member], path: &str| members.iter().any(|it| it.archive_path == path);
    let is_log = names::database_of_sidecar(path).is_some_and(|database| {
        let database = members.iter().find(|it| it.archive_path == database);
        database.is_some_and(|it| it.kind == MemberKind::Database)
    });
    if is_log || has(members, path) {
        return Ok(());
    }
    let from = root.join(extra);
    let meta = std::fs::symlink_metadata(&from).map_err(FsError::at("look at", &from))?;
    if !meta.is_file() {
        found
            .warnings
            .push(format!("{path} is left out: it is no regular file"));
        return Ok(());
    }
    let mode = std::os::unix::fs::MetadataExt::mode(&meta) & 0o777;
    let is_database = walk::has_magic(&from).map_err(FsError::at("read", &from))?;
    if is_database {
        let target = staging.place(path)?;
        match capture::capture_foreign(&from, &target, path, mode, true).await {
            Ok(member) => {
                members.push(member);
                return Ok(());
            }
            Err(error) => {
                capture::discard(&target)?;
                found
                    .warnings
                    .push(format!("{path} is kept byte for byte: {error}"));
            }
        }
    }
    // The logs beside an unreadable database are part of what it is.
    let beside = sidecars(extra).into_iter().filter(|_| is_database);
    for part in std::iter::once(extra.to_owned()).chain(beside) {
        let Some(path) = part.to_str() else { continue };
        if has(members, path) || !root.join(&part).is_file() {
            continue;
        }
        let file = FoundFile {
            kind: MemberKind::File,
            path: path.to_owned(),
            bytes: 0,
            mode,
        };
        if let Some(member) = copy(staging, root, &file, &mut found.warnings).await? {
            members.push(member);
        }
    }
    Ok(())
}

/// Copies one file; `None`, with a warning, when it has gone meanwhile.
async fn copy(
    staging: &Staging,
    root: &Path,
    file: &FoundFile,
    warnings: &mut Vec<String>,
) -> Result<Option<Member>, BackupError> {
    let from = root.join(&file.path);
    let to = staging.place(&file.path)?;
    let copied = tokio::task::spawn_blocking(move || atomic::copy_scratch(&from, &to));
    let (bytes, digest) = match copied.await.map_err(|_| BackupError::Stopped)? {
        Ok(copied) => copied,
        Err(error) if error.kind() == FsErrorKind::NotFound => {
            warnings.push(format!("{} went away while it was copied", file.path));
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let mut member = planned(file);
    member.bytes = bytes;
    member.sha256 = hex(&digest);
    Ok(Some(member))
}

/// The entry of a file that is not read yet.
pub(super) fn planned(file: &FoundFile) -> Member {
    Member {
        kind: file.kind,
        role: (file.kind == MemberKind::Database).then_some(Role::Foreign),
        agent_id: None,
        schema_version: None,
        archive_path: file.path.clone(),
        bytes: file.bytes,
        sha256: String::new(),
        mode: file.mode,
        rows: None,
        integrity: None,
    }
}
