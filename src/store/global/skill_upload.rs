//! Skills on their way in: `skill_uploads`, `skill_upload_chunks`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{Page, PageLimit, SkillUpload};
use crate::store::StoreError;
use crate::store::row::{parse_time_cursor, time_cursor};

/// All columns but the bytes.
const INFO: &str = "upload_id, kind, slug, force, size_bytes, sha256, actual_sha256, received_bytes, created_at_ms,
    expires_at_ms, committed, committed_at_ms";

fn read(row: &SqliteRow) -> Result<SkillUpload, StoreError> {
    Ok(SkillUpload {
        upload_id: row.try_get("upload_id")?,
        kind: row.try_get("kind")?,
        slug: row.try_get("slug")?,
        force: row.try_get::<i64, _>("force")? != 0,
        size_bytes: row.try_get("size_bytes")?,
        sha256: row.try_get("sha256")?,
        actual_sha256: row.try_get("actual_sha256")?,
        received_bytes: row.try_get("received_bytes")?,
        created_at_ms: row.try_get("created_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        committed: row.try_get::<i64, _>("committed")? != 0,
        committed_at_ms: row.try_get("committed_at_ms")?,
    })
}

/// Begins an upload, unless there is one of its key already.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert(
    tx: &mut WriteTx<'_>,
    upload: &SkillUpload,
    key_hash: Option<&str>,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO skill_uploads
             (upload_id, kind, slug, force, size_bytes, sha256, created_at_ms, expires_at_ms, idempotency_key_hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (idempotency_key_hash) DO NOTHING",
    )
    .bind(&upload.upload_id)
    .bind(&upload.kind)
    .bind(&upload.slug)
    .bind(i64::from(upload.force))
    .bind(upload.size_bytes)
    .bind(&upload.sha256)
    .bind(upload.created_at_ms)
    .bind(upload.expires_at_ms)
    .bind(key_hash)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// One upload that has not expired.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    upload_id: &str,
    now_ms: i64,
) -> Result<Option<SkillUpload>, StoreError> {
    // Columns are a constant of this file.
    let sql =
        format!("SELECT {INFO} FROM skill_uploads WHERE upload_id = ?1 AND expires_at_ms > ?2");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(upload_id)
        .bind(now_ms)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// The upload of a key.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get_by_key(
    conn: &mut SqliteConnection,
    key_hash: &str,
) -> Result<Option<SkillUpload>, StoreError> {
    // Columns are a constant of this file.
    let sql = format!("SELECT {INFO} FROM skill_uploads WHERE idempotency_key_hash = ?1");
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(key_hash)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Uploads, newest first, without their bytes; what has expired is not there.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    now_ms: i64,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<SkillUpload>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    // Columns are a constant of this file.
    let sql = format!(
        "SELECT {INFO} FROM skill_uploads
         WHERE expires_at_ms > ?1 AND (?2 IS NULL OR (created_at_ms, upload_id) < (?2, ?3))
         ORDER BY created_at_ms DESC, upload_id DESC LIMIT ?4"
    );
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(now_ms)
        .bind(cursor.as_ref().map(|cursor| cursor.0))
        .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
        .bind(i64::from(limit.rows()) + 1)
        .fetch_all(conn)
        .await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |upload| {
        time_cursor(upload.created_at_ms, &upload.upload_id)
    }))
}

/// A piece that was stored, if one begins there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn chunk(
    conn: &mut SqliteConnection,
    upload_id: &str,
    byte_offset: i64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT chunk_blob FROM skill_upload_chunks WHERE upload_id = ?1 AND byte_offset = ?2",
    )
    .bind(upload_id)
    .bind(byte_offset)
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// Stores a piece, and counts it.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or the piece is there already.
pub async fn append(
    tx: &mut WriteTx<'_>,
    upload_id: &str,
    byte_offset: i64,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    sqlx::query(
        "INSERT INTO skill_upload_chunks (upload_id, byte_offset, size_bytes, chunk_blob) VALUES (?1, ?2, ?3, ?4)",
    )
    .bind(upload_id)
    .bind(byte_offset)
    .bind(size)
    .bind(bytes)
    .execute(&mut **tx)
    .await?;
    sqlx::query("UPDATE skill_uploads SET received_bytes = ?2 WHERE upload_id = ?1")
        .bind(upload_id)
        .bind(byte_offset + size)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Offsets of the pieces, in order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn offsets(conn: &mut SqliteConnection, upload_id: &str) -> Result<Vec<i64>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT byte_offset FROM skill_upload_chunks WHERE upload_id = ?1 ORDER BY byte_offset",
    )
    .bind(upload_id)
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// Makes the whole of an upload out of its pieces, which go.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn commit(
    tx: &mut WriteTx<'_>,
    upload_id: &str,
    whole: &[u8],
    actual_sha256: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE skill_uploads
         SET archive_blob = ?2, actual_sha256 = ?3, committed = 1, committed_at_ms = ?4 WHERE upload_id = ?1",
    )
    .bind(upload_id)
    .bind(whole)
    .bind(actual_sha256)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    sqlx::query("DELETE FROM skill_upload_chunks WHERE upload_id = ?1")
        .bind(upload_id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The whole of an upload that is committed.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn whole(
    conn: &mut SqliteConnection,
    upload_id: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT archive_blob FROM skill_uploads WHERE upload_id = ?1 AND committed = 1",
    )
    .bind(upload_id)
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// Deletes an upload with its pieces; says whether it was there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, upload_id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM skill_uploads WHERE upload_id = ?1")
        .bind(upload_id)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes up to `limit` uploads that have expired; gives how many went.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn expire(tx: &mut WriteTx<'_>, now_ms: i64, limit: u32) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM skill_uploads WHERE upload_id IN
             (SELECT upload_id FROM skill_uploads WHERE expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2)",
    )
    .bind(now_ms)
    .bind(limit)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}
