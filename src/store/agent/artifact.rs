//! Outputs of runs: `run_artifacts`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{ArtifactInfo, Page, PageLimit, RunArtifact};
use crate::store::StoreError;

/// Most outputs of one run that are listed.
pub const MAX_LISTED: u32 = 1000;

fn read(row: &SqliteRow) -> Result<ArtifactInfo, StoreError> {
    Ok(ArtifactInfo {
        run_id: row.try_get("run_id")?,
        path: row.try_get("path")?,
        kind: row.try_get("kind")?,
        metadata_json: row.try_get("metadata_json")?,
        sha256: row.try_get("sha256")?,
        size_bytes: row.try_get("size_bytes")?,
        created_at_ms: row.try_get("created_at_ms")?,
    })
}

/// Inserts an output; one of that run and path that exists is left as it is. Says whether it is new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_new(tx: &mut WriteTx<'_>, artifact: &RunArtifact) -> Result<bool, StoreError> {
    let about = &artifact.about;
    let done = sqlx::query(
        "INSERT INTO run_artifacts (run_id, path, kind, metadata_json, sha256, size_bytes, created_at_ms, blob)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (run_id, path) DO NOTHING",
    )
    .bind(&about.run_id)
    .bind(&about.path)
    .bind(&about.kind)
    .bind(&about.metadata_json)
    .bind(&about.sha256)
    .bind(about.size_bytes)
    .bind(about.created_at_ms)
    .bind(&artifact.blob)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// One output with its bytes.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get(
    conn: &mut SqliteConnection,
    run_id: &str,
    path: &str,
) -> Result<Option<RunArtifact>, StoreError> {
    let row = sqlx::query(
        "SELECT run_id, path, kind, metadata_json, sha256, size_bytes, created_at_ms, blob
         FROM run_artifacts WHERE run_id = ?1 AND path = ?2",
    )
    .bind(run_id)
    .bind(path)
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(RunArtifact {
            about: read(&row)?,
            blob: row.try_get("blob")?,
        })
    })
    .transpose()
}

/// Lists outputs by run and path, of one run where it is given, without their bytes.
///
/// * `after`: exclusive cursor from an earlier page, a run and a path as a JSON array.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when SQLite fails.
pub async fn page(
    conn: &mut SqliteConnection,
    run_id: Option<&str>,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<ArtifactInfo>, StoreError> {
    let (after_run, after_path): (String, String) = match after {
        Some(cursor) => serde_json::from_str(cursor).map_err(|_| StoreError::Cursor {
            text: cursor.to_owned(),
        })?,
        None => (run_id.unwrap_or_default().to_owned(), String::new()),
    };
    let rows = sqlx::query(
        "SELECT run_id, path, kind, metadata_json, sha256, size_bytes, created_at_ms FROM run_artifacts
         WHERE (run_id, path) >= (?1, ?2) AND (?3 OR (run_id, path) > (?1, ?2)) AND (?4 IS NULL OR run_id = ?4)
         ORDER BY run_id, path LIMIT ?5",
    )
    .bind(after_run)
    .bind(after_path)
    .bind(after.is_none())
    .bind(run_id)
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let items = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(items, limit, |about| {
        serde_json::json!([about.run_id, about.path]).to_string()
    }))
}

/// The outputs of a run by path, without their bytes; at most [`MAX_LISTED`].
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(
    conn: &mut SqliteConnection,
    run_id: &str,
) -> Result<Vec<ArtifactInfo>, StoreError> {
    let rows = sqlx::query(
        "SELECT run_id, path, kind, metadata_json, sha256, size_bytes, created_at_ms
         FROM run_artifacts WHERE run_id = ?1 ORDER BY path LIMIT ?2",
    )
    .bind(run_id)
    .bind(MAX_LISTED)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}
