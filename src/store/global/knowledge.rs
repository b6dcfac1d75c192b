//! The knowledge graph: `knowledge_nodes`, `knowledge_edges`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{KnowledgeEdge, KnowledgeNode, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{decoded, keys_json, parse_time_cursor, time_cursor};

fn read_node(row: &SqliteRow) -> Result<KnowledgeNode, StoreError> {
    let node_id: String = row.try_get("node_id")?;
    let tags: String = row.try_get("tags_json")?;
    Ok(KnowledgeNode {
        node_type: row.try_get("node_type")?,
        title: row.try_get("title")?,
        content: row.try_get("content")?,
        tags: decoded(
            |json| serde_json::from_str(json).ok(),
            &tags,
            "knowledge_nodes",
            "tags_json",
            &node_id,
        )?,
        source_project: row.try_get("source_project")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        detail_json: row.try_get("detail_json")?,
        node_id,
    })
}

fn read_edge(row: &SqliteRow) -> Result<KnowledgeEdge, StoreError> {
    Ok(KnowledgeEdge {
        from_id: row.try_get("from_id")?,
        to_id: row.try_get("to_id")?,
        relation: row.try_get("relation")?,
    })
}

/// Writes a node; one of that id is written over.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn upsert_node(tx: &mut WriteTx<'_>, node: &KnowledgeNode) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO knowledge_nodes
             (node_id, node_type, title, content, tags_json, source_project, created_at_ms, updated_at_ms, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (node_id) DO UPDATE SET
             node_type = excluded.node_type, title = excluded.title, content = excluded.content,
             tags_json = excluded.tags_json, source_project = excluded.source_project,
             created_at_ms = excluded.created_at_ms, updated_at_ms = excluded.updated_at_ms,
             detail_json = excluded.detail_json",
    )
    .bind(&node.node_id)
    .bind(&node.node_type)
    .bind(&node.title)
    .bind(&node.content)
    .bind(serde_json::Value::from(node.tags.clone()).to_string())
    .bind(&node.source_project)
    .bind(node.created_at_ms)
    .bind(node.updated_at_ms)
    .bind(&node.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The nodes of these ids, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_nodes(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<KnowledgeNode>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM knowledge_nodes WHERE node_id IN (SELECT value FROM json_each(?1))",
    )
    .bind(keys_json(ids))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_node).collect()
}

/// Nodes, newest update first; of one type, where one is given.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list_nodes(
    conn: &mut SqliteConnection,
    node_type: Option<&str>,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<KnowledgeNode>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT * FROM knowledge_nodes
         WHERE (?1 IS NULL OR node_type = ?1) AND (?2 IS NULL OR (updated_at_ms, node_id) < (?2, ?3))
         ORDER BY updated_at_ms DESC, node_id DESC LIMIT ?4",
    )
    .bind(node_type)
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let nodes = rows.iter().map(read_node).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(nodes, limit, |node| {
        time_cursor(node.updated_at_ms, &node.node_id)
    }))
}

/// Inserts edges.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or an edge is there already.
pub async fn insert_edges(tx: &mut WriteTx<'_>, edges: &[KnowledgeEdge]) -> Result<(), StoreError> {
    for edge in edges {
        sqlx::query("INSERT INTO knowledge_edges (from_id, to_id, relation) VALUES (?1, ?2, ?3)")
            .bind(&edge.from_id)
            .bind(&edge.to_id)
            .bind(&edge.relation)
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

/// The edges that lead from or to one of these nodes, at most `limit`.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn edges_at(
    conn: &mut SqliteConnection,
    node_id: &str,
    limit: PageLimit,
) -> Result<Vec<KnowledgeEdge>, StoreError> {
    let rows = sqlx::query(
        "SELECT from_id, to_id, relation FROM knowledge_edges WHERE from_id = ?1
         UNION SELECT from_id, to_id, relation FROM knowledge_edges WHERE to_id = ?1
         ORDER BY from_id, to_id, relation LIMIT ?2",
    )
    .bind(node_id)
    .bind(i64::from(limit.rows()))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_edge).collect()
}

/// Those of these edges that are there, in no order.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_edges(
    conn: &mut SqliteConnection,
    edges: &[KnowledgeEdge],
) -> Result<Vec<KnowledgeEdge>, StoreError> {
    let triples: Vec<[&str; 3]> = edges
        .iter()
        .map(|edge| {
            [
                edge.from_id.as_str(),
                edge.to_id.as_str(),
                edge.relation.as_str(),
            ]
        })
        .collect();
    let rows = sqlx::query(
        "SELECT e.from_id, e.to_id, e.relation FROM json_each(?1) wanted
         JOIN knowledge_edges e ON e.from_id = wanted.value ->> 0 AND e.to_id = wanted.value ->> 1
              AND e.relation = wanted.value ->> 2",
    )
    .bind(serde_json::json!(triples).to_string())
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_edge).collect()
}
