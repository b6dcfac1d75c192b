//! Backups as use cases: they record each run and ask [`crate::backup`] to do the work.
//!
//! Making and verifying an archive need no lock: SQLite's own locks give a consistent copy beside whoever writes.
//! Only a restore takes the root for itself.

pub(super) mod freshness;
mod keys;
mod record;
mod report;
mod retention;
mod schedule;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::record::Recorder;
pub(super) use self::report::create_report;
use self::report::member_reports;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::backup::{self, BackupError, BackupJob, Key, Manifest, RestoreJob, Seal};
use crate::clock::Clock;
use crate::fs::{Holder, HolderKind, Layout, LockError, RootLock, SharedLock};
use crate::model::{BackupKind, BackupRun, PageLimit};
use crate::store::global::backup as runs;

pub use self::keys::{KeySource, SealSource};
pub use self::report::{
    CreateOptions, CreateReport, MemberReport, RestoreOptions, RestoreReport, VerifyReport,
};
pub use self::retention::{
    ArchiveInfo, PruneAction, PruneItem, PruneOptions, PruneReport, Untouched, inventory, prune,
};
pub use self::schedule::ScheduledReport;
pub use crate::backup::{
    Encryption, LeftOut, MemberKind, PlanAction, PlanStep, Proof, Role, Rules, Scope,
};

/// Things left out of an archive that a restore tells of one by one.
const MAX_TOLD: usize = 20;
/// How long a restore waits for commands that only look; a daemon is refused after it.
const RESTORE_WAIT: Duration = Duration::from_secs(2);

/// Makes an archive of the root at `root`, beside whoever writes it, and records the run there.
///
/// # Errors
///
/// [`ServiceError`] when there is no root, a database of it is newer or damaged, or the archive cannot be written.
/// Failing to record is a warning.
pub async fn create(
    root: &Path,
    clock: Clock,
    options: CreateOptions,
) -> Result<CreateReport, ServiceError> {
    // A look proves that there is a root, and finishes a restore that was cut off.
    Service::look(root, clock.clone()).await?.close().await;
    let layout = Layout::new(root.to_owned());
    let recorder = Recorder::for_root(&layout, &clock);
    make(&layout, &clock, options, Vec::new(), recorder).await
}

/// Makes an archive of a root that `service` holds, with more of its files.
///
/// * `extra`: paths relative to the root, of files that nobody writes now and that this process has not open. A
///   SQLite file among them goes along as a compact copy, or byte for byte with its logs if it cannot be read. Any
///   other is read where it lies; one that changes meanwhile fails the whole.
/// * `recorded`: whether the run is recorded in the control plane.
///
/// # Errors
///
/// As [`create`].
pub async fn create_with(
    service: &Service,
    options: CreateOptions,
    extra: Vec<PathBuf>,
    recorded: bool,
) -> Result<CreateReport, ServiceError> {
    let recorder = match recorded {
        true => Recorder::for_service(service),
        false => Recorder::silent(),
    };
    make(service.layout(), service.clock(), options, extra, recorder).await
}

async fn make(
    layout: &Layout,
    clock: &Clock,
    options: CreateOptions,
    extra: Vec<PathBuf>,
    mut recorder: Recorder<'_>,
) -> Result<CreateReport, ServiceError> {
    let started = Instant::now();
    let seal = options.seal.as_ref().map(SealSource::load).transpose()?;
    let encryption = seal.as_ref().map(Seal::encryption);
    let job = BackupJob {
        layout: layout.clone(),
        id: new_id(),
        now_ms: clock.now_ms(),
        output: options.output,
        with_secrets: options.with_secrets,
        include_workspace: options.include_workspace,
        verify: options.verify,
        seal,
        extra,
        agent: None,
        is_whole: false,
    };
    if options.dry_run {
        let done = backup::plan(&job).await?;
        return Ok(create_report(done, encryption, started, true));
    }
    let mut run = record::run(&job.id, BackupKind::Create, job.now_ms);
    recorder.begin(&run).await;
    let result = backup::create(&job).await;
    run.finished_at_ms = Some(clock.now_ms());
    match &result {
        Ok(done) => {
            let archive = layout.stored(&done.archive);
            record::completed(&mut run, archive, done.bytes, &done.manifest);
        }
        Err(error) => record::failed(&mut run, error),
    }
    recorder.finish(&run).await;
    let mut report = create_report(result?, encryption, started, false);
    report.warnings.extend(recorder.into_warnings());
    Ok(report)
}

/// Proves an archive, and records the run in `root` if that is a root which can be written.
///
/// * `deep`: restore it into a scratch folder too, and compare.
/// * `key`: opens it, if it is encrypted.
///
/// # Errors
///
/// [`BackupError::Damaged`] names what is wrong with the archive, [`BackupError::Newer`] what this release is too
/// old for, [`BackupError::Encrypted`] and [`BackupError::WrongKey`] that another key is needed.
pub async fn verify(
    archive: &Path,
    clock: Clock,
    root: Option<&Path>,
    deep: bool,
    key: Option<&KeySource>,
) -> Result<VerifyReport, ServiceError> {
    let archive = absolute(archive)?;
    let key = key.map(KeySource::load).transpose()?;
    let mut run = record::run(&new_id(), BackupKind::Verify, clock.now_ms());
    let result = prove(&archive, key.as_ref(), &clock, deep).await;
    run.finished_at_ms = Some(clock.now_ms());
    let layout = root.map(|root| Layout::new(root.to_owned()));
    let stored = layout
        .as_ref()
        .map_or(archive.as_path(), |it| it.stored(&archive));
    run.archive_path = stored.to_string_lossy().into_owned();
    match &result {
        Ok(verified) => {
            record::completed(&mut run, stored, verified.bytes, &verified.manifest);
        }
        Err(error) => record::failed(&mut run, error),
    }
    let mut findings = Vec::new();
    if let Some(layout) = layout.filter(|layout| layout.global_db().exists()) {
        let mut recorder = Recorder::for_root(&layout, &clock);
        recorder.begin(&run).await;
        findings = recorder.into_warnings();
    }
    let verified = result?;
    findings.splice(0..0, verified.findings);
    Ok(VerifyReport {
        archive,
        id: verified.manifest.id.clone(),
        scope: verified.manifest.scope,
        created_at_ms: verified.manifest.created_at_ms,
        encryption: verified.encryption,
        members: member_reports(verified.manifest),
        findings,
        ok: true,
    })
}

async fn prove(
    archive: &Path,
    key: Option<&Key>,
    clock: &Clock,
    deep: bool,
) -> Result<backup::Verified, BackupError> {
    let verified = backup::verify(archive, key).await?;
    if deep {
        backup::rehearse(archive, key, &verified, clock).await?;
    }
    Ok(verified)
}

/// Restores an archive, or one agent of it, after proving it.
///
/// The old files are set aside inside the target and named in the report. Leases are cleared: they name processes of
/// another machine or time. A kill at any moment leaves all old or all new, once the next command has run.
///
/// # Errors
///
/// [`ServiceError`]: the archive is damaged or newer, consent is missing, somebody holds the target.
pub async fn restore(clock: Clock, options: RestoreOptions) -> Result<RestoreReport, ServiceError> {
    let archive = absolute(&options.archive)?;
    let target = absolute(&options.target)?;
    if !archive.exists() {
        return Err(BackupError::NoArchive { path: archive }.into());
    }
    if !options.yes && !options.dry_run {
        return Err(BackupError::NeedsYes {
            archive,
            target,
            agent: options.agent,
        }
        .into());
    }
    let key = options.key.as_ref().map(KeySource::load).transpose()?;
    let verified = backup::verify(&archive, key.as_ref()).await?;
    let job = RestoreJob {
        id: new_id(),
        now_ms: clock.now_ms(),
        archive: archive.clone(),
        key,
        layout: Layout::new(target.clone()),
        agent: options.agent,
    };
    let mut report = RestoreReport {
        archive,
        target,
        plan: Vec::new(),
        written: false,
        previous: None,
        notes: notes(&verified.manifest),
    };
    report.notes.extend(verified.findings.iter().cloned());
    if options.dry_run {
        refuse_held(&job.layout)?;
        report.plan = backup::plan_restore(&job, &verified.manifest).await?;
        return Ok(report);
    }
    if !job.layout.restore_journal().exists() {
        // What would be refused is refused before the lock makes its folder and file.
        backup::plan_restore(&job, &verified.manifest).await?;
    }
    let _lock = take(&job.layout, clock.now_ms()).await?;
    backup::recover(&job.layout, &clock).await?;
    report.plan = backup::plan_restore(&job, &verified.manifest).await?;
    report.previous = backup::restore(&job, &verified, &report.plan).await?;
    report.written = true;
    Ok(report)
}

/// Takes the target for the restore, off the runtime's threads: waiting blocks.
pub(super) async fn take(layout: &Layout, since_ms: i64) -> Result<RootLock, ServiceError> {
    let layout = layout.clone();
    let holder = Holder {
        kind: HolderKind::Restore,
        since_ms,
    };
    let taken =
        tokio::task::spawn_blocking(move || RootLock::exclusive(&layout, holder, RESTORE_WAIT));
    Ok(taken.await.map_err(|_| BackupError::Stopped)??)
}

/// What the lock would say, without taking it.
pub(super) fn refuse_held(layout: &Layout) -> Result<(), ServiceError> {
    match RootLock::shared_if_present(layout)? {
        SharedLock::WriterAlive(holder) => Err(LockError::Held {
            path: layout.daemon_lock(),
            holder: holder.map(Box::new),
            waited: Duration::ZERO,
        }
        .into()),
        SharedLock::NoFile | SharedLock::Held(_) => Ok(()),
    }
}

/// Restoring is time travel.
pub(super) fn notes_of_age(manifest: &Manifest) -> Vec<String> {
    vec![format!(
        "the state is that of {}; what happened since is not in it",
        manifest.created_at
    )]
}

fn notes(manifest: &Manifest) -> Vec<String> {
    let mut notes = notes_of_age(manifest);
    notes.push("leases are not brought back: they name processes of that moment".to_owned());
    if !manifest.has_secrets {
        notes.push(
            "the archive was made without secrets: what follows is not in it and comes back by hand, or stays as it \
             is in the target"
                .to_owned(),
        );
        let secrets = manifest.left_out.iter().filter(|left| left.is_secret);
        let told = secrets.clone().take(MAX_TOLD);
        notes.extend(told.map(|left| format!("{}: {}", left.path, left.reason)));
        let more = secrets.count().saturating_sub(MAX_TOLD);
        if more > 0 {
            notes.push(format!(
                "and {more} more: `left_out` in the archive's manifest.json names all"
            ));
        }
    }
    notes
}

pub(super) fn new_id() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, ServiceError> {
    Ok(std::path::absolute(path).map_err(crate::fs::FsError::at("find", path))?)
}

impl Service {
    pub(super) async fn list_backups(
        &self,
        limit: PageLimit,
    ) -> Result<Vec<BackupRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        let runs = runs::list(&mut conn, limit).await.in_db(self.global())?;
        let shown = |run| record::shown(self.layout(), run);
        Ok(runs.into_iter().map(shown).collect())
    }
}
