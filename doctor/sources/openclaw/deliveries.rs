//! `delivery-queue/<id>.json` and `session-delivery-queue/<id>.json`, and `failed/` in both: messages not sent.
//!
//! `{"id":"…","enqueuedAt":…,"channel":"telegram","to":"424242","payloads":[{"text":"…"}],"retryCount":1}`
//!
//! None of them is sent by coming in. One whose sending had begun may have arrived: nobody knows, and a person
//! decides. The others were not sent, and are dead until somebody sends them anew.

use std::path::Path;

use serde_json::{Map, Value};
use zeroclaw::model::{DeadReason, DeliveryEntry, DeliveryRoute, DeliveryStatus, Tier};

use super::super::{Batcher, ReadError, Sink};
use super::index::{ms, text, word};
use super::{key, tolerant};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, kind};

/// Attempts after the first that the old program made.
const MAX_RETRIES: i64 = 5;

/// Streams the one message of a file.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let format = |reason: &str| ReadError::Format {
        reason: reason.to_owned(),
    };
    let all = tolerant::file(path).map_err(|reason| format(&reason))?;
    let fields = all.as_object().ok_or_else(|| format("it is no object"))?;
    let mut out = Batcher::new(sink);
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if text(fields, "id").as_deref() != Some(stem) {
        return Err(format("its name is not its id"));
    }
    if path.with_extension("delivered").exists() {
        // Its sending ended, and only the file had not gone yet.
        out.push(
            Item::Merged {
                kind: kind::DELIVERY,
                count: 1,
            },
            0,
        )
        .await?;
        return out.flush().await;
    }
    let has_failed = path
        .parent()
        .is_some_and(|folder| folder.ends_with("failed"));
    let is_session = path
        .components()
        .any(|part| part.as_os_str() == "session-delivery-queue");
    let queue = if is_session {
        "session-delivery"
    } else {
        "outbound"
    };
    let entry = entry(fields, queue, has_failed, owners).map_err(format)?;
    let place = format!("message {}", entry.id);
    let message = match entry.status {
        DeliveryStatus::Unknown => {
            "may have been sent; `zeroclaw delivery confirm` or `retry` says what holds"
        }
        _ => "was not sent; `zeroclaw delivery retry` sends it",
    };
    out.push(
        Item::Record {
            tier: Tier::Global,
            record: entry.into(),
        },
        1024,
    )
    .await?;
    let message = message.to_owned();
    out.push(
        Item::Note {
            code: "held-delivery",
            place,
            message,
        },
        0,
    )
    .await?;
    out.flush().await
}

/// A message as it comes in.
pub(crate) fn entry(
    fields: &Map<String, Value>,
    queue: &str,
    has_failed: bool,
    owners: &Owners,
) -> Result<DeliveryEntry, &'static str> {
    let id = text(fields, "id").ok_or("it has no id")?;
    let enqueued = ms(fields, "enqueuedAt").ok_or("it has no time")?;
    let mirror = fields.get("mirror").and_then(Value::as_object);
    let session_key =
        text(fields, "sessionKey").or_else(|| mirror.and_then(|mirror| text(mirror, "sessionKey")));
    let agent = mirror.and_then(|mirror| text(mirror, "agentId"));
    let agent = agent.or_else(|| {
        session_key
            .as_deref()
            .and_then(key::owner)
            .map(str::to_owned)
    });
    let retries = ms(fields, "retryCount").unwrap_or(0);
    let started = ms(fields, "platformSendStartedAt");
    let last = ms(fields, "lastAttemptAt").or((retries > 0).then_some(enqueued));
    let may_have_left = started.is_some()
        || fields
            .get("recoveryState")
            .is_some_and(|state| !state.is_null());
    let (status, dead_reason) = match (may_have_left, has_failed || retries >= MAX_RETRIES) {
        (true, _) => (DeliveryStatus::Unknown, None),
        (false, true) => (DeliveryStatus::Dead, Some(DeadReason::Exhausted)),
        (false, false) => (DeliveryStatus::Dead, Some(DeadReason::Expired)),
    };
    Ok(DeliveryEntry {
        id,
        queue_name: queue.to_owned(),
        status,
        dead_reason,
        entry_kind: text(fields, "kind"),
        route: DeliveryRoute {
            channel: text(fields, "channel").unwrap_or_else(|| "session".to_owned()),
            account_id: text(fields, "accountId"),
            target: word(fields, "to")
                .or_else(|| session_key.clone())
                .ok_or("it says not to whom")?,
            thread_id: word(fields, "threadId"),
            agent_id: agent.and_then(|agent| owners.named(&key::agent_name(&agent)).ok()),
            session_key,
        },
        task_id: None,
        idempotency_key: text(fields, "idempotencyKey"),
        entry_json: Some(Value::Object(fields.clone()).to_string()),
        may_resend: false,
        retry_count: retries,
        max_retries: MAX_RETRIES,
        next_attempt_at_ms: last.unwrap_or(enqueued),
        expires_at_ms: enqueued,
        claimed_at_ms: None,
        platform_send_started_at_ms: started.or(may_have_left.then_some(last.unwrap_or(enqueued))),
        platform_message_id: None,
        last_attempt_at_ms: last,
        last_error: text(fields, "lastError"),
        enqueued_at_ms: enqueued,
        updated_at_ms: last.unwrap_or(enqueued),
        sent_at_ms: None,
        failed_at_ms: Some(last.unwrap_or(enqueued)),
        detail_json: None,
    })
}
