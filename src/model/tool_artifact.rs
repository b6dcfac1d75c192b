//! What tools were given and gave, where it is too large for a transcript.

use serde::{Deserialize, Serialize};

use super::text_enum;

/// Which side of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolArtifactKind {
    /// What the tool was given.
    Arguments,
    /// What it gave.
    Result,
}

text_enum!(ToolArtifactKind { Arguments => "arguments", Result => "result" });

/// A payload of a tool call to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToolArtifact {
    /// Run it belongs to.
    pub run_id: String,
    /// Identity within its run.
    pub artifact_id: String,
    /// Id or key of the session it goes with, where there is one.
    pub session_id: Option<String>,
    /// Which side of the call.
    pub kind: ToolArtifactKind,
    /// Which tool, which call; JSON text.
    pub metadata_json: String,
    /// Its bytes, at most [`MAX_ARTIFACT_BYTES`](super::MAX_ARTIFACT_BYTES).
    pub bytes: Vec<u8>,
}

/// A payload of a tool call, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolArtifact {
    /// Run it belongs to.
    pub run_id: String,
    /// Identity within its run; its event names it.
    pub artifact_id: String,
    /// Session it goes with, where there is one.
    pub session_id: Option<String>,
    /// Which side of the call.
    pub kind: ToolArtifactKind,
    /// Which tool, which call; JSON text.
    pub metadata_json: String,
    /// SHA-256 of the bytes, hex.
    pub sha256: String,
    /// Their number.
    pub size_bytes: i64,
    /// When it was made.
    pub created_at_ms: i64,
    /// The bytes; empty in a listing. Left out of JSON.
    #[serde(skip)]
    pub blob: Vec<u8>,
}
