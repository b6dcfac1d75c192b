//! The life of background work. Rows of `task_runs` are the only authority on it.
//!
//! Whoever works on a task holds a claim, numbered and with its process; each step is a compare-and-set on where the task
//! stands and on that claim, so ends never overwrite each other. Whoever asks after a task asks for itself or as an agent:
//! an agent sees what it has asked for and what the agents below it have. Keys of sessions grant nothing.
//!
//! A [`TaskLedger`] works for who holds the root and for workers beside it, over connections of their own.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::append::{check_name, invalid, new_id};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::{Db, WriteTx};
use crate::fs::process;
use crate::model::{
    AgentId, CancelOutcome, NewTask, Page, PageLimit, TaskClaim, TaskEnd, TaskOrigin,
    TaskOwnerKind, TaskRun, TaskStatus,
};
use crate::store::StoreError;
use crate::store::global::task::life::{self, Moment};
use crate::store::global::task::{self, TaskFilter};

pub use goal::{GoalBudget, GoalPause, NewGoal};
pub use handle::TaskHandle;
pub(super) use sweep::Outputs;
pub use sweep::{SweepReport, SweptTask};

mod goal;
mod handle;
mod settle;
mod sweep;

/// Most tasks above one: what goes deeper goes round in circles.
const MAX_DEPTH: i64 = 32;
/// Most agents that are remembered above the one that asks.
const MAX_CHAIN: usize = 64;
/// How often a task that is waited for is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The tasks of a root, as one asker may see and change them.
#[derive(Clone, Debug)]
pub struct TaskLedger {
    db: Arc<Db>,
    clock: Clock,
    /// `None` for the operator, who may all.
    asker: Option<AgentId>,
}

impl Service {
    /// The tasks of this root, for the operator.
    #[must_use]
    pub fn tasks(&self) -> TaskLedger {
        TaskLedger::new(Arc::clone(self.global()), self.clock().clone())
    }

    /// Claims a task of any agent for this process; `None` when somebody else has, or it has ended.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails or the task's agent cannot be opened.
    pub async fn claim_task(&self, task_id: &str) -> Result<Option<TaskHandle>, ServiceError> {
        let ledger = self.tasks();
        let agent = ledger.row(task_id).await?.agent_id;
        let agent_db = match &agent {
            Some(agent) => Some(self.agent(agent).await?),
            None => None,
        };
        ledger.hold(task_id, agent_db).await
    }
}

impl TaskLedger {
    pub(super) fn new(db: Arc<Db>, clock: Clock) -> Self {
        Self {
            db,
            clock,
            asker: None,
        }
    }

    /// The same as an agent may see it.
    #[must_use]
    pub fn as_agent(&self, agent: &AgentId) -> Self {
        Self {
            asker: Some(agent.clone()),
            ..self.clone()
        }
    }

    fn now(&self) -> Moment {
        Moment {
            now_ms: self.clock.now_ms(),
            uptime_ms: self.clock.uptime_ms(),
        }
    }

    /// Whether the asker may know of a task: by who asked for it and by the callers above, never by a session.
    fn may_see(&self, task: &TaskRun) -> bool {
        let Some(asker) = &self.asker else {
            return true;
        };
        let origin = &task.origin;
        let chain = origin.caller_chain.iter().flatten().map(String::as_str);
        origin
            .originator_route
            .as_deref()
            .into_iter()
            .chain(chain)
            .any(|alias| alias == asker.as_str())
    }

    /// Creates a task that waits to be claimed, or gives the one that the same producer made under the same key.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown parent, [`ServiceError::Invalid`] for a chain that is too deep.
    pub async fn create(&self, new: NewTask) -> Result<TaskRun, ServiceError> {
        for (what, name) in [
            ("idempotency key", &new.idempotency_key),
            ("originator", &new.originator_route),
        ] {
            if let Some(name) = name {
                check_name(what, name)?;
            }
        }
        let now_ms = self.clock.now_ms();
        self.db
            .write(move |tx| Box::pin(async move { create(tx, new, now_ms).await }))
            .await
    }

    /// One task.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, and for what the asker may not know of.
    pub async fn get(&self, task_id: &str) -> Result<TaskRun, ServiceError> {
        let found = self.row(task_id).await?;
        if self.may_see(&found) {
            Ok(found)
        } else {
            Err(not_found(task_id))
        }
    }

    async fn row(&self, task_id: &str) -> Result<TaskRun, ServiceError> {
        let mut conn = self.db.read().await?;
        let found = task::get_many(&mut conn, &[task_id])
            .await
            .in_db(&self.db)?;
        found.into_iter().next().ok_or_else(|| not_found(task_id))
    }

    /// Lists what the asker may know of, newest start first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor or when SQLite fails.
    pub async fn list(
        &self,
        filter: &TaskFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<TaskRun>, ServiceError> {
        let filter = TaskFilter {
            visible_to: self.asker.clone().or_else(|| filter.visible_to.clone()),
            ..filter.clone()
        };
        let mut conn = self.db.read().await?;
        let page = task::list(&mut conn, &filter, before, limit);
        page.await.in_db(&self.db)
    }

    /// Waits until a task has ended; `None` when it has not by then.
    ///
    /// * `timeout`: by a clock that nobody sets.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn wait(
        &self,
        task_id: &str,
        timeout: Duration,
    ) -> Result<Option<TaskRun>, ServiceError> {
        let until = Instant::now() + timeout;
        loop {
            let found = self.get(task_id).await?;
            if found.status.is_end() {
                return Ok(Some(found));
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            tokio::time::sleep(LOOK_AGAIN.min(until - now)).await;
        }
    }

    /// Ends a task that nobody works on, or asks its worker to stop.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn cancel(&self, task_id: &str) -> Result<CancelOutcome, ServiceError> {
        let id = self.get(task_id).await?.task_id;
        let now_ms = self.clock.now_ms();
        let done = self.db.write(move |tx| {
            Box::pin(async move {
                let Some(seen) = one(tx, &id).await? else {
                    return Ok(CancelOutcome::AlreadyEnded);
                };
                if seen.status == TaskStatus::Running {
                    life::request_cancel(tx, &id).await?;
                    return Ok(CancelOutcome::Requested);
                }
                let end = TaskEnd::of(TaskStatus::Cancelled, "cancelled before it began");
                let is_ended = life::end_as_seen(tx, &seen, &end, now_ms).await?;
                Ok(if is_ended {
                    CancelOutcome::Cancelled
                } else {
                    CancelOutcome::AlreadyEnded
                })
            })
        });
        let outcome: Result<_, StoreError> = done.await;
        Ok(outcome?)
    }

    /// Makes a task that waits for something one that can be claimed; says whether it waited.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub async fn resume(&self, task_id: &str) -> Result<bool, ServiceError> {
        let id = self.get(task_id).await?.task_id;
        self.db
            .write(move |tx| Box::pin(async move { Ok(life::resume(tx, &id).await?) }))
            .await
    }

    /// Claims the oldest task of a kind that waits; `None` when there is none.
    ///
    /// * `agent`: whose, and where its output goes.
    pub(super) async fn hold_next(
        &self,
        kind: TaskOwnerKind,
        agent: &AgentId,
        agent_db: &Arc<Db>,
    ) -> Result<Option<TaskHandle>, ServiceError> {
        let (agent, owner, at) = (agent.clone(), process::own(), self.now());
        let claimed = self.db.write(move |tx| {
            Box::pin(async move {
                match life::next_pending(tx, kind, Some(&agent)).await? {
                    Some(id) => life::claim(tx, &id, &owner, at).await,
                    None => Ok(None),
                }
            })
        });
        let claimed: Result<Option<TaskClaim>, StoreError> = claimed.await;
        let agent_db = Some(Arc::clone(agent_db));
        Ok(claimed?.map(|claim| TaskHandle::new(self.clone(), agent_db, claim)))
    }

    /// Claims one task; `None` when somebody else has, or it has ended.
    pub(super) async fn hold(
        &self,
        task_id: &str,
        agent_db: Option<Arc<Db>>,
    ) -> Result<Option<TaskHandle>, ServiceError> {
        let (id, owner, at) = (task_id.to_owned(), process::own(), self.now());
        let claimed = self
            .db
            .write(move |tx| Box::pin(async move { life::claim(tx, &id, &owner, at).await }));
        let claimed: Result<Option<TaskClaim>, StoreError> = claimed.await;
        Ok(claimed?.map(|claim| TaskHandle::new(self.clone(), agent_db, claim)))
    }
}

fn not_found(task_id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "task",
        name: task_id.to_owned(),
    }
}

async fn one(tx: &mut WriteTx<'_>, task_id: &str) -> Result<Option<TaskRun>, StoreError> {
    let found = task::get_many(tx, &[task_id]).await?;
    Ok(found.into_iter().next())
}

async fn create(tx: &mut WriteTx<'_>, new: NewTask, now_ms: i64) -> Result<TaskRun, ServiceError> {
    if let Some(key) = &new.idempotency_key {
        let asker = new.originator_route.as_deref();
        let known = life::by_idempotency_key(tx, new.owner_kind, asker, key).await?;
        if let Some(known) = known
            && let Some(known) = one(tx, &known).await?
        {
            return Ok(known);
        }
    }
    let parent = match &new.parent_task_id {
        Some(id) => Some(one(tx, id).await?.ok_or_else(|| not_found(id))?),
        None => None,
    };
    let depth = parent.as_ref().map_or(0, |parent| parent.origin.depth + 1);
    if depth > MAX_DEPTH {
        return Err(invalid("task", format!("stands below {MAX_DEPTH} others")));
    }
    let mut chain = new.caller_chain;
    if let Some(parent) = parent.filter(|_| chain.is_none()) {
        let asker = parent.origin.originator_route.into_iter();
        chain = Some(
            asker
                .chain(parent.origin.caller_chain.into_iter().flatten())
                .collect(),
        );
    }
    if chain.as_ref().is_some_and(|chain| chain.len() > MAX_CHAIN) {
        return Err(invalid(
            "caller chain",
            format!("is longer than {MAX_CHAIN}"),
        ));
    }
    let task = TaskRun {
        task_id: new_id(),
        owner_kind: new.owner_kind,
        source_id: new.source_id,
        agent_id: new.agent_id,
        label: new.label,
        status: TaskStatus::Pending,
        status_detail: None,
        created_at_ms: now_ms,
        started_at_ms: None,
        ended_at_ms: None,
        duration_ms: None,
        output: None,
        error: None,
        detail_json: new.detail_json,
        origin: TaskOrigin {
            task_kind: new.task_kind,
            parent_task_id: new.parent_task_id,
            originator_route: new.originator_route,
            principal_id: new.principal_id,
            caller_chain: chain,
            depth,
            idempotency_key: new.idempotency_key,
            heartbeat_timeout_ms: new.heartbeat_timeout_ms,
            ..TaskOrigin::default()
        },
    };
    task::insert_new(tx, std::slice::from_ref(&task)).await?;
    Ok(task)
}
