//! Whom to tell of a task's end: `task_delivery_state`.

use sea_query::{Expr, ExprTrait, Iden, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{PageLimit, TaskDelivery};
use crate::store::StoreError;

#[derive(Iden)]
enum TaskDeliveryState {
    Table,
    TaskId,
    RequesterOriginJson,
    IsDelivered,
    LastNotifiedEventAtMs,
}

fn read(row: &SqliteRow) -> Result<TaskDelivery, StoreError> {
    Ok(TaskDelivery {
        task_id: row.try_get("task_id")?,
        requester_origin_json: row.try_get("requester_origin_json")?,
        is_delivered: row.try_get("is_delivered")?,
        last_notified_event_at_ms: row.try_get("last_notified_event_at_ms")?,
    })
}

/// Writes what is known of a task's delivery, or replaces what was known.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn upsert(tx: &mut WriteTx<'_>, delivery: &TaskDelivery) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO task_delivery_state (task_id, requester_origin_json, is_delivered, last_notified_event_at_ms)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (task_id) DO UPDATE SET
             requester_origin_json = excluded.requester_origin_json,
             is_delivered = excluded.is_delivered,
             last_notified_event_at_ms = excluded.last_notified_event_at_ms",
    )
    .bind(&delivery.task_id)
    .bind(&delivery.requester_origin_json)
    .bind(delivery.is_delivered)
    .bind(delivery.last_notified_event_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What is known of the delivery of these tasks, in no order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<TaskDelivery>, StoreError> {
    let select = Query::select()
        .columns([
            TaskDeliveryState::TaskId,
            TaskDeliveryState::RequesterOriginJson,
            TaskDeliveryState::IsDelivered,
            TaskDeliveryState::LastNotifiedEventAtMs,
        ])
        .from(TaskDeliveryState::Table)
        .and_where(Expr::col(TaskDeliveryState::TaskId).is_in(ids.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Notes that whoever waited for a task's end was told; says whether somebody waited.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn mark_delivered(
    tx: &mut WriteTx<'_>,
    task_id: &str,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_delivery_state SET is_delivered = 1, last_notified_event_at_ms = ?2 WHERE task_id = ?1",
    )
    .bind(task_id)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Tasks that ended since an instant, whose end somebody who can be reached waits for, and of which no message tells; by
/// task, at most `limit`.
///
/// * `queue_name`, `key_start`: where such a message would be, and what its key begins with before the task.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn untold_ends(
    conn: &mut SqliteConnection,
    since_ms: i64,
    queue_name: &str,
    key_start: &str,
    limit: PageLimit,
) -> Result<Vec<String>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT waiting.task_id FROM task_delivery_state AS waiting JOIN task_runs USING (task_id)
         WHERE waiting.is_delivered = 0 AND json_valid(waiting.requester_origin_json)
           AND waiting.requester_origin_json ->> '$.channel' IS NOT NULL
           AND task_runs.status NOT IN ('pending', 'running', 'waiting') AND task_runs.ended_at_ms >= ?1
           AND NOT EXISTS (
               SELECT 1 FROM delivery_queue_entries AS told
               WHERE told.queue_name = ?2 AND told.idempotency_key = ?3 || waiting.task_id)
         ORDER BY waiting.task_id LIMIT ?4",
    )
    .bind(since_ms)
    .bind(queue_name)
    .bind(key_start)
    .bind(i64::from(limit.rows()))
    .fetch_all(conn)
    .await?;
    Ok(found)
}
