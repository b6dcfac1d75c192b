//! What was done to memories: `audit_events`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{AgentId, AuditEvent, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded_opt, keys_json, parse_time_cursor, time_cursor};

fn read(row: &SqliteRow) -> Result<AuditEvent, StoreError> {
    let event_id: String = row.try_get("event_id")?;
    Ok(AuditEvent {
        subject: row.try_get("subject")?,
        operation: row.try_get("operation")?,
        subject_key: row.try_get("subject_key")?,
        namespace: row.try_get("namespace")?,
        session_hint: row.try_get("session_hint")?,
        agent_id: decoded_opt(
            agent_id,
            row.try_get("agent_id")?,
            "audit_events",
            "agent_id",
            &event_id,
        )?,
        at_ms: row.try_get("at_ms")?,
        at_text: row.try_get("at_text")?,
        metadata: row.try_get("metadata")?,
        detail_json: row.try_get("detail_json")?,
        event_id,
    })
}

/// Inserts events.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or an event is there already.
pub async fn insert(tx: &mut WriteTx<'_>, events: &[AuditEvent]) -> Result<(), StoreError> {
    for event in events {
        sqlx::query(
            "INSERT INTO audit_events
                 (event_id, subject, operation, subject_key, namespace, session_hint, agent_id, at_ms, at_text, metadata,
                  detail_json)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )
        .bind(&event.event_id)
        .bind(&event.subject)
        .bind(&event.operation)
        .bind(&event.subject_key)
        .bind(&event.namespace)
        .bind(&event.session_hint)
        .bind(event.agent_id.as_ref().map(AgentId::as_str))
        .bind(event.at_ms)
        .bind(&event.at_text)
        .bind(&event.metadata)
        .bind(&event.detail_json)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// The events of these ids, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_many(
    conn: &mut SqliteConnection,
    ids: &[&str],
) -> Result<Vec<AuditEvent>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM audit_events WHERE event_id IN (SELECT value FROM json_each(?1))",
    )
    .bind(keys_json(ids))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}

/// Events, newest first; of one agent or one operation, where one is given.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    agent: Option<&AgentId>,
    operation: Option<&str>,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<AuditEvent>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT * FROM audit_events
         WHERE (?1 IS NULL OR agent_id = ?1) AND (?2 IS NULL OR operation = ?2)
           AND (?3 IS NULL OR (at_ms, event_id) < (?3, ?4))
         ORDER BY at_ms DESC, event_id DESC LIMIT ?5",
    )
    .bind(agent.map(AgentId::as_str))
    .bind(operation)
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let events = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(events, limit, |event| {
        time_cursor(event.at_ms, &event.event_id)
    }))
}
