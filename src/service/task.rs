//! Background work: listing, showing, handing out what it gave.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{GoalBudget, Service, ServiceError};
use crate::model::{
    AgentId, GoalTask, KeptArtifact, Page, PageLimit, TaskContinuation, TaskDelivery, TaskRun,
    TaskSettlement, TaskStatus,
};
use crate::store::agent::artifact;
use crate::store::global::task::TaskFilter;
use crate::store::global::{continuation, delivery, goal, settlement, task};

/// Tasks of the same beginning that an error names.
const MAX_CANDIDATES: u32 = 5;

/// One task and what it has beside its row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskOverview {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRun,
    /// Whom to tell; `None` where nobody waits.
    pub delivery: Option<TaskDelivery>,
    /// What it is to reach.
    pub goal: Option<GoalTask>,
    /// What that may still cost, by the cost ledger.
    pub budget: Option<GoalBudget>,
    /// Where it goes on.
    pub continuation: Option<TaskContinuation>,
    /// How it was to end, while that is not settled.
    pub settlement: Option<TaskSettlement>,
    /// What it gave, without the bytes.
    pub artifacts: Vec<KeptArtifact>,
    /// Tasks that it started, by id; the first [`crate::model::MAX_PAGE`].
    pub children: Vec<String>,
}

/// A goal, how its task stands, and where it goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalOverview {
    /// The goal.
    #[serde(flatten)]
    pub goal: GoalTask,
    /// Who pursues it.
    pub agent_id: Option<AgentId>,
    /// How its task stands.
    pub status: Option<TaskStatus>,
    /// JSON text of where it goes on.
    pub context_json: Option<String>,
}

/// What a task gave, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutput {
    /// The task.
    pub task_id: String,
    /// What is known of the bytes; `None` where they stand in the row of the task.
    pub artifact: Option<KeptArtifact>,
    /// The bytes as text; `None` where they are none.
    pub text: Option<String>,
    /// The bytes.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

impl Service {
    pub(super) async fn list_tasks(
        &self,
        filter: &TaskFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<TaskRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        task::list(&mut conn, filter, before, limit)
            .await
            .in_db(self.global())
    }

    /// The task of an id, or the one whose id begins so.
    async fn find_task(&self, reference: &str) -> Result<TaskRun, ServiceError> {
        let mut conn = self.global().read().await?;
        let limit = PageLimit::from(MAX_CANDIDATES);
        let mut found = task::find(&mut conn, reference, limit)
            .await
            .in_db(self.global())?;
        // The id itself is the first of those that begin with it.
        if found.len() == 1 || found.first().is_some_and(|task| task.task_id == reference) {
            return Ok(found.swap_remove(0));
        }
        if found.is_empty() || reference.is_empty() {
            return Err(ServiceError::NotFound {
                what: "task",
                name: reference.to_owned(),
            });
        }
        Err(ServiceError::Ambiguous {
            what: "tasks",
            name: reference.to_owned(),
            candidates: found.into_iter().map(|task| task.task_id).collect(),
        })
    }

    pub(super) async fn show_task(&self, reference: &str) -> Result<TaskOverview, ServiceError> {
        let task = self.find_task(reference).await?;
        let artifacts = self.artifacts_of(&task.task_id).await?;
        let mut conn = self.global().read().await?;
        let ids = [task.task_id.as_str()];
        let budget = match self.tasks().goal_budget(&task.task_id).await {
            Err(ServiceError::NotFound { .. }) => None,
            budget => Some(budget?),
        };
        let children = task::children(&mut conn, &task.task_id, PageLimit::from(u32::MAX))
            .await
            .in_db(self.global())?;
        Ok(TaskOverview {
            budget,
            delivery: delivery::get_many(&mut conn, &ids)
                .await
                .in_db(self.global())?
                .pop(),
            goal: goal::get_many(&mut conn, &ids)
                .await
                .in_db(self.global())?
                .pop(),
            continuation: continuation::get_many(&mut conn, &ids)
                .await
                .in_db(self.global())?
                .pop(),
            settlement: settlement::get_many(&mut conn, &ids)
                .await
                .in_db(self.global())?
                .pop(),
            artifacts,
            children: children.into_iter().map(|child| child.task_id).collect(),
            task,
        })
    }

    /// What a run gave, in whichever agent's database it is.
    async fn artifacts_of(&self, run_id: &str) -> Result<Vec<KeptArtifact>, ServiceError> {
        let mut found = Vec::new();
        for record in self.agents().await? {
            let agent_id = record.agent_id;
            let Some(db) = self.agent_unless_broken(&agent_id, false).await? else {
                continue;
            };
            let mut conn = db.read().await?;
            let listed = artifact::list(&mut conn, run_id).await.in_db(&db)?;
            found.extend(listed.into_iter().map(|about| KeptArtifact {
                agent_id: agent_id.clone(),
                about,
            }));
        }
        Ok(found)
    }

    pub(super) async fn task_output(
        &self,
        reference: &str,
        path: Option<&str>,
    ) -> Result<TaskOutput, ServiceError> {
        let task = self.find_task(reference).await?;
        let mut kept = self.artifacts_of(&task.task_id).await?;
        kept.retain(|kept| path.is_none_or(|path| kept.about.path == path));
        if kept.len() > 1 && path.is_none() {
            return Err(ServiceError::Ambiguous {
                what: "outputs",
                name: task.task_id,
                candidates: kept.into_iter().map(|kept| kept.about.path).collect(),
            });
        }
        let Some(kept) = kept.pop() else {
            let text = task.output.filter(|_| path.is_none());
            let text = text.ok_or_else(|| ServiceError::NotFound {
                what: "output of task",
                name: task.task_id.clone(),
            })?;
            return Ok(TaskOutput {
                task_id: task.task_id,
                artifact: None,
                bytes: text.clone().into_bytes(),
                text: Some(text),
            });
        };
        let db = self.agent(&kept.agent_id).await?;
        let mut conn = db.read().await?;
        let found = artifact::get(&mut conn, &task.task_id, &kept.about.path)
            .await
            .in_db(&db)?;
        let found = found.ok_or_else(|| ServiceError::NotFound {
            what: "output of task",
            name: task.task_id.clone(),
        })?;
        let about = &found.about;
        super::artifact::prove(&about.run_id, &about.path, &about.sha256, &found.blob)?;
        Ok(TaskOutput {
            task_id: task.task_id,
            artifact: Some(kept),
            text: String::from_utf8(found.blob.clone()).ok(),
            bytes: found.blob,
        })
    }

    pub(super) async fn list_goals(
        &self,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<GoalOverview>, ServiceError> {
        let mut conn = self.global().read().await?;
        let page = goal::list(&mut conn, after, limit)
            .await
            .in_db(self.global())?;
        let ids: Vec<&str> = page
            .items
            .iter()
            .map(|goal| goal.task_id.as_str())
            .collect();
        let tasks = task::get_many(&mut conn, &ids).await.in_db(self.global())?;
        let contexts = continuation::get_many(&mut conn, &ids)
            .await
            .in_db(self.global())?;
        let items = page.items.iter().cloned().map(|goal| {
            let task = tasks.iter().find(|task| task.task_id == goal.task_id);
            let context = contexts.iter().find(|found| found.task_id == goal.task_id);
            GoalOverview {
                agent_id: task.and_then(|task| task.agent_id.clone()),
                status: task.map(|task| task.status),
                context_json: context.map(|context| context.context_json.clone()),
                goal,
            }
        });
        Ok(Page {
            items: items.collect(),
            next: page.next,
        })
    }

    pub(super) async fn list_settlements(
        &self,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<TaskSettlement>, ServiceError> {
        let mut conn = self.global().read().await?;
        settlement::list(&mut conn, after, limit)
            .await
            .in_db(self.global())
    }
}
