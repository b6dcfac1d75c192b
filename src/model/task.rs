//! Background work.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// What kind of work a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOwnerKind {
    /// Plain background work.
    Task,
    /// A run of a cron job.
    Cron,
    /// A background delegate.
    Delegate,
    /// A subagent.
    Subagent,
    /// A heartbeat run.
    Heartbeat,
}

text_enum!(TaskOwnerKind {
    Task => "task",
    Cron => "cron",
    Delegate => "delegate",
    Subagent => "subagent",
    Heartbeat => "heartbeat",
});

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Under way.
    Running,
    /// Waiting for something.
    Waiting,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Ended by somebody.
    Cancelled,
    /// Its owner is gone and nobody knows.
    Lost,
    /// Took too long.
    TimedOut,
}

text_enum!(TaskStatus {
    Pending => "pending",
    Running => "running",
    Waiting => "waiting",
    Succeeded => "succeeded",
    Failed => "failed",
    Cancelled => "cancelled",
    Lost => "lost",
    TimedOut => "timed_out",
});

/// A row of the task ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRun {
    /// Identity.
    pub task_id: String,
    /// Kind of work.
    pub owner_kind: TaskOwnerKind,
    /// What it is a run of: the job id for cron.
    pub source_id: Option<String>,
    /// Who works.
    pub agent_id: Option<AgentId>,
    /// Name for people.
    pub label: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// The producer's own word for the outcome.
    pub status_detail: Option<String>,
    /// When it was recorded.
    pub created_at_ms: i64,
    /// When it began.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// How long it took.
    pub duration_ms: Option<i64>,
    /// What it gave.
    pub output: Option<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}
