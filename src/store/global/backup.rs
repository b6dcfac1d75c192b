//! Records of backups: `backup_runs`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{BackupKind, BackupRun, BackupStatus, PageLimit};
use crate::store::StoreError;
use crate::store::row::decoded;

/// Rows kept; older ones go when a new one comes.
pub const MAX_RUNS: i64 = 500;

fn read(row: &SqliteRow) -> Result<BackupRun, StoreError> {
    let id: String = row.try_get("id")?;
    let kind: String = row.try_get("kind")?;
    let status: String = row.try_get("status")?;
    Ok(BackupRun {
        kind: decoded(BackupKind::parse, &kind, "backup_runs", "kind", &id)?,
        status: decoded(BackupStatus::parse, &status, "backup_runs", "status", &id)?,
        created_at_ms: row.try_get("created_at_ms")?,
        finished_at_ms: row.try_get("finished_at_ms")?,
        archive_path: row.try_get("archive_path")?,
        archive_bytes: row.try_get("archive_bytes")?,
        error: row.try_get("error")?,
        manifest_json: row.try_get("manifest_json")?,
        id,
    })
}

/// Records a run, and lets the oldest beyond [`MAX_RUNS`] go.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert(tx: &mut WriteTx<'_>, run: &BackupRun) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO backup_runs
             (id, kind, created_at_ms, finished_at_ms, archive_path, archive_bytes, status, error, manifest_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .bind(&run.id)
    .bind(run.kind.as_str())
    .bind(run.created_at_ms)
    .bind(run.finished_at_ms)
    .bind(&run.archive_path)
    .bind(run.archive_bytes)
    .bind(run.status.as_str())
    .bind(&run.error)
    .bind(&run.manifest_json)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "DELETE FROM backup_runs WHERE id IN
             (SELECT id FROM backup_runs ORDER BY created_at_ms DESC, id LIMIT -1 OFFSET ?1)",
    )
    .bind(MAX_RUNS)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Takes a run's record back, if there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn forget(tx: &mut WriteTx<'_>, id: &str) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM backup_runs WHERE id = ?1")
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Says how a recorded run ended.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn finish(tx: &mut WriteTx<'_>, run: &BackupRun) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE backup_runs SET finished_at_ms = ?2, archive_path = ?3, archive_bytes = ?4, status = ?5, error = ?6,
             manifest_json = ?7
         WHERE id = ?1",
    )
    .bind(&run.id)
    .bind(run.finished_at_ms)
    .bind(&run.archive_path)
    .bind(run.archive_bytes)
    .bind(run.status.as_str())
    .bind(&run.error)
    .bind(&run.manifest_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Marks runs as interrupted that were under way and whose process is gone. Gives how many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn interrupt_running(
    tx: &mut WriteTx<'_>,
    now_ms: i64,
    is_gone: impl Fn(&BackupRun) -> bool,
) -> Result<u64, StoreError> {
    let rows = sqlx::query("SELECT * FROM backup_runs WHERE status = 'running'")
        .fetch_all(&mut **tx)
        .await?;
    let mut interrupted = 0;
    for row in &rows {
        let run = read(row)?;
        if is_gone(&run) {
            let done = sqlx::query(
                "UPDATE backup_runs SET status = 'interrupted', finished_at_ms = ?2 WHERE id = ?1",
            )
            .bind(&run.id)
            .bind(now_ms)
            .execute(&mut **tx)
            .await?;
            interrupted += done.rows_affected();
        }
    }
    Ok(interrupted)
}

/// The newest runs.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    limit: PageLimit,
) -> Result<Vec<BackupRun>, StoreError> {
    let rows = sqlx::query("SELECT * FROM backup_runs ORDER BY created_at_ms DESC, id LIMIT ?1")
        .bind(limit.rows())
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}

/// The newest archive that was written and proved good, up to a time: a wrong clock may have dated some later.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn latest_good(
    conn: &mut SqliteConnection,
    until_ms: i64,
) -> Result<Option<BackupRun>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM backup_runs WHERE kind = 'create' AND status = 'completed' AND created_at_ms <= ?1
         ORDER BY created_at_ms DESC, id LIMIT 1",
    )
    .bind(until_ms)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read).transpose()
}
