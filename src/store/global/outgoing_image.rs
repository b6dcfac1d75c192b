//! Images that agents sent: `managed_outgoing_image_records`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{OutgoingImage, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{parse_time_cursor, time_cursor};

fn read(row: &SqliteRow) -> Result<OutgoingImage, StoreError> {
    Ok(OutgoingImage {
        attachment_id: row.try_get("attachment_id")?,
        session_key: row.try_get("session_key")?,
        agent_id: row.try_get("agent_id")?,
        message_id: row.try_get("message_id")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        retention_class: row.try_get("retention_class")?,
        alt: row.try_get("alt")?,
        original_media_root: row.try_get("original_media_root")?,
        original_media_id: row.try_get("original_media_id")?,
        original_media_subdir: row.try_get("original_media_subdir")?,
        original_content_type: row.try_get("original_content_type")?,
        original_width: row.try_get("original_width")?,
        original_height: row.try_get("original_height")?,
        original_size_bytes: row.try_get("original_size_bytes")?,
        original_filename: row.try_get("original_filename")?,
        record_json: row.try_get("record_json")?,
        cleanup_pending: row.try_get::<i64, _>("cleanup_pending")? != 0,
    })
}

/// Writes a record in place of the one of its id.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the record is no JSON.
pub async fn upsert(tx: &mut WriteTx<'_>, image: &OutgoingImage) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT OR REPLACE INTO managed_outgoing_image_records
             (attachment_id, session_key, agent_id, message_id, created_at_ms, updated_at_ms, retention_class, alt,
              original_media_root, original_media_id, original_media_subdir, original_content_type, original_width,
              original_height, original_size_bytes, original_filename, record_json, cleanup_pending)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
    )
    .bind(&image.attachment_id)
    .bind(&image.session_key)
    .bind(&image.agent_id)
    .bind(&image.message_id)
    .bind(image.created_at_ms)
    .bind(image.updated_at_ms)
    .bind(&image.retention_class)
    .bind(&image.alt)
    .bind(&image.original_media_root)
    .bind(&image.original_media_id)
    .bind(&image.original_media_subdir)
    .bind(&image.original_content_type)
    .bind(image.original_width)
    .bind(image.original_height)
    .bind(image.original_size_bytes)
    .bind(&image.original_filename)
    .bind(&image.record_json)
    .bind(i64::from(image.cleanup_pending))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// One record.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    attachment_id: &str,
) -> Result<Option<OutgoingImage>, StoreError> {
    let row = sqlx::query("SELECT * FROM managed_outgoing_image_records WHERE attachment_id = ?1")
        .bind(attachment_id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Records, newest first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    session_key: Option<&str>,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<OutgoingImage>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT * FROM managed_outgoing_image_records
         WHERE (?1 IS NULL OR session_key = ?1) AND (?2 IS NULL OR (created_at_ms, attachment_id) < (?2, ?3))
         ORDER BY created_at_ms DESC, attachment_id DESC LIMIT ?4",
    )
    .bind(session_key)
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |image| {
        time_cursor(image.created_at_ms, &image.attachment_id)
    }))
}

/// Marks a record as not needed any more; says whether there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn release(
    tx: &mut WriteTx<'_>,
    attachment_id: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE managed_outgoing_image_records SET cleanup_pending = 1, updated_at_ms = ?2 WHERE attachment_id = ?1",
    )
    .bind(attachment_id)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Up to `limit` records that are marked: id, and name of the blob where that is one of the table.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn released(
    conn: &mut SqliteConnection,
    limit: u32,
) -> Result<Vec<(String, Option<String>, String)>, StoreError> {
    let found = sqlx::query_as(
        "SELECT attachment_id, iif(original_media_root = 'media_blobs', original_media_subdir, NULL), original_media_id
         FROM managed_outgoing_image_records WHERE cleanup_pending = 1 ORDER BY created_at_ms, attachment_id LIMIT ?1",
    )
    .bind(limit)
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// Whether a record that is not marked needs a blob.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn needs(
    conn: &mut SqliteConnection,
    subdir: &str,
    id: &str,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM managed_outgoing_image_records
         WHERE original_media_root = 'media_blobs' AND original_media_subdir = ?1 AND original_media_id = ?2
           AND cleanup_pending = 0)",
    )
    .bind(subdir)
    .bind(id)
    .fetch_one(conn)
    .await?;
    Ok(found)
}

/// Deletes a record.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, attachment_id: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM managed_outgoing_image_records WHERE attachment_id = ?1")
        .bind(attachment_id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
