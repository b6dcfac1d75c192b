//! Messages that come in with what became of them: `delivery_queue_entries`.

use crate::db::WriteTx;
use crate::model::{DeadReason, DeliveryEntry};
use crate::store::StoreError;

/// Inserts a message as it stands; nobody has it.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, the id or the key is taken, or it stands as no message can.
pub async fn insert(tx: &mut WriteTx<'_>, entry: &DeliveryEntry) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO delivery_queue_entries
             (id, queue_name, status, dead_reason, entry_kind, channel, account_id, target, thread_id, agent_id,
              session_key, task_id, idempotency_key, entry_json, may_resend, retry_count, max_retries,
              next_attempt_at_ms, expires_at_ms, platform_send_started_at_ms, platform_message_id, last_attempt_at_ms,
              last_error, enqueued_at_ms, updated_at_ms, sent_at_ms, failed_at_ms, detail_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ifnull(?14, '{}'), ?15, ?16, ?17, ?18, ?19,
                 ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)",
    )
    .bind(&entry.id)
    .bind(&entry.queue_name)
    .bind(entry.status.as_str())
    .bind(entry.dead_reason.map(DeadReason::as_str))
    .bind(&entry.entry_kind)
    .bind(&entry.route.channel)
    .bind(&entry.route.account_id)
    .bind(&entry.route.target)
    .bind(&entry.route.thread_id)
    .bind(entry.route.agent_id.as_ref().map(|agent| agent.as_str()))
    .bind(&entry.route.session_key)
    .bind(&entry.task_id)
    .bind(&entry.idempotency_key)
    .bind(&entry.entry_json)
    .bind(entry.may_resend)
    .bind(entry.retry_count)
    .bind(entry.max_retries)
    .bind(entry.next_attempt_at_ms)
    .bind(entry.expires_at_ms)
    .bind(entry.platform_send_started_at_ms)
    .bind(&entry.platform_message_id)
    .bind(entry.last_attempt_at_ms)
    .bind(&entry.last_error)
    .bind(entry.enqueued_at_ms)
    .bind(entry.updated_at_ms)
    .bind(entry.sent_at_ms)
    .bind(entry.failed_at_ms)
    .bind(&entry.detail_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
