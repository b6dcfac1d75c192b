//! The registry of agents: `agent_databases`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{AgentId, AgentRecord, AgentStatus};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded};

const COLUMNS: &str = "agent_id, path, schema_version, status, status_reason, created_at_ms, last_seen_at_ms, size_bytes";

fn read(row: &SqliteRow) -> Result<AgentRecord, StoreError> {
    let id: String = row.try_get("agent_id")?;
    let status: String = row.try_get("status")?;
    Ok(AgentRecord {
        status: decoded(
            AgentStatus::parse,
            &status,
            "agent_databases",
            "status",
            &id,
        )?,
        agent_id: decoded(agent_id, &id, "agent_databases", "agent_id", &id)?,
        path: row.try_get("path")?,
        schema_version: row.try_get("schema_version")?,
        status_reason: row.try_get("status_reason")?,
        created_at_ms: row.try_get("created_at_ms")?,
        last_seen_at_ms: row.try_get("last_seen_at_ms")?,
        size_bytes: row.try_get("size_bytes")?,
    })
}

/// The agent of that name.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    id: &AgentId,
) -> Result<Option<AgentRecord>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM agent_databases WHERE agent_id = ?1");
    // Safe: the only inserted text is a constant.
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(id.as_str())
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// All agents by name, active ones first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list(conn: &mut SqliteConnection) -> Result<Vec<AgentRecord>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM agent_databases ORDER BY status, agent_id");
    // Safe: the only inserted text is a constant.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}

/// Makes an agent active or retired; says whether there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_status(
    tx: &mut WriteTx<'_>,
    id: &AgentId,
    status: AgentStatus,
    reason: Option<&str>,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE agent_databases SET status = ?2, status_reason = ?3 WHERE agent_id = ?1",
    )
    .bind(id.as_str())
    .bind(status.as_str())
    .bind(reason)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Registers an agent, or brings its row up to date; the time of creation stays.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn upsert(tx: &mut WriteTx<'_>, agent: &AgentRecord) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO agent_databases
             (agent_id, path, schema_version, status, status_reason, created_at_ms, last_seen_at_ms, size_bytes)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (agent_id) DO UPDATE SET
             path = excluded.path,
             schema_version = excluded.schema_version,
             status = excluded.status,
             status_reason = excluded.status_reason,
             last_seen_at_ms = excluded.last_seen_at_ms,
             size_bytes = excluded.size_bytes",
    )
    .bind(agent.agent_id.as_str())
    .bind(&agent.path)
    .bind(agent.schema_version)
    .bind(agent.status.as_str())
    .bind(&agent.status_reason)
    .bind(agent.created_at_ms)
    .bind(agent.last_seen_at_ms)
    .bind(agent.size_bytes)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
