//! All tiers at one instant.
//!
//! Every writer is held, all captures begin, every writer is let go: then each copy shows the same moment, and no
//! writer waited longer than the captures took to begin. The control plane is held first, and the registry is read
//! again under that hold: an agent made a moment before must not be missing from its own archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use tokio::task::JoinSet;

use super::BackupError;
use super::manifest::{LeftOut, Member, MemberKind, Role, hex};
use super::{names, scrub};
use crate::db::{
    Access, Db, DbCopy, DbError, OpenError, SnapshotGate, SnapshotRun, SnapshotSource,
};
use crate::fs::{FsError, Layout, RootLock, SharedLock, atomic, process, space};
use crate::model::{AgentId, AgentRecord, CheckOutcome, Tier};

/// How often to begin anew when agents come and go meanwhile.
const TRIES: usize = 5;
/// Copies checked at once.
const CHECKS_AT_ONCE: usize = 2;
/// Files open for each database while the instant is taken: two connections with their logs, the shared index, the
/// copy, and one to spare.
const FILES_EACH: u64 = 7;
/// Files open besides.
const FILES_BESIDES: u64 = 64;
/// Mode the live databases are born with.
const DB_MODE: u32 = 0o600;

/// A database of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnTier {
    /// Whose it is.
    pub(super) tier: Tier,
    /// Where it lies.
    pub(super) path: PathBuf,
    /// The same relative to the root, with `/`.
    pub(super) archive_path: String,
}

impl OwnTier {
    /// Whether this process may hold its writers: not on a read-only medium, where there are none.
    fn can_write(&self) -> bool {
        let folder = self.path.parent().unwrap_or(&self.path);
        space::is_writable(&self.path) && space::is_writable(folder)
    }

    /// Sizes of the file and its log.
    pub(super) fn bytes(&self) -> u64 {
        let [wal, _, _] = crate::fs::sidecars(&self.path);
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        size(&self.path) + size(&wal)
    }
}

/// How the root may be looked at, and what keeps writers out meanwhile: where none lives, nothing
/// need be left beside its databases.
pub(super) fn look(layout: &Layout) -> (Option<SharedLock>, Access) {
    // A lock that cannot be asked keeps nobody out.
    let hold = RootLock::shared_if_present(layout).ok();
    let is_at_rest = hold.as_ref().is_some_and(SharedLock::is_at_rest);
    (hold, Access::Look { is_at_rest })
}

/// The databases of a root: the control plane and every registered agent, in a fixed order.
///
/// # Errors
///
/// [`BackupError`] when the control plane cannot be read, or registers what cannot be an agent.
pub(super) async fn tiers_of(layout: &Layout) -> Result<Vec<OwnTier>, BackupError> {
    let path = layout.global_db();
    let (_hold, access) = look(layout);
    let global = Db::open(&path, &Tier::Global, access).await?;
    let registry = global.registry().await;
    global.close().await;
    tiers_in(layout, registry?)
}

/// The same by what the registry says.
fn tiers_in(layout: &Layout, registry: Vec<(String, String)>) -> Result<Vec<OwnTier>, BackupError> {
    let path = layout.global_db();
    let mut tiers = vec![OwnTier {
        tier: Tier::Global,
        archive_path: relative(layout, &path),
        path,
    }];
    for (agent, path) in registry {
        let stray = || BackupError::StrayAgent {
            agent: agent.clone(),
            path: path.clone(),
        };
        let id = AgentId::new(agent.clone()).map_err(|_| stray())?;
        if names::fault(&path).is_some() || !path.starts_with("agents/") {
            return Err(stray());
        }
        tiers.push(OwnTier {
            tier: Tier::Agent(id),
            path: layout.root().join(&path),
            archive_path: path,
        });
    }
    Ok(tiers)
}

/// One agent's database, where its row says; in an archive it lies where every agent's does.
///
/// # Errors
///
/// [`BackupError::StrayAgent`] when the row leads out of the root.
pub(super) fn tier_of_agent(layout: &Layout, agent: &AgentRecord) -> Result<OwnTier, BackupError> {
    let registered = (agent.agent_id.to_string(), agent.path.clone());
    let mut tiers = tiers_in(layout, vec![registered])?;
    let mut own = tiers.swap_remove(1);
    let usual = layout.agent_db(agent.agent_id.as_str());
    own.archive_path = relative(layout, &usual);
    Ok(own)
}

/// Captures tiers that cannot change their number meanwhile.
///
/// # Errors
///
/// As [`capture`].
pub(super) async fn capture_known(
    tiers: &[OwnTier],
    tree: &Path,
) -> Result<Vec<OwnTier>, BackupError> {
    let mut sources = Vec::with_capacity(tiers.len());
    for own in tiers {
        sources.push(SnapshotSource::open(&own.path, own.can_write()).await?);
    }
    for source in &mut sources {
        source.hold().await?;
    }
    let targets = targets_of(tiers, tree);
    run(sources, &targets).await?;
    Ok(tiers.to_vec())
}

fn targets_of(tiers: &[OwnTier], tree: &Path) -> Vec<PathBuf> {
    let paths = tiers.iter().map(|own| tree.join(&own.archive_path));
    paths.collect()
}

fn relative(layout: &Layout, path: &Path) -> String {
    let relative = path.strip_prefix(layout.root()).unwrap_or(path);
    relative.to_string_lossy().into_owned()
}

/// Proves through handles that cannot write that every database is what it should be, and none is newer.
///
/// # Errors
///
/// [`BackupError`] at the first that is not.
pub(super) async fn prove(layout: &Layout, tiers: &[OwnTier]) -> Result<(), BackupError> {
    let (_hold, access) = look(layout);
    for own in tiers {
        match Db::open(&own.path, &own.tier, access.clone()).await {
            Ok(db) => db.close().await,
            Err(OpenError::NotFound { path }) if own.tier != Tier::Global => {
                return Err(BackupError::MissingAgent {
                    agent: own
                        .tier
                        .agent_id()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    path,
                });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Captures every tier into its place under `tree`; gives what was captured.
///
/// # Errors
///
/// [`BackupError`] when one cannot be captured; none is under way any more then.
pub(super) async fn capture(layout: &Layout, tree: &Path) -> Result<Vec<OwnTier>, BackupError> {
    for _ in 0..TRIES {
        let tiers = tiers_of(layout).await?;
        allow_files(tiers.len())?;
        prove(layout, &tiers).await?;
        let mut sources = Vec::with_capacity(tiers.len());
        for own in &tiers {
            sources.push(SnapshotSource::open(&own.path, own.can_write()).await?);
        }
        for source in &mut sources {
            source.hold().await?;
        }
        // Agents may have come or gone since: asked of the control plane that is held now.
        if tiers_in(layout, sources[0].registry().await?)? == tiers {
            run(sources, &targets_of(&tiers, tree)).await?;
            return Ok(tiers);
        }
        // Dropped sources let their writers go.
    }
    Err(BackupError::AgentsChanging { tries: TRIES })
}

/// Allows this process as many files as it needs, as far as the system lets it.
fn allow_files(databases: usize) -> Result<(), BackupError> {
    let needed = files_needed(databases);
    refuse_few_files(databases, process::raise_open_files_limit(needed))
}

fn files_needed(databases: usize) -> u64 {
    FILES_BESIDES + FILES_EACH * databases as u64
}

/// Says before anything is begun what would fail in the middle of it.
fn refuse_few_files(databases: usize, limit: Option<u64>) -> Result<(), BackupError> {
    let needed = files_needed(databases);
    match limit {
        Some(limit) if limit < needed => Err(BackupError::FewFiles {
            databases,
            needed,
            limit,
        }),
        _ => Ok(()),
    }
}

async fn run(sources: Vec<SnapshotSource>, targets: &[PathBuf]) -> Result<(), BackupError> {
    for target in targets {
        if let Some(folder) = target.parent() {
            atomic::create_dir_private(folder)?;
        }
    }
    let starts = sources
        .into_iter()
        .zip(targets)
        .map(|(source, target)| source.start(target));
    let started = join_all(starts).await;
    let mut failed: Option<BackupError> = None;
    let mut runs: Vec<SnapshotRun> = Vec::new();
    let mut gates: Vec<SnapshotGate> = Vec::new();
    for start in started {
        match start {
            Ok((run, gate)) => {
                runs.push(run);
                gates.push(gate);
            }
            Err(error) => failed = failed.or(Some(error.into())),
        }
    }
    for released in join_all(gates.into_iter().map(SnapshotGate::release)).await {
        if let Err(error) = released {
            failed = failed.or(Some(error.into()));
        }
    }
    // All are waited for, also after a failure: none may write into a folder that is being removed.
    for finished in join_all(runs.into_iter().map(SnapshotRun::finish)).await {
        if let Err(error) = finished {
            failed = failed.or(Some(error.into()));
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Cleans, checks and counts the copies of `tiers` under `tree`; gives their entries for the manifest, in order, and
/// what was taken out of them.
///
/// # Errors
///
/// [`BackupError::DamagedSource`] when a check finds something.
pub(super) async fn describe(
    tiers: &[OwnTier],
    tree: &Path,
    with_secrets: bool,
) -> Result<(Vec<Member>, Vec<LeftOut>), BackupError> {
    let mut waiting = tiers.iter().cloned().enumerate();
    let mut members = BTreeMap::new();
    let mut left_out = Vec::new();
    let mut checks = JoinSet::new();
    loop {
        while checks.len() < CHECKS_AT_ONCE
            && let Some((place, own)) = waiting.next()
        {
            let copy = tree.join(&own.archive_path);
            checks.spawn(async move {
                let cleaned = scrub::clean(&copy, &own.tier, &own.archive_path, with_secrets);
                let left_out = cleaned.await?;
                Ok::<_, BackupError>((place, describe_one(own, &copy).await?, left_out))
            });
        }
        let Some(done) = checks.join_next().await else {
            break;
        };
        let (place, member, taken_out) = done.map_err(|_| BackupError::Stopped)??;
        members.insert(place, member);
        left_out.extend(taken_out);
    }
    Ok((members.into_values().collect(), left_out))
}

async fn describe_one(own: OwnTier, copy: &Path) -> Result<Member, BackupError> {
    let mut db = DbCopy::open(copy, &own.tier).await?;
    let outcome = check(&mut db).await;
    let version = db.version().await;
    let rows = db.rows().await;
    db.close().await?;
    let lines = match outcome? {
        CheckOutcome::Ok => None,
        CheckOutcome::Failed { lines } => Some(lines),
    };
    if let Some(lines) = lines {
        return Err(BackupError::DamagedSource {
            tier: own.tier.to_string(),
            lines,
        });
    }
    let (bytes, sha256) = hash(copy).await?;
    Ok(Member {
        kind: MemberKind::Database,
        role: Some(match own.tier {
            Tier::Global => Role::Global,
            Tier::Agent(_) => Role::Agent,
        }),
        agent_id: own.tier.agent_id().cloned(),
        schema_version: Some(version?),
        archive_path: own.archive_path,
        bytes,
        sha256,
        mode: DB_MODE,
        rows: Some(rows?),
        integrity: Some("ok".to_owned()),
    })
}

/// All checks of one of our databases; the first that finds something decides.
///
/// # Errors
///
/// [`DbError`] when a check itself cannot run.
pub(super) async fn check(db: &mut DbCopy) -> Result<CheckOutcome, DbError> {
    let integrity = db.integrity().await?;
    if !integrity.is_ok() {
        return Ok(integrity);
    }
    let relations = db.relations().await?;
    if !relations.is_ok() {
        return Ok(relations);
    }
    db.full_text().await
}

/// Size and SHA-256 of a file, off the runtime's threads.
pub(super) async fn hash(path: &Path) -> Result<(u64, String), BackupError> {
    let path = path.to_owned();
    let hashed = tokio::task::spawn_blocking(move || atomic::hash_file(&path)).await;
    let (bytes, digest) = hashed.map_err(|_| BackupError::Stopped)??;
    Ok((bytes, hex(&digest)))
}

/// Captures a database of another program into `target`, and describes it.
///
/// * `is_still`: nobody writes it: it is read where it lies, or through a private copy if it has logs.
///
/// # Errors
///
/// [`BackupError`] when it cannot be read: the caller decides what to do with it then.
pub(super) async fn capture_foreign(
    path: &Path,
    target: &Path,
    archive_path: &str,
    mode: u32,
    is_still: bool,
) -> Result<Member, BackupError> {
    // The copy lies where the capture goes: there is room for it, and it goes with the staging folder.
    let place = target.parent().unwrap_or(target);
    let source = match is_still {
        true => SnapshotSource::open_still(path, place).await?,
        false => SnapshotSource::open_foreign(path).await?,
    };
    let (run, gate) = source.start(target).await?;
    let released = gate.release().await;
    run.finish().await?;
    released?;
    let mut db = DbCopy::open_foreign(target).await?;
    let integrity = db.integrity().await;
    let version = db.version().await;
    let rows = db.rows().await;
    db.close().await?;
    let integrity = match integrity? {
        CheckOutcome::Ok => "ok".to_owned(),
        CheckOutcome::Failed { lines } => lines.join("; "),
    };
    let (bytes, sha256) = hash(target).await?;
    Ok(Member {
        kind: MemberKind::Database,
        role: Some(Role::Foreign),
        agent_id: None,
        schema_version: Some(version?),
        archive_path: archive_path.to_owned(),
        bytes,
        sha256,
        mode,
        rows: Some(rows?),
        integrity: Some(integrity),
    })
}

/// Removes a capture that failed half way, so that its place is free.
pub(super) fn discard(target: &Path) -> Result<(), FsError> {
    for path in std::iter::once(target.to_owned()).chain(crate::fs::sidecars(target)) {
        match std::fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(FsError::at("remove", &path)(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_databases_than_files_allowed_are_refused_at_once() {
        assert!(refuse_few_files(100, Some(1_024)).is_ok());
        assert!(refuse_few_files(1_000, None).is_ok());

        let refused = refuse_few_files(201, Some(1_024)).unwrap_err();

        assert!(refused.hint().unwrap().contains("ulimit -n 1471"));
    }
}
