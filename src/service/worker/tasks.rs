//! A worker of background tasks, in a process of its own beside whoever holds the root.

use std::path::Path;
use std::sync::Arc;

use super::desk::TaskDesk;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::{Access, Db};
use crate::fs::Layout;
use crate::model::{AgentId, TaskOwnerKind, Tier};
use crate::service::task_ledger::{Outputs, SweepReport, TaskHandle, TaskLedger};
use crate::service::{Leases, ServiceError, open};

/// A worker's own connections to the control plane and to the database of the agent it works for.
///
/// Call [`TaskWorker::close`] at the end.
#[derive(Debug)]
pub struct TaskWorker {
    agent: AgentId,
    desk: TaskDesk,
    agent_db: Arc<Db>,
}

impl TaskWorker {
    /// Opens what a worker for an agent needs, and settles what workers before it left.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is no such root or agent.
    pub async fn open(root: &Path, agent: &AgentId, clock: Clock) -> Result<Self, ServiceError> {
        let desk = TaskDesk::open(root, clock.clone()).await?;
        let layout = Layout::new(root.to_owned());
        let path = layout.agent_db(agent.as_str());
        if !path.exists() {
            return Err(ServiceError::NotFound {
                what: "agent",
                name: agent.to_string(),
            });
        }
        let config = Config::load(&layout.config_file())?.unwrap_or_default();
        let access = Access::Write(open::write_access(&layout, &clock, &config));
        let agent_db = Db::open(&path, &Tier::Agent(agent.clone()), access).await?;
        let worker = Self {
            agent: agent.clone(),
            desk,
            agent_db: Arc::new(agent_db),
        };
        worker.sweep().await?;
        Ok(worker)
    }

    /// The tasks of the root.
    #[must_use]
    pub fn tasks(&self) -> TaskLedger {
        self.desk.tasks()
    }

    /// The leases of the root.
    #[must_use]
    pub fn leases(&self) -> Leases {
        self.desk.leases()
    }

    /// Claims the oldest task of a kind that waits for this agent; `None` when there is none.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn claim_next(
        &self,
        kind: TaskOwnerKind,
    ) -> Result<Option<TaskHandle>, ServiceError> {
        self.tasks()
            .hold_next(kind, &self.agent, &self.agent_db)
            .await
    }

    /// Settles what workers left that are gone: ends with an output of this agent, and whatever ran.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn sweep(&self) -> Result<SweepReport, ServiceError> {
        let outputs = Outputs::Of(&self.agent, &self.agent_db);
        self.tasks().sweep(outputs).await
    }

    /// Finishes queued writes and closes its connections.
    pub async fn close(self) {
        if let Ok(db) = Arc::try_unwrap(self.agent_db) {
            db.close().await;
        }
        self.desk.close().await;
    }
}
