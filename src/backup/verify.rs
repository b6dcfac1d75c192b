//! Proves an archive: its structure, every digest, and every database in it.

use std::path::{Path, PathBuf};

use tokio::sync::mpsc;

use super::BackupError;
use super::archive::Opened;
use super::capture;
use super::manifest::{Manifest, Member, MemberKind, Role, Scope};
use super::restore::{RestoreJob, plan_restore};
use super::seal::{Encryption, Key};
use super::staging::scratch;
use crate::clock::Clock;
use crate::db::{DbCopy, DbErrorKind, OpenError};
use crate::fs::{FsError, Layout, fault, space};
use crate::model::{CheckOutcome, ErrorKind, Tier};

/// Databases that lie unpacked at once, besides the one being unpacked: one in the queue, one in check.
const QUEUE: usize = 1;

/// A proved archive.
#[derive(Clone, Debug)]
pub struct Verified {
    /// What is in it.
    pub manifest: Manifest,
    /// Size of the archive.
    pub bytes: u64,
    /// How it is encrypted, if it is.
    pub encryption: Option<Encryption>,
    /// What a person should know; nothing of it makes the archive bad.
    pub findings: Vec<String>,
}

/// Proves an archive.
///
/// Each database is unpacked into a private folder in the system's place for temporary files, opened, checked,
/// counted, and removed again.
///
/// * `key`: for an encrypted archive; another needs none.
///
/// # Errors
///
/// [`BackupError::Damaged`] names the first thing that is wrong, [`BackupError::Newer`] what this release is too old
/// for, [`BackupError::Encrypted`] and [`BackupError::WrongKey`] that another key is needed.
pub async fn verify(archive: &Path, key: Option<&Key>) -> Result<Verified, BackupError> {
    let opened = open(archive, key).await?;
    let scratch = scratch()?;
    let manifest = opened.manifest().clone();
    let (bytes, encryption) = (opened.bytes(), opened.encryption());
    refuse_newer(archive, &manifest)?;
    let largest = manifest.members.iter().map(|member| member.bytes).max();
    // Up to three lie there at once.
    need(
        scratch.path(),
        largest.unwrap_or(0).saturating_mul(QUEUE as u64 + 2),
    )?;

    let (sender, mut queue) = mpsc::channel::<(Member, PathBuf)>(QUEUE);
    let folder = scratch.path().to_owned();
    let reading = tokio::task::spawn_blocking(move || read(opened, &folder, &sender));
    let mut registry = None;
    let mut findings = Vec::new();
    if key.is_some() && encryption.is_none() {
        // Whoever has a key for it expects that nobody else could have written or read it.
        findings.push("the archive is not encrypted: the key was not needed".to_owned());
    }
    let mut failed = None;
    while let Some((member, path)) = queue.recv().await {
        match prove(archive, &manifest, &member, &path, &mut findings).await {
            Ok(Some(agents)) => registry = Some(agents),
            Ok(None) => {}
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
        fault("verify.proved");
        std::fs::remove_file(&path).map_err(FsError::at("remove", &path))?;
    }
    // The reader ends at its next message.
    drop(queue);
    let read = reading.await.map_err(|_| BackupError::Stopped)?;
    failed.map_or(Ok(()), Err)?;
    read?;
    if manifest.scope == Scope::Root {
        check_registry(archive, &manifest, registry.as_deref())?;
    }
    Ok(Verified {
        manifest,
        bytes,
        encryption,
        findings,
    })
}

/// Reads an archive that was just written, and proves that it holds what `manifest` says byte for byte.
///
/// # Errors
///
/// [`BackupError::Damaged`] when it does not.
pub(super) async fn read_back(
    archive: &Path,
    key: Option<&Key>,
    manifest: &Manifest,
) -> Result<(), BackupError> {
    let opened = open(archive, key).await?;
    let (archive, manifest) = (archive.to_owned(), manifest.clone());
    let read = tokio::task::spawn_blocking(move || prove_same(opened, &archive, &manifest));
    read.await.map_err(|_| BackupError::Stopped)?
}

/// Reads all of an archive, and proves that it holds what `manifest` says byte for byte.
///
/// # Errors
///
/// [`BackupError::Damaged`] when it does not.
pub(super) fn prove_same(
    opened: Opened,
    archive: &Path,
    manifest: &Manifest,
) -> Result<(), BackupError> {
    if opened.manifest() != manifest {
        return Err(damaged(
            archive,
            super::MANIFEST_NAME,
            "is not what was written",
        ));
    }
    opened.read_members(|_| None, |_, _| Ok(()))
}

/// Opens an archive off the runtime's threads.
pub(super) async fn open(archive: &Path, key: Option<&Key>) -> Result<Opened, BackupError> {
    let (path, key) = (archive.to_owned(), key.cloned());
    let opened = tokio::task::spawn_blocking(move || Opened::open(&path, key.as_ref()));
    opened.await.map_err(|_| BackupError::Stopped)?
}

/// Refuses to begin what the place has no room for.
pub(super) fn need(place: &Path, needed: u64) -> Result<(), BackupError> {
    let free = space::free_bytes(place)?;
    if free < needed {
        return Err(BackupError::NoSpace {
            path: place.to_owned(),
            needed,
            free,
        });
    }
    Ok(())
}

/// Unpacks databases one by one and hands them on; reads past the rest.
fn read(
    opened: Opened,
    folder: &Path,
    sender: &mpsc::Sender<(Member, PathBuf)>,
) -> Result<(), BackupError> {
    let mut number = 0;
    opened.read_members(
        |member| {
            number += 1;
            (member.kind == MemberKind::Database).then(|| folder.join(format!("{number}.sqlite")))
        },
        |member, path| match path {
            Some(path) => sender
                .blocking_send((member.clone(), path.to_owned()))
                .map_err(|_| BackupError::Stopped),
            None => Ok(()),
        },
    )
}

fn damaged(archive: &Path, member: &str, reason: impl Into<String>) -> BackupError {
    BackupError::Damaged {
        archive: archive.to_owned(),
        member: member.to_owned(),
        reason: reason.into(),
    }
}

/// The tier a member claims to be; `None` for what is not ours.
pub(super) fn tier_of(member: &Member) -> Option<Tier> {
    match (member.role, &member.agent_id) {
        (Some(Role::Global), _) => Some(Tier::Global),
        (Some(Role::Agent), Some(agent)) => Some(Tier::Agent(agent.clone())),
        _ => None,
    }
}

/// Refuses databases of a newer schema before anything is unpacked.
fn refuse_newer(archive: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    for member in &manifest.members {
        let (Some(tier), Some(found)) = (tier_of(member), member.schema_version) else {
            continue;
        };
        let known = crate::db::known_version(&tier);
        if found > known {
            return Err(BackupError::Newer {
                archive: archive.to_owned(),
                member: member.archive_path.clone(),
                found,
                known,
                release: manifest.app_version.clone(),
            });
        }
    }
    Ok(())
}

/// Agents of a registry, with the paths of their databases.
type Registry = Vec<(String, String)>;

/// Proves one unpacked database; gives the registry if it is the control plane.
async fn prove(
    archive: &Path,
    manifest: &Manifest,
    member: &Member,
    path: &Path,
    findings: &mut Vec<String>,
) -> Result<Option<Registry>, BackupError> {
    let named = |error: OpenError| name_open(archive, manifest, member, error);
    let Some(tier) = tier_of(member) else {
        let mut db = DbCopy::open_foreign(path).await.map_err(named)?;
        let proved = prove_foreign(archive, member, &mut db, findings).await;
        db.close().await?;
        return proved.map(|()| None);
    };
    let mut db = DbCopy::open(path, &tier).await.map_err(named)?;
    let proved = prove_ours(archive, member, &mut db).await;
    let registry = match (&proved, &tier) {
        (Ok(()), Tier::Global) => Some(db.registry().await),
        _ => None,
    };
    db.close().await?;
    proved?;
    Ok(registry.transpose()?)
}

async fn prove_ours(archive: &Path, member: &Member, db: &mut DbCopy) -> Result<(), BackupError> {
    let wrong = |reason: String| damaged(archive, &member.archive_path, reason);
    let outcome = match capture::check(db).await {
        Ok(outcome) => outcome,
        Err(error) if is_ours_to_tell(error.kind()) => return Err(error.into()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    if let CheckOutcome::Failed { lines } = outcome {
        return Err(wrong(lines.join("; ")));
    }
    let version = db.version().await?;
    if Some(version) != member.schema_version {
        return Err(wrong(format!(
            "has schema version {version}, the manifest says {}",
            member.schema_version.unwrap_or_default()
        )));
    }
    compare_rows(archive, member, db).await
}

/// A foreign database need only be what it was: its faults were known when the archive was made.
async fn prove_foreign(
    archive: &Path,
    member: &Member,
    db: &mut DbCopy,
    findings: &mut Vec<String>,
) -> Result<(), BackupError> {
    let known = member.integrity.as_deref().unwrap_or_default();
    if known != "ok" {
        let path = &member.archive_path;
        findings.push(format!(
            "{path} was damaged when the archive was made: {known}"
        ));
        return Ok(());
    }
    let wrong = |reason: String| damaged(archive, &member.archive_path, reason);
    match db.integrity().await {
        Ok(CheckOutcome::Ok) => {}
        Ok(CheckOutcome::Failed { lines }) => return Err(wrong(lines.join("; "))),
        Err(error) => return Err(wrong(error.to_string())),
    }
    compare_rows(archive, member, db).await
}

pub(super) async fn compare_rows(
    archive: &Path,
    member: &Member,
    db: &mut DbCopy,
) -> Result<(), BackupError> {
    let rows = db.rows().await?;
    let listed = member.rows.clone().unwrap_or_default();
    let tables: std::collections::BTreeSet<&String> = rows.keys().chain(listed.keys()).collect();
    for table in tables {
        let (found, said) = (rows.get(table), listed.get(table));
        if found != said {
            let number = |rows: Option<&i64>| rows.map_or("no table".to_owned(), i64::to_string);
            let reason = format!(
                "table {table} has {} rows, the manifest says {}",
                number(found),
                number(said)
            );
            return Err(damaged(archive, &member.archive_path, reason));
        }
    }
    Ok(())
}

/// Failures of this machine, not of the archive.
fn is_ours_to_tell(kind: DbErrorKind) -> bool {
    matches!(
        kind,
        DbErrorKind::Full | DbErrorKind::ReadOnly | DbErrorKind::Stopped
    )
}

fn name_open(
    archive: &Path,
    manifest: &Manifest,
    member: &Member,
    error: OpenError,
) -> BackupError {
    let reason = match error {
        OpenError::TooNew { found, known, .. } => {
            return BackupError::Newer {
                archive: archive.to_owned(),
                member: member.archive_path.clone(),
                found,
                known,
                release: manifest.app_version.clone(),
            };
        }
        OpenError::Db(error) if is_ours_to_tell(error.kind()) => return error.into(),
        error if error.failure() == ErrorKind::NoSpace => return error.into(),
        OpenError::WrongFile {
            expected, found, ..
        } => format!("is not the {expected} database: {found}"),
        OpenError::MissingTable { table, version, .. } => {
            format!("lacks the table {table} of schema version {version}")
        }
        _ => "cannot be opened as a database".to_owned(),
    };
    damaged(archive, &member.archive_path, reason)
}

/// The registry must list exactly the agents whose databases are there.
fn check_registry(
    archive: &Path,
    manifest: &Manifest,
    registry: Option<&[(String, String)]>,
) -> Result<(), BackupError> {
    let Some(registry) = registry else {
        let global = "state/state.sqlite";
        return Err(damaged(archive, global, "the control plane is missing"));
    };
    for (agent, path) in registry {
        let is_there = manifest
            .agents()
            .any(|(id, member)| id.as_str() == agent && member.archive_path == *path);
        if !is_there {
            let reason = format!("agent {agent} is registered, its database is missing");
            return Err(damaged(archive, path, reason));
        }
    }
    for (id, member) in manifest.agents() {
        if !registry.iter().any(|(agent, _)| agent == id.as_str()) {
            let reason = format!("is the database of agent {id}, which is not registered");
            return Err(damaged(archive, &member.archive_path, reason));
        }
    }
    Ok(())
}

/// Tables whose rows a restore changes.
const HOST_BOUND: [&str; 2] = ["state_leases", "backup_runs"];

/// Restores a proved archive into a scratch root, and compares the row counts of what stands there.
///
/// # Errors
///
/// As [`super::restore()`], or [`BackupError::Damaged`] when a restored database differs.
pub async fn rehearse(
    archive: &Path,
    key: Option<&Key>,
    verified: &Verified,
    clock: &Clock,
) -> Result<(), BackupError> {
    if let (Scope::Agent, Some(agent)) = (verified.manifest.scope, &verified.manifest.agent) {
        return super::adopt::rehearse(archive, key, verified, &agent.agent_id, clock).await;
    }
    let scratch = scratch()?;
    let layout = Layout::new(scratch.path().join("root"));
    crate::fs::atomic::create_dir_private(&layout.state_dir())?;
    let job = RestoreJob {
        id: "rehearsal".to_owned(),
        now_ms: clock.now_ms(),
        archive: archive.to_owned(),
        key: key.cloned(),
        layout: layout.clone(),
        agent: None,
    };
    let plan = plan_restore(&job, &verified.manifest).await?;
    super::restore(&job, verified, &plan).await?;
    for member in &verified.manifest.members {
        let Some(tier) = tier_of(member) else {
            continue;
        };
        let path = layout.root().join(&member.archive_path);
        let mut db = DbCopy::open(&path, &tier).await?;
        let rows = db.rows().await;
        db.close().await?;
        let mut rows = rows?;
        let mut listed = member.rows.clone().unwrap_or_default();
        for table in HOST_BOUND {
            rows.remove(table);
            listed.remove(table);
        }
        if rows != listed {
            let reason = "has other rows after a restore";
            return Err(damaged(archive, &member.archive_path, reason));
        }
    }
    Ok(())
}
