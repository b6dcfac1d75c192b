//! Backups that are made by themselves, as `[state.backup]` says.

use super::freshness::LastBackup;
use super::{
    CreateOptions, CreateReport, PruneOptions, PruneReport, Rules, SealSource, create_with, prune,
};
use crate::config::{BackupSchedule, ConfigError, ScheduledBackup};
use crate::model::{BackupKind, BackupRun, BackupStatus, PageLimit};
use crate::service::error::InDb;
use crate::service::{Service, ServiceError};
use crate::store::global::backup as runs;

/// After one that failed the next is tried no sooner.
const AGAIN_MS: i64 = 60 * 60 * 1_000;
/// Runs that are looked at for the newest that made an archive, or tried to.
const LOOKED_AT: u32 = 100;

/// What a scheduled backup did.
#[derive(Debug)]
pub struct ScheduledReport {
    /// The archive.
    pub created: CreateReport,
    /// The archives that the rules took; `None` where no rule is on.
    pub pruned: Option<PruneReport>,
}

impl Service {
    /// Makes a backup if the schedule of the configuration says that one is due; `None` when none is.
    ///
    /// One is due when an instant of the schedule has passed since the newest backup was begun, however it was asked
    /// for; when there is no good one at all, at once. After one that failed an hour passes. Afterwards archives go by the
    /// rules of the schedule.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Config`] where the schedule cannot be read, and as [`super::create`].
    pub async fn backup_if_due(&self) -> Result<Option<ScheduledReport>, ServiceError> {
        let config = self.config();
        let backup = match &config.backup {
            BackupSchedule::Off => return Ok(None),
            BackupSchedule::On(backup) => backup,
            BackupSchedule::Fault(fault) => {
                return Err(ServiceError::Config(ConfigError::Value {
                    path: self.layout().config_file(),
                    fault: fault.clone(),
                }));
            }
        };
        if !self.is_backup_due(backup).await? {
            return Ok(None);
        }
        if let Some(folder) = backup.folder.as_ref().filter(|folder| !folder.is_dir()) {
            // A disk that is not mounted, mostly: the archive must not go where its mount point is.
            return Err(ServiceError::NotFound {
                what: "folder",
                name: folder.display().to_string(),
            });
        }
        let created = create_with(self, options(backup), Vec::new(), true).await?;
        let rules = rules(backup);
        let pruned = match rules.is_off() {
            true => None,
            false => {
                let options = PruneOptions {
                    folder: backup.folder.clone(),
                    rules,
                    yes: true,
                    ..PruneOptions::default()
                };
                Some(prune(self.root(), self.clock().clone(), options).await?)
            }
        };
        Ok(Some(ScheduledReport { created, pruned }))
    }

    async fn is_backup_due(&self, backup: &ScheduledBackup) -> Result<bool, ServiceError> {
        let now_ms = self.clock().now_ms();
        let mut conn = self.global().read().await?;
        let limit = PageLimit::from(LOOKED_AT);
        let runs = runs::list(&mut conn, limit).await.in_db(self.global())?;
        let good = LastBackup::find(&mut conn, self.layout(), now_ms).await?;
        let newest = runs.iter().find(|run| run.kind == BackupKind::Create);
        Ok(is_due(backup, newest, good.run.as_ref(), now_ms))
    }
}

/// Whether one is due after the newest that was begun and the newest that is good.
fn is_due(
    backup: &ScheduledBackup,
    newest: Option<&BackupRun>,
    good: Option<&BackupRun>,
    now_ms: i64,
) -> bool {
    let has_just_failed = newest.is_some_and(|run| {
        let age_ms = now_ms - run.created_at_ms;
        run.status != BackupStatus::Completed && (0..AGAIN_MS).contains(&age_ms)
    });
    if has_just_failed {
        return false;
    }
    match (good, backup.timetable()) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(run), Some(times)) => {
            let next = times.next_after(run.created_at_ms);
            next.is_some_and(|at_ms| at_ms <= now_ms)
        }
    }
}

fn options(backup: &ScheduledBackup) -> CreateOptions {
    let seal = match (&backup.passphrase_file, backup.encrypt_to.is_empty()) {
        (Some(file), _) => Some(SealSource::PassphraseFile(file.clone())),
        (None, false) => Some(SealSource::Recipients {
            given: backup.encrypt_to.clone(),
            files: Vec::new(),
        }),
        (None, true) => None,
    };
    CreateOptions {
        output: backup.folder.clone(),
        with_secrets: backup.with_secrets,
        include_workspace: backup.include_workspace,
        seal,
        ..CreateOptions::default()
    }
}

fn rules(backup: &ScheduledBackup) -> Rules {
    Rules {
        last: backup.keep_last,
        daily: backup.keep_daily,
        weekly: backup.keep_weekly,
        monthly: backup.keep_monthly,
    }
}
