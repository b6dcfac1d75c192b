//! The other side: prepared statements over the C API, without a thread between, on the same pragmas.

use std::path::Path;

use rusqlite::{Connection, params};
use zeroclaw::model::{Event, NewEvent};

const INSERT_EVENT: &str = "INSERT INTO transcript_events
    (session_no, seq, event_type, role, created_at_ms, text, event_json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const INSERT_IDENTITY: &str = "INSERT INTO transcript_event_identities
    (session_no, event_id, seq, event_type, parent_id, message_idempotency_key, created_at_ms)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const GROW: &str =
    "UPDATE sessions SET event_count = event_count + 1, message_count = message_count + 1,
    last_seq = ?2, updated_at_ms = max(updated_at_ms, ?3) WHERE session_no = ?1";
const SESSION: &str = "INSERT INTO sessions (session_no, session_id, session_key, status, created_at_ms, updated_at_ms)
    VALUES (1, 'raw', 'raw', 'idle', 0, 0)";
const READ: &str = "SELECT e.seq, i.event_id, e.event_type, e.role, i.parent_id, e.created_at_ms, e.text, e.event_json
    FROM transcript_events e JOIN transcript_event_identities i USING (session_no, seq)
    WHERE e.session_no = ?1 ORDER BY e.seq";

/// Opens a database as our writer does, with `synchronous` of this word.
pub(crate) fn open(path: &Path, synchronous: &str) -> Connection {
    let conn = Connection::open(path).unwrap();
    let pragmas = format!(
        "PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;
         PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 1000;
         PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -2000;"
    );
    conn.execute_batch(&pragmas).unwrap();
    conn
}

/// Makes the one session that events go to.
pub(crate) fn make_session(conn: &Connection) {
    conn.execute(SESSION, []).unwrap();
}

fn insert(conn: &Connection, seq: usize, event: &NewEvent) {
    let seq = i64::try_from(seq).unwrap();
    conn.prepare_cached(INSERT_EVENT)
        .unwrap()
        .execute(params![
            1,
            seq,
            event.event_type,
            event.role,
            event.created_at_ms,
            event.text,
            event.event_json
        ])
        .unwrap();
    conn.prepare_cached(INSERT_IDENTITY)
        .unwrap()
        .execute(params![
            1,
            event.event_id,
            seq,
            event.event_type,
            event.parent_id,
            event.idempotency_key,
            event.created_at_ms
        ])
        .unwrap();
}

/// Appends events, a commit each.
pub(crate) fn append(conn: &Connection, after: usize, events: &[NewEvent]) {
    for (number, event) in events.iter().enumerate() {
        let seq = after + number + 1;
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        insert(conn, seq, event);
        conn.prepare_cached(GROW)
            .unwrap()
            .execute(params![1, i64::try_from(seq).unwrap(), event.created_at_ms])
            .unwrap();
        conn.execute_batch("COMMIT").unwrap();
    }
}

/// Inserts events in one transaction.
pub(crate) fn bulk_insert(conn: &Connection, events: &[NewEvent]) {
    conn.execute_batch("PRAGMA cache_size = -65536; BEGIN IMMEDIATE")
        .unwrap();
    for (number, event) in events.iter().enumerate() {
        insert(conn, number + 1, event);
    }
    conn.execute_batch("COMMIT").unwrap();
}

/// Reads a transcript into the same values as ours.
pub(crate) fn read(conn: &Connection, session_no: i64) -> Vec<Event> {
    let mut statement = conn.prepare_cached(READ).unwrap();
    let rows = statement.query_map([session_no], |row| {
        Ok(Event {
            seq: row.get(0)?,
            event_id: row.get(1)?,
            event_type: row.get(2)?,
            role: row.get(3)?,
            parent_id: row.get(4)?,
            created_at_ms: row.get(5)?,
            text: row.get(6)?,
            event_json: row.get(7)?,
            cut: None,
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Copies a database and syncs the copy.
pub(crate) fn copy(conn: &Connection, target: &Path) {
    conn.execute("VACUUM INTO ?1", [target.to_str().unwrap()])
        .unwrap();
    std::fs::File::open(target).unwrap().sync_all().unwrap();
}
