//! Where tasks go on: `task_continuations`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{Page, PageLimit, TaskContinuation};
use crate::store::StoreError;

#[derive(Clone, Copy, Iden)]
enum TaskContinuations {
    Table,
    TaskId,
    ContextJson,
    DetailJson,
}

const COLUMNS: [TaskContinuations; 3] = [
    TaskContinuations::TaskId,
    TaskContinuations::ContextJson,
    TaskContinuations::DetailJson,
];

fn read(row: &SqliteRow) -> Result<TaskContinuation, StoreError> {
    Ok(TaskContinuation {
        task_id: row.try_get("task_id")?,
        context_json: row.try_get("context_json")?,
        detail_json: row.try_get("detail_json")?,
    })
}

/// Inserts where a task goes on; one that the task has already is left as it is. Says whether it is new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or when there is no such task.
pub async fn insert_new(
    tx: &mut WriteTx<'_>,
    continuation: &TaskContinuation,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO task_continuations (task_id, context_json, detail_json)
         VALUES (?1, ?2, ?3) ON CONFLICT (task_id) DO NOTHING",
    )
    .bind(&continuation.task_id)
    .bind(&continuation.context_json)
    .bind(&continuation.detail_json)
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
) -> Result<Vec<TaskContinuation>, StoreError> {
    let select = Query::select()
        .columns(COLUMNS)
        .from(TaskContinuations::Table)
        .and_where(Expr::col(TaskContinuations::TaskId).is_in(ids.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lists where tasks go on by task.
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
) -> Result<Page<TaskContinuation>, StoreError> {
    let mut select = Query::select();
    select
        .columns(COLUMNS)
        .from(TaskContinuations::Table)
        .order_by(TaskContinuations::TaskId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(after) = after {
        select.and_where(Expr::col(TaskContinuations::TaskId).gt(after));
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |continuation| {
        continuation.task_id.clone()
    }))
}

/// Forgets where a task goes on, once it has.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, task_id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM task_continuations WHERE task_id = ?1").bind(task_id);
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}
