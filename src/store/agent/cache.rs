//! What may be computed again: `cache_entries`.
//!
//! Expiry is decided in SQL by the instant of the caller: an expired entry is not there, whether it was swept or not.

use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{AgentId, CacheEntry, CacheValue, Page, PageLimit};
use crate::store::StoreError;

/// Schema version that brought the table; older ones cache nothing.
pub const SINCE_SCHEMA: i64 = 10;

/// Stores a value in place of what its key held.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the text is no JSON.
pub async fn put(
    tx: &mut WriteTx<'_>,
    scope: &str,
    key: &str,
    value: &CacheValue,
    expires_at_ms: Option<i64>,
    now_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO cache_entries (scope, key, expires_at_ms, updated_at_ms, value_json, blob)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (scope, key) DO UPDATE SET expires_at_ms = excluded.expires_at_ms,
             updated_at_ms = excluded.updated_at_ms, value_json = excluded.value_json, blob = excluded.blob",
    )
    .bind(scope)
    .bind(key)
    .bind(expires_at_ms)
    .bind(now_ms)
    .bind(&value.value_json)
    .bind(&value.blob)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The value of a key, unless it has expired.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get(
    conn: &mut SqliteConnection,
    scope: &str,
    key: &str,
    now_ms: i64,
) -> Result<Option<CacheValue>, StoreError> {
    let row = sqlx::query(
        "SELECT value_json, blob FROM cache_entries
         WHERE scope = ?1 AND key = ?2 AND (expires_at_ms IS NULL OR expires_at_ms > ?3)",
    )
    .bind(scope)
    .bind(key)
    .bind(now_ms)
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(CacheValue {
            value_json: row.try_get("value_json")?,
            blob: row.try_get("blob")?,
        })
    })
    .transpose()
}

/// Deletes the value of a key; says whether one was there, expired or not.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, scope: &str, key: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM cache_entries WHERE scope = ?1 AND key = ?2")
        .bind(scope)
        .bind(key)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes up to `limit` expired values, longest expired first; gives how many went.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn expire(tx: &mut WriteTx<'_>, now_ms: i64, limit: u32) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM cache_entries WHERE rowid IN
             (SELECT rowid FROM cache_entries WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2)",
    )
    .bind(now_ms)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes up to `limit` values, of one scope where it is given; gives how many went.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn clear(
    tx: &mut WriteTx<'_>,
    scope: Option<&str>,
    limit: u32,
) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM cache_entries WHERE rowid IN
             (SELECT rowid FROM cache_entries WHERE ?1 IS NULL OR scope = ?1 LIMIT ?2)",
    )
    .bind(scope)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// How many values there are, expired ones too, of one scope where it is given.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count(conn: &mut SqliteConnection, scope: Option<&str>) -> Result<i64, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT count(*) FROM cache_entries WHERE ?1 IS NULL OR scope = ?1")
            .bind(scope)
            .fetch_one(conn)
            .await?,
    )
}

/// Lists what is there by scope and key, without the values.
///
/// * `after`: exclusive cursor from an earlier page, a scope and a key as a JSON array.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    scope: Option<&str>,
    now_ms: i64,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<CacheEntry>, StoreError> {
    let (after_scope, after_key) = match after {
        Some(cursor) => serde_json::from_str(cursor).map_err(|_| StoreError::Cursor {
            text: cursor.to_owned(),
        })?,
        None => (scope.unwrap_or_default().to_owned(), String::new()),
    };
    let is_first = after.is_none();
    let rows = sqlx::query(
        "SELECT scope, key, expires_at_ms, updated_at_ms,
             ifnull(length(CAST(value_json AS BLOB)), 0) + ifnull(length(blob), 0) AS size_bytes
         FROM cache_entries
         WHERE (scope, key) >= (?1, ?2) AND (?3 OR (scope, key) > (?1, ?2))
           AND (?4 IS NULL OR scope = ?4) AND (expires_at_ms IS NULL OR expires_at_ms > ?5)
         ORDER BY scope, key LIMIT ?6",
    )
    .bind(after_scope)
    .bind(after_key)
    .bind(is_first)
    .bind(scope)
    .bind(now_ms)
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let entries = rows.iter().map(|row| {
        Ok(CacheEntry {
            agent_id: agent_id.clone(),
            scope: row.try_get("scope")?,
            key: row.try_get("key")?,
            size_bytes: row.try_get("size_bytes")?,
            updated_at_ms: row.try_get("updated_at_ms")?,
            expires_at_ms: row.try_get("expires_at_ms")?,
        })
    });
    let entries = entries.collect::<Result<Vec<_>, StoreError>>()?;
    Ok(Page::cut(entries, limit, |entry| {
        serde_json::json!([entry.scope, entry.key]).to_string()
    }))
}
