//! Where a conversation stands: the tail that appends follow, and the branch that leads there.
//!
//! Each event names its parent, so a transcript is a tree. `sessions.leaf_seq` says where in it the conversation
//! stands; as long as it is NULL nobody ever went back, and the branch is simply all events in their order.

use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{EventPlace, PageLimit};
use crate::store::StoreError;

/// A session as an append finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// Small key of the event rows.
    pub session_no: i64,
    /// Highest place ever given out.
    pub last_seq: i64,
    /// Place of the event it stands at; `None` for the newest, 0 before the first.
    pub leaf_seq: Option<i64>,
    /// Id of that event; `None` before the first.
    pub tail_id: Option<String>,
}

impl Stand {
    /// What the next event names as its parent. Empty for one that begins anew before earlier ones.
    #[must_use]
    pub fn next_parent(&self) -> Option<String> {
        match self.leaf_seq {
            Some(0) => Some(String::new()),
            _ => self.tail_id.clone(),
        }
    }
}

/// Where a session stands; `None` when there is no such session.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn stand(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Option<Stand>, StoreError> {
    let row = sqlx::query(
        "SELECT s.session_no, s.last_seq, s.leaf_seq, CASE
             WHEN s.leaf_seq IS NULL THEN
                 (SELECT i.event_id FROM transcript_event_identities i
                  WHERE i.session_no = s.session_no ORDER BY i.seq DESC LIMIT 1)
             ELSE
                 (SELECT i.event_id FROM transcript_event_identities i
                  WHERE i.session_no = s.session_no AND i.seq = s.leaf_seq)
             END AS tail_id
         FROM sessions s WHERE s.session_id = ?1",
    )
    .bind(session_id)
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(Stand {
            session_no: row.try_get(0)?,
            last_seq: row.try_get(1)?,
            leaf_seq: row.try_get(2)?,
            tail_id: row.try_get(3)?,
        })
    })
    .transpose()
}

/// The same in a schema without branches, which is only looked at.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn stand_of_old(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Option<Stand>, StoreError> {
    let tail = super::session::tail(conn, session_id).await?;
    Ok(tail.map(|tail| Stand {
        session_no: tail.session_no,
        last_seq: tail.last_seq,
        leaf_seq: None,
        tail_id: None,
    }))
}

/// Moves the tail of a session behind events that were inserted at its end, and counts them.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn advance(
    tx: &mut WriteTx<'_>,
    stand: &Stand,
    events: i64,
    messages: i64,
    updated_at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET event_count = event_count + ?2, message_count = message_count + ?3,
             last_seq = last_seq + ?2, leaf_seq = CASE WHEN leaf_seq IS NULL THEN NULL ELSE last_seq + ?2 END,
             updated_at_ms = max(updated_at_ms, ?4)
         WHERE session_no = ?1",
    )
    .bind(stand.session_no)
    .bind(events)
    .bind(messages)
    .bind(updated_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// A run of places of which all events belong to a branch, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First place.
    pub first: i64,
    /// Last place.
    pub last: i64,
}

impl Run {
    /// All places: the branch of a session that nobody ever took back.
    pub const ALL: Self = Self {
        first: 1,
        last: i64::MAX,
    };
}

/// How far up a branch is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Stop once the events above this place are known.
    pub above: i64,
    /// Stop after this many events.
    pub events: i64,
}

impl Reach {
    /// To the very start.
    pub const START: Self = Self {
        above: 0,
        events: i64::MAX,
    };
}

/// Walks from a place up to the start, parent by parent, and gives the runs it passes, first run first.
///
/// An event whose parent is not told, or not there, follows the one before it in the order of acceptance: better a
/// message too many than a conversation that ends in the middle.
///
/// * `from`: place of an event; what is not there gives no runs.
///
/// Takes time for each event passed, and memory for each run only.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn runs(
    conn: &mut SqliteConnection,
    session_no: i64,
    from: i64,
    reach: Reach,
) -> Result<Vec<Run>, StoreError> {
    let turns: Vec<(i64, i64)> = sqlx::query_as(
        "WITH RECURSIVE path (seq, up, before, walked) AS (
             SELECT i.seq,
                 CASE WHEN i.parent_id = '' THEN 0
                     ELSE ifnull(
                         (SELECT p.seq FROM transcript_event_identities p
                          WHERE p.session_no = ?1 AND p.event_id = i.parent_id AND p.seq < i.seq),
                         ifnull((SELECT max(b.seq) FROM transcript_event_identities b
                                 WHERE b.session_no = ?1 AND b.seq < i.seq), 0))
                     END,
                 ifnull((SELECT max(b.seq) FROM transcript_event_identities b
                         WHERE b.session_no = ?1 AND b.seq < i.seq), 0),
                 1
             FROM transcript_event_identities i WHERE i.session_no = ?1 AND i.seq = ?2
             UNION ALL
             SELECT i.seq,
                 CASE WHEN i.parent_id = '' THEN 0
                     ELSE ifnull(
                         (SELECT p.seq FROM transcript_event_identities p
                          WHERE p.session_no = ?1 AND p.event_id = i.parent_id AND p.seq < i.seq),
                         ifnull((SELECT max(b.seq) FROM transcript_event_identities b
                                 WHERE b.session_no = ?1 AND b.seq < i.seq), 0))
                     END,
                 ifnull((SELECT max(b.seq) FROM transcript_event_identities b
                         WHERE b.session_no = ?1 AND b.seq < i.seq), 0),
                 path.walked + 1
             FROM path JOIN transcript_event_identities i ON i.session_no = ?1 AND i.seq = path.up
             WHERE path.up > ?3 AND path.walked < ?4)
         SELECT seq, up FROM path WHERE up <> before OR up <= ?3 OR walked >= ?4",
    )
    .bind(session_no)
    .bind(from)
    .bind(reach.above)
    .bind(reach.events)
    .fetch_all(conn)
    .await?;
    let mut runs = Vec::with_capacity(turns.len());
    let mut last = from;
    for (first, up) in turns {
        runs.push(Run { first, last });
        last = up;
    }
    runs.reverse();
    Ok(runs)
}

/// Place of an event; `None` when the session has none of this id.
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

/// The newest place that is taken; 0 in a session without events.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn newest_seq(conn: &mut SqliteConnection, session_no: i64) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT ifnull(max(seq), 0) FROM transcript_event_identities WHERE session_no = ?1",
    )
    .bind(session_no)
    .fetch_one(conn)
    .await?)
}

/// Makes a session stand at a place, 0 for before its first event.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_leaf(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    seq: i64,
    at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE sessions SET leaf_seq = ?2, revision = revision + 1, updated_at_ms = max(updated_at_ms, ?3)
         WHERE session_no = ?1",
    )
    .bind(session_no)
    .bind(seq)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Deletes all events behind a place, on whatever branch, with their index and checkpoints; gives how many.
///
/// Where the session stands afterwards is for the caller to say.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn cut(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    session_no: i64,
    after: i64,
) -> Result<u64, StoreError> {
    super::search::unindex(tx, session_no, after).await?;
    sqlx::query("DELETE FROM transcript_snapshots WHERE session_id = ?1 AND seq > ?2")
        .bind(session_id)
        .bind(after)
        .execute(&mut **tx)
        .await?;
    let messages: i64 = sqlx::query_scalar(
        "SELECT count(role) FROM transcript_events WHERE session_no = ?1 AND seq > ?2",
    )
    .bind(session_no)
    .bind(after)
    .fetch_one(&mut **tx)
    .await?;
    let done = sqlx::query("DELETE FROM transcript_events WHERE session_no = ?1 AND seq > ?2")
        .bind(session_no)
        .bind(after)
        .execute(&mut **tx)
        .await?;
    let events = i64::try_from(done.rows_affected()).unwrap_or(i64::MAX);
    sqlx::query(
        "UPDATE sessions SET event_count = event_count - ?2, message_count = message_count - ?3 WHERE session_no = ?1",
    )
    .bind(session_no)
    .bind(events)
    .bind(messages)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// The ends of all branches: events that no other names as its parent, newest first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn tips(
    conn: &mut SqliteConnection,
    session_no: i64,
    limit: PageLimit,
) -> Result<Vec<EventPlace>, StoreError> {
    let rows = sqlx::query(
        "SELECT seq, event_id FROM transcript_event_identities
         WHERE session_no = ?1 AND event_id NOT IN (
             SELECT parent_id FROM transcript_event_identities
             WHERE session_no = ?1 AND parent_id IS NOT NULL)
         ORDER BY seq DESC LIMIT ?2",
    )
    .bind(session_no)
    .bind(limit.rows())
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

/// Copies a run of events into another session, at the same places; their append keys stay behind. Gives how many
/// events and messages there were.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn copy_run(
    tx: &mut WriteTx<'_>,
    from: i64,
    to: i64,
    run: Run,
) -> Result<(i64, i64), StoreError> {
    let counts: (i64, i64) = sqlx::query_as(
        "SELECT count(*), count(role) FROM transcript_events WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3",
    )
    .bind(from)
    .bind(run.first)
    .bind(run.last)
    .fetch_one(&mut **tx)
    .await?;
    for copy in [
        "INSERT INTO transcript_events (session_no, seq, event_type, role, created_at_ms, text, event_json)
         SELECT ?4, seq, event_type, role, created_at_ms, text, event_json
         FROM transcript_events WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq",
        "INSERT INTO transcript_event_identities (session_no, event_id, seq, event_type, parent_id, created_at_ms)
         SELECT ?4, event_id, seq, event_type, parent_id, created_at_ms
         FROM transcript_event_identities WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq",
    ] {
        sqlx::query(copy)
            .bind(from)
            .bind(run.first)
            .bind(run.last)
            .bind(to)
            .execute(&mut **tx)
            .await?;
    }
    Ok(counts)
}

/// The last place that is taken in a run.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn last_in(
    conn: &mut SqliteConnection,
    session_no: i64,
    run: Run,
) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT max(seq) FROM transcript_event_identities WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3",
    )
    .bind(session_no)
    .bind(run.first)
    .bind(run.last)
    .fetch_one(conn)
    .await?)
}

/// How many events a run holds.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count_in(
    conn: &mut SqliteConnection,
    session_no: i64,
    run: Run,
) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM transcript_event_identities WHERE session_no = ?1 AND seq BETWEEN ?2 AND ?3",
    )
    .bind(session_no)
    .bind(run.first)
    .bind(run.last)
    .fetch_one(conn)
    .await?)
}
