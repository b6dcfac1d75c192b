//! Media: `media_blobs`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{MediaBlob, MediaInfo, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::parse_time_cursor;

/// All columns but the bytes.
const INFO: &str = "subdir, id, content_type, size_bytes, sha256, created_at_ms, updated_at_ms";

fn read(row: &SqliteRow) -> Result<MediaInfo, StoreError> {
    Ok(MediaInfo {
        subdir: row.try_get("subdir")?,
        id: row.try_get("id")?,
        content_type: row.try_get("content_type")?,
        size_bytes: row.try_get("size_bytes")?,
        sha256: row.try_get("sha256")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
    })
}

/// Writes a blob in place of what its name held.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn put(tx: &mut WriteTx<'_>, blob: &MediaBlob) -> Result<(), StoreError> {
    let info = &blob.info;
    sqlx::query(
        "INSERT INTO media_blobs (subdir, id, content_type, size_bytes, sha256, created_at_ms, updated_at_ms, blob)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (subdir, id) DO UPDATE SET
             content_type = excluded.content_type, size_bytes = excluded.size_bytes, sha256 = excluded.sha256,
             updated_at_ms = excluded.updated_at_ms, blob = excluded.blob",
    )
    .bind(&info.subdir)
    .bind(&info.id)
    .bind(&info.content_type)
    .bind(info.size_bytes)
    .bind(&info.sha256)
    .bind(info.created_at_ms)
    .bind(info.updated_at_ms)
    .bind(&blob.bytes)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A blob with its bytes.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    subdir: &str,
    id: &str,
) -> Result<Option<MediaBlob>, StoreError> {
    let row = sqlx::query("SELECT * FROM media_blobs WHERE subdir = ?1 AND id = ?2")
        .bind(subdir)
        .bind(id)
        .fetch_optional(conn)
        .await?;
    row.map(|row| {
        Ok(MediaBlob {
            info: read(&row)?,
            bytes: row.try_get("blob")?,
        })
    })
    .transpose()
}

/// Blobs, newest first, without their bytes.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    subdir: Option<&str>,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<MediaInfo>, StoreError> {
    let cursor = before.map(parse).transpose()?;
    // Columns are a constant of this file.
    let sql = format!(
        "SELECT {INFO} FROM media_blobs
         WHERE (?1 IS NULL OR subdir = ?1) AND (?2 IS NULL OR (created_at_ms, subdir, id) < (?2, ?3, ?4))
         ORDER BY created_at_ms DESC, subdir DESC, id DESC LIMIT ?5"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(subdir)
        .bind(cursor.as_ref().map(|cursor| cursor.0))
        .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
        .bind(cursor.as_ref().map(|cursor| cursor.2.as_str()))
        .bind(i64::from(limit.rows()) + 1)
        .fetch_all(conn)
        .await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |info| {
        let names = serde_json::json!([info.subdir, info.id]);
        format!("{}:{names}", info.created_at_ms)
    }))
}

fn parse(cursor: &str) -> Result<(i64, String, String), StoreError> {
    let (at_ms, names) = parse_time_cursor(cursor)?;
    let names: Result<(String, String), _> = serde_json::from_str(&names);
    let (subdir, id) = names.map_err(|_| StoreError::Cursor {
        text: cursor.to_owned(),
    })?;
    Ok((at_ms, subdir, id))
}

/// Deletes a blob; says whether it was there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, subdir: &str, id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM media_blobs WHERE subdir = ?1 AND id = ?2")
        .bind(subdir)
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// How many blobs there are, and their bytes, read from an index alone.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn usage(conn: &mut SqliteConnection) -> Result<(i64, i64), StoreError> {
    Ok(
        sqlx::query_as("SELECT count(*), ifnull(sum(size_bytes), 0) FROM media_blobs")
            .fetch_one(conn)
            .await?,
    )
}

/// The oldest blobs that no image to be sent needs: name, bytes and time.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn oldest(
    conn: &mut SqliteConnection,
    after: (i64, &str, &str),
    limit: u32,
) -> Result<Vec<(String, String, i64, i64)>, StoreError> {
    let found = sqlx::query_as(
        "SELECT subdir, id, size_bytes, created_at_ms FROM media_blobs m
         WHERE (created_at_ms, subdir, id) > (?1, ?2, ?3) AND NOT EXISTS
             (SELECT 1 FROM managed_outgoing_image_records r
              WHERE r.original_media_subdir = m.subdir AND r.original_media_id = m.id
                AND r.original_media_root = 'media_blobs' AND r.cleanup_pending = 0)
         ORDER BY created_at_ms, subdir, id LIMIT ?4",
    )
    .bind(after.0)
    .bind(after.1)
    .bind(after.2)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    Ok(found)
}
