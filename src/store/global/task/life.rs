//! A task's life: each step a compare-and-set on where the task stands and on who holds it.
//!
//! Functions that take a [`TaskClaim`] do nothing for one that was lost, and say so. An end is never overwritten, whoever
//! wants to.

use sqlx::SqliteConnection;

use super::progress_json;
use crate::db::WriteTx;
use crate::model::{
    AgentId, CancelState, ProcessIdentity, TaskClaim, TaskEnd, TaskOwnerKind, TaskProgress,
    TaskRun, TaskStatus,
};
use crate::store::StoreError;

/// The moment of a step: the time of day for people, the time since boot for measuring.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Unix milliseconds.
    pub now_ms: i64,
    /// Milliseconds since boot.
    pub uptime_ms: i64,
}

/// The oldest task of a kind that waits to be claimed.
///
/// * `agent`: only of this agent.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn next_pending(
    conn: &mut SqliteConnection,
    kind: TaskOwnerKind,
    agent: Option<&AgentId>,
) -> Result<Option<String>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT task_id FROM task_runs
         WHERE status = 'pending' AND owner_kind = ?1 AND (?2 IS NULL OR agent_id = ?2)
         ORDER BY created_at_ms, task_id LIMIT 1",
    );
    let found = found.bind(kind.as_str()).bind(agent.map(AgentId::as_str));
    Ok(found.fetch_optional(conn).await?)
}

/// Claims a task that waits; `None` when somebody else has, or it has ended.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn claim(
    tx: &mut WriteTx<'_>,
    task_id: &str,
    owner: &ProcessIdentity,
    at: Moment,
) -> Result<Option<TaskClaim>, StoreError> {
    let token: Option<i64> = sqlx::query_scalar(
        "UPDATE task_runs SET status = 'running', status_detail = NULL, fencing_token = fencing_token + 1,
             started_at_ms = ifnull(started_at_ms, ?5), execution_owner_pid = ?2,
             execution_owner_start_identity = ?3, execution_owner_boot_id = ?4,
             heartbeat_at_ms = iif(heartbeat_timeout_ms IS NULL, heartbeat_at_ms, ?5),
             heartbeat_uptime_ms = iif(heartbeat_timeout_ms IS NULL, heartbeat_uptime_ms, ?6)
         WHERE task_id = ?1 AND status = 'pending' RETURNING fencing_token",
    )
    .bind(task_id)
    .bind(owner.pid_column())
    .bind(owner.start_column())
    .bind(&owner.boot_id)
    .bind(at.now_ms)
    .bind(at.uptime_ms)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(token.map(|fencing_token| TaskClaim {
        task_id: task_id.to_owned(),
        fencing_token,
        owner: owner.clone(),
    }))
}

/// Notes that the worker lives; says whether it is to stop, `None` when the claim was lost.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn beat(
    tx: &mut WriteTx<'_>,
    claim: &TaskClaim,
    at: Moment,
) -> Result<Option<CancelState>, StoreError> {
    let state: Option<String> = sqlx::query_scalar(
        "UPDATE task_runs SET heartbeat_at_ms = ?3, heartbeat_uptime_ms = ?4
         WHERE task_id = ?1 AND fencing_token = ?2 AND status = 'running' RETURNING cancel_state",
    )
    .bind(&claim.task_id)
    .bind(claim.fencing_token)
    .bind(at.now_ms)
    .bind(at.uptime_ms)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(state.map(|state| CancelState::parse(&state).unwrap_or_default()))
}

/// Writes what the worker last said, in place of what it said before.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_progress(
    tx: &mut WriteTx<'_>,
    claim: &TaskClaim,
    said: &[TaskProgress],
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET progress_json = ?3
         WHERE task_id = ?1 AND fencing_token = ?2 AND status = 'running'",
    );
    let done = done
        .bind(&claim.task_id)
        .bind(claim.fencing_token)
        .bind(progress_json(said));
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// Asks the worker of a running task to stop; says whether there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn request_cancel(tx: &mut WriteTx<'_>, task_id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET cancel_state = iif(cancel_state = 'none', 'requested', cancel_state)
         WHERE task_id = ?1 AND status = 'running'",
    );
    let done = done.bind(task_id).execute(&mut **tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that the worker knows that it is to stop.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn acknowledge_cancel(
    tx: &mut WriteTx<'_>,
    claim: &TaskClaim,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET cancel_state = 'acknowledged'
         WHERE task_id = ?1 AND fencing_token = ?2 AND status = 'running' AND cancel_state <> 'none'",
    );
    let done = done.bind(&claim.task_id).bind(claim.fencing_token);
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// Lets go of a task that goes on later: `pending` for anybody, `waiting` until it is resumed.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn let_go(
    tx: &mut WriteTx<'_>,
    claim: &TaskClaim,
    status: TaskStatus,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET status = ?3, execution_owner_pid = NULL, execution_owner_start_identity = NULL,
             execution_owner_boot_id = NULL
         WHERE task_id = ?1 AND fencing_token = ?2 AND status = 'running' AND ?3 IN ('pending', 'waiting')",
    );
    let done = done
        .bind(&claim.task_id)
        .bind(claim.fencing_token)
        .bind(status.as_str());
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// Makes a task that waits for something one that can be claimed; says whether it waited.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn resume(tx: &mut WriteTx<'_>, task_id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET status = 'pending' WHERE task_id = ?1 AND status = 'waiting'",
    );
    let done = done.bind(task_id).execute(&mut **tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Ends a task that the claim holds; says whether it did.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn settle(
    tx: &mut WriteTx<'_>,
    claim: &TaskClaim,
    end: &TaskEnd,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let owner = &claim.owner;
    let done = sqlx::query(
        "UPDATE task_runs SET status = ?3, status_detail = ?4, output = ?5, error = ?6, ended_at_ms = ?7,
             duration_ms = max(?7 - started_at_ms, 0)
         WHERE task_id = ?1 AND fencing_token = ?2 AND status = 'running' AND execution_owner_pid IS ?8
             AND execution_owner_start_identity IS ?9 AND execution_owner_boot_id IS ?10",
    );
    let done = done
        .bind(&claim.task_id)
        .bind(claim.fencing_token)
        .bind(end.status.as_str())
        .bind(&end.status_detail)
        .bind(&end.output)
        .bind(&end.error)
        .bind(now_ms)
        .bind(owner.pid_column())
        .bind(owner.start_column())
        .bind(&owner.boot_id);
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// Ends a task that stands exactly as it was seen: no claim, no beat and no end came between. Says whether it did.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn end_as_seen(
    tx: &mut WriteTx<'_>,
    seen: &TaskRun,
    end: &TaskEnd,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET status = ?4, status_detail = ?5, output = ?6, error = ?7, ended_at_ms = ?8,
             duration_ms = max(?8 - started_at_ms, 0)
         WHERE task_id = ?1 AND fencing_token = ?2 AND status = ?3 AND heartbeat_uptime_ms IS ?9
             AND status IN ('pending', 'running', 'waiting')",
    );
    let done = done
        .bind(&seen.task_id)
        .bind(seen.origin.fencing_token)
        .bind(seen.status.as_str())
        .bind(end.status.as_str())
        .bind(&end.status_detail)
        .bind(&end.output)
        .bind(&end.error)
        .bind(now_ms)
        .bind(seen.origin.heartbeat_uptime_ms);
    Ok(done.execute(&mut **tx).await?.rows_affected() == 1)
}

/// The task that a producer has started under a key before.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn by_idempotency_key(
    conn: &mut SqliteConnection,
    kind: TaskOwnerKind,
    originator: Option<&str>,
    key: &str,
) -> Result<Option<String>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT task_id FROM task_runs
         WHERE idempotency_key = ?1 AND owner_kind = ?2 AND originator_route IS ?3
         ORDER BY created_at_ms, task_id LIMIT 1",
    );
    let found = found.bind(key).bind(kind.as_str()).bind(originator);
    Ok(found.fetch_optional(conn).await?)
}
