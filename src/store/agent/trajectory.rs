//! Steps of runtimes: `trajectory_runtime_events`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{Page, PageLimit, StoredSpan, TrajectoryEvent};
use crate::store::StoreError;

/// Schema version that brought the table; older ones hold no such events.
pub const SINCE_SCHEMA: i64 = 10;

fn read(row: &SqliteRow) -> Result<TrajectoryEvent, StoreError> {
    Ok(TrajectoryEvent {
        session_id: row.try_get("session_id")?,
        seq: row.try_get("seq")?,
        run_id: row.try_get("run_id")?,
        created_at_ms: row.try_get("created_at_ms")?,
        event_json: row.try_get("event_json")?,
    })
}

/// Adds events behind the last one of their session, in order; gives their places, `None` for no events.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, there is no such session, or a text is no JSON.
pub async fn append(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    run_id: Option<&str>,
    events: &[String],
    now_ms: i64,
) -> Result<Option<StoredSpan>, StoreError> {
    let mut span: Option<StoredSpan> = None;
    for event in events {
        let seq: i64 = sqlx::query_scalar(
            "INSERT INTO trajectory_runtime_events (session_id, seq, run_id, created_at_ms, event_json)
             SELECT ?1, ifnull(max(seq), 0) + 1, ?2, ?3, ?4 FROM trajectory_runtime_events WHERE session_id = ?1
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

/// Lists events of a session, or of one run of it, in order.
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
) -> Result<Page<TrajectoryEvent>, StoreError> {
    let after = after.map(place).transpose()?.unwrap_or(0);
    // Two texts: with one condition for both the index by run would serve neither.
    let sql = match run_id {
        Some(_) => {
            "SELECT session_id, seq, run_id, created_at_ms, event_json FROM trajectory_runtime_events
             WHERE session_id = ?1 AND run_id = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4"
        }
        None => {
            "SELECT session_id, seq, run_id, created_at_ms, event_json FROM trajectory_runtime_events
             WHERE session_id = ?1 AND ?2 IS NULL AND seq > ?3 ORDER BY seq LIMIT ?4"
        }
    };
    let rows = sqlx::query(sql)
        .bind(session_id)
        .bind(run_id)
        .bind(after)
        .bind(i64::from(limit.rows()) + 1)
        .fetch_all(conn)
        .await?;
    let events = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(events, limit, |event| event.seq.to_string()))
}

fn place(cursor: &str) -> Result<i64, StoreError> {
    cursor.parse().map_err(|_| StoreError::Cursor {
        text: cursor.to_owned(),
    })
}
