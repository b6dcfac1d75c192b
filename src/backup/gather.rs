//! Everything of a root that goes into an archive besides its own databases.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::create::BackupJob;
use super::manifest::{LeftOut, Member, MemberKind, Role, hex};
use super::staging::{Contents, Staging};
use super::walk::{self, Found, FoundFile};
use super::{BackupError, capture, names};
use crate::fs::{FsError, FsErrorKind, atomic, sidecars};

/// Copies everything that is no tier into the staging folder, but for plain files nobody writes: they are read where
/// they lie.
pub(super) async fn gather(
    job: &BackupJob,
    staging: &Staging,
    members: &mut Vec<Member>,
    found: &mut Found,
) -> Result<Contents, BackupError> {
    let root = job.layout.root();
    let mut contents = Contents::in_tree(staging.tree());
    let extras = extra_files(root, &job.extra)?;
    let is_extra = |path: &str| extras.contains(Path::new(path));
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
        let read = match is_extra(&file.path) {
            true => leave(root, &file, &mut contents, &mut found.warnings).await?,
            false => copy(staging, root, &file, &mut found.warnings).await?,
        };
        members.extend(read);
    }
    // Sorted: a database comes before its logs, which then are in its copy.
    let mut gathering = Gathering {
        root,
        staging,
        kinds: members.iter().map(kind_of).collect(),
        members,
        contents: &mut contents,
        warnings: &mut found.warnings,
    };
    for extra in extras {
        gathering.add(&extra).await?;
    }
    let kinds = gathering.kinds;
    found
        .left_out
        .retain(|left| !kinds.contains_key(&left.path));
    Ok(contents)
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

fn kind_of(member: &Member) -> (String, MemberKind) {
    (member.archive_path.clone(), member.kind)
}

/// Takes files along that nobody writes.
struct Gathering<'a> {
    root: &'a Path,
    staging: &'a Staging,
    members: &'a mut Vec<Member>,
    // Of all members, by path: files may be many.
    kinds: HashMap<String, MemberKind>,
    contents: &'a mut Contents,
    warnings: &'a mut Vec<String>,
}

impl Gathering<'_> {
    /// Takes one along: a database as a compact copy, or byte for byte with its logs if it cannot be read.
    async fn add(&mut self, extra: &Path) -> Result<(), BackupError> {
        let Some(path) = extra.to_str().filter(|path| names::fault(path).is_none()) else {
            let path = extra.to_string_lossy();
            let warning = format!("{path} is left out: its name cannot travel");
            self.warnings.push(warning);
            return Ok(());
        };
        let database = names::database_of_sidecar(path).and_then(|path| self.kinds.get(path));
        if database == Some(&MemberKind::Database) || self.kinds.contains_key(path) {
            return Ok(());
        }
        let from = self.root.join(extra);
        let meta = std::fs::symlink_metadata(&from).map_err(FsError::at("look at", &from))?;
        if !meta.is_file() {
            let warning = format!("{path} is left out: it is no regular file");
            self.warnings.push(warning);
            return Ok(());
        }
        let mode = std::os::unix::fs::MetadataExt::mode(&meta) & 0o777;
        let is_database = walk::has_magic(&from).map_err(FsError::at("read", &from))?;
        if is_database && self.database(&from, path, mode).await? {
            return Ok(());
        }
        // The logs beside an unreadable database are part of what it is.
        let beside = sidecars(extra).into_iter().filter(|_| is_database);
        for part in std::iter::once(extra.to_owned()).chain(beside) {
            let Some(path) = part.to_str() else { continue };
            if !self.kinds.contains_key(path) && self.root.join(&part).is_file() {
                self.file(path, mode).await?;
            }
        }
        Ok(())
    }

    fn push(&mut self, member: Member) {
        self.kinds.extend([kind_of(&member)]);
        self.members.push(member);
    }

    /// Takes a database along as a copy; says whether it could be read.
    async fn database(&mut self, from: &Path, path: &str, mode: u32) -> Result<bool, BackupError> {
        let target = self.staging.place(path)?;
        match capture::capture_foreign(from, &target, path, mode, true).await {
            Ok(member) => {
                self.push(member);
                Ok(true)
            }
            Err(error) => {
                capture::discard(&target)?;
                let warning = format!("{path} is kept byte for byte: {error}");
                self.warnings.push(warning);
                Ok(false)
            }
        }
    }

    /// Takes a file along from where it is.
    async fn file(&mut self, path: &str, mode: u32) -> Result<(), BackupError> {
        let file = FoundFile {
            kind: MemberKind::File,
            path: path.to_owned(),
            bytes: 0,
            mode,
        };
        if let Some(member) = leave(self.root, &file, self.contents, self.warnings).await? {
            self.push(member);
        }
        Ok(())
    }
}

/// Reads one file for its digest and leaves it where it is; `None`, with a warning, when it has gone meanwhile.
async fn leave(
    root: &Path,
    file: &FoundFile,
    contents: &mut Contents,
    warnings: &mut Vec<String>,
) -> Result<Option<Member>, BackupError> {
    let from = root.join(&file.path);
    let hashed = capture::hash(&from).await;
    contents.leave(&file.path, from);
    described(file, hashed, warnings)
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
    let copied = copied.await.map_err(|_| BackupError::Stopped)?;
    let copied = copied.map(|(bytes, digest)| (bytes, hex(&digest)));
    described(file, copied.map_err(BackupError::from), warnings)
}

/// The entry of a file that was read; `None`, with a warning, when it had gone.
fn described(
    file: &FoundFile,
    read: Result<(u64, String), BackupError>,
    warnings: &mut Vec<String>,
) -> Result<Option<Member>, BackupError> {
    let (bytes, sha256) = match read {
        Ok(read) => read,
        Err(BackupError::Fs(error)) if error.kind() == FsErrorKind::NotFound => {
            warnings.push(format!("{} went away while it was copied", file.path));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut member = planned(file);
    member.bytes = bytes;
    member.sha256 = sha256;
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
