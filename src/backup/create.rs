//! One root to one archive.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::BackupError;
use super::capture::{self, OwnTier};
use super::gather;
use super::life;
use super::manifest::{FIRST_VERSION, FORMAT_VERSION, Manifest, Member, MemberKind, Role, Scope};
use super::names;
use super::pack::{pack, pack_sealed};
use super::scrub;
use super::seal::Seal;
use super::staging::{Contents, Staging};
use super::verify;
use super::walk::{self, Found, Search};
use crate::clock::{rfc3339, utc_stamp};
use crate::db::{Db, TaskMention, WriteAccess, copy_belongings};
use crate::fs::fault;
use crate::fs::layout::{AGENT_ARCHIVE_PREFIX, ARCHIVE_PREFIX, ARCHIVE_SUFFIX, SEALED_SUFFIX};
use crate::fs::{FsError, FsErrorKind, Layout, atomic, space};
use crate::model::{AgentRecord, Tier};

/// Characters of the identity in an archive's name.
const SHORT_ID: usize = 8;

/// A backup to be made.
#[derive(Clone, Debug)]
pub struct BackupJob {
    /// The root.
    pub layout: Layout,
    /// Identity of the backup.
    pub id: String,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
    /// File or existing folder for the archive; `None` for the root's own folder of backups.
    pub output: Option<PathBuf>,
    /// Keys, the configuration, databases of other programs and credentials in our own too.
    pub with_secrets: bool,
    /// Workspaces too.
    pub include_workspace: bool,
    /// Read the archive back before it gets its name.
    pub verify: bool,
    /// What the archive is encrypted to; `None` for a plain one.
    pub seal: Option<Seal>,
    /// More files, relative to the root, that nobody writes now.
    pub extra: Vec<PathBuf>,
    /// This agent alone, by its row in the registry; `None` for the whole root.
    pub agent: Option<AgentRecord>,
    /// Everything that is that agent's: its rows of the control plane, which nobody writes now, and all of its folder.
    pub is_whole: bool,
}

/// A backup that was made, or would be.
#[derive(Clone, Debug)]
pub struct BackupDone {
    /// The archive.
    pub archive: PathBuf,
    /// Its size; 0 for a plan.
    pub bytes: u64,
    /// What is in it. A plan has sizes, but no digests, rows or versions.
    pub manifest: Manifest,
    /// What was proved of it.
    pub proof: Option<Proof>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// What is known of an archive that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// It was opened and read: every byte of the copies is in it.
    ReadBack,
    /// Nobody here can open it. What went into the encryption was read and is whole, and the file holds every byte
    /// that came out of it; not proved is that a recipient's identity opens it.
    BeforeEncryption,
}

/// Says where the archive would go and what would be in it; writes nothing.
///
/// # Errors
///
/// [`BackupError`] for what would fail before the first write.
pub async fn plan(job: &BackupJob) -> Result<BackupDone, BackupError> {
    let outline = Outline::of(job).await?;
    let mut members: Vec<Member> = outline.tiers.iter().map(planned_tier).collect();
    let files = outline.found.foreign.iter().chain(&outline.found.files);
    members.extend(files.map(gather::planned));
    let mut found = outline.found;
    let mut warnings = std::mem::take(&mut found.warnings);
    warnings.extend(what_stays(job));
    if !job.with_secrets {
        let tiers = outline.tiers.iter();
        found
            .left_out
            .extend(tiers.flat_map(|own| scrub::planned(&own.tier, &own.archive_path)));
    }
    let manifest = manifest(job, members, found);
    Ok(BackupDone {
        archive: outline.archive,
        bytes: 0,
        manifest,
        proof: None,
        warnings,
    })
}

/// Makes the archive.
///
/// Whatever happens, nothing but a whole archive stays.
///
/// # Errors
///
/// [`BackupError`]: a database is damaged, newer or missing, the destination is taken or full.
pub async fn create(job: &BackupJob) -> Result<BackupDone, BackupError> {
    let started = Instant::now();
    let outline = Outline::of(job).await?;
    let beside = folder_of(&outline.archive).to_owned();
    if job.output.is_none() {
        atomic::create_dir_private(&beside)?;
    }
    let staging = Staging::create(&beside, &job.id)?;
    let tiers = match &job.agent {
        Some(_) => capture::capture_known(&outline.tiers, &staging.tree()).await?,
        None => capture::capture(&job.layout, &staging.tree()).await?,
    };
    fault("backup.captured");
    let (tiers, mentions) = with_belongings(job, tiers, &staging).await?;
    let described = capture::describe(&tiers, &staging.tree(), job.with_secrets).await?;
    let (mut members, taken_out) = described;
    let mut found = outline.found;
    let contents = gather::gather(job, &staging, &mut members, &mut found).await?;
    found.left_out.extend(taken_out);
    let mut warnings = std::mem::take(&mut found.warnings);
    warnings.extend(what_stays(job));
    let mut manifest = manifest(job, members, found);
    manifest.mentions = mentions;

    let packed = staging.archive();
    let (bytes, proof) = write(job, &packed, &manifest, contents).await?;
    atomic::persist_new(&packed, &outline.archive).map_err(|error| match error.kind() {
        FsErrorKind::AlreadyExists => BackupError::Exists {
            path: outline.archive.clone(),
        },
        _ => error.into(),
    })?;
    tracing::info!(archive = %outline.archive.display(), bytes, ms = started.elapsed().as_millis(), "backed up");
    Ok(BackupDone {
        archive: outline.archive,
        bytes,
        manifest,
        proof,
        warnings,
    })
}

/// Adds a control plane of a whole agent's rows alone to what was captured; gives the tasks of others that name it.
async fn with_belongings(
    job: &BackupJob,
    mut tiers: Vec<OwnTier>,
    staging: &Staging,
) -> Result<(Vec<OwnTier>, Vec<TaskMention>), BackupError> {
    let Some(agent) = job.agent.as_ref().filter(|_| job.is_whole) else {
        return Ok((tiers, Vec::new()));
    };
    let id = &agent.agent_id;
    let from = job.layout.global_db();
    let target = staging.place(names::GLOBAL_DB)?;
    let access = WriteAccess {
        // Its own lock: the root's migrations have nothing to do with this copy.
        migrate_lock: staging.tree().with_extension("lock"),
        ..life::access(&job.layout, job.now_ms)
    };
    copy_belongings(&from, &target, id, access).await?;
    let (_hold, look) = capture::look(&job.layout);
    let global = Db::open(&from, &Tier::Global, look).await?;
    let mentions = global.mentions(id).await;
    global.close().await;
    tiers.push(OwnTier {
        tier: Tier::Global,
        archive_path: names::GLOBAL_DB.to_owned(),
        path: from,
    });
    Ok((tiers, mentions?))
}

/// What an archive without secrets holds although it may name some.
fn what_stays(job: &BackupJob) -> Option<String> {
    let files = match job.include_workspace {
        true => ", and the files of workspaces",
        false => "",
    };
    (!job.with_secrets).then(|| {
        format!(
            "credentials are left out, what was said and done is not: transcripts, memories, prompts of jobs and \
             outputs of tasks are inside as they are{files}"
        )
    })
}

/// What is known before anything is written.
struct Outline {
    archive: PathBuf,
    tiers: Vec<OwnTier>,
    found: Found,
}

impl Outline {
    async fn of(job: &BackupJob) -> Result<Self, BackupError> {
        let archive = destination(job)?;
        let tiers = match &job.agent {
            Some(agent) => vec![capture::tier_of_agent(&job.layout, agent)?],
            None => capture::tiers_of(&job.layout).await?,
        };
        capture::prove(&job.layout, &tiers).await?;
        let found = walk_root(job, &tiers).await?;
        let files = found.foreign.iter().chain(&found.files);
        // Compression cannot be counted on, and the copies stand beside the archive: below this it must fail.
        let needed = tiers.iter().map(OwnTier::bytes).sum::<u64>()
            + files.map(|file| file.bytes).sum::<u64>();
        let beside = folder_of(&archive);
        let free = space::free_bytes(beside)?;
        if free < needed {
            return Err(BackupError::NoSpace {
                path: beside.to_owned(),
                needed,
                free,
            });
        }
        Ok(Self {
            archive,
            tiers,
            found,
        })
    }
}

async fn walk_root(job: &BackupJob, tiers: &[OwnTier]) -> Result<Found, BackupError> {
    let layout = job.layout.clone();
    let databases: Vec<PathBuf> = tiers.iter().map(|own| own.path.clone()).collect();
    let (with_secrets, include_workspace) = (job.with_secrets, job.include_workspace);
    let agent = job.agent.as_ref().map(|agent| agent.agent_id.clone());
    let is_whole = job.is_whole;
    let walked = tokio::task::spawn_blocking(move || {
        let search = Search {
            layout: &layout,
            databases: &databases,
            with_secrets,
            include_workspace,
        };
        match agent {
            Some(agent) => walk::walk_agent(&search, &agent, is_whole),
            None => walk::walk(&search),
        }
    });
    walked.await.map_err(|_| BackupError::Stopped)
}

/// The archive's path: in a folder that exists, under a name that is free.
fn destination(job: &BackupJob) -> Result<PathBuf, BackupError> {
    let short: String = job.id.chars().take(SHORT_ID).collect();
    let prefix = match &job.agent {
        Some(agent) => format!("{AGENT_ARCHIVE_PREFIX}{}-", agent.agent_id),
        None => ARCHIVE_PREFIX.to_owned(),
    };
    let suffix = match &job.seal {
        Some(_) => SEALED_SUFFIX,
        None => ARCHIVE_SUFFIX,
    };
    let name = format!("{prefix}{}-{short}{suffix}", utc_stamp(job.now_ms));
    let Some(output) = &job.output else {
        return Ok(job.layout.backups_dir().join(name));
    };
    let output = std::path::absolute(output).map_err(FsError::at("find", output))?;
    if output.is_dir() {
        return Ok(output.join(name));
    }
    if std::fs::symlink_metadata(&output).is_ok() {
        return Err(BackupError::Exists { path: output });
    }
    let folder = folder_of(&output);
    // A name that ends in a slash means a folder, and there is none.
    let means_folder = output.as_os_str().as_encoded_bytes().ends_with(b"/");
    if means_folder || !folder.is_dir() {
        let path = if means_folder { &output } else { folder };
        return Err(BackupError::NoFolder {
            path: path.to_owned(),
        });
    }
    Ok(output)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Writes the archive to `path`, and proves what can be proved if that is wanted.
async fn write(
    job: &BackupJob,
    path: &Path,
    manifest: &Manifest,
    contents: Contents,
) -> Result<(u64, Option<Proof>), BackupError> {
    let key = job.seal.as_ref().and_then(Seal::key);
    let is_closed = job.seal.is_some() && key.is_none();
    let (to, listed) = (path.to_owned(), manifest.clone());
    let (seal, is_watched) = (job.seal.clone(), job.verify && is_closed);
    let packed = tokio::task::spawn_blocking(move || match &seal {
        None => pack(&to, &listed, &contents),
        Some(seal) => pack_sealed(&to, &listed, &contents, seal, is_watched),
    });
    let bytes = packed.await.map_err(|_| BackupError::Stopped)??;
    fault("backup.packed");
    if !job.verify {
        return Ok((bytes, None));
    }
    if is_closed {
        return Ok((bytes, Some(Proof::BeforeEncryption)));
    }
    // The copies were checked before: the same bytes need not be opened again, only proved to be the same.
    verify::read_back(path, key.as_ref(), manifest).await?;
    Ok((bytes, Some(Proof::ReadBack)))
}

fn manifest(job: &BackupJob, members: Vec<Member>, mut found: Found) -> Manifest {
    found.bound_left_out();
    Manifest {
        format_version: match job.is_whole {
            true => FORMAT_VERSION,
            false => FIRST_VERSION,
        },
        app_version: env!("CARGO_PKG_VERSION").to_owned(),
        id: job.id.clone(),
        created_at_ms: job.now_ms,
        created_at: rfc3339(job.now_ms),
        scope: match &job.agent {
            Some(_) => Scope::Agent,
            None => Scope::Root,
        },
        agent: job.agent.clone(),
        mentions: Vec::new(),
        has_secrets: job.with_secrets,
        members,
        left_out: found.left_out,
    }
}

fn planned_tier(own: &OwnTier) -> Member {
    Member {
        kind: MemberKind::Database,
        role: Some(match own.tier {
            Tier::Global => Role::Global,
            Tier::Agent(_) => Role::Agent,
        }),
        agent_id: own.tier.agent_id().cloned(),
        schema_version: None,
        archive_path: own.archive_path.clone(),
        bytes: own.bytes(),
        sha256: String::new(),
        mode: 0o600,
        rows: None,
        integrity: None,
    }
}
