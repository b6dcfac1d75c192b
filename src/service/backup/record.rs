//! Writes what became of a backup into the control plane. It never fails a backup: it warns.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::{Service, ServiceError};
use crate::backup::Manifest;
use crate::clock::Clock;
use crate::db::{Access, Db, Durability, Release, WriteAccess, known_version};
use crate::fs::process;
use crate::fs::{Holder, HolderKind, Layout, LockError, RootLock, SharedLock, space};
use crate::model::{BackupKind, BackupRun, BackupStatus, Liveness, ProcessIdentity, Tier};
use crate::store::StoreError;
use crate::store::global::backup;

/// How long to wait for commands that only look: while they do, nobody may write without the root's lock.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Largest manifest kept with a run, bytes; of a larger one only its identity is.
const MAX_MANIFEST_BYTES: usize = 256 * 1024;

/// Where runs are recorded.
pub(super) struct Recorder<'a> {
    place: Place<'a>,
    warnings: Vec<String>,
}

enum Place<'a> {
    /// A root that somebody else may be writing.
    Root(&'a Layout, &'a Clock),
    /// The control plane of a service in this process.
    Open(Arc<Db>, &'a Clock),
    Nowhere,
}

/// Whether somebody else may be at a backup who left no mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    None,
    MayLive,
}

/// What is written.
#[derive(Clone, Copy)]
enum Step {
    Begin,
    Finish,
}

impl<'a> Recorder<'a> {
    /// Records in a root, whoever holds it.
    pub(super) fn for_root(layout: &'a Layout, clock: &'a Clock) -> Self {
        Self::at(Place::Root(layout, clock))
    }

    /// Records through a service that is open for writing.
    pub(super) fn for_service(service: &'a Service) -> Self {
        Self::at(Place::Open(service.global().clone(), service.clock()))
    }

    /// Records nothing.
    pub(super) fn silent() -> Self {
        Self::at(Place::Nowhere)
    }

    fn at(place: Place<'a>) -> Self {
        Self {
            place,
            warnings: Vec::new(),
        }
    }

    /// Records that a run begins, or one that is over already.
    pub(super) async fn begin(&mut self, run: &BackupRun) {
        self.step(Step::Begin, run).await;
    }

    /// Records how a run ended.
    pub(super) async fn finish(&mut self, run: &BackupRun) {
        self.step(Step::Finish, run).await;
    }

    /// What could not be recorded.
    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    async fn step(&mut self, step: Step, run: &BackupRun) {
        let written = match &self.place {
            Place::Nowhere => return,
            Place::Open(db, clock) => write(db, step, run, clock.now_ms(), Others::MayLive).await,
            Place::Root(layout, clock) => write_to_root(layout, clock, step, run).await,
        };
        if let Err(error) = written {
            tracing::debug!(%error, "run not recorded");
            self.warnings
                .push(format!("this run is not recorded: {error}"));
            // Told once.
            self.place = Place::Nowhere;
        }
    }
}

/// Why a run is not recorded.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error("the root cannot be written")]
    ReadOnly,
    #[error("the control plane has an older schema; `zeroclaw doctor --fix` migrates it")]
    OlderSchema,
    #[error(transparent)]
    Service(#[from] ServiceError),
}

async fn write_to_root(
    layout: &Layout,
    clock: &Clock,
    step: Step,
    run: &BackupRun,
) -> Result<(), RecordError> {
    let path = layout.global_db();
    if !space::is_writable(&path) || !space::is_writable(&layout.state_dir()) {
        return Err(RecordError::ReadOnly);
    }
    let version = version_of(layout).await?;
    if version < known_version(&Tier::Global) {
        return Err(RecordError::OlderSchema);
    }
    // Held by a writer that lives, SQLite's own lock is enough; held by nobody, it is taken for this moment.
    let lock = take(layout, clock.now_ms()).await?;
    let access = WriteAccess {
        durability: Durability::Full,
        release: Release {
            app_version: env!("CARGO_PKG_VERSION"),
            now_ms: clock.now_ms(),
        },
        migrate_lock: layout.migrate_lock(),
    };
    let db = Db::open(&path, &Tier::Global, Access::Write(access))
        .await
        .map_err(ServiceError::from)?;
    let others = match &lock {
        Some(_) => Others::None,
        None => Others::MayLive,
    };
    let written = write(&db, step, run, clock.now_ms(), others).await;
    db.close().await;
    drop(lock);
    written
}

/// The schema version of a control plane, read without a trace.
async fn version_of(layout: &Layout) -> Result<i64, ServiceError> {
    let lock = RootLock::shared_if_present(layout)?;
    let access = Access::Look {
        is_at_rest: lock.is_at_rest(),
    };
    let look = Db::open(&layout.global_db(), &Tier::Global, access).await?;
    let version = look.version();
    look.close().await;
    Ok(version)
}

/// The root's lock; `None` while a writer that lives has it.
async fn take(layout: &Layout, since_ms: i64) -> Result<Option<RootLock>, RecordError> {
    let layout = layout.clone();
    let holder = Holder {
        kind: HolderKind::Backup,
        since_ms,
    };
    let taken = tokio::task::spawn_blocking(move || {
        match RootLock::exclusive(&layout, holder, LOCK_WAIT) {
            Ok(lock) => Ok(Some(lock)),
            Err(held) => match RootLock::shared_if_present(&layout)? {
                SharedLock::WriterAlive(_) => Ok(None),
                SharedLock::NoFile | SharedLock::Held(_) => Err(held),
            },
        }
    });
    let taken: Result<Option<RootLock>, LockError> = taken
        .await
        .map_err(|_| ServiceError::from(crate::backup::BackupError::Stopped))?;
    Ok(taken.map_err(ServiceError::from)?)
}

async fn write(
    db: &Db,
    step: Step,
    run: &BackupRun,
    now_ms: i64,
    others: Others,
) -> Result<(), RecordError> {
    let run = run.clone();
    let written: Result<(), StoreError> = db
        .write(move |tx| {
            Box::pin(async move {
                match step {
                    Step::Begin => {
                        let is_gone =
                            |run: &BackupRun| is_gone(run).unwrap_or(others == Others::None);
                        backup::interrupt_running(tx, now_ms, is_gone).await?;
                        backup::insert(tx, &run).await
                    }
                    Step::Finish => backup::finish(tx, &run).await,
                }
            })
        })
        .await;
    Ok(written.map_err(ServiceError::from)?)
}

/// What stands in place of the manifest while a run is under way.
#[derive(Serialize, Deserialize)]
struct AtWork {
    process: ProcessIdentity,
}

/// Whether the process of a run that is under way has ended; `None` where that cannot be told.
fn is_gone(run: &BackupRun) -> Option<bool> {
    let at_work: AtWork = serde_json::from_str(&run.manifest_json).ok()?;
    match process::liveness(&at_work.process) {
        Liveness::Gone => Some(true),
        Liveness::Alive => Some(false),
        Liveness::Unknown => None,
    }
}

/// Shows a run as interrupted as soon as its process is gone, before anybody has written that down, and the path of
/// its archive, which is kept relative to the root inside of it, as one that leads there.
pub(super) fn shown(layout: &Layout, mut run: BackupRun) -> BackupRun {
    if !run.archive_path.is_empty() {
        let path = layout.root().join(&run.archive_path);
        run.archive_path = path.to_string_lossy().into_owned();
    }
    if run.status == BackupStatus::Running && is_gone(&run) == Some(true) {
        run.status = BackupStatus::Interrupted;
    }
    run
}

/// A run that begins.
pub(super) fn run(id: &str, kind: BackupKind, now_ms: i64) -> BackupRun {
    BackupRun {
        id: id.to_owned(),
        kind,
        created_at_ms: now_ms,
        finished_at_ms: None,
        archive_path: String::new(),
        archive_bytes: None,
        status: BackupStatus::Running,
        error: None,
        manifest_json: serde_json::to_string(&AtWork {
            process: process::own(),
        })
        .expect("invariant: a mark has text keys and plain values only"),
    }
}

/// Makes it one that ended well.
pub(super) fn completed(run: &mut BackupRun, archive: &Path, bytes: u64, manifest: &Manifest) {
    run.status = BackupStatus::Completed;
    run.archive_path = archive.to_string_lossy().into_owned();
    run.archive_bytes = i64::try_from(bytes).ok();
    let whole = serde_json::to_string(manifest).unwrap_or_default();
    run.manifest_json = match whole.len() {
        1..=MAX_MANIFEST_BYTES => whole,
        _ => {
            serde_json::json!({ "id": manifest.id, "members": manifest.members.len() }).to_string()
        }
    };
}

/// Makes it one that failed.
pub(super) fn failed(run: &mut BackupRun, error: &crate::backup::BackupError) {
    run.status = BackupStatus::Failed;
    run.error = Some(error.to_string());
    run.manifest_json = "{}".to_owned();
}
