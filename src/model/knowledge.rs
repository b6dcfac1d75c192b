//! The knowledge graph of an install.

use serde::{Deserialize, Serialize};

/// Something that is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnowledgeNode {
    /// Identity.
    pub node_id: String,
    /// What kind of thing, in its writer's word.
    pub node_type: String,
    /// Name for people.
    pub title: String,
    /// What is known.
    pub content: String,
    /// Labels.
    pub tags: Vec<String>,
    /// The project it comes from.
    pub source_project: Option<String>,
    /// When it was first known.
    pub created_at_ms: Option<i64>,
    /// When it last changed.
    pub updated_at_ms: i64,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}

/// How two nodes belong together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KnowledgeEdge {
    /// Node it leads from.
    pub from_id: String,
    /// Node it leads to; neither need be there.
    pub to_id: String,
    /// What the first does to the second, in its writer's word.
    pub relation: String,
}
