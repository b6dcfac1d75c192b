//! An agent is deleted; an archive has all of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

use super::LifeError;
use crate::backup::{self, BackupDone, BackupJob, LeftOut, Role};
use crate::clock::Clock;
use crate::config::mentions;
use crate::fs::{HolderKind, Layout};
use crate::model::{AgentId, AgentRecord};
use crate::service::backup::{CreateReport, absolute, create_report, new_id, refuse_held};
use crate::service::{Service, ServiceError};

/// Which agent to delete, and where its archive goes.
#[derive(Clone, Debug)]
pub struct DeleteOptions {
    /// The agent.
    pub agent: AgentId,
    /// File or existing folder for the archive; `None` for the folder `backups` of the root.
    pub output: Option<PathBuf>,
    /// Give up what cannot go into the archive: links, sockets, names that are no UTF-8.
    pub drop_unarchived: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Consent to delete.
    pub yes: bool,
}

/// A deletion that was done, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct DeleteReport {
    /// The archive that has all of it.
    #[serde(flatten)]
    pub archive: CreateReport,
    /// The agent's row in the registry, as it was.
    pub agent: AgentRecord,
    /// Rows of the control plane that go, or lose its name, by table.
    pub rows: BTreeMap<String, i64>,
    /// Tasks of others out of which its name goes.
    pub mentions: usize,
    /// Keys of `config.toml` that name it: a person changes them.
    pub in_config: Vec<String>,
    /// Whether it was done.
    pub written: bool,
}

/// What is known before anything is written.
struct Plan {
    agent: AgentRecord,
    rows: BTreeMap<String, i64>,
    mentions: usize,
    in_config: Vec<String>,
}

/// Deletes an agent: first a proved archive of all of it, then its rows, its folder, the copies of its deleted sessions.
///
/// What it has cost stays with the root, without its name. A kill before the archive is there leaves the agent, one
/// after that no agent once the next command has run. Archives and backups made before keep what they hold.
///
/// # Errors
///
/// [`LifeError`] without consent, while the agent is in use, or when something of it cannot be archived;
/// [`ServiceError::Lock`] when somebody holds the root, [`ServiceError::NotFound`] when there is no such agent.
pub async fn delete(
    root: &Path,
    clock: Clock,
    options: DeleteOptions,
) -> Result<DeleteReport, ServiceError> {
    let started = Instant::now();
    let layout = Layout::new(root.to_owned());
    let is_asking = options.dry_run || !options.yes;
    let service = match is_asking {
        true => {
            refuse_held(&layout)?;
            Service::look(root, clock.clone()).await?
        }
        false => Service::open(root, clock.clone(), HolderKind::Cli).await?,
    };
    let planned = plan(&service, &options).await;
    // From here on nobody has a database open, and the root is still ours.
    let _hold = service.close_holding().await;
    let planned = planned?;
    let job = job(&layout, &clock, &options, &planned.agent)?;
    let outline = backup::plan(&job).await?;
    refuse_left_out(&options, &outline.manifest.left_out)?;
    if !options.yes && !options.dry_run {
        return Err(LifeError::NeedsYes {
            agent: options.agent,
            rows: planned.rows.values().sum(),
            files: outline.manifest.members.len(),
        }
        .into());
    }
    if options.dry_run {
        return Ok(report(planned, outline, started, true));
    }
    let done = backup::create(&job).await?;
    refuse_left_out(&options, &done.manifest.left_out)?;
    prove(&done, &planned).await?;
    backup::forget(&layout, &job.id, &options.agent, clock.now_ms()).await?;
    Ok(report(planned, done, started, false))
}

async fn plan(service: &Service, options: &DeleteOptions) -> Result<Plan, ServiceError> {
    let id = &options.agent;
    let agent = service.agents_or(Some(id)).await?.remove(0);
    service.refuse_odd_place(&agent)?;
    service.refuse_in_use(id).await?;
    let global = service.global();
    Ok(Plan {
        rows: global.belongings(id).await?,
        mentions: global.mentions(id).await?.len(),
        in_config: mentions(&service.layout().config_file(), id.as_str()),
        agent,
    })
}

fn job(
    layout: &Layout,
    clock: &Clock,
    options: &DeleteOptions,
    agent: &AgentRecord,
) -> Result<BackupJob, ServiceError> {
    let output = options.output.as_deref().map(absolute).transpose()?;
    let folder = layout.agent_dir(agent.agent_id.as_str());
    if output
        .as_ref()
        .is_some_and(|output| output.starts_with(&folder))
    {
        return Err(ServiceError::Invalid {
            what: "the place of the archive",
            reason: format!("is inside of {}, which goes", folder.display()),
        });
    }
    let deleted = layout.deleted_dir(agent.agent_id.as_str());
    let extra = Some(deleted).filter(|folder| folder.is_dir());
    Ok(BackupJob {
        layout: layout.clone(),
        id: new_id(),
        now_ms: clock.now_ms(),
        output,
        with_secrets: true,
        include_workspace: true,
        verify: true,
        seal: None,
        extra: extra
            .iter()
            .map(|folder| layout.stored(folder).to_owned())
            .collect(),
        agent: Some(agent.clone()),
        is_whole: true,
    })
}

/// Refuses to delete what no archive would hold.
fn refuse_left_out(options: &DeleteOptions, left_out: &[LeftOut]) -> Result<(), ServiceError> {
    if left_out.is_empty() || options.drop_unarchived {
        return Ok(());
    }
    let told = left_out.iter();
    Err(LifeError::LeftBehind {
        agent: options.agent.clone(),
        left_out: told
            .map(|left| format!("{} ({})", left.path, left.reason))
            .collect(),
    }
    .into())
}

/// Opens every database in the archive, and counts what is to go.
async fn prove(done: &BackupDone, planned: &Plan) -> Result<(), ServiceError> {
    let verified = backup::verify(&done.archive, None).await?;
    let members = verified.manifest.members.iter();
    let rows = members.filter(|member| member.role == Some(Role::Global));
    let rows = rows.filter_map(|member| member.rows.as_ref()).next();
    let held = |table: &str| rows.and_then(|rows| rows.get(table)).copied();
    let missing = planned
        .rows
        .iter()
        .find(|(table, count)| held(table) != Some(**count));
    match missing {
        None => Ok(()),
        Some((table, _)) => Err(LifeError::Unproved {
            agent: planned.agent.agent_id.clone(),
            archive: done.archive.clone(),
            table: table.clone(),
        }
        .into()),
    }
}

fn report(planned: Plan, done: BackupDone, started: Instant, dry_run: bool) -> DeleteReport {
    DeleteReport {
        archive: create_report(done, None, started, dry_run),
        agent: planned.agent,
        rows: planned.rows,
        mentions: planned.mentions,
        in_config: planned.in_config,
        written: !dry_run,
    }
}
