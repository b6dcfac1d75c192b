//! Moving one agent from root to root.
//!
//! [`export`] writes an archive of the backup format that holds one agent; [`import`] takes an agent out of such an
//! archive, or out of a whole backup, into a root that does not know it. What the control plane keeps about an agent,
//! its jobs and tasks, stays where it is: it belongs to the root.

mod error;
mod report;

use std::path::Path;
use std::time::Instant;

use super::backup::{
    KeySource, SealSource, absolute, create_report, new_id, notes_of_age, refuse_held, take,
};
use super::{Service, ServiceError};
use crate::backup::{self, AdoptJob, BackupError, BackupJob, Manifest, Role, Scope, Seal};
use crate::clock::Clock;
use crate::config::Config;
use crate::db::{Access, Db, known_version, may_belong};
use crate::fs::{Layout, RootLock};
use crate::model::{AgentId, AgentRecord, AgentStatus, Tier};
use crate::store::global::{cron, task};

pub use self::error::MoveError;
pub use self::report::{ExportOptions, ExportReport, ImportOptions, ImportReport};
pub use crate::backup::Jobs;

/// Writes an archive of one agent, beside whoever writes the root.
///
/// It is no backup: it is not recorded as one and does not count as one.
///
/// # Errors
///
/// [`ServiceError::NotFound`] when there is no such agent, and as [`super::backup::create`].
pub async fn export(
    root: &Path,
    clock: Clock,
    options: ExportOptions,
) -> Result<ExportReport, ServiceError> {
    let started = Instant::now();
    let seal = options.seal.as_ref().map(SealSource::load).transpose()?;
    let encryption = seal.as_ref().map(Seal::encryption);
    let service = Service::look(root, clock.clone()).await?;
    let asked = ask(&service, &options.agent).await;
    service.close().await;
    let (agent, notes) = asked?;
    let job = BackupJob {
        layout: Layout::new(root.to_owned()),
        id: new_id(),
        now_ms: clock.now_ms(),
        output: options.output,
        // Nothing is taken out of what is the agent's; keys are the root's and are not there.
        with_secrets: true,
        include_workspace: options.include_workspace,
        verify: true,
        seal,
        extra: Vec::new(),
        agent: Some(agent.clone()),
        is_whole: false,
    };
    let done = backup::create(&job).await?;
    Ok(ExportReport {
        archive: create_report(done, encryption, started, false),
        agent,
        notes,
    })
}

/// The agent's row, and what of it stays behind.
async fn ask(service: &Service, id: &AgentId) -> Result<(AgentRecord, Vec<String>), ServiceError> {
    let agent = service.agents_or(Some(id)).await?.remove(0);
    let mut notes = Vec::new();
    let global = service.global();
    // An older control plane may lack the tables.
    if global.version() == known_version(&Tier::Global) {
        let mut conn = global.read().await?;
        let jobs = cron::list(&mut conn, Some(id)).await?.len();
        let tasks = task::count_of_agent(&mut conn, id).await?;
        if jobs > 0 || tasks > 0 {
            notes.push(format!(
                "scheduled jobs ({jobs}) and tasks ({tasks}) of {id} belong to the root and stay here"
            ));
        }
    }
    Ok((agent, notes))
}

/// Takes one agent out of an archive into a root, after proving the archive.
///
/// A name that is taken is refused, and nothing is ever merged. A kill leaves the root as it was, or with the whole
/// agent once the next command has run.
///
/// # Errors
///
/// [`MoveError`] when the name is taken, consent is missing, or it is not said which agent; [`BackupError`] when the
/// archive is damaged, newer, or lacks the agent; [`ServiceError`] when the root is missing or held.
pub async fn import(clock: Clock, options: ImportOptions) -> Result<ImportReport, ServiceError> {
    let archive = absolute(&options.archive)?;
    let target = absolute(&options.target)?;
    if !archive.exists() {
        return Err(BackupError::NoArchive { path: archive }.into());
    }
    if !options.yes && !options.dry_run {
        return Err(MoveError::NeedsYes {
            archive,
            target,
            agent: options.agent,
            name: options.name,
            is_restore: options.whole.is_some(),
        }
        .into());
    }
    let layout = Layout::new(target.clone());
    if !layout.global_db().exists() && !layout.restore_journal().exists() {
        return Err(ServiceError::NotInitialised { root: target });
    }
    let key = options.key.as_ref().map(KeySource::load).transpose()?;
    let verified = backup::verify(&archive, key.as_ref()).await?;
    let agent = choose(&archive, &verified.manifest, options.agent)?;
    let job = AdoptJob {
        id: new_id(),
        now_ms: clock.now_ms(),
        archive: archive.clone(),
        key,
        name: options.name.unwrap_or_else(|| agent.clone()),
        agent,
        layout,
        whole: options.whole,
    };
    if job.whole.is_some() && !verified.manifest.is_whole_agent() {
        return Err(MoveError::NotWhole { archive }.into());
    }
    let mut report = ImportReport::of(&job, target);
    report.notes = notes_of_age(&verified.manifest);
    report.notes.extend(verified.findings.iter().cloned());
    if options.dry_run {
        refuse_held(&job.layout)?;
        let lock = RootLock::shared_if_present(&job.layout)?;
        refuse_taken(&job, lock.is_at_rest()).await?;
        report.plan = backup::plan_adopt(&job, &verified.manifest)?;
        return Ok(report);
    }
    let _lock = take(&job.layout, clock.now_ms()).await?;
    let unfinished = backup::unfinished_adoption(&job.layout, &verified.manifest.id)?;
    backup::recover(&job.layout, &clock).await?;
    let record = match unfinished.filter(|record| record.agent_id == job.name) {
        Some(record) => {
            let note = "an earlier import of this archive had been cut off; it is finished";
            report.notes.push(note.to_owned());
            record
        }
        None => {
            // Held by us: nobody else writes.
            refuse_taken(&job, true).await?;
            report.plan = backup::plan_adopt(&job, &verified.manifest)?;
            backup::adopt(&job, &verified, &report.plan).await?
        }
    };
    if job.whole.is_some() {
        tell_rows(&job.layout, &record, &verified.manifest, &mut report).await?;
        tell_jobs(&job, &mut report);
    }
    tell_config(&job.layout, &record, &mut report);
    report.agent = Some(record);
    report.written = true;
    Ok(report)
}

/// The agent to take out of the archive.
fn choose(
    archive: &Path,
    manifest: &Manifest,
    asked: Option<AgentId>,
) -> Result<AgentId, ServiceError> {
    match (asked, &manifest.agent, manifest.scope) {
        (Some(agent), _, _) if manifest.agents().any(|(id, _)| *id == agent) => Ok(agent),
        (Some(agent), _, _) => Err(BackupError::NoAgent {
            archive: archive.to_owned(),
            agent,
        }
        .into()),
        (None, Some(record), Scope::Agent) => Ok(record.agent_id.clone()),
        (None, ..) => Err(MoveError::WhichAgent {
            archive: archive.to_owned(),
            agents: manifest.agents().map(|(id, _)| id.clone()).collect(),
        }
        .into()),
    }
}

/// Refuses a name that the registry knows, or under which a database lies.
async fn refuse_taken(job: &AdoptJob, is_at_rest: bool) -> Result<(), ServiceError> {
    let layout = &job.layout;
    let access = Access::Look { is_at_rest };
    let global = Db::open(&layout.global_db(), &Tier::Global, access).await?;
    let registry = global.registry().await;
    global.close().await;
    let registry = registry?;
    let registered = registry.iter().find(|(id, _)| id == job.name.as_str());
    let path = match registered {
        Some((_, path)) => layout.root().join(path),
        None => layout.agent_db(job.name.as_str()),
    };
    // A database that nobody registered may be all that is left of an agent.
    if registered.is_some() || path.symlink_metadata().is_ok() {
        return Err(MoveError::Taken {
            name: job.name.clone(),
            path,
        }
        .into());
    }
    Ok(())
}

/// Says how many rows of the control plane came back, and which did not because others have their place.
async fn tell_rows(
    layout: &Layout,
    agent: &AgentRecord,
    manifest: &Manifest,
    report: &mut ImportReport,
) -> Result<(), ServiceError> {
    // Held by us: nobody else writes.
    let access = Access::Look { is_at_rest: true };
    let global = Db::open(&layout.global_db(), &Tier::Global, access).await?;
    let found = global.belongings(&agent.agent_id).await;
    global.close().await;
    report.rows = found?;
    let members = manifest.members.iter();
    let listed = members.filter(|member| member.role == Some(Role::Global));
    for (table, count) in listed.filter_map(|member| member.rows.as_ref()).flatten() {
        let came = report.rows.get(table).copied().unwrap_or_default();
        if may_belong(table) && came < *count {
            report.notes.push(format!(
                "of {count} rows of {table} {came} are there: others have the place of the rest, which the archive keeps"
            ));
        }
    }
    Ok(())
}

fn tell_jobs(job: &AdoptJob, report: &mut ImportReport) {
    let jobs = report.rows.get("cron_jobs").copied().unwrap_or_default();
    if job.whole == Some(Jobs::Off) && jobs > 0 {
        let list = format!("`zeroclaw cron list --agent {}`", job.name);
        report.notes.push(format!(
            "scheduled jobs ({jobs}) came back switched off; {list} shows them, `zeroclaw cron resume` switches one on"
        ));
    }
}

/// Says what the configuration makes of the agent.
fn tell_config(layout: &Layout, agent: &AgentRecord, report: &mut ImportReport) {
    let config = match Config::load(&layout.config_file()) {
        Ok(config) => config.unwrap_or_default(),
        Err(error) => {
            report.notes.push(error.to_string());
            return;
        }
    };
    let id = &agent.agent_id;
    let enabled = config.agents.get(id.as_str()).map(|agent| agent.enabled);
    report.enabled_in_config = enabled;
    let note = match (agent.status, enabled) {
        (AgentStatus::Retired, _) => {
            format!("{id} is retired, as it was: searchable, never run")
        }
        (AgentStatus::Active, Some(true)) => return,
        (AgentStatus::Active, Some(false)) => {
            format!("config.toml disables {id}: set `enabled = true` under its heading to run it")
        }
        (AgentStatus::Active, None) => {
            // A stamp's `@` is no part of a bare key.
            let key = match id.is_generation() {
                true => format!("\"{id}\""),
                false => id.to_string(),
            };
            format!(
                "config.toml does not name {id}: to run it, add `[agents.{key}]` with `enabled = true` and its channels"
            )
        }
    };
    report.notes.push(note);
}
