//! What agents have promised: `commitments`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{AgentId, Commitment, CommitmentStatus, NewCommitment, Page, PageLimit};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded, parse_time_cursor, time_cursor};

const TABLE: &str = "commitments";

/// Which commitments to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitmentFilter {
    /// Only those that stand so.
    pub status: Option<CommitmentStatus>,
    /// Only this agent's.
    pub agent_id: Option<AgentId>,
}

fn read(row: &SqliteRow) -> Result<Commitment, StoreError> {
    let id: String = row.try_get("id")?;
    let status: String = row.try_get("status")?;
    let agent: String = row.try_get("agent_id")?;
    Ok(Commitment {
        status: decoded(CommitmentStatus::parse, &status, TABLE, "status", &id)?,
        what: NewCommitment {
            agent_id: decoded(agent_id, &agent, TABLE, "agent_id", &id)?,
            session_key: row.try_get("session_key")?,
            channel: row.try_get("channel")?,
            account_id: row.try_get("account_id")?,
            recipient_id: row.try_get("recipient_id")?,
            thread_id: row.try_get("thread_id")?,
            sender_id: row.try_get("sender_id")?,
            kind: row.try_get("kind")?,
            sensitivity: row.try_get("sensitivity")?,
            source: row.try_get("source")?,
            reason: row.try_get("reason")?,
            suggested_text: row.try_get("suggested_text")?,
            dedupe_key: row.try_get("dedupe_key")?,
            confidence: row.try_get("confidence")?,
            due_earliest_ms: row.try_get("due_earliest_ms")?,
            due_latest_ms: row.try_get("due_latest_ms")?,
            due_timezone: row.try_get("due_timezone")?,
            source_message_id: row.try_get("source_message_id")?,
            source_run_id: row.try_get("source_run_id")?,
        },
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        attempts: row.try_get("attempts")?,
        last_attempt_at_ms: row.try_get("last_attempt_at_ms")?,
        sent_at_ms: row.try_get("sent_at_ms")?,
        dismissed_at_ms: row.try_get("dismissed_at_ms")?,
        snoozed_until_ms: row.try_get("snoozed_until_ms")?,
        expired_at_ms: row.try_get("expired_at_ms")?,
        detail_json: row.try_get("detail_json")?,
        id,
    })
}

/// Inserts a commitment; says whether its conversation has no living one of its key yet.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the id is taken.
pub async fn insert_new(tx: &mut WriteTx<'_>, new: &Commitment) -> Result<bool, StoreError> {
    let what = &new.what;
    let done = sqlx::query(
        "INSERT INTO commitments
             (id, agent_id, session_key, channel, account_id, recipient_id, thread_id, sender_id, kind, sensitivity, source,
              status, reason, suggested_text, dedupe_key, confidence, due_earliest_ms, due_latest_ms, due_timezone,
              source_message_id, source_run_id, created_at_ms, updated_at_ms, attempts, last_attempt_at_ms, sent_at_ms,
              dismissed_at_ms, snoozed_until_ms, expired_at_ms, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
                 ?24, ?25, ?26, ?27, ?28, ?29, ?30)
         ON CONFLICT (agent_id, session_key, channel, dedupe_key) WHERE status IN ('pending', 'snoozed') DO NOTHING",
    )
    .bind(&new.id)
    .bind(what.agent_id.as_str())
    .bind(&what.session_key)
    .bind(&what.channel)
    .bind(&what.account_id)
    .bind(&what.recipient_id)
    .bind(&what.thread_id)
    .bind(&what.sender_id)
    .bind(&what.kind)
    .bind(&what.sensitivity)
    .bind(&what.source)
    .bind(new.status.as_str())
    .bind(&what.reason)
    .bind(&what.suggested_text)
    .bind(&what.dedupe_key)
    .bind(what.confidence)
    .bind(what.due_earliest_ms)
    .bind(what.due_latest_ms)
    .bind(&what.due_timezone)
    .bind(&what.source_message_id)
    .bind(&what.source_run_id)
    .bind(new.created_at_ms)
    .bind(new.updated_at_ms)
    .bind(new.attempts)
    .bind(new.last_attempt_at_ms)
    .bind(new.sent_at_ms)
    .bind(new.dismissed_at_ms)
    .bind(new.snoozed_until_ms)
    .bind(new.expired_at_ms)
    .bind(&new.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The living commitment of a conversation under a key.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn living(
    conn: &mut SqliteConnection,
    like: &NewCommitment,
) -> Result<Option<Commitment>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM commitments
         WHERE agent_id = ?1 AND session_key = ?2 AND channel = ?3 AND dedupe_key = ?4
           AND status IN ('pending', 'snoozed')",
    )
    .bind(like.agent_id.as_str())
    .bind(&like.session_key)
    .bind(&like.channel)
    .bind(&like.dedupe_key)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read).transpose()
}

/// One commitment.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get(conn: &mut SqliteConnection, id: &str) -> Result<Option<Commitment>, StoreError> {
    let row = sqlx::query("SELECT * FROM commitments WHERE id = ?1")
        .bind(id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Commitments, newest first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    filter: &CommitmentFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<Commitment>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT * FROM commitments
         WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR agent_id = ?2)
           AND (?3 IS NULL OR (created_at_ms, id) < (?3, ?4))
         ORDER BY created_at_ms DESC, id DESC LIMIT ?5",
    )
    .bind(filter.status.map(CommitmentStatus::as_str))
    .bind(filter.agent_id.as_ref().map(AgentId::as_str))
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |commitment| {
        time_cursor(commitment.created_at_ms, &commitment.id)
    }))
}

/// Commitments whose window meets a span of time, the earliest first: `from_ms` to `until_ms`, both within. What is put off
/// until after the span is left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn due(
    conn: &mut SqliteConnection,
    agent: Option<&AgentId>,
    from_ms: i64,
    until_ms: i64,
    limit: PageLimit,
) -> Result<Vec<Commitment>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM commitments
         WHERE status IN ('pending', 'snoozed') AND due_earliest_ms <= ?2 AND due_latest_ms >= ?1
           AND (status = 'pending' OR snoozed_until_ms <= ?2) AND (?3 IS NULL OR agent_id = ?3)
         ORDER BY due_earliest_ms, id LIMIT ?4",
    )
    .bind(from_ms)
    .bind(until_ms)
    .bind(agent.map(AgentId::as_str))
    .bind(i64::from(limit.rows()))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}

/// Writes where a commitment stands.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn settle(tx: &mut WriteTx<'_>, commitment: &Commitment) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE commitments
         SET status = ?2, updated_at_ms = ?3, attempts = ?4, last_attempt_at_ms = ?5, sent_at_ms = ?6,
             dismissed_at_ms = ?7, snoozed_until_ms = ?8
         WHERE id = ?1",
    )
    .bind(&commitment.id)
    .bind(commitment.status.as_str())
    .bind(commitment.updated_at_ms)
    .bind(commitment.attempts)
    .bind(commitment.last_attempt_at_ms)
    .bind(commitment.sent_at_ms)
    .bind(commitment.dismissed_at_ms)
    .bind(commitment.snoozed_until_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Living commitments whose window closed before an instant expire, at most `limit`; gives how many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn expire(
    tx: &mut WriteTx<'_>,
    now_ms: i64,
    limit: PageLimit,
) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "UPDATE commitments SET status = 'expired', expired_at_ms = ?1, updated_at_ms = ?1
         WHERE id IN (SELECT id FROM commitments WHERE status IN ('pending', 'snoozed') AND due_latest_ms < ?1
                      ORDER BY due_earliest_ms, id LIMIT ?2)",
    )
    .bind(now_ms)
    .bind(i64::from(limit.rows()))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}
