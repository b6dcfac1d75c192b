//! What is said of tasks whose worker says nothing any more.
//!
//! In this order: ends that were decided are recovered, then what runs under a process proven gone is lost, then what beats
//! and has not for too long has timed out. Silence is measured by the time since boot, which nobody sets.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::TaskLedger;
use super::settle::{self, Recovered};
use crate::db::Db;
use crate::fs::process;
use crate::model::{AgentId, MAX_PAGE, PageLimit, TaskEnd, TaskRun, TaskSettlement, TaskStatus};
use crate::service::error::InDb;
use crate::service::{Service, ServiceError};
use crate::store::StoreError;
use crate::store::global::settlement;
use crate::store::global::task::{self, TaskFilter, life};

/// A task that a sweep has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptTask {
    /// The task.
    pub task_id: String,
    /// As what.
    pub status: TaskStatus,
}

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepReport {
    /// Tasks that ended as was decided before their worker died, or failed for want of proof.
    pub recovered: Vec<SweptTask>,
    /// Decided ends that meant nothing any more, by task.
    pub dropped: Vec<String>,
    /// Tasks whose worker is proven gone, or silent for too long.
    pub ended: Vec<SweptTask>,
    /// Decided ends that wait: for a worker that lives, for a database, or for a person.
    pub left: Vec<String>,
}

/// Where outputs are looked for.
pub(in crate::service) enum Outputs<'a> {
    /// With any agent of the root.
    All(&'a Service),
    /// With one; intents of others are left.
    Of(&'a AgentId, &'a Arc<Db>),
}

impl Service {
    /// Settles what workers left that are gone.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn sweep_tasks(&self) -> Result<SweepReport, ServiceError> {
        self.tasks().sweep(Outputs::All(self)).await
    }
}

impl TaskLedger {
    pub(in crate::service) async fn sweep(
        &self,
        outputs: Outputs<'_>,
    ) -> Result<SweepReport, ServiceError> {
        let mut report = SweepReport::default();
        self.recover_intents(&outputs, &mut report).await?;
        self.end_the_silent(&mut report).await?;
        Ok(report)
    }

    async fn recover_intents(
        &self,
        outputs: &Outputs<'_>,
        report: &mut SweepReport,
    ) -> Result<(), ServiceError> {
        let mut after = None;
        loop {
            let mut conn = self.db.read().await?;
            let page = settlement::list(&mut conn, after.as_deref(), PageLimit::from(MAX_PAGE))
                .await
                .in_db(&self.db)?;
            drop(conn);
            for intent in &page.items {
                let done = if settle::is_abandoned(intent) {
                    self.recover_intent(outputs, intent).await?
                } else {
                    Recovered::Left
                };
                let task_id = intent.task_id.clone();
                match done {
                    Recovered::Applied(status) => {
                        report.recovered.push(SweptTask { task_id, status })
                    }
                    Recovered::Dropped => report.dropped.push(task_id),
                    Recovered::Left => report.left.push(task_id),
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn recover_intent(
        &self,
        outputs: &Outputs<'_>,
        intent: &TaskSettlement,
    ) -> Result<Recovered, ServiceError> {
        let agent = match self.row(&intent.task_id).await {
            Ok(task) => task.agent_id,
            // Gone since the intent was read, and the intent with it.
            Err(ServiceError::NotFound { .. }) => return Ok(Recovered::Dropped),
            Err(error) => return Err(error),
        };
        let agent_db = match (agent, outputs) {
            (None, _) => None,
            (Some(agent), Outputs::Of(own, db)) if agent == **own => Some(Arc::clone(db)),
            (Some(_), Outputs::Of(..)) => return Ok(Recovered::Left),
            (Some(agent), Outputs::All(service)) => match service.agent(&agent).await {
                Ok(db) => Some(db),
                Err(ServiceError::NotFound { .. }) => None,
                // One broken database keeps its own tasks waiting, and nobody else's.
                Err(error @ ServiceError::Open(_)) => {
                    tracing::warn!(task = intent.task_id, %error, "a decided end waits for its output");
                    return Ok(Recovered::Left);
                }
                Err(error) => return Err(error),
            },
        };
        settle::recover(self, agent_db.as_ref(), intent).await
    }

    async fn end_the_silent(&self, report: &mut SweepReport) -> Result<(), ServiceError> {
        let filter = TaskFilter {
            status: Some(TaskStatus::Running),
            ..TaskFilter::default()
        };
        let mut before = None;
        loop {
            let mut conn = self.db.read().await?;
            let page = task::list(
                &mut conn,
                &filter,
                before.as_deref(),
                PageLimit::from(MAX_PAGE),
            )
            .await
            .in_db(&self.db)?;
            drop(conn);
            for task in page.items {
                let Some(end) = self
                    .silence(&task)
                    .filter(|_| !report.left.contains(&task.task_id))
                else {
                    continue;
                };
                let (status, now_ms) = (end.status, self.clock.now_ms());
                let task_id = task.task_id.clone();
                let done = self.db.write(move |tx| {
                    Box::pin(async move { life::end_as_seen(tx, &task, &end, now_ms).await })
                });
                let done: Result<bool, StoreError> = done.await;
                if done? {
                    report.ended.push(SweptTask { task_id, status });
                }
            }
            before = page.next;
            if before.is_none() {
                return Ok(());
            }
        }
    }

    /// What the silence of a running task means; `None` for nothing.
    fn silence(&self, task: &TaskRun) -> Option<TaskEnd> {
        let origin = &task.origin;
        let owner = origin.owner()?;
        if process::liveness(&owner).is_gone() {
            let pid = owner.pid;
            let reason = format!("the process that ran it (pid {pid}) is gone");
            return Some(TaskEnd::of(TaskStatus::Lost, reason));
        }
        let (beat, most) = (origin.heartbeat_uptime_ms?, origin.heartbeat_timeout_ms?);
        let silent_ms = self.clock.uptime_ms().saturating_sub(beat);
        // The time since boot compares within one boot alone; a process of another one is gone.
        (silent_ms > most).then(|| {
            TaskEnd::of(
                TaskStatus::TimedOut,
                format!("its worker has been silent for {silent_ms} ms, more than {most}"),
            )
        })
    }
}
