//! What it takes to live through a task: asking for it, holding it, ending it.

use serde::{Deserialize, Serialize};

use super::{AgentId, ProcessIdentity, TaskOwnerKind, TaskStatus};

/// A task to be created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// Kind of work.
    pub owner_kind: TaskOwnerKind,
    /// What it is a run of.
    pub source_id: Option<String>,
    /// Who is to work.
    pub agent_id: Option<AgentId>,
    /// Name for people.
    pub label: Option<String>,
    /// The producer's own word for the kind of work.
    pub task_kind: Option<String>,
    /// The task that starts it.
    pub parent_task_id: Option<String>,
    /// Who asks: an agent for background work. It may ask after the task later, and so may its callers.
    pub originator_route: Option<String>,
    /// On whose behalf, a session's key for one; to be looked at, never to grant access.
    pub principal_id: Option<String>,
    /// Agents above the one that asks, the nearest first; `None` takes those of the parent.
    pub caller_chain: Option<Vec<String>>,
    /// The same key of the same producer is the same task.
    pub idempotency_key: Option<String>,
    /// Silence after which it is taken to have timed out; `None` for a producer that does not beat.
    pub heartbeat_timeout_ms: Option<i64>,
    /// JSON text of what the worker is to know.
    pub detail_json: Option<String>,
}

impl NewTask {
    /// One of a kind, with nothing else said.
    #[must_use]
    pub fn new(owner_kind: TaskOwnerKind) -> Self {
        Self {
            owner_kind,
            source_id: None,
            agent_id: None,
            label: None,
            task_kind: None,
            parent_task_id: None,
            originator_route: None,
            principal_id: None,
            caller_chain: None,
            idempotency_key: None,
            heartbeat_timeout_ms: None,
            detail_json: None,
        }
    }
}

/// The right to work on a task: every write of its worker names it, and one that was lost is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaim {
    /// The task.
    pub task_id: String,
    /// Number of the claim.
    pub fencing_token: i64,
    /// The process that works.
    pub owner: ProcessIdentity,
}

/// How a task ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// As what.
    pub status: TaskStatus,
    /// The producer's own word for it.
    pub status_detail: Option<String>,
    /// What it gave.
    pub output: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
}

impl TaskEnd {
    /// One that went well.
    #[must_use]
    pub fn succeeded(output: Option<String>) -> Self {
        Self {
            status: TaskStatus::Succeeded,
            status_detail: None,
            output,
            error: None,
        }
    }

    /// One that did not, and why.
    #[must_use]
    pub fn of(status: TaskStatus, error: impl Into<String>) -> Self {
        Self {
            status,
            status_detail: None,
            output: None,
            error: Some(error.into()),
        }
    }
}

/// What asking a task to stop did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// Nobody worked on it: it has ended.
    Cancelled,
    /// Its worker is asked to stop.
    Requested,
    /// It had ended before.
    AlreadyEnded,
}
