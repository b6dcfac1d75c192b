//! Memories of an agent.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// A memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// Identity within its agent.
    pub memory_id: String,
    /// Name; one living memory a key.
    pub key: String,
    /// `core`, `daily`, `conversation` or the writer's own.
    pub category: String,
    /// Label.
    pub namespace: String,
    /// JSON text; `None` where the writer did not say.
    pub kind_json: Option<String>,
    /// 0 to 1.
    pub importance: Option<f64>,
    /// Exempt from decay and expiry.
    pub pinned: bool,
    /// False for notes whose origin declared them untrusted.
    pub is_trusted: bool,
    /// Where it was learned; a hint, not a reference.
    pub session_hint: Option<String>,
    /// Tenant label.
    pub tenant_id: Option<String>,
    /// Key or id of its successor; `None` while it holds.
    pub superseded_by: Option<String>,
    /// Provider of the vector, where known.
    pub embedding_provider: Option<String>,
    /// Model of the vector, where known.
    pub embedding_model: Option<String>,
    /// When it was stored.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// The first time as its origin wrote it.
    pub created_at_text: Option<String>,
    /// The second time as its origin wrote it.
    pub updated_at_text: Option<String>,
    /// When it expires; `None` for never.
    pub expires_at_ms: Option<i64>,
    /// What is remembered.
    pub content: String,
    /// Little-endian 32-bit floats; `None` where there is no vector. Left out of JSON.
    #[serde(skip)]
    pub embedding: Option<Vec<u8>>,
}

/// A memory that a search or a listing shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryHit {
    /// Owner.
    pub agent_id: AgentId,
    /// bm25 of SQLite's FTS5, the lower the better; `None` in a listing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<f64>,
    /// Dimensions of its vector; `None` without one.
    pub embedding_dims: Option<i64>,
    /// The memory itself.
    #[serde(flatten)]
    pub memory: MemoryRecord,
}

/// A memory to be stored under its key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NewMemory {
    /// Name; what it held before is replaced and kept as superseded.
    pub key: String,
    /// What is remembered.
    pub content: String,
    /// `core`, `daily`, `conversation` or the writer's own.
    #[serde(default = "core")]
    pub category: String,
    /// Label; `default` where the writer has none.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// 0 to 1.
    #[serde(default)]
    pub importance: Option<f64>,
    /// Exempt from decay and expiry.
    #[serde(default)]
    pub pinned: bool,
    /// Where it was learned; a hint, not a reference.
    #[serde(default)]
    pub session_hint: Option<String>,
    /// When it expires; `None` for never.
    #[serde(default)]
    pub expires_at_ms: Option<i64>,
    /// The caller's vector of it.
    #[serde(default)]
    pub vector: Option<Vec<f32>>,
    /// Provider of that vector.
    #[serde(default)]
    pub embedding_provider: Option<String>,
    /// Model of that vector.
    #[serde(default)]
    pub embedding_model: Option<String>,
}

fn core() -> String {
    "core".to_owned()
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// How many memories of an agent have expired: what a sweep deleted, or would delete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiredMemories {
    /// Owner.
    pub agent_id: AgentId,
    /// Memories.
    pub expired: u64,
}
