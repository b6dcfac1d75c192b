//! Bytes that plugins keep: `plugin_blob_entries`. As the values of [`super::plugin`], under the same limits.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::plugin::{cursor, json, parse_cursor, size};
use crate::db::WriteTx;
use crate::model::{Page, PageLimit, PluginBlob, PluginBlobEntry};
use crate::store::StoreError;
use crate::store::row::decoded;

const TABLE: &str = "plugin_blob_entries";

/// What a row is before it is written.
#[derive(Clone, Copy, Debug)]
pub struct NewBlob<'a> {
    /// Whose it is.
    pub plugin_id: &'a str,
    /// Where in it.
    pub namespace: &'a str,
    /// Its name there.
    pub entry_key: &'a str,
    /// What is said of it, JSON text.
    pub metadata_json: &'a str,
    /// Its bytes.
    pub blob: &'a [u8],
    /// When it is written.
    pub now_ms: i64,
    /// From when on it is not there.
    pub expires_at_ms: Option<i64>,
}

impl NewBlob<'_> {
    /// What it counts against a limit.
    #[must_use]
    pub fn size_bytes(&self) -> i64 {
        size(self.entry_key.len() + self.metadata_json.len() + self.blob.len())
    }
}

fn read(row: &SqliteRow) -> Result<PluginBlobEntry, StoreError> {
    let entry_key: String = row.try_get("entry_key")?;
    let text: Option<String> = row.try_get("metadata_json")?;
    let metadata = text.map(|text| decoded(json, &text, TABLE, "metadata_json", &entry_key));
    Ok(PluginBlobEntry {
        plugin_id: row.try_get("plugin_id")?,
        namespace: row.try_get("namespace")?,
        metadata: metadata.transpose()?,
        size_bytes: row.try_get("size_bytes")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        entry_key,
    })
}

/// Writes a blob in place of what its key held.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or what is said of it is no JSON.
pub async fn put(tx: &mut WriteTx<'_>, new: NewBlob<'_>) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO plugin_blob_entries
             (plugin_id, namespace, entry_key, metadata_json, blob, size_bytes, created_at_ms, updated_at_ms, expires_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)
         ON CONFLICT (plugin_id, namespace, entry_key) DO UPDATE SET
             metadata_json = excluded.metadata_json, blob = excluded.blob, size_bytes = excluded.size_bytes,
             updated_at_ms = excluded.updated_at_ms, expires_at_ms = excluded.expires_at_ms",
    )
    .bind(new.plugin_id)
    .bind(new.namespace)
    .bind(new.entry_key)
    .bind(new.metadata_json)
    .bind(new.blob)
    .bind(new.size_bytes())
    .bind(new.now_ms)
    .bind(new.expires_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Inserts a blob as it is, unless its key is taken; says whether it was inserted. For imports, which keep times.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_new(tx: &mut WriteTx<'_>, blob: &PluginBlob) -> Result<bool, StoreError> {
    let entry = &blob.entry;
    let metadata = entry.metadata.clone().unwrap_or_default().to_string();
    let done = sqlx::query(
        "INSERT INTO plugin_blob_entries
             (plugin_id, namespace, entry_key, metadata_json, blob, size_bytes, created_at_ms, updated_at_ms, expires_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (plugin_id, namespace, entry_key) DO NOTHING",
    )
    .bind(&entry.plugin_id)
    .bind(&entry.namespace)
    .bind(&entry.entry_key)
    .bind(&metadata)
    .bind(&blob.bytes)
    .bind(size(entry.entry_key.len() + metadata.len() + blob.bytes.len()))
    .bind(entry.created_at_ms)
    .bind(entry.updated_at_ms)
    .bind(entry.expires_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The blob of a key, unless it has expired.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    namespace: &str,
    entry_key: &str,
    now_ms: i64,
) -> Result<Option<PluginBlob>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM plugin_blob_entries
         WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3 AND (expires_at_ms IS NULL OR expires_at_ms > ?4)",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(entry_key)
    .bind(now_ms)
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(PluginBlob {
            entry: read(&row)?,
            bytes: row.try_get("blob")?,
        })
    })
    .transpose()
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
        "SELECT size_bytes FROM plugin_blob_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(entry_key)
    .fetch_optional(conn)
    .await?;
    Ok(size)
}

/// Blobs of a plugin by namespace and key, without their bytes; as [`super::plugin::list`].
///
/// # Errors
///
/// As there.
pub async fn list(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    namespace: Option<&str>,
    now_ms: i64,
    with_values: bool,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<PluginBlobEntry>, StoreError> {
    let (after_namespace, after_key) = parse_cursor(after)?;
    let rows = sqlx::query(
        "SELECT plugin_id, namespace, entry_key, iif(?1, metadata_json, NULL) AS metadata_json, size_bytes,
             created_at_ms, updated_at_ms, expires_at_ms
         FROM plugin_blob_entries
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
        "DELETE FROM plugin_blob_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(entry_key)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes up to `limit` expired blobs, of one plugin where it is given; gives how many went.
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
        "DELETE FROM plugin_blob_entries WHERE rowid IN
             (SELECT rowid FROM plugin_blob_entries
              WHERE expires_at_ms <= ?1 AND (?2 IS NULL OR plugin_id = ?2) ORDER BY expires_at_ms LIMIT ?3)",
    )
    .bind(now_ms)
    .bind(plugin_id)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes up to `limit` blobs of a namespace, written longest ago first; gives how many went.
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
        "DELETE FROM plugin_blob_entries WHERE rowid IN
             (SELECT rowid FROM plugin_blob_entries WHERE plugin_id = ?1 AND namespace = ?2
              ORDER BY updated_at_ms, size_bytes, rowid LIMIT ?3)",
    )
    .bind(plugin_id)
    .bind(namespace)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Row ids and sizes of up to `limit` blobs of a namespace but for one key, written longest ago first.
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
        "SELECT rowid, size_bytes FROM plugin_blob_entries
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
    sqlx::query("DELETE FROM plugin_blob_entries WHERE rowid IN (SELECT value FROM json_each(?1))")
        .bind(rows)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
