//! One agent out of an archive and into a root that does not know it.
//!
//! The database is unpacked, renamed, migrated and checked where nobody sees it. Then the journal of restores takes it
//! into place: file first, registry row second, so that a kill leaves nothing, or what the next command finishes.
//! Nothing is merged and nothing replaced; the caller has refused a name that is taken.

use std::path::{Path, PathBuf};

use super::BackupError;
use super::journal::{Journal, Phase, Register, Swap, exists, staged};
use super::life::{self, Life};
use super::manifest::{MANIFEST_NAME, Manifest, Member, Scope};
use super::restore::{global_path, refuse_links, roll_forward, synced};
use super::seal::Key;
use super::staging::scratch;
use super::verify::{self, Verified, need};
use super::{PlanAction, PlanStep, capture, names};
use crate::clock::Clock;
use crate::db::{Access, Db, DbCopy, TaskMention, known_version};
use crate::fs::{FsError, Layout, fault, sidecars};
use crate::model::{AgentId, AgentRecord, BackupKind, BackupRun, BackupStatus, CheckOutcome, Tier};

/// An agent to be taken in.
#[derive(Clone, Debug)]
pub struct AdoptJob {
    /// Identity of this import.
    pub id: String,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
    /// The archive.
    pub archive: PathBuf,
    /// What opens it, if it is encrypted.
    pub key: Option<Key>,
    /// The root to write.
    pub layout: Layout,
    /// The agent's name in the archive.
    pub agent: AgentId,
    /// Its name in the root.
    pub name: AgentId,
    /// Everything of a whole agent's archive, its scheduled jobs so; `None` for its database and workspace alone.
    pub whole: Option<Jobs>,
}

/// What becomes of scheduled jobs that come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// They are off until somebody switches them on.
    Off,
    /// They are on where they were.
    AsTheyWere,
}

/// Why a job that came back is off.
const JOB_OFF: &str = "restored with its agent";

impl AdoptJob {
    /// Where a member goes, relative to the root; `None` for what stays in the archive.
    fn place_of(&self, member: &Member) -> Option<String> {
        if member.agent_id.as_ref() == Some(&self.agent) {
            return Some(self.database());
        }
        let starts = |agent: &AgentId| match self.whole {
            Some(_) => names::of_whole_agent(agent),
            None => vec![names::workspace_prefix(agent)],
        };
        let places = starts(&self.agent).into_iter().zip(starts(&self.name));
        places.into_iter().find_map(|(from, to)| {
            let below = member.archive_path.strip_prefix(&from)?;
            Some(to + below)
        })
    }

    fn database(&self) -> String {
        let path = Layout::agent_db_relative(self.name.as_str());
        path.to_string_lossy().into_owned()
    }

    fn tier(&self) -> Tier {
        Tier::Agent(self.name.clone())
    }
}

/// Says what taking an agent in would write; writes nothing.
///
/// # Errors
///
/// [`BackupError`] when the archive does not hold the agent, or something stands where it would go.
pub fn plan_adopt(job: &AdoptJob, manifest: &Manifest) -> Result<Vec<PlanStep>, BackupError> {
    if !manifest.agents().any(|(id, _)| *id == job.agent) {
        return Err(BackupError::NoAgent {
            archive: job.archive.clone(),
            agent: job.agent.clone(),
        });
    }
    let mut steps = Vec::new();
    for member in &manifest.members {
        let Some(path) = job.place_of(member) else {
            continue;
        };
        refuse_links(job.layout.root(), &path)?;
        let place = job.layout.root().join(&path);
        if exists(&place) {
            return Err(BackupError::Exists { path: place });
        }
        steps.push(PlanStep {
            action: PlanAction::Create,
            path,
            bytes: member.bytes,
        });
    }
    let workspace = job.layout.workspace(job.name.as_str());
    for start in names::of_whole_agent(&job.name) {
        let place = job.layout.root().join(start.trim_end_matches('/'));
        if job.whole.is_some() && exists(&place) {
            return Err(BackupError::Exists { path: place });
        }
    }
    if steps.len() > 1 && exists(&workspace) && !is_empty(&workspace) {
        return Err(BackupError::Exists { path: workspace });
    }
    Ok(steps)
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// Takes the agent in; gives its row.
///
/// The caller holds the root's lock, has recovered it, and has made sure that the name is free.
///
/// # Errors
///
/// [`BackupError`]. Before the journal says so nothing of the root has changed; after that, whoever comes next
/// finishes.
pub async fn adopt(
    job: &AdoptJob,
    verified: &Verified,
    plan: &[PlanStep],
) -> Result<AgentRecord, BackupError> {
    let layout = &job.layout;
    need(&layout.state_dir(), plan.iter().map(|it| it.bytes).sum())?;
    let mut journal = Journal::staging(&job.id);
    journal.write(layout)?;
    fault("adopt.staging");
    let record = match stage(job, verified).await {
        Ok(record) => record,
        Err(error) => {
            // The root is as it was; the first error is the one to tell.
            if let Err(error) = journal.clear(layout) {
                tracing::warn!(%error, "staging folder stays behind");
            }
            return Err(error);
        }
    };
    fault("adopt.staged");
    journal.swaps = swaps(job, plan);
    if job.whole.is_some() {
        journal.lives(Life::Restore {
            agent: job.name.clone(),
            mentions: mentions(job, &verified.manifest),
        });
    }
    journal.register = Some(Box::new(Register {
        agent: record.clone(),
        run: run_of(job, verified),
    }));
    journal.phase = Phase::Swapping;
    journal.write(layout)?;
    fault("adopt.journalled");
    roll_forward(layout, journal, job.now_ms).await?;
    Ok(record)
}

/// The agent that an import which was cut off is about to leave in a root, if it comes from the archive `id`.
///
/// Asked before [`super::recover`], which finishes it.
///
/// # Errors
///
/// [`BackupError::Journal`] when the journal cannot be read.
pub fn unfinished_adoption(layout: &Layout, id: &str) -> Result<Option<AgentRecord>, BackupError> {
    let Some(journal) = Journal::read(layout)? else {
        return Ok(None);
    };
    let register = journal
        .register
        .filter(|_| journal.phase == Phase::Swapping);
    let register = register.filter(|it| it.run.manifest_json == manifest_note(id));
    Ok(register.map(|it| it.agent))
}

/// The tasks of others that name the agent, by the name it gets.
fn mentions(job: &AdoptJob, manifest: &Manifest) -> Vec<TaskMention> {
    let mentions = manifest.mentions.iter().cloned();
    let (old, new) = (format!("\"{}\"", job.agent), format!("\"{}\"", job.name));
    mentions
        .map(|mention| TaskMention {
            // Names have no character that JSON writes in another way.
            caller_chain_json: mention
                .caller_chain_json
                .map(|chain| chain.replace(&old, &new)),
            ..mention
        })
        .collect()
}

/// The database alone, and the workspace as one folder: there is nothing in its place. Of a whole agent the folders of
/// all that is its.
fn swaps(job: &AdoptJob, plan: &[PlanStep]) -> Vec<Swap> {
    if job.whole.is_some() {
        let starts = names::of_whole_agent(&job.name).into_iter();
        let starts = starts.filter(|start| plan.iter().any(|step| step.path.starts_with(start)));
        return starts
            .map(|start| Swap {
                path: start.trim_end_matches('/').to_owned(),
                has_new: true,
                is_database: false,
            })
            .collect();
    }
    let mut swaps = vec![Swap {
        path: job.database(),
        has_new: true,
        is_database: true,
    }];
    if plan.len() > 1 {
        let workspace = names::workspace_prefix(&job.name);
        swaps.insert(
            0,
            Swap {
                path: workspace.trim_end_matches('/').to_owned(),
                has_new: true,
                is_database: false,
            },
        );
    }
    swaps
}

/// Unpacks what is wanted, and makes the database the new agent's own.
async fn stage(job: &AdoptJob, verified: &Verified) -> Result<AgentRecord, BackupError> {
    let opened = verify::open(&job.archive, job.key.as_ref()).await?;
    if *opened.manifest() != verified.manifest {
        return Err(BackupError::Damaged {
            archive: job.archive.clone(),
            member: MANIFEST_NAME.to_owned(),
            reason: "changed since it was verified".to_owned(),
        });
    }
    let manifest = &verified.manifest;
    // The row of an agent in a whole archive is read from the control plane, which then stays in the staging folder.
    let global = match manifest.scope {
        Scope::Root => Some(global_path(manifest)?),
        // Of a whole agent it stays there too, until its rows have gone where they belong.
        Scope::Agent if job.whole.is_some() => Some(global_path(manifest)?),
        Scope::Agent => None,
    };
    let (job_, global_) = (job.clone(), global.clone());
    let unpacked = tokio::task::spawn_blocking(move || {
        opened.read_members(
            |member| {
                let path = match &global_ {
                    Some(global) if *global == member.archive_path => Some(global.clone()),
                    _ => job_.place_of(member),
                };
                path.map(|path| staged(&job_.layout, &job_.id, &path))
            },
            |_, path| path.map_or(Ok(()), synced),
        )
    });
    unpacked.await.map_err(|_| BackupError::Stopped)??;
    fault("adopt.unpacked");
    let path = staged(&job.layout, &job.id, &job.database());
    settle(job, manifest, &path).await?;
    if let Some(jobs) = job.whole {
        settle_rows(job, jobs).await?;
    }
    let came = match &global {
        Some(global) if job.whole.is_none() => registered(job, global).await?,
        _ => manifest.agent.clone(),
    };
    let came = came.ok_or_else(|| BackupError::NoAgent {
        archive: job.archive.clone(),
        agent: job.agent.clone(),
    })?;
    let came = AgentRecord {
        path: job.database(),
        schema_version: known_version(&job.tier()),
        ..came
    };
    if job.whole.is_some() {
        // It is as it was.
        return Ok(AgentRecord {
            agent_id: job.name.clone(),
            ..came
        });
    }
    let bytes = std::fs::metadata(&path).map_err(FsError::at("look at", &path))?;
    Ok(AgentRecord {
        agent_id: job.name.clone(),
        last_seen_at_ms: job.now_ms,
        size_bytes: i64::try_from(bytes.len()).ok(),
        ..came
    })
}

/// Renames and migrates the rows of the control plane, and switches its jobs off where that is wanted.
async fn settle_rows(job: &AdoptJob, jobs: Jobs) -> Result<(), BackupError> {
    let path = staged(&job.layout, &job.id, names::GLOBAL_DB);
    let access = life::access(&job.layout, job.now_ms);
    let rows = Db::open(&path, &Tier::Global, Access::Write(access)).await?;
    let settled = async {
        if job.name != job.agent {
            rows.rename_agent(&job.agent, &job.name, job.database())
                .await?;
        }
        match jobs {
            Jobs::Off => rows.disable_jobs(JOB_OFF).await,
            Jobs::AsTheyWere => Ok(()),
        }
    };
    let settled = settled.await;
    rows.close().await;
    settled?;
    synced(&path)
}

/// Renames, migrates and checks the unpacked database; afterwards the file is whole without a log.
async fn settle(job: &AdoptJob, manifest: &Manifest, path: &Path) -> Result<(), BackupError> {
    let mut copy = DbCopy::open(path, &Tier::Agent(job.agent.clone())).await?;
    let renamed = match job.name == job.agent {
        true => Ok(()),
        false => copy.give_to(&job.name).await,
    };
    copy.close().await?;
    renamed?;
    let access = life::access(&job.layout, job.now_ms);
    let db = Db::open(path, &job.tier(), Access::Write(access)).await?;
    db.close().await;
    // The last to close folds the log in.
    let mut copy = DbCopy::open(path, &job.tier()).await?;
    let proved = prove(job, manifest, &mut copy).await;
    copy.close().await?;
    proved?;
    for log in sidecars(path) {
        if exists(&log) {
            let left = std::io::Error::other("it stays although nobody has the database open");
            return Err(FsError::at("fold in", &log)(left).into());
        }
    }
    synced(path)
}

async fn prove(job: &AdoptJob, manifest: &Manifest, copy: &mut DbCopy) -> Result<(), BackupError> {
    if let CheckOutcome::Failed { lines } = capture::check(copy).await? {
        return Err(BackupError::DamagedSource {
            tier: job.tier().to_string(),
            lines,
        });
    }
    let member = manifest.agents().find(|(id, _)| **id == job.agent);
    match member {
        // A migration may have moved rows between tables.
        Some((_, member)) if member.schema_version == Some(known_version(&job.tier())) => {
            verify::compare_rows(&job.archive, member, copy).await
        }
        _ => Ok(()),
    }
}

async fn registered(job: &AdoptJob, global: &str) -> Result<Option<AgentRecord>, BackupError> {
    let path = staged(&job.layout, &job.id, global);
    let mut copy = DbCopy::open(&path, &Tier::Global).await?;
    let row = copy.agent(&job.agent).await;
    copy.close().await?;
    Ok(row?)
}

fn run_of(job: &AdoptJob, verified: &Verified) -> BackupRun {
    BackupRun {
        id: job.id.clone(),
        kind: BackupKind::Restore,
        created_at_ms: job.now_ms,
        finished_at_ms: Some(job.now_ms),
        archive_path: job
            .layout
            .stored(&job.archive)
            .to_string_lossy()
            .into_owned(),
        archive_bytes: i64::try_from(verified.bytes).ok(),
        status: BackupStatus::Completed,
        error: None,
        manifest_json: manifest_note(&verified.manifest.id),
    }
}

/// What a run that took something from an archive keeps of its manifest.
fn manifest_note(id: &str) -> String {
    serde_json::json!({ "id": id }).to_string()
}

/// Prepares an agent's database in a scratch root as an import would, which checks and counts it.
pub(super) async fn rehearse(
    archive: &Path,
    key: Option<&Key>,
    verified: &Verified,
    agent: &AgentId,
    clock: &Clock,
) -> Result<(), BackupError> {
    let scratch = scratch()?;
    let layout = Layout::new(scratch.path().join("root"));
    crate::fs::atomic::create_dir_private(&layout.state_dir())?;
    let job = AdoptJob {
        id: "rehearsal".to_owned(),
        now_ms: clock.now_ms(),
        archive: archive.to_owned(),
        key: key.cloned(),
        layout,
        agent: agent.clone(),
        name: agent.clone(),
        whole: verified.manifest.is_whole_agent().then_some(Jobs::Off),
    };
    stage(&job, verified).await.map(drop)
}
