//! The knowledge graph.

use zeroclaw::model::{KnowledgeEdge, KnowledgeNode};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::knowledge;

use super::ImportRow;
use crate::doctor::record::kind;

/// Between the parts of an edge's key; `\u{1f}` is in no id.
const SEPARATOR: char = '\u{1f}';

impl ImportRow for KnowledgeNode {
    fn kind(&self) -> &'static str {
        kind::KNOWLEDGE_NODE
    }

    fn key(&self) -> String {
        self.node_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        knowledge::get_nodes(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            knowledge::upsert_node(tx, row).await?;
        }
        Ok(())
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        knowledge::upsert_node(tx, row).await
    }

    /// The later word wins.
    fn settled(stored: &Self, read: &Self) -> Option<Self> {
        (read.updated_at_ms > stored.updated_at_ms).then(|| read.clone())
    }

    fn absorbs(stored: &Self, read: &Self) -> bool {
        stored.updated_at_ms > read.updated_at_ms
    }
}

impl ImportRow for KnowledgeEdge {
    fn kind(&self) -> &'static str {
        kind::KNOWLEDGE_EDGE
    }

    fn key(&self) -> String {
        let Self {
            from_id,
            to_id,
            relation,
        } = self;
        format!("{from_id}{SEPARATOR}{to_id}{SEPARATOR}{relation}")
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let edges: Vec<Self> = keys
            .iter()
            .filter_map(|key| {
                let mut parts = key.splitn(3, SEPARATOR).map(str::to_owned);
                Some(Self {
                    from_id: parts.next()?,
                    to_id: parts.next()?,
                    relation: parts.next()?,
                })
            })
            .collect();
        knowledge::get_edges(conn, &edges).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        knowledge::insert_edges(tx, rows).await
    }
}
