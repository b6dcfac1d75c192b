//! Runs of standing procedures.

use serde::{Deserialize, Serialize};

use super::text_enum;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowStatus {
    /// Waits for a driver: not begun, or to be gone on with.
    Pending,
    /// Under way.
    Running,
    /// A person must approve a step.
    WaitingApproval,
    /// A person must let it go on.
    Paused,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Ended by somebody.
    Cancelled,
    /// Its driver is gone, and nobody took it up.
    Interrupted,
}

text_enum!(FlowStatus {
    Pending => "pending",
    Running => "running",
    WaitingApproval => "waiting_approval",
    Paused => "paused",
    Completed => "completed",
    Failed => "failed",
    Cancelled => "cancelled",
    Interrupted => "interrupted",
});

impl FlowStatus {
    /// Every form, for help.
    pub const WORDS: &'static [&'static str] = &[
        "pending",
        "running",
        "waiting_approval",
        "paused",
        "completed",
        "failed",
        "cancelled",
        "interrupted",
    ];

    /// Whether nothing follows.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A run of a procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRun {
    /// Identity.
    pub flow_id: String,
    /// Name of the procedure.
    pub controller_id: String,
    /// Grows with each change.
    pub revision: i64,
    /// Where it stands.
    pub status: FlowStatus,
    /// The driver's own word where it says more.
    pub status_detail: Option<String>,
    /// What set it off.
    pub trigger_source: Option<String>,
    /// The step it is at, from 1.
    pub current_step: Option<i64>,
    /// How many steps it has.
    pub total_steps: Option<i64>,
    /// When it began.
    pub started_at_ms: Option<i64>,
    /// Since when it waits for a person.
    pub waiting_since_ms: Option<i64>,
    /// When it last went on.
    pub updated_at_ms: i64,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// The whole run as JSON text; `None` in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_json: Option<String>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEvent {
    /// Identity.
    pub event_id: String,
    /// The run.
    pub flow_id: String,
    /// Order among the run's events.
    pub seq: i64,
    /// When.
    pub at_ms: Option<i64>,
    /// What, in its writer's word.
    pub kind: String,
    /// Who did it.
    pub actor: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// All of it, JSON text.
    pub payload_json: String,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalStatus {
    /// Nobody has decided.
    Pending,
    /// Accepted and carried out.
    Applied,
    /// Refused by a person.
    Rejected,
    /// Set aside as unsafe or not understood.
    Quarantined,
    /// What it would change has changed meanwhile.
    Stale,
}

text_enum!(ProposalStatus {
    Pending => "pending",
    Applied => "applied",
    Rejected => "rejected",
    Quarantined => "quarantined",
    Stale => "stale",
});

/// A procedure that a run proposes to make or to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowProposal {
    /// Identity.
    pub proposal_id: String,
    /// Name of the procedure.
    pub controller_id: String,
    /// The run that proposes it.
    pub source_flow_id: Option<String>,
    /// What it would do, in its writer's word.
    pub kind: String,
    /// What became of it.
    pub status: ProposalStatus,
    /// The writer's own word where it says more.
    pub status_detail: Option<String>,
    /// Why.
    pub status_reason: Option<String>,
    /// When it was made.
    pub created_at_ms: Option<i64>,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// When it was carried out.
    pub applied_at_ms: Option<i64>,
    /// By whom.
    pub applied_by: Option<String>,
    /// The whole proposal as JSON text; `None` in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal_json: Option<String>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}
