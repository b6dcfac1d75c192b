//! The way back: stage beside, set the old aside, swap file by file under a journal.
//!
//! Renaming the whole root was left out: it may be a mount point. Copying over the old files was left out: a kill in
//! the middle would leave neither. The new files are gathered inside the target, so that each swap is a rename.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::BackupError;
use super::capture;
use super::journal::{Journal, Phase, Register, Swap, exists, staged};
use super::manifest::{Manifest, Member, MemberKind, Role, Scope};
use super::seal::Key;
use super::verify::{self, Verified, need};
use crate::clock::Clock;
use crate::db::{Access, Db, DbCopy, Durability, Release, WriteAccess};
use crate::fs::{FsError, Layout, atomic, fault};
use crate::model::{AgentId, AgentRecord, BackupKind, BackupRun, BackupStatus, Tier};

/// A restore to be made.
#[derive(Clone, Debug)]
pub struct RestoreJob {
    /// Identity of the restore.
    pub id: String,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
    /// The archive.
    pub archive: PathBuf,
    /// What opens it, if it is encrypted.
    pub key: Option<Key>,
    /// The root to write.
    pub layout: Layout,
    /// One agent alone; `None` for everything.
    pub agent: Option<AgentId>,
}

/// What happens to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAction {
    /// Nothing is there.
    Create,
    /// What is there is set aside.
    Replace,
    /// What is there is set aside, and nothing takes its place.
    SetAside,
    /// What is there stays.
    Keep,
}

impl PlanAction {
    /// The word for people and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Replace => "replace",
            Self::SetAside => "set_aside",
            Self::Keep => "keep",
        }
    }
}

impl std::fmt::Display for PlanAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line of a plan.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PlanStep {
    /// What happens.
    pub action: PlanAction,
    /// Path relative to the root.
    pub path: String,
    /// Size of the new file, or of the one that stays or is set aside.
    pub bytes: u64,
}

/// Says what a restore of a proved archive would do; writes nothing.
///
/// # Errors
///
/// [`BackupError`] when the archive does not hold the agent, or the target cannot take it.
pub async fn plan_restore(
    job: &RestoreJob,
    manifest: &Manifest,
) -> Result<Vec<PlanStep>, BackupError> {
    let layout = &job.layout;
    if let (Scope::Agent, Some(agent)) = (manifest.scope, &manifest.agent) {
        return Err(BackupError::OneAgent {
            archive: job.archive.clone(),
            agent: agent.agent_id.clone(),
        });
    }
    let wanted = wanted(job, manifest)?;
    for member in &wanted {
        refuse_links(layout.root(), &member.archive_path)?;
    }
    let mut steps: Vec<PlanStep> = wanted
        .iter()
        .map(|member| PlanStep {
            action: match exists(&layout.root().join(&member.archive_path)) {
                true => PlanAction::Replace,
                false => PlanAction::Create,
            },
            path: member.archive_path.clone(),
            bytes: member.bytes,
        })
        .collect();
    let step = |action, path: String| PlanStep {
        action,
        bytes: std::fs::symlink_metadata(layout.root().join(&path)).map_or(0, |meta| meta.len()),
        path,
    };
    if job.agent.is_some() {
        prove_target(layout).await?;
        return Ok(steps);
    }
    let new: HashSet<&str> = wanted.iter().map(|it| it.archive_path.as_str()).collect();
    for path in agent_databases(layout)? {
        if !new.contains(path.as_str()) {
            refuse_links(layout.root(), &path)?;
            steps.push(step(PlanAction::SetAside, path));
        }
    }
    for kept in [layout.config_file(), layout.secret_key_file()] {
        let path = kept.strip_prefix(layout.root()).unwrap_or(&kept);
        let path = path.to_string_lossy().into_owned();
        if exists(&kept) && !new.contains(path.as_str()) {
            steps.push(step(PlanAction::Keep, path));
        }
    }
    Ok(steps)
}

/// Restores a proved archive; gives the folder of what was set aside, if anything was.
///
/// The caller holds the target's lock and has [`recover`]ed it.
///
/// # Errors
///
/// [`BackupError`]. Before the swap begins nothing of the target has changed; after that, whoever comes next takes
/// the swap to its end.
pub async fn restore(
    job: &RestoreJob,
    verified: &Verified,
    plan: &[PlanStep],
) -> Result<Option<PathBuf>, BackupError> {
    let layout = &job.layout;
    let total: u64 = wanted(job, &verified.manifest)?
        .iter()
        .map(|it| it.bytes)
        .sum();
    need(&layout.state_dir(), total)?;
    let mut journal = Journal::staging(&job.id);
    journal.write(layout)?;
    fault("restore.staging");
    match stage(job, verified).await {
        Ok(register) => journal.register = register.map(Box::new),
        Err(error) => {
            // All is old still; the first error is the one to tell.
            if let Err(error) = journal.clear(layout) {
                tracing::warn!(%error, "staging folder stays behind");
            }
            return Err(error);
        }
    }
    fault("restore.staged");
    let databases: HashSet<&str> = verified
        .manifest
        .members
        .iter()
        .filter(|member| member.kind == MemberKind::Database)
        .map(|member| member.archive_path.as_str())
        .collect();
    let moves = plan.iter().filter(|it| it.action != PlanAction::Keep);
    journal.swaps = moves
        .map(|step| Swap {
            path: step.path.clone(),
            has_new: step.action != PlanAction::SetAside,
            is_database: step.action == PlanAction::SetAside
                || databases.contains(step.path.as_str()),
        })
        .collect();
    journal.phase = Phase::Swapping;
    journal.write(layout)?;
    fault("restore.journalled");
    roll_forward(layout, journal, job.now_ms).await?;
    let aside = layout.restored_run_dir(&job.id);
    Ok(exists(&aside).then_some(aside))
}

/// Finishes or rolls back a restore that was cut off; does nothing where none was.
///
/// The caller holds the root's lock.
///
/// # Errors
///
/// [`BackupError`] when files cannot be moved.
pub async fn recover(layout: &Layout, clock: &Clock) -> Result<(), BackupError> {
    let Some(journal) = Journal::read(layout)? else {
        return Ok(());
    };
    match journal.phase {
        Phase::Staging => {
            tracing::warn!(restore = %journal.id, "a restore was cut off before it changed anything: rolled back");
            journal.clear(layout)
        }
        Phase::Swapping => {
            tracing::warn!(restore = %journal.id, "a restore was cut off: finishing it");
            roll_forward(layout, journal, clock.now_ms()).await
        }
    }
}

pub(super) async fn roll_forward(
    layout: &Layout,
    journal: Journal,
    now_ms: i64,
) -> Result<(), BackupError> {
    let moved = (journal.clone(), layout.clone());
    let swapped = tokio::task::spawn_blocking(move || moved.0.swap(&moved.1));
    swapped.await.map_err(|_| BackupError::Stopped)??;
    fault("restore.swapped");
    // Before the registry: what the row of an agent came with is not all that is told of it afterwards.
    if let Some(life) = journal.life.clone() {
        life.finish(layout, &journal.id, now_ms).await?;
    }
    if let Some(register) = journal.register.clone() {
        let access = WriteAccess {
            durability: Durability::Full,
            release: Release {
                app_version: env!("CARGO_PKG_VERSION"),
                now_ms,
            },
            migrate_lock: layout.migrate_lock(),
        };
        let global = Db::open(&layout.global_db(), &Tier::Global, Access::Write(access)).await?;
        let put = global.put_restored(register.agent, register.run).await;
        global.close().await;
        put?;
        fault("restore.registered");
    }
    if let Some(undo) = journal.undo.clone() {
        let place = (journal.clone(), layout.clone());
        let finished = tokio::task::spawn_blocking(move || undo.finish(&place.1, &place.0));
        finished.await.map_err(|_| BackupError::Stopped)??;
    }
    journal.clear(layout)
}

/// Unpacks what is wanted into the staging folder, and prepares the control plane for its new home.
async fn stage(job: &RestoreJob, verified: &Verified) -> Result<Option<Register>, BackupError> {
    let layout = &job.layout;
    let opened = verify::open(&job.archive, job.key.as_ref()).await?;
    if *opened.manifest() != verified.manifest {
        return Err(BackupError::Damaged {
            archive: job.archive.clone(),
            member: super::MANIFEST_NAME.to_owned(),
            reason: "changed since it was verified".to_owned(),
        });
    }
    let global = global_path(&verified.manifest)?;
    let mut paths: HashSet<String> = wanted(job, &verified.manifest)?
        .iter()
        .map(|member| member.archive_path.clone())
        .collect();
    // One agent's row is read from the control plane, which then stays in the staging folder.
    paths.insert(global.clone());
    let (layout_, id) = (layout.clone(), job.id.clone());
    let unpacked = tokio::task::spawn_blocking(move || {
        opened.read_members(
            |member| {
                let path = &member.archive_path;
                paths.contains(path).then(|| staged(&layout_, &id, path))
            },
            |_, path| path.map_or(Ok(()), synced),
        )
    });
    unpacked.await.map_err(|_| BackupError::Stopped)??;
    fault("restore.unpacked");
    let path = staged(layout, &job.id, &global);
    let mut copy = DbCopy::open(&path, &Tier::Global).await?;
    let register = match &job.agent {
        Some(agent) => register(job, verified, agent, &mut copy).await.map(Some),
        None => {
            let bytes = i64::try_from(verified.bytes).unwrap_or(i64::MAX);
            let archive = stored(job);
            let run = record(job, verified);
            let marked = copy.mark_restored(&verified.manifest.id, &archive, bytes, &run);
            marked.await.map(|()| None).map_err(Into::into)
        }
    };
    copy.close().await?;
    synced(&path)?;
    register
}

async fn register(
    job: &RestoreJob,
    verified: &Verified,
    agent: &AgentId,
    copy: &mut DbCopy,
) -> Result<Register, BackupError> {
    let row: Option<AgentRecord> = copy.agent(agent).await?;
    let agent = row.ok_or_else(|| BackupError::NoAgent {
        archive: job.archive.clone(),
        agent: agent.clone(),
    })?;
    Ok(Register {
        agent,
        run: record(job, verified),
    })
}

/// The archive as the target's control plane keeps it.
fn stored(job: &RestoreJob) -> String {
    let path = job.layout.stored(&job.archive);
    path.to_string_lossy().into_owned()
}

fn record(job: &RestoreJob, verified: &Verified) -> BackupRun {
    BackupRun {
        id: job.id.clone(),
        kind: BackupKind::Restore,
        created_at_ms: job.now_ms,
        finished_at_ms: Some(job.now_ms),
        archive_path: stored(job),
        archive_bytes: i64::try_from(verified.bytes).ok(),
        status: BackupStatus::Completed,
        error: None,
        manifest_json: serde_json::json!({ "id": verified.manifest.id }).to_string(),
    }
}

pub(super) fn synced(path: &Path) -> Result<(), BackupError> {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(FsError::at("sync", path))?;
    if let Some(folder) = path.parent() {
        atomic::sync_dir(folder)?;
    }
    Ok(())
}

/// The members to restore.
fn wanted<'a>(job: &RestoreJob, manifest: &'a Manifest) -> Result<Vec<&'a Member>, BackupError> {
    let Some(agent) = &job.agent else {
        return Ok(manifest.members.iter().collect());
    };
    let member = manifest.agents().find(|(id, _)| *id == agent);
    let (_, member) = member.ok_or_else(|| BackupError::NoAgent {
        archive: job.archive.clone(),
        agent: agent.clone(),
    })?;
    Ok(vec![member])
}

pub(super) fn global_path(manifest: &Manifest) -> Result<String, BackupError> {
    let global = manifest.members.iter();
    let mut global = global.filter(|member| member.role == Some(Role::Global));
    // Proved by the verification; asked again rather than assumed.
    let member = global.next().ok_or(BackupError::Stopped)?;
    Ok(member.archive_path.clone())
}

/// One agent needs a control plane that can register it.
async fn prove_target(layout: &Layout) -> Result<(), BackupError> {
    if !layout.global_db().exists() {
        return Err(BackupError::NotInitialised {
            target: layout.root().to_owned(),
        });
    }
    let (_hold, access) = capture::look(layout);
    let global = Db::open(&layout.global_db(), &Tier::Global, access).await?;
    global.close().await;
    Ok(())
}

/// Databases in the agents' folders of a target, registered or not, relative to its root.
pub(super) fn agent_databases(layout: &Layout) -> Result<Vec<String>, FsError> {
    let folder = layout.agents_dir();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FsError::at("read", &folder)(error)),
    };
    let mut paths: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| exists(&layout.agent_db(name)))
        .map(|name| {
            Layout::agent_db_relative(&name)
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    paths.sort();
    Ok(paths)
}

/// Folders above a restored file must be the root's own.
pub(super) fn refuse_links(root: &Path, path: &str) -> Result<(), BackupError> {
    let mut folder = root.to_owned();
    let parts: Vec<&str> = path.split('/').collect();
    for part in &parts[..parts.len() - 1] {
        folder.push(part);
        if folder
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_symlink())
        {
            return Err(BackupError::Link { path: folder });
        }
    }
    Ok(())
}
