//! What runs gave that is more than a line.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// An output of a run, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunArtifact {
    /// What it is and whose.
    pub about: ArtifactInfo,
    /// Its bytes.
    pub blob: Vec<u8>,
}

/// What there is to know of an output without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactInfo {
    /// The task, or another run, that gave it.
    pub run_id: String,
    /// Its name among the outputs of that run.
    pub path: String,
    /// What it is.
    pub kind: String,
    /// JSON text of what its producer said of it.
    pub metadata_json: String,
    /// SHA-256 of its bytes, hex.
    pub sha256: String,
    /// How many bytes.
    pub size_bytes: i64,
    /// When it was made.
    pub created_at_ms: i64,
}

/// An output and the agent that keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptArtifact {
    /// The agent.
    pub agent_id: AgentId,
    /// The output.
    #[serde(flatten)]
    pub about: ArtifactInfo,
}
