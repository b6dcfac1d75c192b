//! Background work.

use serde::{Deserialize, Serialize};

use super::{AgentId, ProcessIdentity, text_enum};

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

/// Whether a task is to stop before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelState {
    /// Nobody asked.
    #[default]
    None,
    /// Somebody asked, and the worker does not know yet.
    Requested,
    /// The worker knows.
    Acknowledged,
}

text_enum!(CancelState {
    None => "none",
    Requested => "requested",
    Acknowledged => "acknowledged",
});

impl TaskStatus {
    /// Whether it ended so: an end is never overwritten.
    #[must_use]
    pub fn is_end(self) -> bool {
        !matches!(self, Self::Pending | Self::Running | Self::Waiting)
    }
}

/// One thing that a worker said of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProgress {
    /// When.
    pub at_ms: i64,
    /// What.
    pub text: String,
}

/// Who asked for a task, which process runs it and what that last said; empty for work that nobody asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOrigin {
    /// The producer's own word for the kind of work, where it says more than [`TaskOwnerKind`].
    pub task_kind: Option<String>,
    /// The task that started it.
    pub parent_task_id: Option<String>,
    /// Who asked: an agent for background work, a route of a channel for what people asked.
    pub originator_route: Option<String>,
    /// On whose behalf, as its producer knew them; never grants access.
    pub principal_id: Option<String>,
    /// Agents that may ask after it, the nearest caller first; `None` where none was recorded.
    pub caller_chain: Option<Vec<String>>,
    /// How many tasks stand above it.
    pub depth: i64,
    /// The same key of the same producer is the same task.
    pub idempotency_key: Option<String>,
    /// Number of the process that runs it.
    pub execution_owner_pid: Option<i64>,
    /// When that process started, in the form of its system.
    pub execution_owner_start_identity: Option<String>,
    /// The boot, or the run of the program, that the process belongs to.
    pub execution_owner_boot_id: Option<String>,
    /// Last sign of life; `None` for producers that give none.
    pub heartbeat_at_ms: Option<i64>,
    /// Whether it is to stop.
    pub cancel_state: CancelState,
    /// Number of the last claim; 0 for what was never claimed.
    #[serde(default)]
    pub fencing_token: i64,
    /// The last sign of life by the time since the owner's boot.
    #[serde(default)]
    pub heartbeat_uptime_ms: Option<i64>,
    /// Silence after which it is taken to have timed out; `None` for producers that do not beat.
    #[serde(default)]
    pub heartbeat_timeout_ms: Option<i64>,
    /// What its worker last said of it, oldest first.
    #[serde(default)]
    pub progress: Vec<TaskProgress>,
}

impl TaskOrigin {
    /// The process that runs it; `None` where none does, or what is written down can be none.
    #[must_use]
    pub fn owner(&self) -> Option<ProcessIdentity> {
        ProcessIdentity::from_columns(
            self.execution_owner_pid?,
            self.execution_owner_start_identity.as_deref(),
            self.execution_owner_boot_id.as_deref(),
        )
    }

    /// Says which process runs it.
    pub fn set_owner(&mut self, owner: &ProcessIdentity) {
        self.execution_owner_pid = Some(owner.pid_column());
        self.execution_owner_start_identity = owner.start_column();
        self.execution_owner_boot_id.clone_from(&owner.boot_id);
    }
}

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
    /// Who asked, and which process runs it.
    #[serde(flatten)]
    pub origin: TaskOrigin,
}
