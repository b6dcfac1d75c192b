//! Memories and their word search: `memories`, `memories_fts`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::search::{match_expression, needs_substring};
use crate::db::{WriteTx, bound};
use crate::model::{AgentId, MemoryHit, MemoryRecord, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{parse_time_cursor, time_cursor, values_sql};

pub mod change;
pub mod recall;

/// Schema version that brought the table; older ones hold no memories.
pub const SINCE_SCHEMA: i64 = 4;

/// Most memories of one insert.
pub const MAX_INSERT: usize = 500;

const COLUMNS: &str = "m.memory_id, m.key, m.category, m.namespace, m.kind_json, m.importance, m.pinned, m.is_trusted,
    m.session_hint, m.tenant_id, m.superseded_by, m.embedding_provider, m.embedding_model, m.created_at_ms,
    m.updated_at_ms, m.created_at_text, m.updated_at_text, m.expires_at_ms, m.content";

/// Not expired at the instant ?3; all when it is NULL.
const LIVING: &str =
    "(?3 IS NULL OR m.pinned = 1 OR m.expires_at_ms IS NULL OR m.expires_at_ms > ?3)";

#[derive(Iden)]
enum Memories {
    MemoryId,
    Category,
    SupersededBy,
    UpdatedAtMs,
    Pinned,
    ExpiresAtMs,
}

/// Which memories to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryFilter {
    /// Only of this category.
    pub category: Option<String>,
    /// Superseded ones too.
    pub with_superseded: bool,
    /// Without those that have expired by then, pinned ones apart; `None` lists them too.
    pub living_at_ms: Option<i64>,
}

fn read(row: &SqliteRow, embedding: Option<Vec<u8>>) -> Result<MemoryRecord, StoreError> {
    Ok(MemoryRecord {
        memory_id: row.try_get("memory_id")?,
        key: row.try_get("key")?,
        category: row.try_get("category")?,
        namespace: row.try_get("namespace")?,
        kind_json: row.try_get("kind_json")?,
        importance: row.try_get("importance")?,
        pinned: row.try_get::<i64, _>("pinned")? != 0,
        is_trusted: row.try_get::<i64, _>("is_trusted")? != 0,
        session_hint: row.try_get("session_hint")?,
        tenant_id: row.try_get("tenant_id")?,
        superseded_by: row.try_get("superseded_by")?,
        embedding_provider: row.try_get("embedding_provider")?,
        embedding_model: row.try_get("embedding_model")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        created_at_text: row.try_get("created_at_text")?,
        updated_at_text: row.try_get("updated_at_text")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        content: row.try_get("content")?,
        embedding,
    })
}

fn read_hit(row: &SqliteRow, agent_id: &AgentId) -> Result<MemoryHit, StoreError> {
    Ok(MemoryHit {
        agent_id: agent_id.clone(),
        rank: row.try_get("rank")?,
        embedding_dims: row.try_get("embedding_dims")?,
        memory: read(row, None)?,
    })
}

/// Inserts up to [`MAX_INSERT`] memories. The word index is not touched: see [`rebuild`].
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, an id is taken, or a living key is taken.
pub async fn insert(tx: &mut WriteTx<'_>, memories: &[&MemoryRecord]) -> Result<(), StoreError> {
    if memories.is_empty() {
        return Ok(());
    }
    let sql = values_sql(
        "INSERT INTO memories (memory_id, key, category, namespace, kind_json, importance, pinned, is_trusted,
             session_hint, tenant_id, superseded_by, embedding_provider, embedding_model, created_at_ms,
             updated_at_ms, created_at_text, updated_at_text, expires_at_ms, content, embedding) VALUES",
        20,
        memories.len(),
        "",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for memory in memories {
        query = query
            .bind(&memory.memory_id)
            .bind(&memory.key)
            .bind(&memory.category)
            .bind(&memory.namespace)
            .bind(&memory.kind_json)
            .bind(memory.importance)
            .bind(i64::from(memory.pinned))
            .bind(i64::from(memory.is_trusted))
            .bind(&memory.session_hint)
            .bind(&memory.tenant_id)
            .bind(&memory.superseded_by)
            .bind(&memory.embedding_provider)
            .bind(&memory.embedding_model)
            .bind(memory.created_at_ms)
            .bind(memory.updated_at_ms)
            .bind(&memory.created_at_text)
            .bind(&memory.updated_at_text)
            .bind(memory.expires_at_ms)
            .bind(&memory.content)
            .bind(&memory.embedding);
    }
    query.execute(&mut **tx).await?;
    Ok(())
}

/// Marks a memory as replaced.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn supersede(
    tx: &mut WriteTx<'_>,
    memory_id: &str,
    successor: &str,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE memories SET superseded_by = ?2 WHERE memory_id = ?1")
        .bind(memory_id)
        .bind(successor)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Makes room for a newer state of a memory: the row goes on under `history_id`, replaced by its own id.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or that id is taken.
pub async fn set_aside(
    tx: &mut WriteTx<'_>,
    memory_id: &str,
    history_id: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE memories SET memory_id = ?2, superseded_by = ifnull(superseded_by, ?1) WHERE memory_id = ?1",
    )
    .bind(memory_id)
    .bind(history_id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The memories of these ids, vectors included, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<MemoryRecord>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["?"; ids.len()].join(",");
    let sql =
        format!("SELECT {COLUMNS}, m.embedding FROM memories m WHERE m.memory_id IN ({marks})");
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for id in ids {
        query = query.bind(*id);
    }
    let rows = query.fetch_all(conn).await?;
    rows.iter()
        .map(|row| read(row, row.try_get("embedding")?))
        .collect()
}

/// Id and time of the living memory of a key.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn living(
    conn: &mut SqliteConnection,
    key: &str,
) -> Result<Option<(String, i64)>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT memory_id, updated_at_ms FROM memories WHERE key = ?1 AND superseded_by IS NULL",
    )
    .bind(key)
    .fetch_optional(conn)
    .await?)
}

/// Lists memories, newest update first; vectors stay on disk.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    filter: &MemoryFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<MemoryHit>, StoreError> {
    let updated = || Expr::col(Memories::UpdatedAtMs);
    let mut select = Query::select();
    select
        .expr(Expr::cust(COLUMNS))
        .expr(Expr::cust("length(m.embedding) / 4 AS embedding_dims"))
        .expr(Expr::cust("NULL AS rank"))
        .from_as("memories", "m")
        .order_by(Memories::UpdatedAtMs, Order::Desc)
        .order_by(Memories::MemoryId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(category) = &filter.category {
        select.and_where(Expr::col(Memories::Category).eq(category.as_str()));
    }
    if !filter.with_superseded {
        select.and_where(Expr::col(Memories::SupersededBy).is_null());
    }
    if let Some(now_ms) = filter.living_at_ms {
        select.and_where(
            Expr::col(Memories::Pinned)
                .eq(1)
                .or(Expr::col(Memories::ExpiresAtMs).is_null())
                .or(Expr::col(Memories::ExpiresAtMs).gt(now_ms)),
        );
    }
    if let Some(cursor) = before {
        let (at_ms, id) = parse_time_cursor(cursor)?;
        select.and_where(
            updated().lt(at_ms).or(updated()
                .eq(at_ms)
                .and(Expr::col(Memories::MemoryId).gt(id))),
        );
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let hits = rows
        .iter()
        .map(|row| read_hit(row, agent_id))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(hits, limit, |hit| {
        time_cursor(hit.memory.updated_at_ms, &hit.memory.memory_id)
    }))
}

/// Finds living memories whose key or content holds all words of `text`, best match first.
///
/// * `living_at_ms`: without those that have expired by then, pinned ones apart; `None` finds them too.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn search(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    text: &str,
    living_at_ms: Option<i64>,
    limit: PageLimit,
) -> Result<Vec<MemoryHit>, StoreError> {
    let Some(expression) = match_expression(text) else {
        return Ok(Vec::new());
    };
    let (sql, needle) = if needs_substring(text) {
        let sql = format!(
            "SELECT {COLUMNS}, length(m.embedding) / 4 AS embedding_dims, NULL AS rank FROM memories m
             WHERE (instr(m.content, ?1) > 0 OR instr(m.key, ?1) > 0) AND m.superseded_by IS NULL AND {LIVING}
             ORDER BY m.updated_at_ms DESC LIMIT ?2"
        );
        (sql, text.trim().to_owned())
    } else {
        let sql = format!(
            "SELECT {COLUMNS}, length(m.embedding) / 4 AS embedding_dims, f.rank AS rank
             FROM memories_fts f JOIN memories m ON m.memory_no = f.rowid
             WHERE memories_fts MATCH ?1 AND m.superseded_by IS NULL AND {LIVING} ORDER BY f.rank LIMIT ?2"
        );
        (sql, expression)
    };
    // Safe: constants and placeholders only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(needle)
        .bind(limit.rows())
        .bind(living_at_ms)
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| read_hit(row, agent_id)).collect()
}

/// Drops the word index's content and builds it from the memories.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn rebuild(tx: &mut WriteTx<'_>) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// How many memories the word index lacks.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn pending(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT (SELECT count(*) FROM memories) - (SELECT count(*) FROM memories_fts_docsize)",
    )
    .fetch_one(conn)
    .await?)
}

/// How many memories there are.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM memories")
        .fetch_one(conn)
        .await?)
}
