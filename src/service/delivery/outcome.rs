//! What becomes of a message: rules without a database.

use sha2::{Digest, Sha256};

use crate::model::{DeadReason, DeliveryEntry, DeliveryStatus};

/// Pause after the first failure.
const FIRST_PAUSE_MS: i64 = 5_000;
/// Longest pause of our own making, and the longest that a channel may ask for.
const LONGEST_PAUSE_MS: i64 = 60 * 60 * 1_000;
/// A pause is longer than it is by up to this part, so that what failed together does not come back together.
const JITTER_PART: i64 = 4;
/// No attempt is set further ahead: where one is, the clock was put back since.
pub(super) const FURTHEST_ATTEMPT_MS: i64 = LONGEST_PAUSE_MS + LONGEST_PAUSE_MS / JITTER_PART;
/// Longest text of a failure that is kept, characters.
const MAX_ERROR: usize = 2_000;

/// What a channel says that did not send a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// It was not sent, for sure, and may work later.
    Retry {
        /// What went wrong.
        error: String,
        /// When to try again at the earliest, as the channel asked; milliseconds from now, an hour at most.
        after_ms: Option<i64>,
    },
    /// It was not sent and never will be: no such target, not allowed, not understood.
    Permanent {
        /// What is wrong with it.
        error: String,
    },
    /// It may have been sent: no answer came.
    Unknown {
        /// What is known.
        error: String,
    },
}

impl SendFailure {
    /// A failure that may pass.
    #[must_use]
    pub fn retry(error: impl Into<String>) -> Self {
        Self::Retry {
            error: error.into(),
            after_ms: None,
        }
    }

    /// A failure for good.
    #[must_use]
    pub fn permanent(error: impl Into<String>) -> Self {
        Self::Permanent {
            error: error.into(),
        }
    }

    /// No answer.
    #[must_use]
    pub fn unknown(error: impl Into<String>) -> Self {
        Self::Unknown {
            error: error.into(),
        }
    }
}

/// The channel took it.
pub(super) fn sent(entry: &mut DeliveryEntry, message_id: Option<String>, now_ms: i64) {
    entry.status = DeliveryStatus::Sent;
    entry.dead_reason = None;
    entry.platform_message_id = message_id;
    entry.sent_at_ms = Some(now_ms);
    entry.failed_at_ms = None;
    entry.updated_at_ms = now_ms;
}

/// The channel did not take it, or did not say so.
pub(super) fn failed(entry: &mut DeliveryEntry, failure: SendFailure, now_ms: i64) {
    entry.updated_at_ms = now_ms;
    match failure {
        SendFailure::Retry { error, after_ms } => {
            entry.last_error = Some(cut(&error));
            let least = after_ms.unwrap_or(0).clamp(0, LONGEST_PAUSE_MS);
            retry_or_die(
                entry,
                pause_ms(&entry.id, entry.retry_count).max(least),
                now_ms,
            );
        }
        SendFailure::Permanent { error } => {
            entry.last_error = Some(cut(&error));
            die(entry, DeadReason::Permanent, now_ms);
        }
        SendFailure::Unknown { error } => {
            entry.last_error = Some(cut(&error));
            if entry.may_resend {
                retry_or_die(entry, pause_ms(&entry.id, entry.retry_count), now_ms);
            } else {
                doubt(entry, now_ms);
            }
        }
    }
}

/// Whoever had it is gone. That counts as a failure, or a message that kills its sender would do so for ever.
pub(super) fn abandoned(entry: &mut DeliveryEntry, now_ms: i64) {
    entry.updated_at_ms = now_ms;
    let has_started = entry.platform_send_started_at_ms.is_some();
    let at = if has_started { "during" } else { "before" };
    entry.last_error = Some(format!("its sender ended {at} the send"));
    if has_started && !entry.may_resend {
        doubt(entry, now_ms);
    } else {
        retry_or_die(entry, 0, now_ms);
    }
}

/// Nobody will send it.
pub(super) fn die(entry: &mut DeliveryEntry, reason: DeadReason, now_ms: i64) {
    entry.status = DeliveryStatus::Dead;
    entry.dead_reason = Some(reason);
    entry.failed_at_ms = Some(now_ms);
    entry.updated_at_ms = now_ms;
}

/// It is sent anew, as if it had just come in.
pub(super) fn anew(entry: &mut DeliveryEntry, max_age_ms: i64, now_ms: i64) {
    entry.status = DeliveryStatus::Pending;
    entry.dead_reason = None;
    entry.retry_count = 0;
    entry.next_attempt_at_ms = now_ms;
    entry.expires_at_ms = now_ms.saturating_add(max_age_ms);
    entry.platform_send_started_at_ms = None;
    entry.failed_at_ms = None;
    entry.updated_at_ms = now_ms;
}

fn doubt(entry: &mut DeliveryEntry, now_ms: i64) {
    entry.status = DeliveryStatus::Unknown;
    // Set also where nobody noted the beginning and the channel says all the same that it may have left.
    entry.platform_send_started_at_ms.get_or_insert(now_ms);
    entry.failed_at_ms = Some(now_ms);
}

fn retry_or_die(entry: &mut DeliveryEntry, pause_ms: i64, now_ms: i64) {
    entry.retry_count += 1;
    entry.platform_send_started_at_ms = None;
    if entry.retry_count > entry.max_retries {
        die(entry, DeadReason::Exhausted, now_ms);
        return;
    }
    entry.status = DeliveryStatus::Pending;
    entry.next_attempt_at_ms = now_ms.saturating_add(pause_ms);
}

/// The pause after the failure behind `failures` others: twice as long each time, and a part of it more.
///
/// The part follows from the message, so that it is spread over messages and the same when asked again.
pub(super) fn pause_ms(id: &str, failures: i64) -> i64 {
    let doublings = u32::try_from(failures.clamp(0, 30)).unwrap_or(30);
    let pause = FIRST_PAUSE_MS
        .saturating_mul(2_i64.saturating_pow(doublings))
        .min(LONGEST_PAUSE_MS);
    let digest = Sha256::digest(format!("{id}/{failures}"));
    let drawn = i64::from(u16::from_be_bytes([digest[0], digest[1]]));
    pause + pause / JITTER_PART * drawn / i64::from(u16::MAX)
}

fn cut(error: &str) -> String {
    error.chars().take(MAX_ERROR).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour_and_are_spread_by_a_quarter_at_most() {
        let pauses: Vec<_> = (0..40).map(|failures| pause_ms("m1", failures)).collect();

        for (failures, pause) in pauses.iter().enumerate() {
            let least = FIRST_PAUSE_MS
                .saturating_mul(1 << failures.min(30))
                .min(LONGEST_PAUSE_MS);
            assert!(
                (least..=least + least / JITTER_PART).contains(pause),
                "{failures}: {pause}"
            );
            assert!(*pause <= FURTHEST_ATTEMPT_MS);
        }
        let spread: std::collections::BTreeSet<_> =
            (0..50).map(|m| pause_ms(&m.to_string(), 3)).collect();
        assert!(spread.len() > 40, "{spread:?}");
    }
}
