//! Values and claims of plugins: `plugin_state_entries`.
//!
//! Expiry is decided in SQL by the instant of the caller: an expired entry is not there, whether it was swept or not.

use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{Page, PageLimit, PluginEntry};
use crate::store::StoreError;
use crate::store::row::decoded;

const TABLE: &str = "plugin_state_entries";

/// What a row is before it is written.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    /// Whose it is.
    pub plugin_id: &'a str,
    /// Where in it.
    pub namespace: &'a str,
    /// Its name there.
    pub entry_key: &'a str,
    /// JSON text.
    pub value_json: &'a str,
    /// When it is written.
    pub now_ms: i64,
    /// From when on it is not there.
    pub expires_at_ms: Option<i64>,
    /// Who claims the key.
    pub claim_owner: Option<&'a str>,
}

impl NewEntry<'_> {
    /// What it counts against a limit.
    #[must_use]
    pub fn size_bytes(&self) -> i64 {
        size(self.entry_key.len() + self.value_json.len())
    }
}

pub(super) fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A JSON text that SQLite has checked.
pub(super) fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn read(row: &SqliteRow) -> Result<PluginEntry, StoreError> {
    let entry_key: String = row.try_get("entry_key")?;
    let text: Option<String> = row.try_get("value_json")?;
    let value = text.map(|text| decoded(json, &text, TABLE, "value_json", &entry_key));
    Ok(PluginEntry {
        plugin_id: row.try_get("plugin_id")?,
        namespace: row.try_get("namespace")?,
        value: value.transpose()?,
        version: row.try_get("version")?,
        size_bytes: row.try_get("size_bytes")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        claim_owner: row.try_get("claim_owner")?,
        entry_key,
    })
}

/// Writes a value or a claim in place of what its key held; gives the key's version.
///
/// * `is_anew`: what the key held has expired, so that it begins now.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the text is no JSON.
pub async fn put(
    tx: &mut WriteTx<'_>,
    new: NewEntry<'_>,
    is_anew: bool,
) -> Result<i64, StoreError> {
    // The version goes on also over one that has expired: who still holds the old one cannot take it for the new.
    let version = sqlx::query_scalar(
        "INSERT INTO plugin_state_entries
             (plugin_id, namespace, entry_key, value_json, version, size_bytes, created_at_ms, updated_at_ms,
              expires_at_ms, claim_owner)
         VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?6, ?7, ?8)
         ON CONFLICT (plugin_id, namespace, entry_key) DO UPDATE SET
             value_json = excluded.value_json, version = version + 1, size_bytes = excluded.size_bytes,
             created_at_ms = iif(?9, excluded.created_at_ms, created_at_ms),
             updated_at_ms = excluded.updated_at_ms, expires_at_ms = excluded.expires_at_ms,
             claim_owner = excluded.claim_owner
         RETURNING version",
    )
    .bind(new.plugin_id)
    .bind(new.namespace)
    .bind(new.entry_key)
    .bind(new.value_json)
    .bind(new.size_bytes())
    .bind(new.now_ms)
    .bind(new.expires_at_ms)
    .bind(new.claim_owner)
    .bind(is_anew)
    .fetch_one(&mut **tx)
    .await?;
    Ok(version)
}

/// Inserts a row as it is, unless its key is taken; says whether it was inserted. For imports, which keep times.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_new(tx: &mut WriteTx<'_>, entry: &PluginEntry) -> Result<bool, StoreError> {
    let value = entry.value.as_ref().unwrap_or(&Value::Null).to_string();
    let done = sqlx::query(
        "INSERT INTO plugin_state_entries
             (plugin_id, namespace, entry_key, value_json, version, size_bytes, created_at_ms, updated_at_ms,
              expires_at_ms, claim_owner)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (plugin_id, namespace, entry_key) DO NOTHING",
    )
    .bind(&entry.plugin_id)
    .bind(&entry.namespace)
    .bind(&entry.entry_key)
    .bind(&value)
    .bind(entry.version)
    .bind(size(entry.entry_key.len() + value.len()))
    .bind(entry.created_at_ms)
    .bind(entry.updated_at_ms)
    .bind(entry.expires_at_ms)
    .bind(&entry.claim_owner)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The row of a key, expired or not.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    namespace: &str,
    entry_key: &str,
) -> Result<Option<PluginEntry>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(entry_key)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read).transpose()
}

/// Size of what is under a key, expired or not.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn size_of(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    namespace: &str,
    entry_key: &str,
) -> Result<Option<i64>, StoreError> {
    let size = sqlx::query_scalar(
        "SELECT size_bytes FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(entry_key)
    .fetch_optional(conn)
    .await?;
    Ok(size)
}

/// What a plugin keeps, by namespace and key; what has expired is not there.
///
/// * `after`: exclusive cursor from an earlier page, a namespace and a key as a JSON array.
/// * `with_values`: read them too; they may be large.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    namespace: Option<&str>,
    now_ms: i64,
    with_values: bool,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<PluginEntry>, StoreError> {
    let (after_namespace, after_key) = parse_cursor(after)?;
    let rows = sqlx::query(
        "SELECT plugin_id, namespace, entry_key, iif(?1, value_json, NULL) AS value_json, version, size_bytes,
             created_at_ms, updated_at_ms, expires_at_ms, claim_owner
         FROM plugin_state_entries
         WHERE plugin_id = ?2 AND (?3 IS NULL OR namespace = ?3)
           AND (?4 IS NULL OR (namespace, entry_key) > (?4, ?5)) AND (expires_at_ms IS NULL OR expires_at_ms > ?6)
         ORDER BY namespace, entry_key LIMIT ?7",
    )
    .bind(with_values)
    .bind(plugin_id)
    .bind(namespace)
    .bind(after_namespace)
    .bind(after_key)
    .bind(now_ms)
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let entries = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(entries, limit, |entry| {
        cursor(&entry.namespace, &entry.entry_key)
    }))
}

pub(super) fn cursor(namespace: &str, key: &str) -> String {
    serde_json::json!([namespace, key]).to_string()
}

pub(super) fn parse_cursor(
    cursor: Option<&str>,
) -> Result<(Option<String>, Option<String>), StoreError> {
    let Some(text) = cursor else {
        return Ok((None, None));
    };
    let parts: Result<(String, String), _> = serde_json::from_str(text);
    let (namespace, key) = parts.map_err(|_| StoreError::Cursor {
        text: text.to_owned(),
    })?;
    Ok((Some(namespace), Some(key)))
}

/// Deletes a key; says whether it was there, expired or not.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(
    tx: &mut WriteTx<'_>,
    plugin_id: &str,
    namespace: &str,
    entry_key: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "DELETE FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(entry_key)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes up to `limit` expired values, of one plugin where it is given; gives how many went.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn expire(
    tx: &mut WriteTx<'_>,
    plugin_id: Option<&str>,
    now_ms: i64,
    limit: u32,
) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM plugin_state_entries WHERE rowid IN
             (SELECT rowid FROM plugin_state_entries
              WHERE expires_at_ms <= ?1 AND (?2 IS NULL OR plugin_id = ?2) ORDER BY expires_at_ms LIMIT ?3)",
    )
    .bind(now_ms)
    .bind(plugin_id)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes up to `limit` values of a namespace, written longest ago first; gives how many went.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn clear(
    tx: &mut WriteTx<'_>,
    plugin_id: &str,
    namespace: &str,
    limit: u32,
) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM plugin_state_entries WHERE rowid IN
             (SELECT rowid FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2
              ORDER BY updated_at_ms, size_bytes, rowid LIMIT ?3)",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Row ids and sizes of up to `limit` values of a namespace but for one key, written longest ago first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn oldest(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    namespace: &str,
    but_key: &str,
    limit: u32,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let found = sqlx::query_as(
        "SELECT rowid, size_bytes FROM plugin_state_entries
         WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key <> ?3
         ORDER BY updated_at_ms, size_bytes, rowid LIMIT ?4",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(but_key)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// Deletes rows by their ids.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete_rows(tx: &mut WriteTx<'_>, rows: &[i64]) -> Result<(), StoreError> {
    let rows = serde_json::Value::from(rows).to_string();
    sqlx::query(
        "DELETE FROM plugin_state_entries WHERE rowid IN (SELECT value FROM json_each(?1))",
    )
    .bind(rows)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
