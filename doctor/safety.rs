//! The archive made before the first change: old files, and the databases as they were.
//!
//! Its name is the run's, so that a run taken up after a crash finds the one it made.

use std::path::Path;

use zeroclaw::fs::Layout;
use zeroclaw::fs::layout::{ARCHIVE_PREFIX, BEFORE_IMPORT_SUFFIX};
use zeroclaw::model::{BackupKind, BackupRun, BackupStatus, MigrationRun};
use zeroclaw::service::Importer;
use zeroclaw::service::backup::{CreateOptions, create_with};

use super::before::Before;
use super::plan::{Action, Plan};
use super::task::{DoctorError, Task};

/// Bytes the archive may need, at most.
pub(crate) fn estimate(task: &Task, plan: &Plan) -> u64 {
    let old = if task.from.is_some() {
        0
    } else {
        plan.import_bytes()
    };
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let layout = Layout::new(task.root.clone());
    let agents = plan
        .agents
        .keys()
        .map(|id| size(&layout.agent_db(id.as_str())));
    old + size(&layout.global_db()) + agents.sum::<u64>()
}

/// Archives old files and databases; gives where, or `None` when there is nothing that could be lost.
///
/// A foreign root keeps its files, so only what the import changes is archived then.
pub(crate) async fn archive(
    task: &Task,
    importer: &Importer,
    plan: &Plan,
    run: &MigrationRun,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Option<String>, DoctorError> {
    let moved = plan
        .sources
        .iter()
        .filter(|planned| matches!(planned.action, Action::Import | Action::Archive))
        // What stays is not moved: whether it belongs into a backup is not the import's to say.
        .filter(|planned| !planned.source.stays());
    let extra: Vec<_> = match task.from {
        Some(_) => Vec::new(),
        None => moved
            // One outside of the root stays where it is, and is no part of it.
            .filter(|planned| !planned.source.relative.is_absolute())
            .map(|planned| planned.source.relative.clone())
            .collect(),
    };
    if extra.is_empty() && !Before::of_run(&run.report_json).had_state {
        return Ok(None);
    }
    let service = importer.service();
    let name = format!("{ARCHIVE_PREFIX}{}{BEFORE_IMPORT_SUFFIX}", run.id);
    let path = service.layout().backups_dir().join(name);
    if !path.exists() {
        tell(&format!("archiving what there is to {}", path.display()));
        zeroclaw::fs::atomic::create_dir_private(&service.layout().backups_dir())?;
        let options = CreateOptions {
            output: Some(path.clone()),
            ..CreateOptions::default()
        };
        create_with(service, options, extra, false).await?;
        zeroclaw::fs::fault("doctor-after-archive");
    }
    let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
    importer
        .record_backup(BackupRun {
            id: format!("before-import-{}", run.id),
            kind: BackupKind::Create,
            created_at_ms: run.started_at_ms,
            finished_at_ms: Some(service.clock().now_ms()),
            archive_path: path.display().to_string(),
            archive_bytes: i64::try_from(bytes).ok(),
            status: BackupStatus::Completed,
            error: None,
            manifest_json: "{}".to_owned(),
        })
        .await?;
    let below = path.strip_prefix(service.root()).unwrap_or(&path);
    Ok(Some(below.display().to_string()))
}
