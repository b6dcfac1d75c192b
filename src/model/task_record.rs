//! What a task has beside its row: whom to tell, its goal, how it goes on, how it was to end.

use serde::{Deserialize, Serialize};

/// Whom to tell of a task's end, and whether they were told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskDelivery {
    /// The task.
    pub task_id: String,
    /// JSON text of where the request came from; `None` where nobody waits.
    pub requester_origin_json: Option<String>,
    /// Whether they were told.
    pub is_delivered: bool,
    /// When they were last told of something.
    pub last_notified_event_at_ms: Option<i64>,
}

/// What a task is to reach, within which limits, and why it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoalTask {
    /// The task.
    pub task_id: String,
    /// What it is to reach.
    pub objective: String,
    /// Tokens it may use.
    pub effective_token_limit: Option<i64>,
    /// US dollars it may cost.
    pub effective_cost_limit_usd: Option<f64>,
    /// Why it waits; `None` while it does not.
    pub pause_reason: Option<String>,
    /// The same for people.
    pub pause_description: Option<String>,
    /// JSON array of what stands in the way.
    pub blockers_json: String,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}

/// Where and to whom a task goes on once it may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskContinuation {
    /// The task.
    pub task_id: String,
    /// JSON text: channel, target, sender, thread.
    pub context_json: String,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}

/// How a task was to end, decided before its output was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSettlement {
    /// The task.
    pub task_id: String,
    /// Number of the process that decided.
    pub owner_pid: i64,
    /// When that process started, in the form of its system.
    pub owner_start_identity: Option<String>,
    /// The boot, or the run of the program, that the process belongs to.
    pub owner_boot_id: String,
    /// The producer's own word for the end, which need not be a status of ours.
    pub desired_status: String,
    /// File the output was to be in.
    pub artifact_path: String,
    /// What the task was to say of its output.
    pub artifact_ref: Option<String>,
    /// SHA-256 of the exact bytes of that file, hex.
    pub artifact_sha256: String,
    /// What went wrong.
    pub terminal_error: Option<String>,
    /// When it was decided; `None` where its producer did not say.
    pub created_at_ms: Option<i64>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}
