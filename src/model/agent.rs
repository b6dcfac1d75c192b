//! An agent as the registry knows it.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// Whether an agent still takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    /// Configured; may run.
    Active,
    /// Kept for its history; searchable, never run.
    Retired,
}

text_enum!(AgentStatus { Active => "active", Retired => "retired" });

/// A row of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Its name.
    pub agent_id: AgentId,
    /// Its database, relative to the root.
    pub path: String,
    /// Schema version last seen in its database.
    pub schema_version: i64,
    /// Active or retired.
    pub status: AgentStatus,
    /// Why it is retired; `None` while active.
    pub status_reason: Option<String>,
    /// When the registry first knew it.
    pub created_at_ms: i64,
    /// When its database was last opened for writing.
    pub last_seen_at_ms: i64,
    /// Size of its database when last seen, bytes.
    pub size_bytes: Option<i64>,
}
