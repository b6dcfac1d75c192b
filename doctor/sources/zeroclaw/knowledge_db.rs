//! `knowledge.db`: the knowledge graph.
//!
//! Written by: the knowledge tools since 0.5.0, in the root or where `knowledge.db_path` says. A node:
//! `('n1', 'decision', 'Heating', 'Off at night', 'house,energy', '2026-08-22T21:44:00+00:00', …, NULL)`, its
//! tags joined by commas; an edge: `('n1', 'n2', 'uses')`. It is an install's, no agent's; `nodes_fts` is derived.
//!
//! Known faults: edges whose node is gone, in files written with foreign keys off: they are kept, and named.

use futures_util::TryStreamExt;
use sqlx::Row;
use zeroclaw::model::{KnowledgeEdge, KnowledgeNode, Tier};

use super::super::lenient::{Lenient, sidecar};
use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::record::{Item, Refusal, kind};

const NODE: [&str; 8] = [
    "id",
    "node_type",
    "title",
    "content",
    "tags",
    "created_at",
    "updated_at",
    "source_project",
];
/// Edges without a node that are named, at most.
const MAX_DANGLING: i64 = 200;

const EDGE: [&str; 3] = ["from_id", "to_id", "relation"];

/// Streams a store's nodes, then its edges.
pub(crate) async fn read<S: Sink>(db: &mut LegacyDb, sink: &mut S) -> Result<(), ReadError> {
    let columns = db.columns("nodes").await?;
    if !columns.iter().any(|column| column == "node_type") {
        return Err(ReadError::Format {
            reason: "it has no table nodes".to_owned(),
        });
    }
    let mut out = Batcher::new(sink);
    nodes(db, &columns, &mut out).await?;
    if !db.columns("edges").await?.is_empty() {
        edges(db, &mut out).await?;
        dangling(db, &mut out).await?;
    }
    out.flush().await
}

async fn nodes<S: Sink>(
    db: &mut LegacyDb,
    columns: &[String],
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let wanted = sidecar::with_unknown(&NODE, columns);
    let table = Table {
        name: "nodes",
        wanted: &wanted,
        order: "id",
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::KNOWLEDGE_NODE, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let place = format!("table nodes, row {}", values.rowid);
        let bytes = values.bytes(3).map_or(0, <[u8]>::len);
        let (node, odd) = match node(&values, &wanted) {
            Ok(taken) => taken,
            Err(reason) => {
                let refusal = Refusal {
                    kind: kind::KNOWLEDGE_NODE,
                    place,
                    reason,
                    raw: values.json(&wanted, &[]).into_bytes(),
                };
                return out.push(Item::Refused(refusal), bytes).await;
            }
        };
        let record = Item::Record {
            tier: Tier::Global,
            record: node.into(),
        };
        out.push(record, bytes).await?;
        for message in odd {
            out.push(Item::odd(&place, message), 0).await?;
        }
        Ok(())
    });
    if let Some(reason) = damage.await? {
        let place = "table nodes".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    Ok(())
}

fn node(values: &Values, wanted: &[&str]) -> Result<(KnowledgeNode, Vec<String>), String> {
    let node_id = values.hint(0).ok_or("its id is missing or not UTF-8")?;
    let content = match values.text(3) {
        Ok(content) => content.ok_or("its content is missing")?.to_owned(),
        Err(_) => return Err("its content is not UTF-8".to_owned()),
    };
    let mut row = Lenient::of(values, wanted);
    let created_at_ms = row.time(5);
    let node = KnowledgeNode {
        node_id,
        node_type: row.text(1).unwrap_or_default(),
        title: row.text(2).unwrap_or_default(),
        content,
        tags: tags(&row.text(4).unwrap_or_default()),
        created_at_ms,
        updated_at_ms: row.time(6).or(created_at_ms).unwrap_or(0),
        source_project: row.text(7),
        detail_json: sidecar::of(values, wanted, NODE.len()),
    };
    Ok((node, row.odd))
}

fn tags(joined: &str) -> Vec<String> {
    joined
        .split(',')
        .map(str::trim)
        .filter(|tag| !tag.is_empty())
        .map(str::to_owned)
        .collect()
}

async fn edges<S: Sink>(db: &mut LegacyDb, out: &mut Batcher<'_, S>) -> Result<(), ReadError> {
    let table = Table {
        name: "edges",
        wanted: &EDGE,
        order: "from_id, to_id, relation",
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::KNOWLEDGE_EDGE, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let [Some(from_id), Some(to_id), Some(relation)] =
            [0, 1, 2].map(|column| values.hint(column))
        else {
            let refusal = Refusal {
                kind: kind::KNOWLEDGE_EDGE,
                place: format!("table edges, row {}", values.rowid),
                reason: "an end or its relation is missing or not UTF-8".to_owned(),
                raw: values.json(&EDGE, &[]).into_bytes(),
            };
            return out.push(Item::Refused(refusal), 128).await;
        };
        let edge = KnowledgeEdge {
            from_id,
            to_id,
            relation,
        };
        let record = Item::Record {
            tier: Tier::Global,
            record: edge.into(),
        };
        out.push(record, 128).await
    });
    if let Some(reason) = damage.await? {
        let place = "table edges".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    Ok(())
}

/// Names edges whose node is not there. Of a damaged store nothing more is said than its damage.
async fn dangling<S: Sink>(db: &mut LegacyDb, out: &mut Batcher<'_, S>) -> Result<(), ReadError> {
    let mut rows = sqlx::query(
        "SELECT rowid, CAST(from_id AS BLOB) FROM edges
             WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = edges.from_id)
         UNION ALL SELECT rowid, CAST(to_id AS BLOB) FROM edges
             WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = edges.to_id)
         LIMIT ?1",
    )
    .bind(MAX_DANGLING)
    .fetch(&mut db.conn);
    while let Ok(Some(row)) = rows.try_next().await {
        let rowid: i64 = row.try_get(0)?;
        let id: Vec<u8> = row.try_get(1)?;
        let id = String::from_utf8_lossy(&id);
        let note = Item::Note {
            code: "edge-without-node",
            place: format!("table edges, row {rowid}"),
            message: format!("there is no node {id}; the edge is kept"),
        };
        out.push(note, 0).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_what_stands_between_commas() {
        assert_eq!(tags("house, energy,,Ёлка "), ["house", "energy", "Ёлка"]);
        assert!(tags("").is_empty());
    }
}
