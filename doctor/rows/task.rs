//! Tasks: runs of jobs, heartbeats, background work.

use zeroclaw::model::{AgentId, TaskOwnerKind, TaskRun};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::task;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for TaskRun {
    fn kind(&self) -> &'static str {
        match self.owner_kind {
            TaskOwnerKind::Cron => kind::CRON_RUN,
            TaskOwnerKind::Heartbeat => kind::HEARTBEAT_RUN,
            TaskOwnerKind::Task | TaskOwnerKind::Delegate | TaskOwnerKind::Subagent => kind::TASK,
        }
    }

    fn key(&self) -> String {
        self.task_id.clone()
    }

    fn agent(&self) -> Option<&AgentId> {
        // A run keeps the name it ran under; that alone makes nobody an agent.
        None
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        task::get_many(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        task::insert_new(tx, rows).await.map(|_| ())
    }
}
