//! The knowledge graph.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{KnowledgeEdge, KnowledgeNode, MAX_PAGE, Page, PageLimit};
use crate::store::global::knowledge;

/// A node and how it belongs to others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnowledgeOverview {
    /// The node.
    pub node: KnowledgeNode,
    /// Edges from and to it: at most [`MAX_PAGE`].
    pub edges: Vec<KnowledgeEdge>,
}

impl Service {
    pub(super) async fn list_knowledge(
        &self,
        node_type: Option<&str>,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<KnowledgeNode>, ServiceError> {
        let mut conn = self.global().read().await?;
        knowledge::list_nodes(&mut conn, node_type, before, limit)
            .await
            .in_db(self.global())
    }

    pub(super) async fn show_knowledge(
        &self,
        node_id: &str,
    ) -> Result<KnowledgeOverview, ServiceError> {
        let mut conn = self.global().read().await?;
        let nodes = knowledge::get_nodes(&mut conn, &[node_id])
            .await
            .in_db(self.global())?;
        let node = nodes.into_iter().next().ok_or(ServiceError::NotFound {
            what: "node",
            name: node_id.to_owned(),
        })?;
        let edges = knowledge::edges_at(&mut conn, node_id, PageLimit::from(MAX_PAGE))
            .await
            .in_db(self.global())?;
        Ok(KnowledgeOverview { node, edges })
    }
}
