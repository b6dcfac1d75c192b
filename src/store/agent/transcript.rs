//! Events of sessions: `transcript_events`, `transcript_event_identities`.

use sqlx::{Row, SqliteConnection};

use super::branch::Run;
use crate::db::WriteTx;
use crate::model::{
    BOUNDED_JSON_BYTES, BOUNDED_TEXT_BYTES, CutEvent, Event, EventPlace, NewEvent, PREVIEW_CHARS,
    PageLimit, Payloads,
};
use crate::store::StoreError;
use crate::store::row::values_sql;

/// Most events of one insert.
pub const MAX_INSERT: usize = 500;

/// Most bytes of text and JSON read for one page, but for a single larger event.
pub(crate) const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// An event with its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedEvent<'e> {
    /// Small key of its session.
    pub session_no: i64,
    /// Place in the session.
    pub seq: i64,
    /// The event.
    pub event: &'e NewEvent,
}

/// Inserts up to [`MAX_INSERT`] events with their identities, of one or several sessions.
///
/// The full-text index is not touched: see [`super::search`].
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or a place or an id is taken.
pub async fn insert(tx: &mut WriteTx<'_>, events: &[PlacedEvent<'_>]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    let sql = values_sql(
        "INSERT INTO transcript_events (session_no, seq, event_type, role, created_at_ms, text, event_json) VALUES",
        7,
        events.len(),
        "",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for placed in events {
        query = query
            .bind(placed.session_no)
            .bind(placed.seq)
            .bind(&placed.event.event_type)
            .bind(&placed.event.role)
            .bind(placed.event.created_at_ms)
            .bind(&placed.event.text)
            .bind(&placed.event.event_json);
    }
    query.execute(&mut **tx).await?;
    let sql = values_sql(
        "INSERT INTO transcript_event_identities
             (session_no, event_id, seq, event_type, parent_id, message_idempotency_key, created_at_ms) VALUES",
        7,
        events.len(),
        "",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for placed in events {
        query = query
            .bind(placed.session_no)
            .bind(&placed.event.event_id)
            .bind(placed.seq)
            .bind(&placed.event.event_type)
            .bind(&placed.event.parent_id)
            .bind(&placed.event.idempotency_key)
            .bind(placed.event.created_at_ms);
    }
    query.execute(&mut **tx).await?;
    Ok(())
}

/// The id of a session's last event.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn last_event_id(
    conn: &mut SqliteConnection,
    session_no: i64,
) -> Result<Option<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT event_id FROM transcript_event_identities WHERE session_no = ?1 ORDER BY seq DESC LIMIT 1",
    )
    .bind(session_no)
    .fetch_optional(conn)
    .await?)
}

/// Between an append's key and the number of an event in the keys of its later events; no key of a caller holds it.
pub const KEY_PART: char = '\u{1f}';

/// The events that an append with this key inserted, in order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn of_append(
    conn: &mut SqliteConnection,
    session_no: i64,
    key: &str,
) -> Result<Vec<EventPlace>, StoreError> {
    let rows = sqlx::query(
        "SELECT seq, event_id FROM transcript_event_identities
         WHERE session_no = ?1 AND message_idempotency_key = ?2
         UNION ALL
         SELECT seq, event_id FROM transcript_event_identities
         WHERE session_no = ?1 AND message_idempotency_key > ?3 AND message_idempotency_key < ?4
         ORDER BY seq",
    )
    .bind(session_no)
    .bind(key)
    .bind(format!("{key}{KEY_PART}"))
    .bind(format!("{key}{}", '\u{20}'))
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(EventPlace {
                seq: row.try_get(0)?,
                event_id: row.try_get(1)?,
            })
        })
        .collect()
}

/// A stored event as a read-back compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Its id.
    pub event_id: String,
    /// Who spoke.
    pub role: Option<String>,
    /// When.
    pub created_at_ms: i64,
    /// Its text.
    pub text: String,
    /// Its JSON.
    pub event_json: Option<String>,
}

/// Which of `event_ids` a session holds, with their content, in no order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get_many(
    conn: &mut SqliteConnection,
    session_no: i64,
    event_ids: &[&str],
) -> Result<Vec<StoredEvent>, StoreError> {
    if event_ids.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["?"; event_ids.len()].join(",");
    let sql = format!(
        "SELECT i.event_id, e.role, e.created_at_ms, e.text, e.event_json
         FROM transcript_event_identities i JOIN transcript_events e USING (session_no, seq)
         WHERE i.session_no = ? AND i.event_id IN ({marks})"
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(session_no);
    for id in event_ids {
        query = query.bind(*id);
    }
    let rows = query.fetch_all(conn).await?;
    rows.iter()
        .map(|row| {
            Ok(StoredEvent {
                event_id: row.try_get(0)?,
                role: row.try_get(1)?,
                created_at_ms: row.try_get(2)?,
                text: row.try_get(3)?,
                event_json: row.try_get(4)?,
            })
        })
        .collect()
}

/// Reads a session's events behind `after`, oldest first, at most `limit` and about 4 MiB of them.
///
/// An empty answer means the end; a short one does not.
///
/// The page travels as one text that is cut up here: rows one by one through the driver were
/// measured at 0.3 of raw SQLite's speed, packed pages at 0.6. Lengths lead, so any byte may occur.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the page cannot be taken apart.
pub async fn page(
    conn: &mut SqliteConnection,
    session_no: i64,
    after: i64,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let run = Run {
        first: after.saturating_add(1),
        last: i64::MAX,
    };
    page_of(conn, session_no, run, limit).await
}

/// The same for the events of a run of places.
///
/// # Errors
///
/// As [`page`].
pub async fn page_of(
    conn: &mut SqliteConnection,
    session_no: i64,
    run: Run,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let sql = "SELECT group_concat(packed, '') FROM (
             SELECT concat(e.seq, ' ', e.created_at_ms, ' ', octet_length(i.event_id), ' ',
                     octet_length(e.event_type), ' ', ifnull(octet_length(e.role), -1), ' ',
                     ifnull(octet_length(i.parent_id), -1), ' ', octet_length(e.text), ' ',
                     ifnull(octet_length(e.event_json), -1), char(10))
                 || i.event_id || e.event_type || ifnull(e.role, '') || ifnull(i.parent_id, '')
                 || e.text || ifnull(e.event_json, '') AS packed
             FROM (SELECT seq AS at_seq, bytes, sum(bytes) OVER (ORDER BY seq) AS total
                   FROM (SELECT seq, octet_length(text) + ifnull(octet_length(event_json), 0) AS bytes
                         FROM transcript_events WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?5 ORDER BY seq LIMIT ?3))
             JOIN transcript_events e ON e.session_no = ?1 AND e.seq = at_seq
             JOIN transcript_event_identities i ON i.session_no = ?1 AND i.seq = at_seq
             WHERE total - bytes < ?4
             ORDER BY at_seq)";
    let packed: Option<String> = sqlx::query_scalar(sql)
        .bind(session_no)
        .bind(run.first)
        .bind(limit.rows())
        .bind(PAGE_BYTES)
        .bind(run.last)
        .fetch_one(conn)
        .await?;
    packed.map_or_else(|| Ok(Vec::new()), |packed| unpack(&packed, session_no))
}

/// The same with bounded payloads: what is left out is not read, only its size, which stands in the row's header.
///
/// # Errors
///
/// As [`page`].
pub async fn bounded_page_of(
    conn: &mut SqliteConnection,
    session_no: i64,
    run: Run,
    limit: PageLimit,
) -> Result<Vec<Event>, StoreError> {
    let sql = "SELECT group_concat(packed, '') FROM (
             SELECT concat(seq, ' ', created_at_ms, ' ', octet_length(event_id), ' ', octet_length(event_type), ' ',
                     ifnull(octet_length(role), -1), ' ', ifnull(octet_length(parent_id), -1), ' ',
                     octet_length(shown), ' ', ifnull(octet_length(json), -1), ' ', text_bytes, ' ', json_bytes, char(10))
                 || event_id || event_type || ifnull(role, '') || ifnull(parent_id, '')
                 || shown || ifnull(json, '') AS packed
             FROM (SELECT e.seq, e.created_at_ms, i.event_id, e.event_type, e.role, i.parent_id,
                       CASE WHEN octet_length(e.text) > ?6 THEN ''
                            WHEN octet_length(e.text) > ?8 THEN substr(e.text, 1, ?8)
                            ELSE e.text END AS shown,
                       CASE WHEN octet_length(e.event_json) > ?7 THEN NULL ELSE e.event_json END AS json,
                       octet_length(e.text) AS text_bytes, ifnull(octet_length(e.event_json), -1) AS json_bytes
                   FROM (SELECT seq AS at_seq, bytes, sum(bytes) OVER (ORDER BY seq) AS total
                         FROM (SELECT seq, iif(octet_length(text) > ?6, 0, octet_length(text))
                                   + iif(ifnull(octet_length(event_json), 0) > ?7, 0, ifnull(octet_length(event_json), 0))
                                   AS bytes
                               FROM transcript_events
                               WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?5 ORDER BY seq LIMIT ?3))
                   JOIN transcript_events e ON e.session_no = ?1 AND e.seq = at_seq
                   JOIN transcript_event_identities i ON i.session_no = ?1 AND i.seq = at_seq
                   WHERE total - bytes < ?4
                   ORDER BY at_seq))";
    let packed: Option<String> = sqlx::query_scalar(sql)
        .bind(session_no)
        .bind(run.first)
        .bind(limit.rows())
        .bind(PAGE_BYTES)
        .bind(run.last)
        .bind(BOUNDED_TEXT_BYTES)
        .bind(BOUNDED_JSON_BYTES)
        .bind(PREVIEW_CHARS)
        .fetch_one(conn)
        .await?;
    packed.map_or_else(|| Ok(Vec::new()), |packed| unpack(&packed, session_no))
}

/// The place of an event by its id.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn seq_of(
    conn: &mut SqliteConnection,
    session_no: i64,
    event_id: &str,
) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT seq FROM transcript_event_identities WHERE session_no = ?1 AND event_id = ?2",
    )
    .bind(session_no)
    .bind(event_id)
    .fetch_optional(conn)
    .await?)
}

/// The last part of a run that makes a page: its first place, its events and their bytes; `None` if the run is empty.
///
/// Sizes are read without what they are the sizes of.
///
/// * `payloads`: what the page will hold, and so what counts.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn end_of(
    conn: &mut SqliteConnection,
    session_no: i64,
    run: Run,
    limit: PageLimit,
    payloads: Payloads,
) -> Result<Option<PagePart>, StoreError> {
    let (text_bytes, json_bytes) = match payloads {
        Payloads::Bounded => (BOUNDED_TEXT_BYTES, BOUNDED_JSON_BYTES),
        Payloads::Whole => (i64::MAX, i64::MAX),
    };
    let (first, events, bytes): (Option<i64>, i64, i64) = sqlx::query_as(
        "SELECT min(seq), count(*), ifnull(sum(bytes), 0)
         FROM (SELECT seq, bytes, sum(bytes) OVER (ORDER BY seq DESC) AS total
               FROM (SELECT seq, iif(octet_length(text) > ?6, 0, octet_length(text))
                         + iif(ifnull(octet_length(event_json), 0) > ?7, 0, ifnull(octet_length(event_json), 0)) AS bytes
                     FROM transcript_events WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3
                     ORDER BY seq DESC LIMIT ?4))
         WHERE total - bytes < ?5",
    )
    .bind(session_no)
    .bind(run.first)
    .bind(run.last)
    .bind(limit.rows())
    .bind(PAGE_BYTES)
    .bind(text_bytes)
    .bind(json_bytes)
    .fetch_one(conn)
    .await?;
    Ok(first.map(|first| PagePart {
        first,
        events,
        bytes,
    }))
}

/// A part of a page that ends a run of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePart {
    /// First place.
    pub first: i64,
    /// How many events.
    pub events: i64,
    /// Bytes of their texts and JSON, as far as the page holds them.
    pub bytes: i64,
}

fn unpack(packed: &str, session_no: i64) -> Result<Vec<Event>, StoreError> {
    let broken = || StoreError::Corrupt {
        table: "transcript_events",
        column: "text",
        row: format!("of session {session_no}"),
        found: "a page that cannot be taken apart".to_owned(),
    };
    let mut events = Vec::new();
    let mut rest = packed;
    while !rest.is_empty() {
        let (event, tail) = unpack_one(rest).ok_or_else(broken)?;
        events.push(event);
        rest = tail;
    }
    Ok(events)
}

fn unpack_one(packed: &str) -> Option<(Event, &str)> {
    let (head, mut rest) = packed.split_once('\n')?;
    let mut numbers = head.split(' ').map(str::parse::<i64>);
    let mut number = || numbers.next()?.ok();
    let (seq, created_at_ms) = (number()?, number()?);
    let mut field = || -> Option<Option<String>> {
        let Ok(bytes) = usize::try_from(number()?) else {
            return Some(None);
        };
        let (value, tail) = rest.split_at_checked(bytes)?;
        rest = tail;
        Some(Some(value.to_owned()))
    };
    let (event_id, event_type) = (field()??, field()??);
    let (role, parent_id) = (field()?, field()?);
    let (text, event_json) = (field()??, field()?);
    let cut = match (number(), number()) {
        (Some(text_bytes), Some(json_bytes)) => {
            let json_bytes = (json_bytes >= 0).then_some(json_bytes);
            let is_whole = i64::try_from(text.len()) == Ok(text_bytes)
                && json_bytes.is_some() == event_json.is_some();
            (!is_whole).then_some(CutEvent {
                text_bytes,
                json_bytes,
            })
        }
        _ => None,
    };
    Some((
        Event {
            seq,
            event_id,
            event_type,
            role,
            parent_id,
            created_at_ms,
            text,
            event_json,
            cut,
        },
        rest,
    ))
}

/// How messages read elsewhere relate to a session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They begin with all that is here, `there` messages, and may go on.
    Continues {
        /// Messages that are here.
        there: usize,
    },
    /// They are the beginning of what is here.
    Contained,
    /// They say something else.
    Differs,
}

/// Messages compared at once: each may be large.
const COMPARED: u32 = 64;

/// Compares a sequence of message digests with a session's messages, in order.
///
/// * `digest`: makes the digest of a role and a text.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn compare<D: PartialEq>(
    conn: &mut SqliteConnection,
    session_no: i64,
    sequence: &[D],
    digest: impl Fn(&str, &str) -> D,
) -> Result<Relation, StoreError> {
    let mut at = 0;
    let mut after = 0;
    loop {
        let page: Vec<(i64, String, String)> = sqlx::query_as(
            "SELECT seq, role, text FROM transcript_events
             WHERE session_no = ?1 AND seq > ?2 AND role IS NOT NULL ORDER BY seq LIMIT ?3",
        )
        .bind(session_no)
        .bind(after)
        .bind(COMPARED)
        .fetch_all(&mut *conn)
        .await?;
        let Some((last, ..)) = page.last() else {
            return Ok(Relation::Continues { there: at });
        };
        after = *last;
        for (_, role, text) in &page {
            match sequence.get(at) {
                None => return Ok(Relation::Contained),
                Some(expected) if *expected == digest(role, text) => at += 1,
                Some(_) => return Ok(Relation::Differs),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_page_comes_apart_whatever_its_texts_hold() {
        let packed = "3 17 2 7 4 -1 6 -1\ne1messageusera\nb 1 4 18 2 1 -1 2 0 2\ne2xe1{}";
        // The first text is `a\nb 1 ` and ends where its length says.
        let events = unpack(packed, 1).unwrap();

        assert_eq!(events.len(), 2);
        assert_eq!(events[0].text, "a\nb 1 ");
        assert_eq!(events[1].seq, 4);
        assert_eq!(events[1].parent_id.as_deref(), Some("e1"));
        assert_eq!(events[1].event_json.as_deref(), Some("{}"));
        assert!(unpack("3 17 2 7 4 -1 60 -1\ne1messageuser", 1).is_err());
    }
}
