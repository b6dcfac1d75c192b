//! A worker: one run of one agent, in a process of its own or not.
//!
//! It is given a [`WorkerSpec`] and opens its own connections; handles never cross processes. Somebody should hold the
//! root for it, a daemon or the process that started it. Where nobody does, the worker keeps restores and other writers of
//! the whole root out while it lives.

use std::path::PathBuf;
use std::sync::Arc;

use super::vfs::{Vfs, VfsError};
use super::{ServiceError, open};
use crate::clock::Clock;
use crate::config::{Config, FileAccess};
use crate::db::{Access, Db};
use crate::fs::layout::expand_home;
use crate::fs::{Layout, RootLock, SharedLock};
use crate::model::{AgentId, FsMode, Tier, VfsNamespace, WorkerSpec};

pub use self::desk::TaskDesk;
pub use self::disk::DiskFiles;
pub use self::files::{Files, FilesKind};
pub use self::scratch::ScratchFiles;
pub use self::tasks::TaskWorker;

mod artifact;
mod desk;
mod disk;
mod files;
mod scratch;
mod tasks;

/// A worker's connections and files.
///
/// Call [`Worker::close`] at the end.
#[derive(Debug)]
pub struct Worker {
    spec: WorkerSpec,
    layout: Layout,
    clock: Clock,
    config: Config,
    db: Arc<Db>,
    // Held for its drop.
    _hold: SharedLock,
}

impl Worker {
    /// Opens what a worker needs.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the agent has no database or the configuration cannot be read.
    pub async fn open(spec: WorkerSpec, clock: Clock) -> Result<Self, ServiceError> {
        let layout = Layout::new(spec.root.clone());
        let hold = RootLock::shared_if_present(&layout)?;
        let config = Config::load(&layout.config_file())?.unwrap_or_default();
        let path = layout.agent_db(spec.agent_id.as_str());
        if !path.exists() {
            return Err(ServiceError::NotFound {
                what: "agent",
                name: spec.agent_id.to_string(),
            });
        }
        let access = Access::Write(open::write_access(&layout, &clock, &config));
        let db = Db::open(&path, &Tier::Agent(spec.agent_id.clone()), access).await?;
        Ok(Self {
            db: Arc::new(db),
            spec,
            layout,
            clock,
            config,
            _hold: hold,
        })
    }

    /// What it was given.
    #[must_use]
    pub fn spec(&self) -> &WorkerSpec {
        &self.spec
    }

    /// The files it works on, as its mode says.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the workspace cannot be opened.
    pub async fn files(&self) -> Result<Files, ServiceError> {
        let own = &self.spec.agent_id;
        Ok(match self.spec.fs_mode {
            FsMode::Disk => Files::disk(self.workspace_files(own, FileAccess::ReadWrite).await?),
            FsMode::VfsScratch => {
                let lower = self.workspace_files(own, FileAccess::Read).await?;
                Files::scratch(ScratchFiles::new(self.scratch()?, lower))
            }
            FsMode::VfsOnly => Files::vfs(self.vfs(VfsNamespace::default())),
        })
    }

    /// Files of another agent's workspace on disk, as far as the configuration lets this agent touch them.
    ///
    /// In the mode `vfs-scratch` they can be read at most, since the disk is to stay as it is.
    ///
    /// # Errors
    ///
    /// [`VfsError::Denied`] when there is no such right, or the disk is not seen; [`ServiceError`] when the workspace
    /// cannot be opened.
    pub async fn files_of(&self, owner: &AgentId) -> Result<Files, ServiceError> {
        let granted = self
            .config
            .file_access(self.spec.agent_id.as_str(), owner.as_str());
        let access = match (self.spec.fs_mode, granted) {
            (FsMode::Disk, granted) => granted,
            (FsMode::VfsScratch, granted) if granted.reads() => FileAccess::Read,
            (FsMode::VfsScratch | FsMode::VfsOnly, _) => FileAccess::None,
        };
        if access == FileAccess::None {
            return Err(self.denied(format!("the workspace of {owner}")));
        }
        if !self.workspace(owner).is_dir() {
            return Err(ServiceError::NotFound {
                what: "workspace of agent",
                name: owner.to_string(),
            });
        }
        Ok(Files::disk(self.workspace_files(owner, access).await?))
    }

    /// The whole disk, for an agent that the configuration sets free, in the mode `disk`.
    ///
    /// # Errors
    ///
    /// [`VfsError::Denied`] when it is not.
    pub async fn whole_disk(&self) -> Result<Files, ServiceError> {
        let is_free = self.config.is_unrestricted(self.spec.agent_id.as_str());
        if !is_free || self.spec.fs_mode != FsMode::Disk {
            return Err(self.denied("the whole disk".to_owned()));
        }
        let top = PathBuf::from("/");
        Ok(Files::disk(
            DiskFiles::open(top, FileAccess::ReadWrite).await?,
        ))
    }

    /// A tree of the agent's files in its database, whatever the mode.
    #[must_use]
    pub fn vfs(&self, namespace: VfsNamespace) -> Vfs {
        Vfs::new(Arc::clone(&self.db), self.clock.clone(), namespace)
    }

    /// The layer that takes this run's changes.
    fn scratch(&self) -> Result<Vfs, ServiceError> {
        let name = format!("run {}", self.spec.run_id);
        let namespace = VfsNamespace::new(&name).map_err(VfsError::Name)?;
        Ok(self.vfs(namespace))
    }

    fn workspace(&self, owner: &AgentId) -> PathBuf {
        let told = self.config.agents.get(owner.as_str());
        match told.and_then(|agent| agent.workspace_path.as_deref()) {
            Some(path) => {
                let path = expand_home(path, std::env::home_dir().as_deref());
                self.layout.root().join(path)
            }
            None => self.layout.workspace(owner.as_str()),
        }
    }

    async fn workspace_files(
        &self,
        owner: &AgentId,
        access: FileAccess,
    ) -> Result<DiskFiles, ServiceError> {
        DiskFiles::open(self.workspace(owner), access).await
    }

    fn denied(&self, what: String) -> ServiceError {
        VfsError::Denied {
            agent: self.spec.agent_id.clone(),
            what,
        }
        .into()
    }

    /// Finishes queued writes and closes its connections.
    pub async fn close(self) {
        if let Ok(db) = Arc::try_unwrap(self.db) {
            db.close().await;
        }
    }
}
