//! One event at the end of a session: `transcript_events`, `transcript_event_identities`, `sessions` and the index.
//!
//! The common append is one event. Its four statements go to SQLite's thread as one: handing over and back costs more
//! than what they do.

use super::branch::Stand;
use crate::db::WriteTx;
use crate::model::NewEvent;
use crate::store::StoreError;

/// Numbers name the same value in each statement. The driver counts numbers that a statement skips as values used up, so
/// the last one takes none.
///
/// Up to 64 events that an import left are indexed on the way: the index catches up, and the append stays short.
const ONE: &str = "
    INSERT INTO transcript_events (session_no, seq, event_type, role, created_at_ms, text, event_json)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);
    INSERT INTO transcript_event_identities
        (session_no, seq, event_type, created_at_ms, event_id, parent_id, message_idempotency_key)
    VALUES (?1, ?2, ?3, ?5, ?8, ?9, ?10);
    UPDATE sessions SET event_count = event_count + 1, message_count = message_count + (?4 IS NOT NULL),
        last_seq = ?2, leaf_seq = CASE WHEN leaf_seq IS NULL THEN NULL ELSE ?2 END,
        updated_at_ms = max(updated_at_ms, ?5)
    WHERE session_no = ?1;
    INSERT INTO transcript_events_fts (rowid, text)
    SELECT event_no, text FROM transcript_events
    WHERE event_no > (SELECT ifnull(max(id), 0) FROM transcript_events_fts_docsize)
    ORDER BY event_no LIMIT 65";

/// Inserts an event behind the last place of a session, indexes and counts it, and lets the session stand at it.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the event's id or key is taken.
pub async fn one(tx: &mut WriteTx<'_>, stand: &Stand, event: &NewEvent) -> Result<(), StoreError> {
    sqlx::query(ONE)
        .bind(stand.session_no)
        .bind(stand.last_seq + 1)
        .bind(&event.event_type)
        .bind(&event.role)
        .bind(event.created_at_ms)
        .bind(&event.text)
        .bind(&event.event_json)
        .bind(&event.event_id)
        .bind(&event.parent_id)
        .bind(&event.idempotency_key)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
