//! What has changed in the control plane since somebody looked.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::model::{DeliveryStatus, TaskOwnerKind, TaskStatus};
use crate::store::StoreError;
use crate::store::row::decoded;

/// Rows that one look takes at most; the next takes the rest.
pub const AT_ONCE: usize = 1_000;

/// A task as a look sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenTask {
    /// Its place in the table: later ones have higher places.
    pub row: i64,
    /// Its id.
    pub task_id: String,
    /// What it is for.
    pub owner_kind: TaskOwnerKind,
    /// The job it is a run of, where it is one.
    pub source_id: Option<String>,
    /// Whose it is.
    pub agent_id: Option<String>,
    /// Where it stands.
    pub status: TaskStatus,
    /// Whether somebody asked it to stop, and it heard.
    pub cancel_state: String,
}

/// A message as a look sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenDelivery {
    /// Its place in the table: later ones have higher places.
    pub row: i64,
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub agent_id: Option<String>,
    /// Where it stands.
    pub status: DeliveryStatus,
}

/// A number that differs once another connection has written.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn data_version(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar("PRAGMA data_version")
        .fetch_one(conn)
        .await?)
}

fn limit() -> i64 {
    i64::try_from(AT_ONCE).unwrap_or(i64::MAX)
}

fn task(row: &SqliteRow) -> Result<SeenTask, StoreError> {
    const TABLE: &str = "task_runs";
    let task_id: String = row.try_get("task_id")?;
    let (kind, status): (String, String) = (row.try_get("owner_kind")?, row.try_get("status")?);
    Ok(SeenTask {
        row: row.try_get("row")?,
        owner_kind: decoded(TaskOwnerKind::parse, &kind, TABLE, "owner_kind", &task_id)?,
        source_id: row.try_get("source_id")?,
        agent_id: row.try_get("agent_id")?,
        status: decoded(TaskStatus::parse, &status, TABLE, "status", &task_id)?,
        cancel_state: row.try_get("cancel_state")?,
        task_id,
    })
}

fn delivery(row: &SqliteRow) -> Result<SeenDelivery, StoreError> {
    let id: String = row.try_get("id")?;
    let status: String = row.try_get("status")?;
    Ok(SeenDelivery {
        row: row.try_get("row")?,
        agent_id: row.try_get("agent_id")?,
        status: decoded(
            DeliveryStatus::parse,
            &status,
            "delivery_queue_entries",
            "status",
            &id,
        )?,
        id,
    })
}

/// The highest place of a task and of a message.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn last_rows(conn: &mut SqliteConnection) -> Result<(i64, i64), StoreError> {
    Ok(sqlx::query_as(
        "SELECT (SELECT ifnull(max(rowid), 0) FROM task_runs), (SELECT ifnull(max(rowid), 0) FROM delivery_queue_entries)",
    )
    .fetch_one(conn)
    .await?)
}

/// Tasks behind a place, and those that have not ended, in their order.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn tasks(conn: &mut SqliteConnection, behind: i64) -> Result<Vec<SeenTask>, StoreError> {
    let rows = sqlx::query(
        "SELECT rowid AS row, task_id, owner_kind, source_id, agent_id, status, cancel_state FROM
             (SELECT rowid AS found FROM task_runs WHERE rowid > ?1
              UNION SELECT rowid FROM task_runs WHERE status IN ('pending', 'running', 'waiting'))
         JOIN task_runs ON task_runs.rowid = found ORDER BY found LIMIT ?2",
    )
    .bind(behind)
    .bind(limit())
    .fetch_all(conn)
    .await?;
    rows.iter().map(task).collect()
}

/// One task; `None` when it is gone.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn task_of(
    conn: &mut SqliteConnection,
    task_id: &str,
) -> Result<Option<SeenTask>, StoreError> {
    let row = sqlx::query(
        "SELECT rowid AS row, task_id, owner_kind, source_id, agent_id, status, cancel_state FROM task_runs
         WHERE task_id = ?1",
    )
    .bind(task_id)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(task).transpose()
}

/// Messages behind a place, and those that wait or are under way, in their order.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn deliveries(
    conn: &mut SqliteConnection,
    behind: i64,
) -> Result<Vec<SeenDelivery>, StoreError> {
    let rows = sqlx::query(
        "SELECT rowid AS row, id, agent_id, status FROM
             (SELECT rowid AS found FROM delivery_queue_entries WHERE rowid > ?1
              UNION SELECT rowid FROM delivery_queue_entries WHERE status = 'pending'
              UNION SELECT rowid FROM delivery_queue_entries WHERE status = 'sending')
         JOIN delivery_queue_entries ON delivery_queue_entries.rowid = found ORDER BY found LIMIT ?2",
    )
    .bind(behind)
    .bind(limit())
    .fetch_all(conn)
    .await?;
    rows.iter().map(delivery).collect()
}

/// One message; `None` when it is gone.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn delivery_of(
    conn: &mut SqliteConnection,
    id: &str,
) -> Result<Option<SeenDelivery>, StoreError> {
    let row = sqlx::query(
        "SELECT rowid AS row, id, agent_id, status FROM delivery_queue_entries WHERE id = ?1",
    )
    .bind(id)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(delivery).transpose()
}
