//! How much plugins hold, over both their tables, read from indexes alone.

use sqlx::{Row, SqliteConnection};

use crate::model::PluginUsage;
use crate::store::StoreError;

/// Usage of each namespace of all plugins or of one, by name; expired rows count while they are there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn usage(
    conn: &mut SqliteConnection,
    plugin_id: Option<&str>,
) -> Result<Vec<PluginUsage>, StoreError> {
    // One arm for all and one for a plugin: with `?1 IS NULL OR …` SQLite would read the index from end to end.
    let sql = match plugin_id {
        Some(_) => {
            "SELECT plugin_id, namespace, sum(entries) AS entries, sum(blobs) AS blobs, sum(bytes) AS bytes,
                 max(updated_at_ms) AS updated_at_ms
             FROM (SELECT plugin_id, namespace, count(*) AS entries, 0 AS blobs, sum(size_bytes) AS bytes,
                       max(updated_at_ms) AS updated_at_ms
                   FROM plugin_state_entries WHERE plugin_id = ?1 GROUP BY plugin_id, namespace
                   UNION ALL
                   SELECT plugin_id, namespace, 0, count(*), sum(size_bytes), max(updated_at_ms)
                   FROM plugin_blob_entries WHERE plugin_id = ?1 GROUP BY plugin_id, namespace)
             GROUP BY plugin_id, namespace ORDER BY plugin_id, namespace"
        }
        None => {
            "SELECT plugin_id, namespace, sum(entries) AS entries, sum(blobs) AS blobs, sum(bytes) AS bytes,
                 max(updated_at_ms) AS updated_at_ms
             FROM (SELECT plugin_id, namespace, count(*) AS entries, 0 AS blobs, sum(size_bytes) AS bytes,
                       max(updated_at_ms) AS updated_at_ms
                   FROM plugin_state_entries GROUP BY plugin_id, namespace
                   UNION ALL
                   SELECT plugin_id, namespace, 0, count(*), sum(size_bytes), max(updated_at_ms)
                   FROM plugin_blob_entries GROUP BY plugin_id, namespace)
             GROUP BY plugin_id, namespace ORDER BY plugin_id, namespace"
        }
    };
    let rows = sqlx::query(sql).bind(plugin_id).fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            Ok(PluginUsage {
                plugin_id: row.try_get("plugin_id")?,
                namespace: row.try_get("namespace")?,
                entries: row.try_get("entries")?,
                blobs: row.try_get("blobs")?,
                size_bytes: row.try_get("bytes")?,
                updated_at_ms: row.try_get("updated_at_ms")?,
            })
        })
        .collect()
}
