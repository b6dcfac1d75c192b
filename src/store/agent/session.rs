//! Sessions, their routes and the entries they came with: `sessions`, `session_routes`, `session_entries`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{
    AgentId, ChatType, Page, PageLimit, SessionRecord, SessionScope, SessionStatus,
};
use crate::store::StoreError;
use crate::store::row::{decoded, decoded_opt, parse_time_cursor, time_cursor};

const TABLE: &str = "sessions";

#[derive(Iden)]
enum Sessions {
    Table,
    SessionId,
    Status,
    Channel,
    ChatType,
    UpdatedAtMs,
    ArchivedAtMs,
}

/// Which sessions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only through this channel.
    pub channel: Option<String>,
    /// Only of this kind of chat.
    pub chat_type: Option<ChatType>,
    /// Only in this state.
    pub status: Option<SessionStatus>,
    /// Only whose key or title contains this text.
    pub text: Option<String>,
    /// Archived ones too.
    pub with_archived: bool,
}

fn read(row: &SqliteRow, agent_id: &AgentId) -> Result<SessionRecord, StoreError> {
    let id: String = row.try_get("session_id")?;
    let text = |column: &str| row.try_get::<String, _>(column);
    Ok(SessionRecord {
        agent_id: agent_id.clone(),
        session_key: text("session_key")?,
        session_scope: decoded(
            parse_scope,
            &text("session_scope")?,
            TABLE,
            "session_scope",
            &id,
        )?,
        status: decoded(SessionStatus::parse, &text("status")?, TABLE, "status", &id)?,
        chat_type: decoded_opt(
            ChatType::parse,
            row.try_get("chat_type")?,
            TABLE,
            "chat_type",
            &id,
        )?,
        channel: row.try_get("channel")?,
        account_id: row.try_get("account_id")?,
        primary_conversation_id: row.try_get("primary_conversation_id")?,
        display_name: row.try_get("display_name")?,
        model_provider: row.try_get("model_provider")?,
        model: row.try_get("model")?,
        event_count: row.try_get("event_count")?,
        message_count: row.try_get("message_count")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        archived_at_ms: row.try_get("archived_at_ms")?,
        has_synthetic_times: row.try_get::<i64, _>("has_synthetic_times")? != 0,
        session_id: id,
    })
}

fn parse_scope(text: &str) -> Option<SessionScope> {
    SessionScope::parse(text)
}

/// Where appends go: the session's small key and the last place given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionTail {
    /// Small key of the event rows.
    pub session_no: i64,
    /// Last `seq` given out.
    pub last_seq: i64,
}

/// Inserts a session without events; its counts start at zero whatever the record says.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the id exists.
pub async fn insert(
    tx: &mut WriteTx<'_>,
    session: &SessionRecord,
) -> Result<SessionTail, StoreError> {
    let done = sqlx::query(
        "INSERT INTO sessions
             (session_id, session_key, session_scope, status, chat_type, channel, account_id, display_name,
              model_provider, model, created_at_ms, updated_at_ms, archived_at_ms, has_synthetic_times)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )
    .bind(&session.session_id)
    .bind(&session.session_key)
    .bind(session.session_scope.as_str())
    .bind(session.status.as_str())
    .bind(session.chat_type.map(ChatType::as_str))
    .bind(&session.channel)
    .bind(&session.account_id)
    .bind(&session.display_name)
    .bind(&session.model_provider)
    .bind(&session.model)
    .bind(session.created_at_ms)
    .bind(session.updated_at_ms)
    .bind(session.archived_at_ms)
    .bind(i64::from(session.has_synthetic_times))
    .execute(&mut **tx)
    .await?;
    Ok(SessionTail {
        session_no: done.last_insert_rowid(),
        last_seq: 0,
    })
}

/// Adds to a session's counts after events were inserted behind `last_seq`.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn grow(
    tx: &mut WriteTx<'_>,
    tail: SessionTail,
    events: i64,
    messages: i64,
    updated_at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET event_count = event_count + ?2, message_count = message_count + ?3, last_seq = ?4,
             updated_at_ms = max(updated_at_ms, ?5)
         WHERE session_no = ?1",
    )
    .bind(tail.session_no)
    .bind(events)
    .bind(messages)
    .bind(tail.last_seq)
    .bind(updated_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Ends a session for good: archived, and reached by no key.
///
/// One that has ended already stays as it is.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn end(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    status: SessionStatus,
    at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET status = ?2, ended_at_ms = ?3, archived_at_ms = ifnull(archived_at_ms, ?3)
         WHERE session_id = ?1 AND ended_at_ms IS NULL",
    )
    .bind(session_id)
    .bind(status.as_str())
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    sqlx::query("DELETE FROM session_routes WHERE session_id = ?1")
        .bind(session_id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Where appends to the session go.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn tail(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Option<SessionTail>, StoreError> {
    let row = sqlx::query("SELECT session_no, last_seq FROM sessions WHERE session_id = ?1")
        .bind(session_id)
        .fetch_optional(conn)
        .await?;
    Ok(row.map(|row| SessionTail {
        session_no: row.get(0),
        last_seq: row.get(1),
    }))
}

/// Makes a key lead to a session.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_route(
    tx: &mut WriteTx<'_>,
    key: &str,
    session_id: &str,
    at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO session_routes (session_key, session_id, updated_at_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (session_key) DO UPDATE SET
             session_id = excluded.session_id, updated_at_ms = excluded.updated_at_ms",
    )
    .bind(key)
    .bind(session_id)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The session a key leads to.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn routed(conn: &mut SqliteConnection, key: &str) -> Result<Option<String>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT session_id FROM session_routes WHERE session_key = ?1")
            .bind(key)
            .fetch_optional(conn)
            .await?,
    )
}

/// Keeps the entry a session came with.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn upsert_entry(
    tx: &mut WriteTx<'_>,
    key: &str,
    session_id: &str,
    entry_json: &str,
    at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO session_entries (session_key, session_id, entry_json, updated_at_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (session_key, session_id) DO UPDATE SET
             entry_json = excluded.entry_json, updated_at_ms = excluded.updated_at_ms",
    )
    .bind(key)
    .bind(session_id)
    .bind(entry_json)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The session of that id.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    session_id: &str,
) -> Result<Option<SessionRecord>, StoreError> {
    let row = sqlx::query("SELECT * FROM sessions WHERE session_id = ?1")
        .bind(session_id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(|row| read(row, agent_id)).transpose()
}

/// Lists an agent's sessions, newest update first.
///
/// * `before`: exclusive cursor from an earlier page; `None` starts at the newest.
///
/// Transcripts are not touched, so the cost does not depend on their size.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    filter: &SessionFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<SessionRecord>, StoreError> {
    let updated = || Expr::col(Sessions::UpdatedAtMs);
    let mut select = Query::select();
    select
        .expr(Expr::cust("*"))
        .from(Sessions::Table)
        .order_by(Sessions::UpdatedAtMs, Order::Desc)
        .order_by(Sessions::SessionId, Order::Asc)
        .limit(u64::from(limit.rows()) + 1);
    if let Some(channel) = &filter.channel {
        select.and_where(Expr::col(Sessions::Channel).eq(channel.as_str()));
    }
    if let Some(chat_type) = filter.chat_type {
        select.and_where(Expr::col(Sessions::ChatType).eq(chat_type.as_str()));
    }
    if let Some(status) = filter.status {
        select.and_where(Expr::col(Sessions::Status).eq(status.as_str()));
    }
    if let Some(text) = &filter.text {
        let within = Expr::cust_with_values(
            "instr(lower(session_key || char(10) || ifnull(display_name, '')), lower(?)) > 0",
            [text.as_str()],
        );
        select.and_where(within);
    }
    if !filter.with_archived {
        select.and_where(Expr::col(Sessions::ArchivedAtMs).is_null());
    }
    if let Some(cursor) = before {
        let (at_ms, id) = parse_time_cursor(cursor)?;
        select.and_where(
            updated().lt(at_ms).or(updated()
                .eq(at_ms)
                .and(Expr::col(Sessions::SessionId).gt(id))),
        );
    }
    let rows = bound(&select).fetch_all(conn).await?;
    let sessions = rows
        .iter()
        .map(|row| read(row, agent_id))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(sessions, limit, |session| {
        time_cursor(session.updated_at_ms, &session.session_id)
    }))
}

/// Finds sessions by id, by live key, or by an unambiguous start of an id.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn find(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    reference: &str,
) -> Result<Vec<SessionRecord>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM sessions
         WHERE session_id = ?1
            OR session_id = (SELECT session_id FROM session_routes WHERE session_key = ?1)
            OR session_key = ?1
         ORDER BY session_id = ?1 DESC, updated_at_ms DESC, session_id",
    )
    .bind(reference)
    .fetch_all(&mut *conn)
    .await?;
    if !rows.is_empty() {
        return rows.iter().map(|row| read(row, agent_id)).collect();
    }
    // The half-open range of all ids that start so, on the index.
    let end = format!("{reference}\u{10FFFF}");
    let rows = sqlx::query("SELECT * FROM sessions WHERE session_id >= ?1 AND session_id < ?2 ORDER BY session_id LIMIT 3")
        .bind(reference)
        .bind(end)
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| read(row, agent_id)).collect()
}

/// How many sessions and messages there are.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count(conn: &mut SqliteConnection) -> Result<(i64, i64), StoreError> {
    Ok(
        sqlx::query_as("SELECT count(*), ifnull(sum(message_count), 0) FROM sessions")
            .fetch_one(conn)
            .await?,
    )
}
