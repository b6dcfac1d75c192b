//! What under way needs an agent.

use super::LifeError;
use crate::fs::process;
use crate::model::{AgentId, PageLimit, ProcessIdentity, TaskRun, TaskStatus};
use crate::service::error::InDb;
use crate::service::turn::{self, Holder};
use crate::service::{Service, ServiceError};
use crate::store::agent::lease;
use crate::store::global::delivery_queue;
use crate::store::global::task::{self, TaskFilter};

/// Statuses of tasks that have not ended, those that somebody has in hand first.
const UNFINISHED: [TaskStatus; 3] = [
    TaskStatus::Running,
    TaskStatus::Waiting,
    TaskStatus::Pending,
];

impl Service {
    /// Refuses while a turn, a task or a message under way needs the agent, and names it.
    ///
    /// What dead processes left is settled first, so that it holds up nobody.
    ///
    /// # Errors
    ///
    /// [`LifeError::InUse`].
    pub(super) async fn refuse_in_use(&self, agent: &AgentId) -> Result<(), ServiceError> {
        if self.is_writer() {
            self.close_dead_turns(agent).await?;
            self.sweep_tasks().await?;
        }
        self.refuse_turn(agent).await?;
        self.refuse_task(agent).await?;
        let mut conn = self.global().read().await?;
        let sending = delivery_queue::under_way_of(&mut conn, agent).await;
        match sending.in_db(self.global())? {
            None => Ok(()),
            Some(id) => Err(in_use(
                agent,
                format!("message {id:?} is being sent"),
                format!("wait until it is sent; `zeroclaw delivery show {id}` tells"),
            )),
        }
    }

    async fn refuse_turn(&self, agent: &AgentId) -> Result<(), ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let turns = lease::list(&mut conn, turn::SCOPE).await.in_db(&db)?;
        drop(conn);
        let is_gone = |payload: &str| self.turns().is_gone(payload, self.is_writer());
        let Some(held) = turns.iter().find(|turn| !is_gone(&turn.payload_json)) else {
            return Ok(());
        };
        let holder = serde_json::from_str::<Holder>(&held.payload_json).ok();
        let session = &held.lease_key;
        Err(in_use(
            agent,
            format!(
                "session {session:?} is in a turn of {}{}",
                held.owner,
                by(holder.as_ref().map(|holder| &holder.process))
            ),
            "wait for the turn to end, or end that process".to_owned(),
        ))
    }

    async fn refuse_task(&self, agent: &AgentId) -> Result<(), ServiceError> {
        let mut conn = self.global().read().await?;
        for status in UNFINISHED {
            let filter = TaskFilter {
                agent_id: Some(agent.clone()),
                status: Some(status),
                ..TaskFilter::default()
            };
            let page = task::list(&mut conn, &filter, None, PageLimit::default()).await;
            let page = page.in_db(self.global())?;
            let is_left_behind = |task: &&TaskRun| {
                let owner = task.origin.owner();
                status == TaskStatus::Running
                    && owner.is_some_and(|owner| process::liveness(&owner).is_gone())
            };
            if let Some(task) = page.items.iter().find(|task| !is_left_behind(task)) {
                let id = &task.task_id;
                return Err(in_use(
                    agent,
                    format!(
                        "task {id:?} is {status}{}",
                        by(task.origin.owner().as_ref())
                    ),
                    format!("`zeroclaw tasks cancel {id} --yes` ends it"),
                ));
            }
        }
        Ok(())
    }
}

fn by(process: Option<&ProcessIdentity>) -> String {
    process.map_or_else(String::new, |process| format!(" (pid {})", process.pid))
}

fn in_use(agent: &AgentId, by: String, hint: String) -> ServiceError {
    LifeError::InUse {
        agent: agent.clone(),
        by,
        hint,
    }
    .into()
}
