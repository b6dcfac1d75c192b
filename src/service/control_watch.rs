//! What happens to tasks, runs of jobs and messages, whoever does it.
//!
//! Workers, runtimes and commands write the control plane over connections of their own, so nobody in this process could
//! tell what they do. A watch looks: SQLite says in one word whether anybody has written since, and only then rows are
//! compared with those of the look before. What came and went between two looks is told as it ended.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::{Db, Reader};
use crate::model::{DeliveryStatus, TaskOwnerKind, TaskStatus};
use crate::store::global::watch::{self, SeenDelivery, SeenTask};

/// Something that changed in the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlChange {
    /// A task, other than a run of a job, stands so now.
    Task {
        /// Its id.
        task_id: String,
        /// What it is for.
        owner_kind: TaskOwnerKind,
        /// Whose it is.
        agent_id: Option<String>,
        /// Where it stands.
        status: TaskStatus,
    },
    /// A run of a job stands so now.
    CronRun {
        /// Id of the run.
        task_id: String,
        /// The job.
        job_id: Option<String>,
        /// Whose it is.
        agent_id: Option<String>,
        /// Where it stands.
        status: TaskStatus,
    },
    /// A message stands so now.
    Delivery {
        /// Its id.
        message_id: String,
        /// Whose it is.
        agent_id: Option<String>,
        /// Where it stands.
        status: DeliveryStatus,
    },
}

/// A look at the control plane that remembers the one before.
#[derive(Debug)]
pub struct ControlWatch {
    db: Arc<Db>,
    // The word of SQLite is one of a connection: it is kept.
    conn: Reader,
    version: i64,
    last_task: i64,
    last_delivery: i64,
    tasks: HashMap<String, (TaskStatus, String)>,
    deliveries: HashMap<String, DeliveryStatus>,
}

impl Service {
    /// Watches tasks, runs of jobs and messages from now on.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn watch_control(&self) -> Result<ControlWatch, ServiceError> {
        let db = Arc::clone(self.global());
        let conn = db.read().await?;
        let mut begun = ControlWatch {
            db,
            conn,
            version: 0,
            last_task: 0,
            last_delivery: 0,
            tasks: HashMap::new(),
            deliveries: HashMap::new(),
        };
        begun.begin().await?;
        Ok(begun)
    }
}

impl ControlWatch {
    async fn begin(&mut self) -> Result<(), ServiceError> {
        let db = Arc::clone(&self.db);
        let conn = &mut self.conn;
        self.version = watch::data_version(conn).await.in_db(&db)?;
        (self.last_task, self.last_delivery) = watch::last_rows(conn).await.in_db(&db)?;
        let tasks = watch::tasks(conn, self.last_task).await.in_db(&db)?;
        let deliveries = watch::deliveries(conn, self.last_delivery).await;
        for task in tasks {
            self.note_task(&task);
        }
        for message in deliveries.in_db(&db)? {
            self.note_delivery(&message);
        }
        Ok(())
    }

    /// What has changed since the look before, in no order but each thing's own.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails; the next look tells what this one has not.
    pub async fn look(&mut self) -> Result<Vec<ControlChange>, ServiceError> {
        let db = Arc::clone(&self.db);
        let version = watch::data_version(&mut self.conn).await.in_db(&db)?;
        if version == self.version {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        self.look_at_tasks(&mut changes).await?;
        self.look_at_deliveries(&mut changes).await?;
        // Only now: what failed half way is looked at again.
        self.version = version;
        Ok(changes)
    }

    async fn look_at_tasks(
        &mut self,
        changes: &mut Vec<ControlChange>,
    ) -> Result<(), ServiceError> {
        let db = Arc::clone(&self.db);
        let seen = watch::tasks(&mut self.conn, self.last_task)
            .await
            .in_db(&db)?;
        let mut ended = self.tasks.clone();
        if seen.len() >= watch::AT_ONCE {
            // Not all were seen: nobody can tell which of the others have ended.
            ended.clear();
        }
        for task in seen {
            ended.remove(&task.task_id);
            if self.note_task(&task) {
                changes.push(task.into());
            }
        }
        for task_id in ended.into_keys() {
            self.tasks.remove(&task_id);
            let task = watch::task_of(&mut self.conn, &task_id).await.in_db(&db)?;
            if let Some(task) = task.filter(|task| task.status.is_end()) {
                changes.push(task.into());
            }
        }
        Ok(())
    }

    async fn look_at_deliveries(
        &mut self,
        changes: &mut Vec<ControlChange>,
    ) -> Result<(), ServiceError> {
        let db = Arc::clone(&self.db);
        let seen = watch::deliveries(&mut self.conn, self.last_delivery).await;
        let seen = seen.in_db(&db)?;
        let mut ended = self.deliveries.clone();
        if seen.len() >= watch::AT_ONCE {
            ended.clear();
        }
        for message in seen {
            ended.remove(&message.id);
            if self.note_delivery(&message) {
                changes.push(message.into());
            }
        }
        for id in ended.into_keys() {
            self.deliveries.remove(&id);
            let message = watch::delivery_of(&mut self.conn, &id).await.in_db(&db)?;
            if let Some(message) = message.filter(|message| is_over(message.status)) {
                changes.push(message.into());
            }
        }
        Ok(())
    }

    /// Whether it is new, or stands elsewhere than before.
    fn note_task(&mut self, task: &SeenTask) -> bool {
        let is_new = task.row > self.last_task;
        self.last_task = self.last_task.max(task.row);
        if task.status.is_end() {
            let was_known = self.tasks.remove(&task.task_id).is_some();
            return is_new || was_known;
        }
        let now = (task.status, task.cancel_state.clone());
        let before = self.tasks.insert(task.task_id.clone(), now.clone());
        before != Some(now)
    }

    fn note_delivery(&mut self, message: &SeenDelivery) -> bool {
        let is_new = message.row > self.last_delivery;
        self.last_delivery = self.last_delivery.max(message.row);
        if is_over(message.status) {
            let was_known = self.deliveries.remove(&message.id).is_some();
            return is_new || was_known;
        }
        let before = self.deliveries.insert(message.id.clone(), message.status);
        before != Some(message.status)
    }
}

/// Whether a message neither waits nor is under way.
fn is_over(status: DeliveryStatus) -> bool {
    !matches!(status, DeliveryStatus::Pending | DeliveryStatus::Sending)
}

impl From<SeenTask> for ControlChange {
    fn from(task: SeenTask) -> Self {
        match task.owner_kind {
            TaskOwnerKind::Cron => Self::CronRun {
                task_id: task.task_id,
                job_id: task.source_id,
                agent_id: task.agent_id,
                status: task.status,
            },
            owner_kind => Self::Task {
                task_id: task.task_id,
                owner_kind,
                agent_id: task.agent_id,
                status: task.status,
            },
        }
    }
}

impl From<SeenDelivery> for ControlChange {
    fn from(message: SeenDelivery) -> Self {
        Self::Delivery {
            message_id: message.id,
            agent_id: message.agent_id,
            status: message.status,
        }
    }
}
