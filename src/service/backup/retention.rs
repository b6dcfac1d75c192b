//! Which archives there are, and which of them go.
//!
//! What is deleted is told in the report; the runs that made it stay recorded.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::super::{Service, ServiceError};
use super::absolute;
use crate::backup::{
    self, Archive, BackupError, Contents, Dated, Decision, Rules, is_doubtful, is_given_name,
};
use crate::clock::Clock;
use crate::fs::Layout;
use crate::fs::layout::BEFORE_IMPORT_SUFFIX;
use crate::model::{BackupKind, KeepReason, MAX_PAGE, PageLimit};

/// A file that is an archive, or has the name of one.
#[derive(Clone, Debug, Serialize)]
pub struct ArchiveInfo {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Identity of the backup; `None`, as the next ones, when it cannot be read.
    pub id: Option<String>,
    /// When the backup began, Unix milliseconds.
    pub created_at_ms: Option<i64>,
    /// Release that wrote it.
    pub app_version: Option<String>,
    /// Whether secrets are inside.
    pub has_secrets: Option<bool>,
    /// How many databases are inside.
    pub databases: Option<usize>,
    /// Whether a run of this root made it.
    pub is_recorded: bool,
    /// Why it cannot be read; `None` when it can.
    pub error: Option<String>,
}

/// What is to be kept, and where.
#[derive(Clone, Debug, Default)]
pub struct PruneOptions {
    /// Folder of the archives; `None` for the folder `backups` of the root.
    pub folder: Option<PathBuf>,
    /// What to keep.
    pub rules: Rules,
    /// Count, and delete, what imports made before their first change too.
    pub with_before_import: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Consent to delete.
    pub yes: bool,
}

/// What happens to an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PruneAction {
    /// It stays.
    Keep,
    /// It is deleted.
    Delete,
}

impl std::fmt::Display for PruneAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Keep => "keep",
            Self::Delete => "delete",
        })
    }
}

/// One archive that retention decides about.
#[derive(Clone, Debug, Serialize)]
pub struct PruneItem {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Identity of the backup.
    pub id: String,
    /// When the backup began, Unix milliseconds.
    pub created_at_ms: i64,
    /// Whether secrets are inside.
    pub has_secrets: bool,
    /// What happens to it, or would.
    pub action: PruneAction,
    /// Why it stays.
    pub reasons: Vec<KeepReason>,
    /// Whether it was deleted.
    pub deleted: bool,
    /// Why it could not be deleted.
    pub error: Option<String>,
}

/// A file that retention leaves alone, because it is not surely a good archive.
#[derive(Clone, Debug, Serialize)]
pub struct Untouched {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// A retention that was carried out, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct PruneReport {
    /// The folder.
    pub folder: PathBuf,
    /// What was asked for.
    pub rules: Rules,
    /// The archives, newest first.
    pub archives: Vec<PruneItem>,
    /// What is left alone.
    pub untouched: Vec<Untouched>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// Whether it was carried out.
    pub written: bool,
}

impl PruneReport {
    /// Archives that go, or went.
    pub fn to_delete(&self) -> impl Iterator<Item = &PruneItem> {
        let archives = self.archives.iter();
        archives.filter(|item| item.action == PruneAction::Delete)
    }
}

/// Lists the archives of a folder by name; nothing is written.
///
/// * `folder`: `None` for the folder `backups` of the root, which may be missing.
///
/// # Errors
///
/// [`ServiceError`] when there is no root, the control plane cannot be read, or there is no such folder.
pub async fn inventory(
    root: &Path,
    clock: Clock,
    folder: Option<&Path>,
) -> Result<Vec<ArchiveInfo>, ServiceError> {
    let service = Service::look(root, clock).await?;
    let runs = service.list_backups(PageLimit::from(MAX_PAGE)).await;
    service.close().await;
    let runs = runs?.into_iter();
    let (ids, paths): (HashSet<_>, HashSet<_>) = runs
        .filter(|run| run.kind == BackupKind::Create)
        .map(|run| (run.id, PathBuf::from(run.archive_path)))
        .unzip();
    let archives = archives_in(root, folder).await?.1.into_iter();
    let told = archives.map(|archive| {
        let contents = archive.contents.as_ref();
        let is_recorded =
            contents.is_ok_and(|it| ids.contains(&it.id)) || paths.contains(&archive.path);
        info(&archive, is_recorded)
    });
    Ok(told.collect())
}

fn info(archive: &Archive, is_recorded: bool) -> ArchiveInfo {
    let contents = archive.contents.as_ref().ok();
    ArchiveInfo {
        path: archive.path.clone(),
        bytes: archive.bytes,
        id: contents.map(|it| it.id.clone()),
        created_at_ms: contents.map(|it| it.created_at_ms),
        app_version: contents.map(|it| it.app_version.clone()),
        has_secrets: contents.map(|it| it.has_secrets),
        databases: contents.map(|it| it.databases),
        is_recorded,
        error: archive.contents.as_ref().err().map(ToString::to_string),
    }
}

/// Deletes the archives of a folder that no rule keeps.
///
/// All archives of the folder count together, so two roots want two folders. Before anything goes, the newest archive
/// is read to its end: if it is not whole, the next one is what stays at least, and the damaged one is left alone.
///
/// # Errors
///
/// [`BackupError::NoRule`], and [`ServiceError`] when there is no such folder, or the first archive cannot be
/// deleted. What a later one says is in the report.
pub async fn prune(
    root: &Path,
    clock: Clock,
    options: PruneOptions,
) -> Result<PruneReport, ServiceError> {
    if options.rules.is_off() {
        return Err(BackupError::NoRule.into());
    }
    if options.folder.is_none() {
        // The root's own folder is meant, so there must be a root.
        Service::look(root, clock.clone()).await?.close().await;
    }
    let (folder, archives) = archives_in(root, options.folder.as_deref()).await?;
    let mut plan = Plan::of(archives, &options, clock.now_ms());
    plan.prove_newest().await?;
    let mut report = plan.report(folder);
    if options.yes && !options.dry_run {
        report = carry_out(plan, report).await?;
    }
    Ok(report)
}

async fn archives_in(
    root: &Path,
    folder: Option<&Path>,
) -> Result<(PathBuf, Vec<Archive>), ServiceError> {
    let folder = match folder {
        Some(folder) => absolute(folder)?,
        None => {
            let own = Layout::new(root.to_owned()).backups_dir();
            if !own.exists() {
                return Ok((own, Vec::new()));
            }
            own
        }
    };
    let archives = backup::inventory(&folder).await?;
    Ok((folder, archives))
}

/// What is decided about the archives of a folder.
struct Plan {
    archives: HashMap<PathBuf, (Archive, Contents)>,
    dated: Vec<Dated>,
    decisions: Vec<Decision>,
    untouched: Vec<Untouched>,
    rules: Rules,
    now_ms: i64,
}

impl Plan {
    fn of(archives: Vec<Archive>, options: &PruneOptions, now_ms: i64) -> Self {
        let mut plan = Self {
            archives: HashMap::new(),
            dated: Vec::new(),
            decisions: Vec::new(),
            untouched: Vec::new(),
            rules: options.rules,
            now_ms,
        };
        for archive in archives {
            match &archive.contents {
                Ok(contents) => {
                    let contents = contents.clone();
                    plan.dated.push(Dated {
                        path: archive.path.clone(),
                        created_at_ms: contents.created_at_ms,
                        pinned: pinned(&archive.path, &contents, options.with_before_import),
                    });
                    let path = archive.path.clone();
                    plan.archives.insert(path, (archive, contents));
                }
                Err(error) => plan.untouched.push(Untouched {
                    path: archive.path.clone(),
                    reason: error.to_string(),
                }),
            }
        }
        plan.decide();
        plan
    }

    fn decide(&mut self) {
        self.decisions = backup::keep(&self.dated, &self.rules, self.now_ms);
    }

    /// Makes sure that what stays at least is whole: a list of contents that can be read does not prove the rest.
    async fn prove_newest(&mut self) -> Result<(), ServiceError> {
        while self.decisions.iter().any(|decision| !decision.keep) {
            let mut decisions = self.decisions.iter();
            let newest = decisions.find(|it| it.reasons.contains(&KeepReason::Newest));
            let Some(path) = newest.map(|newest| newest.path.clone()) else {
                return Ok(());
            };
            let reason = match backup::read_through(&path).await {
                Ok(()) => return Ok(()),
                Err(error @ (BackupError::Damaged { .. } | BackupError::NoArchive { .. })) => {
                    error.to_string()
                }
                Err(error) => return Err(error.into()),
            };
            self.dated.retain(|dated| dated.path != path);
            self.untouched.push(Untouched { path, reason });
            self.decide();
        }
        Ok(())
    }

    fn report(&self, folder: PathBuf) -> PruneReport {
        let decided = self.decisions.iter();
        let items = decided.filter_map(|decision| {
            let (archive, contents) = self.archives.get(&decision.path)?;
            Some(PruneItem {
                path: decision.path.clone(),
                bytes: archive.bytes,
                id: contents.id.clone(),
                created_at_ms: contents.created_at_ms,
                has_secrets: contents.has_secrets,
                action: match decision.keep {
                    true => PruneAction::Keep,
                    false => PruneAction::Delete,
                },
                reasons: decision.reasons.clone(),
                deleted: false,
                error: None,
            })
        });
        PruneReport {
            archives: items.collect(),
            folder,
            rules: self.rules,
            untouched: self.untouched.clone(),
            warnings: self.warnings(),
            written: false,
        }
    }

    fn warnings(&self) -> Vec<String> {
        let decided = self.decisions.iter();
        let future = decided.filter(|it| it.reasons.contains(&KeepReason::Future));
        let mut warnings: Vec<String> = future
            .map(|it| {
                format!(
                    "{} is dated in the future and stays: a clock was wrong",
                    it.path.display()
                )
            })
            .collect();
        if is_doubtful(&self.dated, &self.decisions, self.now_ms) {
            warnings.push(
                "more than half would go, and nothing was backed up for two months: look at the clock first"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// Deletes from the oldest on, so that whatever ends it leaves the newest.
async fn carry_out(plan: Plan, mut report: PruneReport) -> Result<PruneReport, ServiceError> {
    let work = move || {
        let mut is_first = true;
        let items = report.archives.iter_mut().rev();
        for item in items.filter(|item| item.action == PruneAction::Delete) {
            let Some((archive, _)) = plan.archives.get(&item.path) else {
                continue;
            };
            match archive.delete() {
                Ok(()) => item.deleted = true,
                // Nothing is changed yet, so the whole command has failed.
                Err(error) if is_first => return Err(error),
                Err(error) => item.error = Some(format!("{error}: {}", error.source)),
            }
            is_first = false;
        }
        report.written = true;
        Ok(report)
    };
    let done = tokio::task::spawn_blocking(work);
    Ok(done.await.map_err(|_| BackupError::Stopped)??)
}

/// Why an archive stays whatever the rules say.
fn pinned(path: &Path, contents: &Contents, with_before_import: bool) -> Option<KeepReason> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_before_import = name.ends_with(BEFORE_IMPORT_SUFFIX.as_bytes());
    if !is_given_name(path) {
        Some(KeepReason::OwnName)
    } else if is_before_import && !with_before_import {
        Some(KeepReason::BeforeImport)
    } else if !contents.has_global {
        Some(KeepReason::NotWhole)
    } else {
        None
    }
}
