//! A session row by row, as it leaves this agent and comes back, none of its columns lost.
//!
//! Small keys stay behind: they mean nothing elsewhere.

use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::branch::Run;
use crate::db::WriteTx;
use crate::model::{ChatType, SessionScope, SessionStatus};
use crate::store::StoreError;

/// A row of `sessions`. The order of fields is the order they are written in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns are explained in the schema")]
pub struct SessionRow {
    pub session_id: String,
    pub session_key: String,
    pub session_scope: SessionScope,
    pub status: SessionStatus,
    pub chat_type: Option<ChatType>,
    pub channel: Option<String>,
    pub account_id: Option<String>,
    pub primary_conversation_id: Option<String>,
    pub display_name: Option<String>,
    pub model_provider: Option<String>,
    pub model: Option<String>,
    pub parent_session_key: Option<String>,
    pub spawned_by: Option<String>,
    pub last_seq: i64,
    pub leaf_seq: Option<i64>,
    pub revision: i64,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
    pub started_at_ms: Option<i64>,
    pub ended_at_ms: Option<i64>,
    pub archived_at_ms: Option<i64>,
    pub pinned_at_ms: Option<i64>,
    pub forked_from: Option<String>,
    pub forked_at_event: Option<String>,
    pub has_synthetic_times: bool,
}

/// A row of `session_entries`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns are explained in the schema")]
pub struct EntryRow {
    pub session_key: String,
    pub entry_json: String,
    pub updated_at_ms: i64,
}

/// A row of `session_conversations` with its conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "columns are explained in the schema")]
pub struct ConversationRow {
    pub role: String,
    pub first_seen_at_ms: i64,
    pub last_seen_at_ms: i64,
    pub conversation_id: String,
    pub channel: String,
    pub account_id: String,
    pub kind: ChatType,
    pub peer_id: String,
    pub parent_conversation_id: Option<String>,
    pub thread_id: Option<String>,
    pub label: Option<String>,
    pub metadata_json: Option<String>,
    pub created_at_ms: i64,
    pub updated_at_ms: i64,
}

fn word<T>(
    row: &SqliteRow,
    table: &'static str,
    column: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    let text: Option<String> = row.try_get(column)?;
    super::super::row::decoded_opt(parse, text, table, column, "of an exported session")
}

fn told<T>(value: Option<T>, table: &'static str, column: &'static str) -> Result<T, StoreError> {
    value.ok_or_else(|| StoreError::Corrupt {
        table,
        column,
        row: "of an exported session".to_owned(),
        found: String::new(),
    })
}

/// The row of a session, and its small key.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn row(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Option<(i64, SessionRow)>, StoreError> {
    let found = sqlx::query("SELECT * FROM sessions WHERE session_id = ?1")
        .bind(session_id)
        .fetch_optional(conn)
        .await?;
    let Some(row) = found else { return Ok(None) };
    let table = "sessions";
    let scope = word(&row, table, "session_scope", SessionScope::parse)?;
    let status = word(&row, table, "status", SessionStatus::parse)?;
    let session = SessionRow {
        session_id: row.try_get("session_id")?,
        session_key: row.try_get("session_key")?,
        session_scope: told(scope, table, "session_scope")?,
        status: told(status, table, "status")?,
        chat_type: word(&row, table, "chat_type", ChatType::parse)?,
        channel: row.try_get("channel")?,
        account_id: row.try_get("account_id")?,
        primary_conversation_id: row.try_get("primary_conversation_id")?,
        display_name: row.try_get("display_name")?,
        model_provider: row.try_get("model_provider")?,
        model: row.try_get("model")?,
        parent_session_key: row.try_get("parent_session_key")?,
        spawned_by: row.try_get("spawned_by")?,
        last_seq: row.try_get("last_seq")?,
        leaf_seq: row.try_get("leaf_seq")?,
        revision: row.try_get("revision")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        started_at_ms: row.try_get("started_at_ms")?,
        ended_at_ms: row.try_get("ended_at_ms")?,
        archived_at_ms: row.try_get("archived_at_ms")?,
        pinned_at_ms: row.try_get("pinned_at_ms")?,
        forked_from: row.try_get("forked_from")?,
        forked_at_event: row.try_get("forked_at_event")?,
        has_synthetic_times: row.try_get::<i64, _>("has_synthetic_times")? != 0,
    };
    Ok(Some((row.try_get("session_no")?, session)))
}

/// Inserts a session as it was, without its conversation; gives its small key.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the id exists.
pub async fn insert_row(tx: &mut WriteTx<'_>, row: &SessionRow) -> Result<i64, StoreError> {
    let done = sqlx::query(
        "INSERT INTO sessions
             (session_id, session_key, session_scope, status, chat_type, channel, account_id, display_name,
              model_provider, model, parent_session_key, spawned_by, last_seq, leaf_seq, revision, created_at_ms,
              updated_at_ms, started_at_ms, ended_at_ms, archived_at_ms, pinned_at_ms, forked_from, forked_at_event,
              has_synthetic_times)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
              ?23, ?24)",
    )
    .bind(&row.session_id)
    .bind(&row.session_key)
    .bind(row.session_scope.as_str())
    .bind(row.status.as_str())
    .bind(row.chat_type.map(ChatType::as_str))
    .bind(&row.channel)
    .bind(&row.account_id)
    .bind(&row.display_name)
    .bind(&row.model_provider)
    .bind(&row.model)
    .bind(&row.parent_session_key)
    .bind(&row.spawned_by)
    .bind(row.last_seq)
    .bind(row.leaf_seq)
    .bind(row.revision)
    .bind(row.created_at_ms)
    .bind(row.updated_at_ms)
    .bind(row.started_at_ms)
    .bind(row.ended_at_ms)
    .bind(row.archived_at_ms)
    .bind(row.pinned_at_ms)
    .bind(&row.forked_from)
    .bind(&row.forked_at_event)
    .bind(i64::from(row.has_synthetic_times))
    .execute(&mut **tx)
    .await?;
    Ok(done.last_insert_rowid())
}

/// Keys that lead to a session now.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn routes(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Vec<(String, i64)>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT session_key, updated_at_ms FROM session_routes WHERE session_id = ?1 ORDER BY session_key",
    )
    .bind(session_id)
    .fetch_all(conn)
    .await?)
}

/// The entries a session came with.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn entries(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Vec<EntryRow>, StoreError> {
    let rows =
        sqlx::query("SELECT * FROM session_entries WHERE session_id = ?1 ORDER BY session_key")
            .bind(session_id)
            .fetch_all(conn)
            .await?;
    rows.iter()
        .map(|row| {
            Ok(EntryRow {
                session_key: row.try_get("session_key")?,
                entry_json: row.try_get("entry_json")?,
                updated_at_ms: row.try_get("updated_at_ms")?,
            })
        })
        .collect()
}

/// The conversations of a session.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn conversations(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Vec<ConversationRow>, StoreError> {
    let rows = sqlx::query(
        "SELECT s.role, s.first_seen_at_ms, s.last_seen_at_ms, c.* FROM session_conversations s
         JOIN conversations c USING (conversation_id)
         WHERE s.session_id = ?1 ORDER BY s.role, c.conversation_id",
    )
    .bind(session_id)
    .fetch_all(conn)
    .await?;
    let read = |row: &SqliteRow| {
        let kind = word(row, "conversations", "kind", ChatType::parse)?;
        Ok(ConversationRow {
            role: row.try_get("role")?,
            first_seen_at_ms: row.try_get("first_seen_at_ms")?,
            last_seen_at_ms: row.try_get("last_seen_at_ms")?,
            conversation_id: row.try_get("conversation_id")?,
            channel: row.try_get("channel")?,
            account_id: row.try_get("account_id")?,
            kind: told(kind, "conversations", "kind")?,
            peer_id: row.try_get("peer_id")?,
            parent_conversation_id: row.try_get("parent_conversation_id")?,
            thread_id: row.try_get("thread_id")?,
            label: row.try_get("label")?,
            metadata_json: row.try_get("metadata_json")?,
            created_at_ms: row.try_get("created_at_ms")?,
            updated_at_ms: row.try_get("updated_at_ms")?,
        })
    };
    rows.iter().map(read).collect()
}

/// Finds the conversation of the same five values, or inserts this one, and makes the session part of it; gives the id
/// that holds.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_conversation(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    row: &ConversationRow,
) -> Result<String, StoreError> {
    let existing: Option<String> = sqlx::query_scalar(
        "SELECT conversation_id FROM conversations
         WHERE channel = ?1 AND account_id = ?2 AND kind = ?3 AND peer_id = ?4
           AND ifnull(parent_conversation_id, '') = ifnull(?5, '') AND ifnull(thread_id, '') = ifnull(?6, '')",
    )
    .bind(&row.channel)
    .bind(&row.account_id)
    .bind(row.kind.as_str())
    .bind(&row.peer_id)
    .bind(&row.parent_conversation_id)
    .bind(&row.thread_id)
    .fetch_optional(&mut **tx)
    .await?;
    let id = match existing {
        Some(id) => id,
        None => {
            sqlx::query(
                "INSERT INTO conversations
                     (conversation_id, channel, account_id, kind, peer_id, parent_conversation_id, thread_id, label,
                      metadata_json, created_at_ms, updated_at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )
            .bind(&row.conversation_id)
            .bind(&row.channel)
            .bind(&row.account_id)
            .bind(row.kind.as_str())
            .bind(&row.peer_id)
            .bind(&row.parent_conversation_id)
            .bind(&row.thread_id)
            .bind(&row.label)
            .bind(&row.metadata_json)
            .bind(row.created_at_ms)
            .bind(row.updated_at_ms)
            .execute(&mut **tx)
            .await?;
            row.conversation_id.clone()
        }
    };
    sqlx::query(
        "INSERT INTO session_conversations (session_id, conversation_id, role, first_seen_at_ms, last_seen_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .bind(session_id)
    .bind(&id)
    .bind(&row.role)
    .bind(row.first_seen_at_ms)
    .bind(row.last_seen_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

/// Names the conversation of a session.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_conversation(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    conversation_id: &str,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE sessions SET primary_conversation_id = ?2 WHERE session_no = ?1")
        .bind(session_no)
        .bind(conversation_id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The append keys of a run of events, by place.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn keys(
    conn: &mut SqliteConnection,
    session_no: i64,
    run: Run,
) -> Result<Vec<(i64, String)>, StoreError> {
    Ok(sqlx::query_as(
        "SELECT seq, message_idempotency_key FROM transcript_event_identities
         WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3 AND message_idempotency_key IS NOT NULL ORDER BY seq",
    )
    .bind(session_no)
    .bind(run.first)
    .bind(run.last)
    .fetch_all(conn)
    .await?)
}

/// Sets what a session counts after all its events came in.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_counts(tx: &mut WriteTx<'_>, session_no: i64) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET
             event_count = (SELECT count(*) FROM transcript_events WHERE session_no = ?1),
             message_count = (SELECT count(role) FROM transcript_events WHERE session_no = ?1)
         WHERE session_no = ?1",
    )
    .bind(session_no)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
