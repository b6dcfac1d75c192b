//! A look, and a run: taken up where it was cut off, or begun.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use zeroclaw::fs::{Holder, Layout, RootLock};
use zeroclaw::model::{MigrationRun, MigrationStatus, RunPhase, Tier};
use zeroclaw::service::{HolderKind, Importer, Service, ServiceError, undo};

use super::before::{self, Before};
use super::finding::{Finding, Level};
use super::health::Health;
use super::names::escaped;
use super::phases::Run;
use super::plan::Plan;
use super::report::Report;
use super::scratch::{self, Scratch};
use super::target::{await_writer, settled_plan};
use super::task::{DoctorError, Task};
use super::{offer, preflight, safety};

/// How long to wait for another writer of the root.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Looks and changes nothing.
pub(crate) async fn look(task: &Task) -> Result<Report, DoctorError> {
    task.stop.or(look_whole(task)).await
}

async fn look_whole(task: &Task) -> Result<Report, DoctorError> {
    task.check()?;
    if let Some(finding) = cut_off(task)? {
        // Half of the root is of before and half of after: nothing else can be said of it.
        let mut report = Report::planned(&task.root, task.from.as_deref(), &Plan::default());
        report.findings.push(finding);
        return Ok(report);
    }
    let scratch = Scratch::make()?;
    let (target, plan) = settled_plan(task, scratch.path()).await?;
    let mut report = Report::planned(&task.root, task.from.as_deref(), &plan);
    report.findings.extend(target.findings);
    report.findings.extend(target.health.findings);
    report.findings.extend(offer::homes(task, &target.earlier));
    Ok(report)
}

/// A restore, or a run whose undoing was cut off: what comes next ends it.
fn cut_off(task: &Task) -> Result<Option<Finding>, DoctorError> {
    let layout = Layout::new(task.root.clone());
    if !layout.restore_journal().exists() {
        return Ok(None);
    }
    let place = escaped(layout.stored(&layout.restore_journal()));
    let finding = match undo::unfinished(&layout)? {
        Some(run) => {
            let message = format!("undoing run {run} was cut off half way");
            let finding = Finding::new("unfinished-undo", Level::Error, place, message);
            finding.with_remedy(format!(
                "run `zeroclaw doctor undo {run} --yes`: it goes on where it stopped; any other command that opens the \
                 root ends it too"
            ))
        }
        None => {
            let message = "a restore was cut off half way";
            let finding = Finding::new("unfinished-restore", Level::Error, place, message);
            finding.with_remedy(
                "run `zeroclaw status`: whatever opens the root next ends it, all old or all new",
            )
        }
    };
    Ok(Some(finding))
}

/// Carries out what a look shows.
///
/// Asked to stop, it takes back what is open, says that nobody holds the root, and can be run again.
pub(crate) async fn fix(task: &Task) -> Result<Report, DoctorError> {
    let tell: &(dyn Fn(&str) + Sync) = &|text| task.progress.note(text);
    task.check()?;
    await_writer(task).await?;
    if cut_off(task)?.is_some() {
        tell("finishing what was cut off");
        undo::finish(&Layout::new(task.root.clone()), &task.clock).await?;
    }
    scratch::sweep();
    let scratch = Scratch::make()?;
    let looked = task.stop.or(settled_plan(task, scratch.path())).await;
    let (target, plan) = looked?;
    let has_own_work = target.has_index_work
        || target.is_older
        || target.unfinished.is_some()
        || target.health.needs_writer();
    if !plan.has_work() && !has_own_work {
        let mut report = Report::planned(&task.root, task.from.as_deref(), &plan);
        report.mode = "fix";
        report.findings.extend(target.findings);
        report.changed = target.health.has_work();
        report
            .findings
            .extend(mended(task, target.health)?.findings);
        return Ok(report);
    }
    if let Some(what) = target.newer {
        return Err(DoctorError::NewerTier { what });
    }
    preflight::old_daemon(task.source_root())?;
    preflight::room(
        &task.root,
        plan.import_bytes(),
        safety::estimate(task, &plan),
    )?;
    // It is made anew under the lock; of many sources each is a few kilobytes.
    drop(plan);
    before::note(&Layout::new(task.root.clone()))?;
    let service = match Service::init(&task.root, task.clock.clone(), HolderKind::Doctor).await {
        Ok((service, _)) => service,
        Err(error) => return Err(error.into()),
    };
    let importer = Importer::new(service);
    let owner = owner();
    importer.show_owner(&owner).await?;
    let work = run(task, &importer, has_own_work, scratch.path(), tell);
    let mut done = task.stop.or(work).await;
    if done.is_ok() && target.has_stale_index {
        // A run completes what is missing; what was stale before it is built anew.
        let rebuilt = task.stop.or(rebuild_stale_indexes(&importer, tell)).await;
        done = rebuilt.and(done);
    }
    let unopened = match target.is_older {
        true => migrate_agents(&importer).await,
        false => Ok(Vec::new()),
    };
    for agent in target.health.agents_with_large_logs() {
        // The last to close a database folds its log in.
        drop(importer.read(&Tier::Agent(agent.clone())).await);
    }
    let hidden = importer.hide_owner(&owner).await;
    importer.close().await;
    // What went wrong first is what counts: on a full disk the sign cannot be taken back either.
    let mut report = done?;
    hidden?;
    report.findings.extend(unopened?);
    target.health.mend();
    // As it is now: what this run made, made as root in another user's home, is given back as well.
    let after = Health::of(&task.root, None);
    report.findings.extend(mended(task, after)?.findings);
    Ok(report)
}

/// Brings agents' databases up to date that no source had to do with; says which could not be opened.
async fn migrate_agents(importer: &Importer) -> Result<Vec<Finding>, DoctorError> {
    let mut unopened = Vec::new();
    for agent in importer.agents().await? {
        // Whoever opens one to write migrates it.
        if let Err(error) = importer.read(&Tier::Agent(agent.agent_id)).await {
            let message = error.to_string();
            let finding = Finding::new("unreadable-tier", Level::Error, &agent.path, message);
            unopened.push(finding);
        }
    }
    Ok(unopened)
}

/// Mends what needs no database, while nobody else writes the root; gives how it is then.
fn mended(task: &Task, health: Health) -> Result<Health, DoctorError> {
    if !health.has_work() {
        return Ok(health);
    }
    let layout = Layout::new(task.root.clone());
    let holder = Holder {
        kind: HolderKind::Doctor,
        since_ms: task.clock.now_ms(),
    };
    // Where nobody ever wrote, there is nobody to keep out, and no lock to make.
    let lock = layout
        .daemon_lock()
        .exists()
        .then(|| RootLock::exclusive(&layout, holder, LOCK_WAIT));
    let lock = lock.transpose().map_err(ServiceError::from)?;
    health.mend();
    drop(lock);
    Ok(Health::of(&task.root, None))
}

/// How this process shows itself in the control plane.
pub(super) fn owner() -> String {
    format!("doctor (pid {})", std::process::id())
}

async fn run(
    task: &Task,
    importer: &Importer,
    has_own_work: bool,
    scratch: &Path,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Report, DoctorError> {
    // Once more under the lock: what was looked at may have changed since.
    let earlier = importer.service().receipt_states().await?;
    let plan = task.plan(&earlier, scratch).await?;
    let unfinished = importer.service().unfinished_run().await?;
    let mut report = Report::planned(&task.root, task.from.as_deref(), &plan);
    report.mode = "fix";
    // Another run may have done all of it while this one waited.
    report.changed = plan.has_work() || has_own_work;
    if plan.has_work() || unfinished.is_some() {
        let home = task.home()?;
        let owners = task.owners(home.as_ref())?;
        let record = take_up(task, importer, unfinished).await?;
        before::forget(importer.service().layout())?;
        let mut run = Run {
            task,
            importer,
            scratch,
            tell,
            owners,
            home,
            record,
            said: Vec::new(),
        };
        run.carry_out(&plan, &mut report).await?;
    } else {
        before::forget(importer.service().layout())?;
    }
    Ok(report)
}

/// Goes on with the run that was cut off, if it was of the same sources; else begins one.
async fn take_up(
    task: &Task,
    importer: &Importer,
    unfinished: Option<MigrationRun>,
) -> Result<MigrationRun, DoctorError> {
    let now_ms = task.clock.now_ms();
    let from_path = task.from.as_ref().map(|path| path.display().to_string());
    match unfinished {
        Some(run) if run.from_path == from_path => return Ok(run),
        Some(mut other) => {
            other.status = MigrationStatus::Failed;
            other.finished_at_ms = Some(now_ms);
            let note = json!("cut off; its sources are taken up again when asked for");
            other.report_json = before::with(&[("note", note)], &other.report_json);
            importer.update_run(&other).await?;
        }
        None => {}
    }
    let is_fresh =
        importer.agents().await?.is_empty() && importer.service().runs_in_order().await?.is_empty();
    let before: Before = before::noted(importer.service().layout(), is_fresh);
    let run = MigrationRun {
        id: format!(
            "{}-{}",
            zeroclaw::clock::utc_stamp(now_ms),
            &uuid::Uuid::new_v4().simple().to_string()[..8]
        ),
        started_at_ms: now_ms,
        finished_at_ms: None,
        status: MigrationStatus::Running,
        phase: RunPhase::Backup,
        from_path,
        backup_path: None,
        app_version: env!("CARGO_PKG_VERSION").to_owned(),
        report_json: before.into_report(),
    };
    importer.insert_run(&run).await?;
    Ok(run)
}

async fn rebuild_stale_indexes(
    importer: &Importer,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(), DoctorError> {
    for agent in importer.agents().await? {
        let check = importer
            .service()
            .check_tier(&Tier::Agent(agent.agent_id.clone()))
            .await?;
        if !check.full_text.is_ok() {
            tell(&format!(
                "rebuilding the full-text index of agent {}",
                agent.agent_id
            ));
            importer.rebuild(&agent.agent_id).await?;
        }
    }
    Ok(())
}
