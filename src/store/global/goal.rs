//! What tasks are to reach: `goal_tasks`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{AgentId, GoalTask, Page, PageLimit, TaskRun};
use crate::store::StoreError;

#[derive(Clone, Copy, Iden)]
enum GoalTasks {
    Table,
    TaskId,
    Objective,
    EffectiveTokenLimit,
    EffectiveCostLimitUsd,
    PauseReason,
    PauseDescription,
    BlockersJson,
    DetailJson,
}

const COLUMNS: [GoalTasks; 8] = [
    GoalTasks::TaskId,
    GoalTasks::Objective,
    GoalTasks::EffectiveTokenLimit,
    GoalTasks::EffectiveCostLimitUsd,
    GoalTasks::PauseReason,
    GoalTasks::PauseDescription,
    GoalTasks::BlockersJson,
    GoalTasks::DetailJson,
];

fn read(row: &SqliteRow) -> Result<GoalTask, StoreError> {
    Ok(GoalTask {
        task_id: row.try_get("task_id")?,
        objective: row.try_get("objective")?,
        effective_token_limit: row.try_get("effective_token_limit")?,
        effective_cost_limit_usd: row.try_get("effective_cost_limit_usd")?,
        pause_reason: row.try_get("pause_reason")?,
        pause_description: row.try_get("pause_description")?,
        blockers_json: row.try_get("blockers_json")?,
        detail_json: row.try_get("detail_json")?,
    })
}

/// Inserts a goal; one that the task has already is left as it is. Says whether it is new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or when there is no such task.
pub async fn insert_new(tx: &mut WriteTx<'_>, goal: &GoalTask) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO goal_tasks (task_id, objective, effective_token_limit, effective_cost_limit_usd, pause_reason, pause_description, blockers_json, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (task_id) DO NOTHING",
    )
    .bind(&goal.task_id)
    .bind(&goal.objective)
    .bind(goal.effective_token_limit)
    .bind(goal.effective_cost_limit_usd)
    .bind(&goal.pause_reason)
    .bind(&goal.pause_description)
    .bind(&goal.blockers_json)
    .bind(&goal.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Says why a goal waits, or that it does not.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_pause(
    tx: &mut WriteTx<'_>,
    task_id: &str,
    reason: Option<&str>,
    description: Option<&str>,
    blockers_json: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE goal_tasks SET pause_reason = ?2, pause_description = ?3, blockers_json = ?4 WHERE task_id = ?1",
    );
    let done = done
        .bind(task_id)
        .bind(reason)
        .bind(description)
        .bind(blockers_json);
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// Another goal of the same agent and asker that has not ended, if there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn active_beside(
    tx: &mut WriteTx<'_>,
    task: &TaskRun,
) -> Result<Option<String>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT t.task_id FROM goal_tasks g JOIN task_runs t ON t.task_id = g.task_id
         WHERE t.status IN ('pending', 'running', 'waiting') AND t.task_id <> ?1 AND t.agent_id IS ?2
             AND t.originator_route IS ?3 AND t.principal_id IS ?4 LIMIT 1",
    );
    let found = found
        .bind(&task.task_id)
        .bind(task.agent_id.as_ref().map(AgentId::as_str))
        .bind(&task.origin.originator_route)
        .bind(&task.origin.principal_id);
    Ok(found.fetch_optional(&mut **tx).await?)
}

/// Those of these tasks, in no order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<GoalTask>, StoreError> {
    let select = Query::select()
        .columns(COLUMNS)
        .from(GoalTasks::Table)
        .and_where(Expr::col(GoalTasks::TaskId).is_in(ids.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lists goals by task.
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
) -> Result<Page<GoalTask>, StoreError> {
    let mut select = Query::select();
    select
        .columns(COLUMNS)
        .from(GoalTasks::Table)
        .order_by(GoalTasks::TaskId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(after) = after {
        select.and_where(Expr::col(GoalTasks::TaskId).gt(after));
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |goal| goal.task_id.clone()))
}
