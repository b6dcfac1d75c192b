//! What runs gave that is more than a line.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// An output of a run, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunArtifact {
    /// What it is and whose.
    #[serde(flatten)]
    pub about: ArtifactInfo,
    /// Its bytes. Left out of JSON.
    #[serde(skip)]
    pub blob: Vec<u8>,
}

/// Most bytes of one artifact that is put: 64 MiB. It is checked as a whole before its first byte leaves, and so held.
pub const MAX_ARTIFACT_BYTES: usize = 64 * 1024 * 1024;

/// An output of a run to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRunArtifact {
    /// The task, or another run, that gave it.
    pub run_id: String,
    /// Its name among the outputs of that run.
    pub path: String,
    /// What it is.
    pub kind: String,
    /// JSON text of what its producer says of it.
    pub metadata_json: String,
    /// Its bytes, at most [`MAX_ARTIFACT_BYTES`].
    pub bytes: Vec<u8>,
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
