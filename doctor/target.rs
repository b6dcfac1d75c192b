//! The root that is imported into: what its databases say, and who else is at work on it.

use std::path::Path;
use std::time::{Duration, Instant};

use zeroclaw::fs::{FsErrorKind, Layout, LockError, RootLock, SharedLock};
use zeroclaw::model::{BackupFreshness, CheckOutcome, MigrationRun};
use zeroclaw::service::{Service, ServiceError, StatusReport};

use super::finding::{Finding, Level};
use super::health::Health;
use super::plan::{Earlier, Plan};
use super::roots;
use super::task::{DoctorError, Task};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What the target's own databases say, without touching them.
pub(crate) struct Target {
    /// Receipts by source.
    pub(crate) earlier: Earlier,
    /// A run that was cut off.
    pub(crate) unfinished: Option<MigrationRun>,
    /// What there is to say.
    pub(crate) findings: Vec<Finding>,
    /// Agents whose index must be built or rebuilt.
    pub(crate) has_index_work: bool,
    /// Some index does not agree with its rows.
    pub(crate) has_stale_index: bool,
    /// Why a tier of a newer release keeps a run from beginning.
    pub(crate) newer: Option<String>,
    /// Some tier has an older schema.
    pub(crate) is_older: bool,
    /// How the root is beside what is in it.
    pub(crate) health: Health,
}

async fn look_at_target(task: &Task) -> Result<Target, DoctorError> {
    let mut target = Target {
        earlier: Earlier::new(),
        unfinished: None,
        findings: Vec::new(),
        has_index_work: false,
        has_stale_index: false,
        newer: None,
        is_older: false,
        health: Health::default(),
    };
    let service = match Service::look(&task.root, task.clock.clone()).await {
        Ok(service) => service,
        Err(ServiceError::NotInitialised { root }) => {
            let message = "there is no state in this root yet";
            let finding = Finding::new(
                "no-state",
                Level::Advice,
                root.display().to_string(),
                message,
            );
            let remedy = "`zeroclaw init` makes a fresh one; `zeroclaw doctor --fix` makes one where something is imported";
            target.findings.push(finding.with_remedy(remedy));
            target.health = Health::of(&task.root, None);
            target.findings.extend(roots::look(task, &target.earlier));
            return Ok(target);
        }
        Err(error) => return Err(error.into()),
    };
    let status = service.status().await?;
    for tier in &status.tiers {
        target.is_older |= tier
            .schema_version
            .is_some_and(|version| version < tier.known_schema_version);
        if let Some(error) = &tier.error {
            let is_newer = tier.schema_version > Some(tier.known_schema_version);
            target.newer = target.newer.or_else(|| is_newer.then(|| error.clone()));
            target.findings.push(Finding::new(
                "unreadable-tier",
                Level::Error,
                &tier.path,
                error,
            ));
        } else if tier.unindexed.unwrap_or(0) > 0 {
            target.has_index_work = true;
            let finding = Finding::new(
                "incomplete-index",
                Level::Warning,
                &tier.path,
                "its full-text index lacks rows",
            );
            target
                .findings
                .push(finding.with_remedy("run `zeroclaw doctor --fix`"));
        }
    }
    target.findings.extend(backup_age(&status));
    // An older database may lack tables; it is asked once it is migrated.
    if !target.is_older {
        checks(&service, &mut target).await?;
        target.earlier = service.receipt_states().await?;
        target.unfinished = service.unfinished_run().await?;
    }
    service.close().await;
    target.health = Health::of(&task.root, Some(&status));
    target.findings.extend(roots::look(task, &target.earlier));
    if let Some(run) = &target.unfinished {
        let finding = Finding::new(
            "unfinished-run",
            Level::Warning,
            &run.id,
            "an import run was cut off",
        );
        target
            .findings
            .push(finding.with_remedy("run `zeroclaw doctor --fix`: it goes on where it stopped"));
    }
    if target.is_older {
        let finding = Finding::new(
            "older-schema",
            Level::Warning,
            "state",
            "a database has an older schema",
        );
        target
            .findings
            .push(finding.with_remedy("run `zeroclaw doctor --fix`: it migrates it"));
    }
    Ok(target)
}

/// What to say of backups that were never made, or not for long.
fn backup_age(status: &StatusReport) -> Option<Finding> {
    let code = match status.backup_freshness? {
        BackupFreshness::Fresh => return None,
        BackupFreshness::Missing => "backup-missing",
        BackupFreshness::Stale => "backup-stale",
    };
    let message = match status.backup_age_ms {
        None => "there is no good backup of this root".to_owned(),
        Some(age_ms) => format!("the newest good backup is {} days old", age_ms / DAY_MS),
    };
    let finding = Finding::new(code, Level::Advice, "backups", message);
    Some(finding.with_remedy("`zeroclaw backup create`"))
}

/// What SQLite can prove about each tier.
async fn checks(service: &Service, target: &mut Target) -> Result<(), DoctorError> {
    for check in service.check(None).await? {
        let mut failed = |code, what: &str, outcome: &CheckOutcome, remedy: &str| {
            if let CheckOutcome::Failed { lines } = outcome {
                let message = format!("{what}: {}", lines.join("; "));
                target.findings.push(
                    Finding::new(code, Level::Error, &check.path, message).with_remedy(remedy),
                );
            }
        };
        let restore = "restore it from a backup: `zeroclaw backup list`";
        failed(
            "damaged-database",
            "integrity check failed",
            &check.integrity,
            restore,
        );
        failed(
            "broken-relation",
            "foreign key check failed",
            &check.foreign_keys,
            restore,
        );
        failed(
            "stale-index",
            "full-text index does not agree with its rows",
            &check.full_text,
            "run `zeroclaw doctor --fix`",
        );
        target.has_index_work |= !check.full_text.is_ok();
        target.has_stale_index |= !check.full_text.is_ok();
    }
    Ok(())
}

/// How long to wait for another process that writes the root.
const WRITER_WAIT: Duration = Duration::from_secs(10);
/// Pause between two looks at who writes.
const POLL: Duration = Duration::from_millis(50);

/// Waits until nobody else writes the root: sources move while another run is at work.
pub(crate) async fn await_writer(task: &Task) -> Result<(), DoctorError> {
    let layout = Layout::new(task.root.clone());
    let started = Instant::now();
    while let SharedLock::WriterAlive(holder) =
        RootLock::shared_if_present(&layout).map_err(ServiceError::from)?
    {
        if started.elapsed() >= WRITER_WAIT {
            let path = layout.daemon_lock();
            let held = LockError::Held {
                path,
                holder: holder.map(Box::new),
                waited: started.elapsed(),
            };
            return Err(ServiceError::from(held).into());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

/// Looks at the target and plans; once more when a source vanished meanwhile.
pub(crate) async fn settled_plan(
    task: &Task,
    scratch: &Path,
) -> Result<(Target, Plan), DoctorError> {
    let started = Instant::now();
    loop {
        let target = look_at_target(task).await?;
        match task.plan(&target.earlier, scratch).await {
            Ok(plan) => return Ok((target, plan)),
            Err(DoctorError::Fs(error))
                if error.kind() == FsErrorKind::NotFound && started.elapsed() < WRITER_WAIT =>
            {
                tokio::time::sleep(POLL).await;
            }
            Err(error) => return Err(error),
        }
    }
}
