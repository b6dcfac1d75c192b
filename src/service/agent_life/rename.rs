//! An agent gets another name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::LifeError;
use crate::backup;
use crate::clock::Clock;
use crate::config::mentions;
use crate::fs::{HolderKind, Layout};
use crate::model::{AgentId, AgentRecord};
use crate::service::backup::{new_id, refuse_held};
use crate::service::{Service, ServiceError};

/// Which agent gets which name.
#[derive(Clone, Debug)]
pub struct RenameOptions {
    /// The name it has.
    pub agent: AgentId,
    /// The name it gets.
    pub name: AgentId,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// A renaming that was done, or would be.
#[derive(Clone, Debug, Serialize)]
pub struct RenameReport {
    /// The name it had.
    pub source_agent_id: AgentId,
    /// Its name.
    pub agent_id: AgentId,
    /// Its row in the registry, under the name it has now.
    pub agent: AgentRecord,
    /// Rows of the control plane that name it, by table.
    pub rows: BTreeMap<String, i64>,
    /// Keys of `config.toml` that name it by its old name: a person changes them.
    pub in_config: Vec<String>,
    /// Whether it was done.
    pub written: bool,
}

/// Gives an agent another name: its folder with database and workspace, the copies of its deleted sessions, and
/// everything the control plane has of it. A kill at any moment leaves the old name, or the new one once the next command
/// has run.
///
/// The configuration is never changed: what names the agent there is told.
///
/// # Errors
///
/// [`ServiceError::Taken`] when the new name is taken or something lies under it, [`LifeError::InUse`] while the agent is in
/// use, [`ServiceError::Lock`] when somebody holds the root, [`ServiceError::NotFound`] when there is no such agent.
pub async fn rename(
    root: &Path,
    clock: Clock,
    options: RenameOptions,
) -> Result<RenameReport, ServiceError> {
    if options.name.is_generation() {
        return Err(ServiceError::Invalid {
            what: "agent id",
            reason: format!("{} is of an earlier generation", options.name),
        });
    }
    let layout = Layout::new(root.to_owned());
    let service = match options.dry_run {
        true => {
            refuse_held(&layout)?;
            Service::look(root, clock.clone()).await?
        }
        false => Service::open(root, clock.clone(), HolderKind::Cli).await?,
    };
    let planned = plan(&service, &options).await;
    // From here on nobody has a database open, and the root is still ours.
    let _hold = service.close_holding().await;
    let mut report = planned?;
    if options.dry_run {
        return Ok(report);
    }
    let now_ms = clock.now_ms();
    backup::rename(&layout, &new_id(), &options.agent, &options.name, now_ms).await?;
    report.agent.path = relative(&options.name);
    report.agent.agent_id = options.name;
    report.written = true;
    Ok(report)
}

/// Refuses what cannot be done, and says what would be.
async fn plan(service: &Service, options: &RenameOptions) -> Result<RenameReport, ServiceError> {
    let (old, new) = (&options.agent, &options.name);
    let agent = service.agents_or(Some(old)).await?.remove(0);
    service.refuse_odd_place(&agent)?;
    service.refuse_taken(new).await?;
    service.refuse_in_use(old).await?;
    Ok(RenameReport {
        source_agent_id: old.clone(),
        agent_id: new.clone(),
        rows: service.global().belongings(old).await?,
        in_config: mentions(&service.layout().config_file(), old.as_str()),
        agent,
        written: false,
    })
}

pub(super) fn relative(agent: &AgentId) -> String {
    let path = Layout::agent_db_relative(agent.as_str());
    path.to_string_lossy().into_owned()
}

impl Service {
    /// Refuses an agent whose folder is no folder of its own in the usual place.
    pub(super) fn refuse_odd_place(&self, agent: &AgentRecord) -> Result<(), ServiceError> {
        let id = &agent.agent_id;
        let reason = if agent.path == relative(id) {
            backup::odd_place(self.layout(), id).map(str::to_owned)
        } else {
            Some(format!("its database is {}", agent.path))
        };
        match reason {
            None => Ok(()),
            Some(reason) => Err(LifeError::OddPlace {
                agent: id.clone(),
                reason,
            }
            .into()),
        }
    }

    /// Refuses a name that the registry knows, or under which anything lies.
    pub(super) async fn refuse_taken(&self, name: &AgentId) -> Result<(), ServiceError> {
        let taken = |path: PathBuf| ServiceError::Taken {
            what: "agent",
            name: name.to_string(),
            path,
        };
        let layout = self.layout();
        let agents = self.agents().await?;
        if let Some(agent) = agents.iter().find(|agent| agent.agent_id == *name) {
            return Err(taken(layout.root().join(&agent.path)));
        }
        // What nobody registered may be all that is left of an agent.
        for folder in [
            layout.agent_dir(name.as_str()),
            layout.deleted_dir(name.as_str()),
        ] {
            if folder.symlink_metadata().is_ok() {
                return Err(taken(folder));
            }
        }
        Ok(())
    }
}
