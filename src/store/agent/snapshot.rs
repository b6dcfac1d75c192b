//! Places of a transcript to go back to: `transcript_snapshots`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{PageLimit, Snapshot};
use crate::store::StoreError;

fn read(row: &SqliteRow) -> Result<Snapshot, StoreError> {
    Ok(Snapshot {
        snapshot_id: row.try_get("snapshot_id")?,
        reason: row.try_get("reason")?,
        seq: row.try_get("seq")?,
        event_count: row.try_get("event_count")?,
        created_at_ms: row.try_get("created_at_ms")?,
        metadata_json: row.try_get("metadata_json")?,
    })
}

/// Inserts a snapshot of a session.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the id exists.
pub async fn insert(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    snapshot: &Snapshot,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO transcript_snapshots
             (session_id, snapshot_id, reason, seq, event_count, created_at_ms, metadata_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(session_id)
    .bind(&snapshot.snapshot_id)
    .bind(&snapshot.reason)
    .bind(snapshot.seq)
    .bind(snapshot.event_count)
    .bind(snapshot.created_at_ms)
    .bind(&snapshot.metadata_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// One snapshot of a session.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get(
    conn: &mut SqliteConnection,
    session_id: &str,
    snapshot_id: &str,
) -> Result<Option<Snapshot>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM transcript_snapshots WHERE session_id = ?1 AND snapshot_id = ?2",
    )
    .bind(session_id)
    .bind(snapshot_id)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read).transpose()
}

/// The snapshots of a session, furthest into the transcript first, newest first among equals.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(
    conn: &mut SqliteConnection,
    session_id: &str,
    limit: PageLimit,
) -> Result<Vec<Snapshot>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM transcript_snapshots WHERE session_id = ?1
         ORDER BY seq DESC, created_at_ms DESC, snapshot_id DESC LIMIT ?2",
    )
    .bind(session_id)
    .bind(limit.rows())
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}
