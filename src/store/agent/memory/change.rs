//! Changing single memories, with their words.

use sqlx::SqliteConnection;

use crate::db::WriteTx;
use crate::model::{AgentId, MemoryHit, MemoryRecord};
use crate::store::StoreError;

use super::{COLUMNS, read_hit};

/// Takes a memory into the word index.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn index(tx: &mut WriteTx<'_>, memory_id: &str) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO memories_fts (rowid, key, content)
         SELECT memory_no, key, content FROM memories WHERE memory_id = ?1",
    )
    .bind(memory_id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Gives a memory that keeps its content new labels.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn relabel(tx: &mut WriteTx<'_>, memory: &MemoryRecord) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE memories SET category = ?2, namespace = ?3, importance = ?4, pinned = ?5, session_hint = ?6,
             expires_at_ms = ?7, updated_at_ms = ?8, updated_at_text = NULL, embedding = ?9,
             embedding_provider = ?10, embedding_model = ?11
         WHERE memory_id = ?1",
    )
    .bind(&memory.memory_id)
    .bind(&memory.category)
    .bind(&memory.namespace)
    .bind(memory.importance)
    .bind(i64::from(memory.pinned))
    .bind(&memory.session_hint)
    .bind(memory.expires_at_ms)
    .bind(memory.updated_at_ms)
    .bind(&memory.embedding)
    .bind(&memory.embedding_provider)
    .bind(&memory.embedding_model)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// All memories of a key, replaced ones too, or the one of an id; the living one first, then the newest.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn find(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    reference: &str,
) -> Result<Vec<MemoryHit>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, length(m.embedding) / 4 AS embedding_dims, NULL AS rank FROM memories m
         WHERE m.memory_id = ?1 OR m.key = ?1
         ORDER BY m.superseded_by IS NOT NULL, m.updated_at_ms DESC, m.memory_id LIMIT 1000"
    );
    // Safe: constants and placeholders only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(reference)
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| read_hit(row, agent_id)).collect()
}

/// Deletes memories by their ids, words and vectors included; gives how many there were.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, ids: &[&str]) -> Result<u64, StoreError> {
    let list = serde_json::Value::from(ids).to_string();
    // A memory the index has not heard of yet must not be taken out of it: that would damage the index.
    sqlx::query(
        "INSERT INTO memories_fts (memories_fts, rowid, key, content)
         SELECT 'delete', memory_no, key, content FROM memories
         WHERE memory_id IN (SELECT value FROM json_each(?1))
             AND memory_no IN (SELECT id FROM memories_fts_docsize)",
    )
    .bind(&list)
    .execute(&mut **tx)
    .await?;
    let done =
        sqlx::query("DELETE FROM memories WHERE memory_id IN (SELECT value FROM json_each(?1))")
            .bind(&list)
            .execute(&mut **tx)
            .await?;
    Ok(done.rows_affected())
}

/// Ids of memories that have expired and are not pinned, longest expired first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn expired(
    conn: &mut SqliteConnection,
    now_ms: i64,
    limit: u32,
) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT memory_id FROM memories WHERE expires_at_ms <= ?1 AND pinned = 0
         ORDER BY expires_at_ms, memory_id LIMIT ?2",
    )
    .bind(now_ms)
    .bind(limit)
    .fetch_all(conn)
    .await?)
}

/// How many memories have expired and are not pinned.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count_expired(conn: &mut SqliteConnection, now_ms: i64) -> Result<i64, StoreError> {
    Ok(
        sqlx::query_scalar(
            "SELECT count(*) FROM memories WHERE expires_at_ms <= ?1 AND pinned = 0",
        )
        .bind(now_ms)
        .fetch_one(conn)
        .await?,
    )
}

/// Pins a memory, or lets it go; says whether there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_pinned(
    tx: &mut WriteTx<'_>,
    memory_id: &str,
    is_pinned: bool,
) -> Result<bool, StoreError> {
    let done = sqlx::query("UPDATE memories SET pinned = ?2 WHERE memory_id = ?1")
        .bind(memory_id)
        .bind(i64::from(is_pinned))
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}
