//! Changes of sessions themselves: `sessions`, `session_routes`.

use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{SessionPatch, SessionStatus};
use crate::store::StoreError;

/// Notes that a session changed.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn touch(tx: &mut WriteTx<'_>, session_no: i64, at_ms: i64) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET revision = revision + 1, updated_at_ms = max(updated_at_ms, ?2) WHERE session_no = ?1",
    )
    .bind(session_no)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Applies a patch to the session if it is at this revision; says whether it was.
///
/// Titles, marks and archiving are no activity: the time of the last update stays.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn patch(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    revision: i64,
    patch: &SessionPatch,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let mark = |is_set: Option<bool>| is_set.map(i64::from);
    let done = sqlx::query(
        "UPDATE sessions SET
             display_name = CASE WHEN ?4 THEN ?5 ELSE display_name END,
             model_provider = CASE WHEN ?6 THEN ?7 ELSE model_provider END,
             model = CASE WHEN ?8 THEN ?9 ELSE model END,
             status = ifnull(?10, status),
             archived_at_ms = CASE ?11 WHEN 1 THEN ifnull(archived_at_ms, ?3) WHEN 0 THEN NULL ELSE archived_at_ms END,
             pinned_at_ms = CASE ?12 WHEN 1 THEN ifnull(pinned_at_ms, ?3) WHEN 0 THEN NULL ELSE pinned_at_ms END,
             revision = revision + 1
         WHERE session_id = ?1 AND revision = ?2",
    )
    .bind(session_id)
    .bind(revision)
    .bind(at_ms)
    .bind(patch.display_name.is_some())
    .bind(patch.display_name.as_ref().and_then(Option::as_deref))
    .bind(patch.model_provider.is_some())
    .bind(patch.model_provider.as_ref().and_then(Option::as_deref))
    .bind(patch.model.is_some())
    .bind(patch.model.as_ref().and_then(Option::as_deref))
    .bind(patch.status.map(SessionStatus::as_str))
    .bind(mark(patch.is_archived))
    .bind(mark(patch.is_pinned))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Begins or ends a turn: the state of the session and its times.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_status(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    status: SessionStatus,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE sessions SET status = ?2, updated_at_ms = max(updated_at_ms, ?3),
             started_at_ms = CASE WHEN ?2 = 'running' THEN ?3 ELSE started_at_ms END,
             ended_at_ms = CASE WHEN ?2 = 'running' THEN NULL ELSE ?3 END
         WHERE session_id = ?1",
    )
    .bind(session_id)
    .bind(status.as_str())
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Ends the turn of a session whose owner is gone, if it is still running.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn interrupt(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE sessions SET status = 'interrupted', ended_at_ms = ?2, revision = revision + 1
         WHERE session_id = ?1 AND status = 'running'",
    )
    .bind(session_id)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Sessions that say they are running, each with the payload of the turn's lease, if there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn running(
    conn: &mut SqliteConnection,
    scope: &str,
) -> Result<Vec<(String, Option<String>)>, StoreError> {
    let rows = sqlx::query(
        "SELECT s.session_id, l.payload_json FROM sessions s
         LEFT JOIN state_leases l ON l.scope = ?1 AND l.lease_key = s.session_id
         WHERE s.status = 'running' ORDER BY s.session_id",
    )
    .bind(scope)
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

/// The same in a schema without leases: nobody can say that a turn has an owner.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn running_of_old(conn: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT session_id FROM sessions WHERE status = 'running'")
            .fetch_all(conn)
            .await?,
    )
}

/// Notes where a session was copied from.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_origin(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    forked_from: &str,
    forked_at_event: Option<&str>,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE sessions SET forked_from = ?2, forked_at_event = ?3 WHERE session_no = ?1")
        .bind(session_no)
        .bind(forked_from)
        .bind(forked_at_event)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Copies what a session is, but not what was said, how it stands or what it came with, into a new one of this id and
/// key; gives its small key.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the id exists.
pub async fn copy(
    tx: &mut WriteTx<'_>,
    from_session_id: &str,
    to_session_id: &str,
    to_session_key: &str,
    at_ms: i64,
) -> Result<i64, StoreError> {
    let done = sqlx::query(
        "INSERT INTO sessions
             (session_id, session_key, session_scope, status, chat_type, channel, account_id,
              primary_conversation_id, display_name, model_provider, model, parent_session_key, spawned_by,
              created_at_ms, updated_at_ms)
         SELECT ?2, ?3, session_scope, 'idle', chat_type, channel, account_id,
              primary_conversation_id, display_name, model_provider, model, parent_session_key, spawned_by, ?4, ?4
         FROM sessions WHERE session_id = ?1",
    )
    .bind(from_session_id)
    .bind(to_session_id)
    .bind(to_session_key)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    let session_no = done.last_insert_rowid();
    sqlx::query(
        "INSERT INTO session_conversations (session_id, conversation_id, role, first_seen_at_ms, last_seen_at_ms)
         SELECT ?2, conversation_id, role, ?3, ?3 FROM session_conversations WHERE session_id = ?1",
    )
    .bind(from_session_id)
    .bind(to_session_id)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(session_no)
}

/// Sets the counts of a session that events were copied into; its newest place is its last.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_counts(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    events: i64,
    messages: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET event_count = ?2, message_count = ?3, last_seq =
             (SELECT ifnull(max(seq), 0) FROM transcript_event_identities WHERE session_no = ?1)
         WHERE session_no = ?1",
    )
    .bind(session_no)
    .bind(events)
    .bind(messages)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes a session with all it owns; says whether there was one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    session_id: &str,
) -> Result<bool, StoreError> {
    // The index has no foreign key: it goes first, while its words are still there.
    super::search::unindex(tx, session_no, 0).await?;
    sqlx::query("DELETE FROM state_leases WHERE scope = 'turn' AND lease_key = ?1")
        .bind(session_id)
        .execute(&mut **tx)
        .await?;
    let done = sqlx::query("DELETE FROM sessions WHERE session_no = ?1")
        .bind(session_no)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Bytes of texts and JSON of a session, read from their headers alone.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn bytes(conn: &mut SqliteConnection, session_no: i64) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT ifnull(sum(octet_length(text) + ifnull(octet_length(event_json), 0)), 0)
         FROM transcript_events WHERE session_no = ?1",
    )
    .bind(session_no)
    .fetch_one(conn)
    .await?)
}

/// The same for a session by its id; 0 when there is none.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn bytes_of(conn: &mut SqliteConnection, session_id: &str) -> Result<i64, StoreError> {
    let tail = super::session::tail(conn, session_id).await?;
    match tail {
        Some(tail) => bytes(conn, tail.session_no).await,
        None => Ok(0),
    }
}
