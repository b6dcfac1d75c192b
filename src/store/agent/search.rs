//! Word search over transcripts: `transcript_events_fts`.
//!
//! Events enter the index in `event_no` order, so the highest document it holds says how far it is
//! complete; no flag can drift from it.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{AgentId, PageLimit, SearchHit};
use crate::store::StoreError;

/// Events indexed in one transaction: a slice that fills the table of a bulk build about once.
pub const INDEX_SLICE: i64 = 100_000;

/// Settings of a full-text index while it is built in bulk.
///
/// Terms gather in 32 MiB of memory before they are written as a segment, and segments are not merged with one another
/// unless there are sixteen of them: each merge writes again what it merges. Measured on 680,000 short messages, 124 MB:
/// 62 MB written, 139 MB with merges.
const BULK: [(&str, i64); 2] = [("hashsize", 32 * 1024 * 1024), ("automerge", 0)];

/// FTS5's own settings, for single appends: what a bulk build left apart is merged bit by bit with them.
const SINGLE: [(&str, i64); 2] = [("hashsize", 1024 * 1024), ("automerge", 4)];

/// How hits are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SearchOrder {
    /// Best match first, by bm25.
    #[default]
    Rank,
    /// Newest first.
    Newest,
}

/// Indexes the next slice of events that are not indexed yet; gives how many it took.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn index_slice(tx: &mut WriteTx<'_>) -> Result<u64, StoreError> {
    index_next(tx, INDEX_SLICE).await
}

/// The same for at most `events` of them.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn index_next(tx: &mut WriteTx<'_>, events: i64) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "INSERT INTO transcript_events_fts (rowid, text)
         SELECT event_no, text FROM transcript_events
         WHERE event_no > (SELECT ifnull(max(id), 0) FROM transcript_events_fts_docsize)
         ORDER BY event_no LIMIT ?1",
    )
    .bind(events)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Takes a session's events behind a place out of the index; they must still be there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn unindex(tx: &mut WriteTx<'_>, session_no: i64, after: i64) -> Result<(), StoreError> {
    // Only what is in it: to delete what the index never held would damage it.
    sqlx::query(
        "INSERT INTO transcript_events_fts (transcript_events_fts, rowid, text)
         SELECT 'delete', e.event_no, e.text FROM transcript_events e
         WHERE e.session_no = ?1 AND e.seq > ?2
             AND EXISTS (SELECT 1 FROM transcript_events_fts_docsize d WHERE d.id = e.event_no)",
    )
    .bind(session_no)
    .bind(after)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Says whether this tier's full-text indexes, of memories too, are built in bulk; that stays so until it is taken back.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_bulk(tx: &mut WriteTx<'_>, is_bulk: bool) -> Result<(), StoreError> {
    let settings = if is_bulk { BULK } else { SINGLE };
    for (name, value) in settings {
        for sql in [
            "INSERT INTO transcript_events_fts (transcript_events_fts, rank) VALUES (?1, ?2)",
            "INSERT INTO memories_fts (memories_fts, rank) VALUES (?1, ?2)",
        ] {
            let set = sqlx::query(sql).bind(name).bind(value);
            set.execute(&mut **tx).await?;
        }
    }
    Ok(())
}

/// Whether a bulk build is under way, or was cut off before it was taken back.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn is_bulk(conn: &mut SqliteConnection) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT k, v FROM transcript_events_fts_config
             UNION ALL SELECT k, v FROM memories_fts_config) WHERE k = 'automerge' AND v = 0",
    )
    .fetch_one(conn)
    .await
    .map(|found: i64| found > 0)?)
}

/// Drops the index's content and builds it from the events.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn rebuild(tx: &mut WriteTx<'_>) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO transcript_events_fts (transcript_events_fts) VALUES ('rebuild')")
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// How many events wait to be indexed.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn pending(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM transcript_events
         WHERE event_no > (SELECT ifnull(max(id), 0) FROM transcript_events_fts_docsize)",
    )
    .fetch_one(conn)
    .await?)
}

/// Finds messages that hold all words of `text`.
///
/// Words are matched whole, without regard to case or accents; text in scripts that write without
/// spaces is found as a part of the message instead.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn search(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    text: &str,
    order: SearchOrder,
    filter: &SearchFilter,
    limit: PageLimit,
) -> Result<Vec<SearchHit>, StoreError> {
    let (sql, wanted) = match match_expression(text) {
        Some(_) if needs_substring(text) => (SUBSTRING, text.trim().to_owned()),
        Some(expression) if order == SearchOrder::Newest => (NEWEST_WORDS, expression),
        Some(expression) => (RANKED_WORDS, expression),
        None => return Ok(Vec::new()),
    };
    let rows = sqlx::query(sql)
        .bind(wanted)
        .bind(limit.rows())
        .bind(&filter.role)
        .bind(filter.since_ms)
        .bind(filter.until_ms)
        .bind(MAX_SNIPPED_BYTES)
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| read(row, agent_id)).collect()
}

/// Which events a search is about; nothing set means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilter {
    /// Only what this one said.
    pub role: Option<String>,
    /// Only at this time or later.
    pub since_ms: Option<i64>,
    /// Only before this time.
    pub until_ms: Option<i64>,
}

/// A text of more bytes has no snippet: to make one, all of it is read and parted into words.
const MAX_SNIPPED_BYTES: i64 = 262_144;

/// Best first.
const RANKED_WORDS: &str = "
    SELECT s.session_id, s.session_key, s.display_name, e.seq, e.role, e.created_at_ms,
        CASE WHEN octet_length(e.text) > ?6 THEN '…'
             ELSE snippet(transcript_events_fts, 0, '[', ']', '…', 12) END AS snippet, f.rank AS rank
    FROM transcript_events_fts f
    JOIN transcript_events e ON e.event_no = f.rowid
    JOIN sessions s ON s.session_no = e.session_no
    WHERE transcript_events_fts MATCH ?1 AND (?3 IS NULL OR e.role = ?3)
        AND (?4 IS NULL OR e.created_at_ms >= ?4) AND (?5 IS NULL OR e.created_at_ms < ?5)
    ORDER BY f.rank LIMIT ?2";

/// Newest first: snippets are made only of those that are shown.
const NEWEST_WORDS: &str = "
    SELECT s.session_id, s.session_key, s.display_name, e.seq, e.role, e.created_at_ms,
        CASE WHEN octet_length(e.text) > ?6 THEN '…'
             ELSE snippet(transcript_events_fts, 0, '[', ']', '…', 12) END AS snippet, f.rank AS rank
    FROM transcript_events_fts f
    JOIN transcript_events e ON e.event_no = f.rowid
    JOIN sessions s ON s.session_no = e.session_no
    WHERE transcript_events_fts MATCH ?1 AND f.rowid IN (
        SELECT n.event_no FROM transcript_events_fts m
        JOIN transcript_events n ON n.event_no = m.rowid
        WHERE m.transcript_events_fts MATCH ?1 AND (?3 IS NULL OR n.role = ?3)
            AND (?4 IS NULL OR n.created_at_ms >= ?4) AND (?5 IS NULL OR n.created_at_ms < ?5)
        ORDER BY n.created_at_ms DESC, n.event_no DESC LIMIT ?2)
    ORDER BY e.created_at_ms DESC, e.event_no DESC";

/// Scripts without spaces: every text is looked through.
const SUBSTRING: &str = "
    SELECT s.session_id, s.session_key, s.display_name, e.seq, e.role, e.created_at_ms,
        CASE WHEN octet_length(e.text) > ?6 THEN '…'
             ELSE substr(e.text, max(1, instr(e.text, ?1) - 20), 20)
                 || '[' || ?1 || ']'
                 || substr(e.text, instr(e.text, ?1) + length(?1), 20) END AS snippet,
        0.0 AS rank
    FROM transcript_events e JOIN sessions s ON s.session_no = e.session_no
    WHERE (?3 IS NULL OR e.role = ?3)
        AND (?4 IS NULL OR e.created_at_ms >= ?4) AND (?5 IS NULL OR e.created_at_ms < ?5)
        AND instr(e.text, ?1) > 0
    ORDER BY e.created_at_ms DESC, e.event_no DESC LIMIT ?2";

fn read(row: &SqliteRow, agent_id: &AgentId) -> Result<SearchHit, StoreError> {
    Ok(SearchHit {
        agent_id: agent_id.clone(),
        session_id: row.try_get(0)?,
        session_key: row.try_get(1)?,
        display_name: row.try_get(2)?,
        seq: row.try_get(3)?,
        role: row.try_get(4)?,
        created_at_ms: row.try_get(5)?,
        snippet: row.try_get(6)?,
        rank: row.try_get(7)?,
    })
}

/// Every word quoted, so that nothing a person types is FTS5 syntax; `None` without a word.
pub(super) fn match_expression(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"").replace('\0', " ")))
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Whether the text holds a script written without spaces, whose words the tokenizer cannot part.
pub(super) fn needs_substring(text: &str) -> bool {
    text.chars().any(|c| {
        matches!(u32::from(c),
            0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_person_types_is_query_syntax() {
        assert_eq!(
            match_expression("disk AND \"x"),
            Some("\"disk\" \"AND\" \"\"\"x\"".to_owned())
        );
        assert_eq!(
            match_expression("NEAR(a b)*"),
            Some("\"NEAR(a\" \"b)*\"".to_owned())
        );
        assert_eq!(match_expression(" -- ** "), None);
        assert!(needs_substring("会議は明日") && !needs_substring("привет é"));
    }
}
