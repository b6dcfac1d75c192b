//! What may be computed again.

use serde::{Deserialize, Serialize};

use super::AgentId;

/// Most bytes of one cached value, its JSON and its bytes together: 16 MiB.
pub const MAX_CACHE_BYTES: usize = 16 * 1024 * 1024;

/// A value to cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheValue {
    /// JSON text.
    pub value_json: Option<String>,
    /// Bytes.
    pub blob: Option<Vec<u8>>,
}

/// A cached value as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheEntry {
    /// Owner.
    pub agent_id: AgentId,
    /// What it is a cache of.
    pub scope: String,
    /// Its name in its scope.
    pub key: String,
    /// Size of its JSON and its bytes together.
    pub size_bytes: i64,
    /// When it was stored.
    pub updated_at_ms: i64,
    /// From when on it is not there; `None` where only a clearing takes it.
    pub expires_at_ms: Option<i64>,
}

/// What a clearing of caches took, or would take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCleared {
    /// Owner.
    pub agent_id: AgentId,
    /// Values.
    pub entries: u64,
}
