//! The task ledger: `task_runs`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{
    AgentId, CancelState, Page, PageLimit, TaskOrigin, TaskOwnerKind, TaskProgress, TaskRun,
    TaskStatus,
};
use crate::store::StoreError;
use crate::store::row::{
    agent_id, decoded, decoded_opt, parse_time_cursor, time_cursor, values_sql,
};

pub mod life;

/// Most rows of one insert.
pub const MAX_INSERT: usize = 500;

/// In a cursor, the start of what has none.
const NEVER_STARTED: i64 = i64::MIN;

#[derive(Clone, Copy, Iden)]
enum TaskRuns {
    Table,
    TaskId,
    OwnerKind,
    SourceId,
    AgentId,
    Label,
    Status,
    StatusDetail,
    CreatedAtMs,
    StartedAtMs,
    EndedAtMs,
    DurationMs,
    Output,
    Error,
    DetailJson,
    TaskKind,
    ParentTaskId,
    OriginatorRoute,
    PrincipalId,
    CallerChainJson,
    Depth,
    IdempotencyKey,
    ExecutionOwnerPid,
    ExecutionOwnerStartIdentity,
    ExecutionOwnerBootId,
    HeartbeatAtMs,
    CancelState,
    FencingToken,
    HeartbeatUptimeMs,
    HeartbeatTimeoutMs,
    ProgressJson,
}

const COLUMNS: [TaskRuns; 30] = [
    TaskRuns::TaskId,
    TaskRuns::OwnerKind,
    TaskRuns::SourceId,
    TaskRuns::AgentId,
    TaskRuns::Label,
    TaskRuns::Status,
    TaskRuns::StatusDetail,
    TaskRuns::CreatedAtMs,
    TaskRuns::StartedAtMs,
    TaskRuns::EndedAtMs,
    TaskRuns::DurationMs,
    TaskRuns::Output,
    TaskRuns::Error,
    TaskRuns::DetailJson,
    TaskRuns::TaskKind,
    TaskRuns::ParentTaskId,
    TaskRuns::OriginatorRoute,
    TaskRuns::PrincipalId,
    TaskRuns::CallerChainJson,
    TaskRuns::Depth,
    TaskRuns::IdempotencyKey,
    TaskRuns::ExecutionOwnerPid,
    TaskRuns::ExecutionOwnerStartIdentity,
    TaskRuns::ExecutionOwnerBootId,
    TaskRuns::HeartbeatAtMs,
    TaskRuns::CancelState,
    TaskRuns::FencingToken,
    TaskRuns::HeartbeatUptimeMs,
    TaskRuns::HeartbeatTimeoutMs,
    TaskRuns::ProgressJson,
];

/// Which tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only this kind.
    pub owner_kind: Option<TaskOwnerKind>,
    /// Only runs of this.
    pub source_id: Option<String>,
    /// Only of this agent.
    pub agent_id: Option<AgentId>,
    /// Only those that stand so.
    pub status: Option<TaskStatus>,
    /// Not of this kind.
    pub without_kind: Option<TaskOwnerKind>,
    /// Only those that this agent has asked for, or one below it.
    pub visible_to: Option<AgentId>,
}

fn read(row: &SqliteRow) -> Result<TaskRun, StoreError> {
    let task_id: String = row.try_get("task_id")?;
    let owner_kind: String = row.try_get("owner_kind")?;
    let status: String = row.try_get("status")?;
    Ok(TaskRun {
        owner_kind: decoded(
            TaskOwnerKind::parse,
            &owner_kind,
            "task_runs",
            "owner_kind",
            &task_id,
        )?,
        status: decoded(TaskStatus::parse, &status, "task_runs", "status", &task_id)?,
        agent_id: decoded_opt(
            agent_id,
            row.try_get("agent_id")?,
            "task_runs",
            "agent_id",
            &task_id,
        )?,
        source_id: row.try_get("source_id")?,
        label: row.try_get("label")?,
        status_detail: row.try_get("status_detail")?,
        created_at_ms: row.try_get("created_at_ms")?,
        started_at_ms: row.try_get("started_at_ms")?,
        ended_at_ms: row.try_get("ended_at_ms")?,
        duration_ms: row.try_get("duration_ms")?,
        output: row.try_get("output")?,
        error: row.try_get("error")?,
        detail_json: row.try_get("detail_json")?,
        origin: read_origin(row, &task_id)?,
        task_id,
    })
}

fn read_origin(row: &SqliteRow, task_id: &str) -> Result<TaskOrigin, StoreError> {
    let cancel: String = row.try_get("cancel_state")?;
    Ok(TaskOrigin {
        task_kind: row.try_get("task_kind")?,
        parent_task_id: row.try_get("parent_task_id")?,
        originator_route: row.try_get("originator_route")?,
        principal_id: row.try_get("principal_id")?,
        caller_chain: decoded_opt(
            |json| serde_json::from_str(json).ok(),
            row.try_get("caller_chain_json")?,
            "task_runs",
            "caller_chain_json",
            task_id,
        )?,
        depth: row.try_get("depth")?,
        idempotency_key: row.try_get("idempotency_key")?,
        execution_owner_pid: row.try_get("execution_owner_pid")?,
        execution_owner_start_identity: row.try_get("execution_owner_start_identity")?,
        execution_owner_boot_id: row.try_get("execution_owner_boot_id")?,
        heartbeat_at_ms: row.try_get("heartbeat_at_ms")?,
        cancel_state: decoded(
            CancelState::parse,
            &cancel,
            "task_runs",
            "cancel_state",
            task_id,
        )?,
        fencing_token: row.try_get("fencing_token")?,
        heartbeat_uptime_ms: row.try_get("heartbeat_uptime_ms")?,
        heartbeat_timeout_ms: row.try_get("heartbeat_timeout_ms")?,
        progress: decoded_opt(
            |json| serde_json::from_str(json).ok(),
            row.try_get("progress_json")?,
            "task_runs",
            "progress_json",
            task_id,
        )?
        .unwrap_or_default(),
    })
}

type Bound<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

/// Binds all columns of a task in the order of [`COLUMNS`].
fn bind<'q>(query: Bound<'q>, task: &'q TaskRun) -> Bound<'q> {
    query
        .bind(&task.task_id)
        .bind(task.owner_kind.as_str())
        .bind(&task.source_id)
        .bind(task.agent_id.as_ref().map(AgentId::as_str))
        .bind(&task.label)
        .bind(task.status.as_str())
        .bind(&task.status_detail)
        .bind(task.created_at_ms)
        .bind(task.started_at_ms)
        .bind(task.ended_at_ms)
        .bind(task.duration_ms)
        .bind(&task.output)
        .bind(&task.error)
        .bind(&task.detail_json)
        .bind(&task.origin.task_kind)
        .bind(&task.origin.parent_task_id)
        .bind(&task.origin.originator_route)
        .bind(&task.origin.principal_id)
        .bind(chain(&task.origin))
        .bind(task.origin.depth)
        .bind(&task.origin.idempotency_key)
        .bind(task.origin.execution_owner_pid)
        .bind(&task.origin.execution_owner_start_identity)
        .bind(&task.origin.execution_owner_boot_id)
        .bind(task.origin.heartbeat_at_ms)
        .bind(task.origin.cancel_state.as_str())
        .bind(task.origin.fencing_token)
        .bind(task.origin.heartbeat_uptime_ms)
        .bind(task.origin.heartbeat_timeout_ms)
        .bind(progress_json(&task.origin.progress))
}

/// `None` for a worker that said nothing.
pub(super) fn progress_json(progress: &[TaskProgress]) -> Option<String> {
    let said = (!progress.is_empty()).then_some(progress)?;
    serde_json::to_string(said).ok()
}

fn chain(origin: &TaskOrigin) -> Option<String> {
    let chain = origin.caller_chain.as_ref()?;
    Some(serde_json::Value::from(chain.clone()).to_string())
}

/// Inserts up to [`MAX_INSERT`] tasks; ids that exist are left as they are. Gives how many are new.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_new(tx: &mut WriteTx<'_>, tasks: &[TaskRun]) -> Result<u64, StoreError> {
    if tasks.is_empty() {
        return Ok(0);
    }
    let sql = values_sql(
        "INSERT INTO task_runs (task_id, owner_kind, source_id, agent_id, label, status, status_detail, created_at_ms,
             started_at_ms, ended_at_ms, duration_ms, output, error, detail_json, task_kind, parent_task_id,
             originator_route, principal_id, caller_chain_json, depth, idempotency_key, execution_owner_pid,
             execution_owner_start_identity, execution_owner_boot_id, heartbeat_at_ms, cancel_state,
             fencing_token, heartbeat_uptime_ms, heartbeat_timeout_ms, progress_json) VALUES",
        COLUMNS.len(),
        tasks.len(),
        "ON CONFLICT (task_id) DO NOTHING",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for task in tasks {
        query = bind(query, task);
    }
    Ok(query.execute(&mut **tx).await?.rows_affected())
}

/// Writes all of a task over the one of its id. Says whether there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn update(tx: &mut WriteTx<'_>, task: &TaskRun) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET owner_kind = ?2, source_id = ?3, agent_id = ?4, label = ?5, status = ?6,
             status_detail = ?7, created_at_ms = ?8, started_at_ms = ?9, ended_at_ms = ?10, duration_ms = ?11,
             output = ?12, error = ?13, detail_json = ?14, task_kind = ?15, parent_task_id = ?16,
             originator_route = ?17, principal_id = ?18, caller_chain_json = ?19, depth = ?20,
             idempotency_key = ?21, execution_owner_pid = ?22, execution_owner_start_identity = ?23,
             execution_owner_boot_id = ?24, heartbeat_at_ms = ?25, cancel_state = ?26,
             fencing_token = ?27, heartbeat_uptime_ms = ?28, heartbeat_timeout_ms = ?29, progress_json = ?30
         WHERE task_id = ?1",
    );
    let done = bind(done, task);
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// The tasks whose ids begin so, by id, at most `limit`.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn find(
    conn: &mut SqliteConnection,
    start: &str,
    limit: PageLimit,
) -> Result<Vec<TaskRun>, StoreError> {
    let mut select = Query::select();
    select
        .columns(COLUMNS)
        .from(TaskRuns::Table)
        .and_where(Expr::col(TaskRuns::TaskId).gte(start))
        // The last character there is: no id that begins so is behind it.
        .and_where(Expr::col(TaskRuns::TaskId).lt(format!("{start}\u{10ffff}")))
        .order_by(TaskRuns::TaskId, Order::Asc)
        .limit(u64::from(limit.rows()));
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// The tasks that a task has started, by id, at most `limit`.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn children(
    conn: &mut SqliteConnection,
    parent: &str,
    limit: PageLimit,
) -> Result<Vec<TaskRun>, StoreError> {
    let mut select = Query::select();
    select
        .columns(COLUMNS)
        .from(TaskRuns::Table)
        .and_where(Expr::col(TaskRuns::ParentTaskId).eq(parent))
        .order_by(TaskRuns::TaskId, Order::Asc)
        .limit(u64::from(limit.rows()));
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// The tasks of these ids, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<TaskRun>, StoreError> {
    let select = Query::select()
        .columns(COLUMNS)
        .from(TaskRuns::Table)
        .and_where(Expr::col(TaskRuns::TaskId).is_in(ids.iter().copied()))
        .take();
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lists tasks, newest start first, those that never started last.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    filter: &TaskFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<TaskRun>, StoreError> {
    let start = || Expr::col(TaskRuns::StartedAtMs);
    let mut select = Query::select();
    select
        .columns(COLUMNS)
        .from(TaskRuns::Table)
        .order_by(TaskRuns::StartedAtMs, Order::Desc)
        .order_by(TaskRuns::TaskId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(kind) = filter.owner_kind {
        select.and_where(Expr::col(TaskRuns::OwnerKind).eq(kind.as_str()));
    }
    if let Some(source) = &filter.source_id {
        select.and_where(Expr::col(TaskRuns::SourceId).eq(source.as_str()));
    }
    if let Some(agent) = &filter.agent_id {
        select.and_where(Expr::col(TaskRuns::AgentId).eq(agent.as_str()));
    }
    if let Some(status) = filter.status {
        select.and_where(Expr::col(TaskRuns::Status).eq(status.as_str()));
    }
    if let Some(kind) = filter.without_kind {
        select.and_where(Expr::col(TaskRuns::OwnerKind).ne(kind.as_str()));
    }
    if let Some(agent) = &filter.visible_to {
        let in_chain = Expr::cust_with_values(
            "EXISTS (SELECT 1 FROM json_each(caller_chain_json) WHERE value = ?)",
            [agent.as_str()],
        );
        let asked = Expr::col(TaskRuns::OriginatorRoute).eq(agent.as_str());
        select.and_where(asked.or(in_chain));
    }
    if let Some(cursor) = before {
        let (at_ms, id) = parse_time_cursor(cursor)?;
        let behind = Expr::col(TaskRuns::TaskId).gt(id);
        // What never started stands last.
        select.and_where(if at_ms == NEVER_STARTED {
            start().is_null().and(behind)
        } else {
            let later = start().lt(at_ms).or(start().is_null());
            later.or(start().eq(at_ms).and(behind))
        });
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let tasks = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(tasks, limit, |task| {
        time_cursor(task.started_at_ms.unwrap_or(NEVER_STARTED), &task.task_id)
    }))
}

/// How many tasks one agent has.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count_of_agent(
    conn: &mut SqliteConnection,
    agent: &AgentId,
) -> Result<i64, StoreError> {
    let count = sqlx::query_scalar("SELECT count(*) FROM task_runs WHERE agent_id = ?1");
    Ok(count.bind(agent.as_str()).fetch_one(conn).await?)
}

/// How many tasks there are.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("SELECT count(*) FROM task_runs")
        .fetch_one(conn)
        .await?)
}
