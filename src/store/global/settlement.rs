//! How tasks were to end: `task_settlements`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{Page, PageLimit, TaskSettlement};
use crate::store::StoreError;

#[derive(Clone, Copy, Iden)]
enum TaskSettlements {
    Table,
    TaskId,
    OwnerPid,
    OwnerStartIdentity,
    OwnerBootId,
    DesiredStatus,
    ArtifactPath,
    ArtifactRef,
    ArtifactSha256,
    TerminalError,
    CreatedAtMs,
    DetailJson,
}

const COLUMNS: [TaskSettlements; 11] = [
    TaskSettlements::TaskId,
    TaskSettlements::OwnerPid,
    TaskSettlements::OwnerStartIdentity,
    TaskSettlements::OwnerBootId,
    TaskSettlements::DesiredStatus,
    TaskSettlements::ArtifactPath,
    TaskSettlements::ArtifactRef,
    TaskSettlements::ArtifactSha256,
    TaskSettlements::TerminalError,
    TaskSettlements::CreatedAtMs,
    TaskSettlements::DetailJson,
];

fn read(row: &SqliteRow) -> Result<TaskSettlement, StoreError> {
    Ok(TaskSettlement {
        task_id: row.try_get("task_id")?,
        owner_pid: row.try_get("owner_pid")?,
        owner_start_identity: row.try_get("owner_start_identity")?,
        owner_boot_id: row.try_get("owner_boot_id")?,
        desired_status: row.try_get("desired_status")?,
        artifact_path: row.try_get("artifact_path")?,
        artifact_ref: row.try_get("artifact_ref")?,
        artifact_sha256: row.try_get("artifact_sha256")?,
        terminal_error: row.try_get("terminal_error")?,
        created_at_ms: row.try_get("created_at_ms")?,
        detail_json: row.try_get("detail_json")?,
    })
}

/// Inserts how a task was to end; one that the task has already is left as it is. Says whether it is new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or when there is no such task.
pub async fn insert_new(
    tx: &mut WriteTx<'_>,
    settlement: &TaskSettlement,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO task_settlements (task_id, owner_pid, owner_start_identity, owner_boot_id, desired_status, artifact_path, artifact_ref, artifact_sha256, terminal_error, created_at_ms, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (task_id) DO NOTHING",
    )
    .bind(&settlement.task_id)
    .bind(settlement.owner_pid)
    .bind(&settlement.owner_start_identity)
    .bind(&settlement.owner_boot_id)
    .bind(&settlement.desired_status)
    .bind(&settlement.artifact_path)
    .bind(&settlement.artifact_ref)
    .bind(&settlement.artifact_sha256)
    .bind(&settlement.terminal_error)
    .bind(settlement.created_at_ms)
    .bind(&settlement.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Those of these tasks, in no order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<TaskSettlement>, StoreError> {
    let select = Query::select()
        .columns(COLUMNS)
        .from(TaskSettlements::Table)
        .and_where(Expr::col(TaskSettlements::TaskId).is_in(ids.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lists decided ends that are not applied yet, by task.
///
/// * `after`: exclusive, the last task of an earlier page.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(
    conn: &mut SqliteConnection,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<TaskSettlement>, StoreError> {
    let mut select = Query::select();
    select
        .columns(COLUMNS)
        .from(TaskSettlements::Table)
        .order_by(TaskSettlements::TaskId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(after) = after {
        select.and_where(Expr::col(TaskSettlements::TaskId).gt(after));
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |settlement| {
        settlement.task_id.clone()
    }))
}

/// Deletes a decided end that is as it was seen. Says whether it was.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, seen: &TaskSettlement) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "DELETE FROM task_settlements WHERE task_id = ?1 AND owner_pid = ?2 AND owner_start_identity IS ?3
             AND owner_boot_id = ?4 AND desired_status = ?5 AND artifact_sha256 = ?6",
    )
    .bind(&seen.task_id)
    .bind(seen.owner_pid)
    .bind(&seen.owner_start_identity)
    .bind(&seen.owner_boot_id)
    .bind(&seen.desired_status)
    .bind(&seen.artifact_sha256)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}
