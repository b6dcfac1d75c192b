//! Messages on their way through channels: `delivery_queue_entries`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{
    AgentId, DeadReason, DeliveryEntry, DeliveryRoute, DeliveryStatus, NewDelivery, Page, PageLimit,
};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded, decoded_opt, parse_time_cursor, time_cursor};

const TABLE: &str = "delivery_queue_entries";

/// Most channels that are looked at for what is due.
const MAX_CHANNELS: i64 = 256;

/// Which messages to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// Only those that stand so.
    pub status: Option<DeliveryStatus>,
    /// Only through this channel.
    pub channel: Option<String>,
}

/// Who has a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRow {
    /// Identity of the claim.
    pub token: String,
    /// The process, as it wrote itself down.
    pub owner_json: String,
}

fn read(row: &SqliteRow) -> Result<DeliveryEntry, StoreError> {
    let id: String = row.try_get("id")?;
    let status: String = row.try_get("status")?;
    let reason: Option<String> = row.try_get("dead_reason")?;
    let agent: Option<String> = row.try_get("agent_id")?;
    Ok(DeliveryEntry {
        queue_name: row.try_get("queue_name")?,
        status: decoded(DeliveryStatus::parse, &status, TABLE, "status", &id)?,
        dead_reason: decoded_opt(DeadReason::parse, reason, TABLE, "dead_reason", &id)?,
        entry_kind: row.try_get("entry_kind")?,
        route: DeliveryRoute {
            channel: row.try_get("channel")?,
            account_id: row.try_get("account_id")?,
            target: row.try_get("target")?,
            thread_id: row.try_get("thread_id")?,
            agent_id: decoded_opt(agent_id, agent, TABLE, "agent_id", &id)?,
            session_key: row.try_get("session_key")?,
        },
        task_id: row.try_get("task_id")?,
        idempotency_key: row.try_get("idempotency_key")?,
        entry_json: row.try_get("entry_json")?,
        may_resend: row.try_get("may_resend")?,
        retry_count: row.try_get("retry_count")?,
        max_retries: row.try_get("max_retries")?,
        next_attempt_at_ms: row.try_get("next_attempt_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        claimed_at_ms: row.try_get("claimed_at_ms")?,
        platform_send_started_at_ms: row.try_get("platform_send_started_at_ms")?,
        platform_message_id: row.try_get("platform_message_id")?,
        last_attempt_at_ms: row.try_get("last_attempt_at_ms")?,
        last_error: row.try_get("last_error")?,
        enqueued_at_ms: row.try_get("enqueued_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        sent_at_ms: row.try_get("sent_at_ms")?,
        failed_at_ms: row.try_get("failed_at_ms")?,
        detail_json: row.try_get("detail_json")?,
        id,
    })
}

/// Inserts a message, due at once; says whether no message of the queue has its key yet.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the id is taken.
pub async fn insert_new(
    tx: &mut WriteTx<'_>,
    id: &str,
    queue_name: &str,
    new: &NewDelivery,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO delivery_queue_entries
             (id, queue_name, status, entry_kind, channel, account_id, target, thread_id, agent_id, session_key, task_id,
              idempotency_key, entry_json, may_resend, max_retries, next_attempt_at_ms, expires_at_ms, enqueued_at_ms,
              updated_at_ms)
         VALUES (?1, ?2, 'pending', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?15, ?15)
         ON CONFLICT (queue_name, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
    )
    .bind(id)
    .bind(queue_name)
    .bind(&new.entry_kind)
    .bind(&new.route.channel)
    .bind(&new.route.account_id)
    .bind(&new.route.target)
    .bind(&new.route.thread_id)
    .bind(new.route.agent_id.as_ref().map(AgentId::as_str))
    .bind(&new.route.session_key)
    .bind(&new.task_id)
    .bind(&new.idempotency_key)
    .bind(&new.entry_json)
    .bind(new.may_resend)
    .bind(new.max_retries)
    .bind(now_ms)
    .bind(now_ms.saturating_add(new.max_age_ms))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// The message of a key.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn by_key(
    conn: &mut SqliteConnection,
    queue_name: &str,
    key: &str,
) -> Result<Option<DeliveryEntry>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM delivery_queue_entries WHERE queue_name = ?1 AND idempotency_key = ?2",
    )
    .bind(queue_name)
    .bind(key)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read).transpose()
}

/// One message, with what is to be sent.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    id: &str,
) -> Result<Option<DeliveryEntry>, StoreError> {
    let row = sqlx::query("SELECT * FROM delivery_queue_entries WHERE id = ?1")
        .bind(id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Messages without what is to be sent, newest first.
///
/// # Errors
///
/// [`StoreError::Cursor`] for a foreign cursor, [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    filter: &DeliveryFilter,
    before: Option<&str>,
    limit: PageLimit,
) -> Result<Page<DeliveryEntry>, StoreError> {
    let cursor = before.map(parse_time_cursor).transpose()?;
    let rows = sqlx::query(
        "SELECT id, queue_name, status, dead_reason, entry_kind, channel, account_id, target, thread_id, agent_id,
                session_key, task_id, idempotency_key, NULL AS entry_json, may_resend, retry_count, max_retries,
                next_attempt_at_ms, expires_at_ms, claimed_at_ms, platform_send_started_at_ms, platform_message_id,
                last_attempt_at_ms, last_error, enqueued_at_ms, updated_at_ms, sent_at_ms, failed_at_ms, detail_json
         FROM delivery_queue_entries
         WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR channel = ?2)
           AND (?3 IS NULL OR (enqueued_at_ms, id) < (?3, ?4))
         ORDER BY enqueued_at_ms DESC, id DESC LIMIT ?5",
    )
    .bind(filter.status.map(DeliveryStatus::as_str))
    .bind(&filter.channel)
    .bind(cursor.as_ref().map(|cursor| cursor.0))
    .bind(cursor.as_ref().map(|cursor| cursor.1.as_str()))
    .bind(i64::from(limit.rows()) + 1)
    .fetch_all(conn)
    .await?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(found, limit, |entry| {
        time_cursor(entry.enqueued_at_ms, &entry.id)
    }))
}

/// Channels that messages wait for, by name; the first 256.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn waiting_channels(conn: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    // From one channel to the next in the index: a long queue costs no more than a short one.
    let found = sqlx::query_scalar(
        "WITH RECURSIVE found (channel) AS (
             SELECT min(channel) FROM delivery_queue_entries WHERE status = 'pending'
             UNION ALL
             SELECT (SELECT min(channel) FROM delivery_queue_entries
                     WHERE status = 'pending' AND channel > found.channel)
             FROM found WHERE found.channel IS NOT NULL
         )
         SELECT channel FROM found WHERE channel IS NOT NULL LIMIT ?1",
    )
    .bind(MAX_CHANNELS)
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// How many messages are under way, by channel.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn in_flight(conn: &mut SqliteConnection) -> Result<Vec<(String, i64)>, StoreError> {
    let found = sqlx::query_as(
        "SELECT channel, count(*) FROM delivery_queue_entries WHERE status = 'sending' GROUP BY channel",
    )
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// The message of a channel that has waited longest, if its next attempt is at or before `until_ms` and at or after
/// `from_ms`. Whom a message is on its way to gets the next one after that.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn next_due(
    conn: &mut SqliteConnection,
    channel: &str,
    from_ms: i64,
    until_ms: i64,
    now_ms: i64,
) -> Result<Option<String>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT id FROM delivery_queue_entries AS due
         WHERE status = 'pending' AND channel = ?1 AND next_attempt_at_ms BETWEEN ?2 AND ?3 AND expires_at_ms > ?4
           AND NOT EXISTS (
               SELECT 1 FROM delivery_queue_entries AS gone
               WHERE gone.status = 'sending' AND gone.channel = due.channel AND gone.target = due.target
                 AND gone.account_id IS due.account_id AND gone.thread_id IS due.thread_id)
         ORDER BY next_attempt_at_ms, id LIMIT 1",
    )
    .bind(channel)
    .bind(from_ms)
    .bind(until_ms)
    .bind(now_ms)
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// The earliest next attempt of all that wait; `None` where none does.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn earliest_attempt(conn: &mut SqliteConnection) -> Result<Option<i64>, StoreError> {
    let mut earliest: Option<i64> = None;
    for channel in waiting_channels(conn).await? {
        let first: Option<i64> = sqlx::query_scalar(
            "SELECT min(next_attempt_at_ms) FROM delivery_queue_entries WHERE status = 'pending' AND channel = ?1",
        )
        .bind(channel)
        .fetch_one(&mut *conn)
        .await?;
        earliest = earliest.into_iter().chain(first).min();
    }
    Ok(earliest)
}

/// Gives a waiting message to a process; says whether it still waited.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn claim(
    tx: &mut WriteTx<'_>,
    id: &str,
    claim: &ClaimRow,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE delivery_queue_entries
         SET status = 'sending', claim_token = ?2, claim_owner_json = ?3, claimed_at_ms = ?4, last_attempt_at_ms = ?4,
             platform_send_started_at_ms = NULL, updated_at_ms = ?4
         WHERE id = ?1 AND status = 'pending'",
    )
    .bind(id)
    .bind(&claim.token)
    .bind(&claim.owner_json)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that the channel begins to send; says whether this claim still holds the message.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn mark_started(
    tx: &mut WriteTx<'_>,
    id: &str,
    token: &str,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE delivery_queue_entries SET platform_send_started_at_ms = ?3, updated_at_ms = ?3
         WHERE id = ?1 AND claim_token = ?2",
    )
    .bind(id)
    .bind(token)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Who has a message; `None` where nobody does.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn claim_of(
    conn: &mut SqliteConnection,
    id: &str,
) -> Result<Option<ClaimRow>, StoreError> {
    let found = sqlx::query(
        "SELECT claim_token, claim_owner_json FROM delivery_queue_entries WHERE id = ?1 AND status = 'sending'",
    )
    .bind(id)
    .fetch_optional(conn)
    .await?;
    let row = found.map(|row| {
        Ok(ClaimRow {
            token: row.try_get(0)?,
            owner_json: row.try_get(1)?,
        })
    });
    row.transpose()
}

/// A message of an agent that is under way, if one is.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn under_way_of(
    conn: &mut SqliteConnection,
    agent: &AgentId,
) -> Result<Option<String>, StoreError> {
    let id = sqlx::query_scalar(
        "SELECT id FROM delivery_queue_entries WHERE status = 'sending' AND agent_id = ?1 LIMIT 1",
    );
    Ok(id.bind(agent.as_str()).fetch_optional(conn).await?)
}

/// All messages under way, and who has them. As many as may be under way at once.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn under_way(conn: &mut SqliteConnection) -> Result<Vec<(String, ClaimRow)>, StoreError> {
    let rows = sqlx::query(
        "SELECT id, claim_token, claim_owner_json FROM delivery_queue_entries WHERE status = 'sending' ORDER BY id",
    )
    .fetch_all(conn)
    .await?;
    let read = |row: &SqliteRow| {
        let claim = ClaimRow {
            token: row.try_get(1)?,
            owner_json: row.try_get(2)?,
        };
        Ok((row.try_get(0)?, claim))
    };
    rows.iter().map(read).collect()
}

/// Writes where a message stands; nobody has it then.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or the row would break the schema's promise.
pub async fn settle(tx: &mut WriteTx<'_>, entry: &DeliveryEntry) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE delivery_queue_entries
         SET status = ?2, dead_reason = ?3, retry_count = ?4, next_attempt_at_ms = ?5, expires_at_ms = ?6,
             platform_send_started_at_ms = ?7, platform_message_id = ?8, last_error = ?9, updated_at_ms = ?10,
             sent_at_ms = ?11, failed_at_ms = ?12, claim_token = NULL, claim_owner_json = NULL, claimed_at_ms = NULL
         WHERE id = ?1",
    )
    .bind(&entry.id)
    .bind(entry.status.as_str())
    .bind(entry.dead_reason.map(DeadReason::as_str))
    .bind(entry.retry_count)
    .bind(entry.next_attempt_at_ms)
    .bind(entry.expires_at_ms)
    .bind(entry.platform_send_started_at_ms)
    .bind(&entry.platform_message_id)
    .bind(&entry.last_error)
    .bind(entry.updated_at_ms)
    .bind(entry.sent_at_ms)
    .bind(entry.failed_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Waiting messages that are too old become dead, the oldest first, at most `limit`; gives how many.
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
        "UPDATE delivery_queue_entries
         SET status = 'dead', dead_reason = 'expired', failed_at_ms = ?1, updated_at_ms = ?1
         WHERE id IN (SELECT id FROM delivery_queue_entries WHERE status = 'pending' AND expires_at_ms <= ?1
                      ORDER BY expires_at_ms, id LIMIT ?2)",
    )
    .bind(now_ms)
    .bind(i64::from(limit.rows()))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// Deletes messages sent before an instant, at most `limit`; gives how many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn forget_sent(
    tx: &mut WriteTx<'_>,
    before_ms: i64,
    limit: PageLimit,
) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM delivery_queue_entries
         WHERE id IN (SELECT id FROM delivery_queue_entries WHERE status = 'sent' AND sent_at_ms < ?1
                      ORDER BY sent_at_ms, id LIMIT ?2)",
    )
    .bind(before_ms)
    .bind(i64::from(limit.rows()))
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// The dead messages that died before an instant, by id; at most `limit`, from behind `after`.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn dead_before(
    conn: &mut SqliteConnection,
    before_ms: i64,
    after: &str,
    limit: PageLimit,
) -> Result<Vec<String>, StoreError> {
    let found = sqlx::query_scalar(
        "SELECT id FROM delivery_queue_entries
         WHERE status = 'dead' AND coalesce(failed_at_ms, updated_at_ms) < ?1 AND id > ?2 ORDER BY id LIMIT ?3",
    )
    .bind(before_ms)
    .bind(after)
    .bind(i64::from(limit.rows()))
    .fetch_all(conn)
    .await?;
    Ok(found)
}

/// Deletes a dead message; says whether it was one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete_dead(tx: &mut WriteTx<'_>, id: &str) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM delivery_queue_entries WHERE id = ?1 AND status = 'dead'")
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}
