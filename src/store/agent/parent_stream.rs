//! What ACP children told their parents: `acp_parent_stream_events`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{Page, PageLimit, ParentStreamEvent, StoredSpan};
use crate::store::StoreError;
use crate::store::row::{parse_time_cursor, time_cursor};

/// Schema version that brought the table; older ones hold no such events.
pub const SINCE_SCHEMA: i64 = 10;

fn read(row: &SqliteRow) -> Result<ParentStreamEvent, StoreError> {
    Ok(ParentStreamEvent {
        session_id: row.try_get("session_id")?,
        run_id: row.try_get("run_id")?,
        seq: row.try_get("seq")?,
        created_at_ms: row.try_get("created_at_ms")?,
        event_json: row.try_get("event_json")?,
    })
}

/// Adds events behind the last one of their run, in order; gives their places, `None` for no events.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, there is no such session, or a text is no JSON.
pub async fn append(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    run_id: &str,
    events: &[String],
    now_ms: i64,
) -> Result<Option<StoredSpan>, StoreError> {
    let mut span: Option<StoredSpan> = None;
    for event in events {
        let seq: i64 = sqlx::query_scalar(
            "INSERT INTO acp_parent_stream_events (session_id, run_id, seq, created_at_ms, event_json)
             SELECT ?1, ?2, ifnull(max(seq), 0) + 1, ?3, ?4 FROM acp_parent_stream_events
             WHERE session_id = ?1 AND run_id = ?2
             RETURNING seq",
        )
        .bind(session_id)
        .bind(run_id)
        .bind(now_ms)
        .bind(event)
        .fetch_one(&mut **tx)
        .await?;
        span = Some(StoredSpan {
            first_seq: span.map_or(seq, |span| span.first_seq),
            last_seq: seq,
        });
    }
    Ok(span)
}

/// Lists events by run and place; of one run, where it is given.
///
/// * `after`: exclusive cursor from an earlier page; `None` starts at the first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    session_id: &str,
    run_id: Option<&str>,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<ParentStreamEvent>, StoreError> {
    let (seq, run) = match (after, run_id) {
        (Some(cursor), _) => parse_time_cursor(cursor)?,
        (None, run) => (0, run.unwrap_or_default().to_owned()),
    };
    let rows = sqlx::query(
        "SELECT session_id, run_id, seq, created_at_ms, event_json FROM acp_parent_stream_events
         WHERE session_id = ?1 AND (run_id, seq) > (?2, ?3) AND (?4 IS NULL OR run_id = ?4)
         ORDER BY run_id, seq LIMIT ?5",
    )
    .bind(session_id)
    .bind(run)
    .bind(seq)
    .bind(run_id)
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let events = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(events, limit, |event| {
        time_cursor(event.seq, &event.run_id)
    }))
}
