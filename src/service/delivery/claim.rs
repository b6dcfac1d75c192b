//! A message that this process has.

use std::sync::Arc;

use super::drive::SendLimits;
use super::outcome::{self, SendFailure};
use super::{Deliveries, no_such, task_end};
use crate::db::{Connection, WriteTx};
use crate::model::DeliveryEntry;
use crate::service::ServiceError;
use crate::service::append::named;
use crate::service::claim::HeldClaim;
use crate::service::control::Control;
use crate::store::global::delivery_queue::{self, ClaimRow};

/// A message that the caller is to send, and nobody else.
///
/// In this order: [`mark_send_started`](Self::mark_send_started), the send, [`acknowledge`](Self::acknowledge) or
/// [`fail`](Self::fail). One that is dropped on the way is found by the next sweep: with the mark it is unknown, without
/// it it waits again.
#[derive(Debug)]
pub struct DeliveryClaim {
    entry: DeliveryEntry,
    held: HeldClaim,
    control: Arc<Control>,
}

impl Deliveries {
    /// Takes what is due, as far as the limits leave room: all senders of all processes count together.
    ///
    /// Channels take turns, so that a long queue of one holds up none of the others, and of one target no two messages
    /// are under way at once.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn claim_due(&self, limits: SendLimits) -> Result<Vec<DeliveryClaim>, ServiceError> {
        let now_ms = self.now_ms();
        // Nothing due means nothing to write: most looks cost a read.
        let mut conn = self.control.db.read().await?;
        if !is_any_due(&mut conn, now_ms).await? {
            return Ok(Vec::new());
        }
        drop(conn);
        let control = Arc::clone(&self.control);
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let mut taken = Vec::new();
                let places = Places::count(tx, limits).await?;
                take_in_turns(tx, places, now_ms, &control, &mut taken).await?;
                Ok(taken)
            })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }
}

/// How many more may be under way, by channel.
struct Places {
    all: u32,
    by_channel: Vec<(String, u32)>,
}

impl Places {
    async fn count(tx: &mut WriteTx<'_>, limits: SendLimits) -> Result<Self, ServiceError> {
        let flying = delivery_queue::in_flight(tx).await?;
        let count = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
        let all: u32 = flying.iter().map(|(_, flying)| count(*flying)).sum();
        let waiting = delivery_queue::waiting_channels(tx).await?;
        let by_channel = waiting.into_iter().map(|channel| {
            let flying = flying.iter().find(|(name, _)| *name == channel);
            let flying = flying.map_or(0, |(_, flying)| count(*flying));
            let left = limits.per_channel.saturating_sub(flying);
            (channel, left)
        });
        let mut by_channel: Vec<_> = by_channel.collect();
        // Those with the most room first: where the whole is short, nobody is passed over for ever.
        by_channel.sort_by_key(|(_, left)| std::cmp::Reverse(*left));
        Ok(Self {
            all: limits.all.saturating_sub(all),
            by_channel,
        })
    }
}

async fn take_in_turns(
    tx: &mut WriteTx<'_>,
    mut places: Places,
    now_ms: i64,
    control: &Arc<Control>,
    taken: &mut Vec<DeliveryClaim>,
) -> Result<(), ServiceError> {
    while places.all > 0 && !places.by_channel.is_empty() {
        for (channel, left) in &mut places.by_channel {
            if places.all == 0 || *left == 0 {
                continue;
            }
            match take_one(tx, channel, now_ms, control).await? {
                Some(claim) => {
                    taken.push(claim);
                    *left -= 1;
                    places.all -= 1;
                }
                None => *left = 0,
            }
        }
        places.by_channel.retain(|(_, left)| *left > 0);
    }
    Ok(())
}

async fn take_one(
    tx: &mut WriteTx<'_>,
    channel: &str,
    now_ms: i64,
    control: &Arc<Control>,
) -> Result<Option<DeliveryClaim>, ServiceError> {
    let Some(id) = due_of(tx, channel, now_ms).await? else {
        return Ok(None);
    };
    let held = HeldClaim::new();
    let row = ClaimRow {
        token: held.token().to_owned(),
        owner_json: held.owner_json(),
    };
    if !delivery_queue::claim(tx, &id, &row, now_ms).await? {
        return Ok(None);
    }
    let entry = delivery_queue::get(tx, &id).await?;
    let entry = entry.ok_or_else(|| no_such(&id))?;
    Ok(Some(DeliveryClaim {
        entry,
        held,
        control: Arc::clone(control),
    }))
}

/// The next message of a channel; those too that the clock, put back, would hold up.
async fn due_of(
    conn: &mut Connection,
    channel: &str,
    now_ms: i64,
) -> Result<Option<String>, ServiceError> {
    let due = delivery_queue::next_due(conn, channel, i64::MIN, now_ms, now_ms).await?;
    if due.is_some() {
        return Ok(due);
    }
    let too_far = now_ms.saturating_add(outcome::FURTHEST_ATTEMPT_MS + 1);
    Ok(delivery_queue::next_due(conn, channel, too_far, i64::MAX, now_ms).await?)
}

async fn is_any_due(conn: &mut Connection, now_ms: i64) -> Result<bool, ServiceError> {
    for channel in delivery_queue::waiting_channels(conn).await? {
        if due_of(conn, &channel, now_ms).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl DeliveryClaim {
    /// The message, with what is to be sent.
    #[must_use]
    pub fn entry(&self) -> &DeliveryEntry {
        &self.entry
    }

    /// Notes that the channel begins to send now: from here on nobody knows whether it left, until it is acknowledged.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the message is this claim's no more: it must not be sent then.
    pub async fn mark_send_started(&self) -> Result<(), ServiceError> {
        let now_ms = self.control.clock.now_ms();
        let (id, token) = (self.entry.id.clone(), self.held.token().to_owned());
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                match delivery_queue::mark_started(tx, &id, &token, now_ms).await? {
                    true => Ok(()),
                    false => Err(lost(&id)),
                }
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))?;
        crate::fs::fault("delivery.started");
        Ok(())
    }

    /// The channel took it. The task whose end it tells counts as told.
    ///
    /// * `message_id`: the channel's own id of what it sent.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the message is this claim's no more.
    pub async fn acknowledge(
        self,
        message_id: Option<String>,
    ) -> Result<DeliveryEntry, ServiceError> {
        self.settle(Ok(message_id)).await
    }

    /// The channel did not take it, or did not say so.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the message is this claim's no more.
    pub async fn fail(self, failure: SendFailure) -> Result<DeliveryEntry, ServiceError> {
        self.settle(Err(failure)).await
    }

    /// What [`acknowledge`](Self::acknowledge) and [`fail`](Self::fail) do; may be tried again where it failed.
    pub(super) async fn settle(
        &self,
        outcome: Result<Option<String>, SendFailure>,
    ) -> Result<DeliveryEntry, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        let (id, token) = (self.entry.id.clone(), self.held.token().to_owned());
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let claim = delivery_queue::claim_of(tx, &id).await?;
                if claim.is_none_or(|claim| claim.token != token) {
                    return Err(lost(&id));
                }
                let entry = delivery_queue::get(tx, &id).await?;
                let mut entry = entry.ok_or_else(|| no_such(&id))?;
                match outcome {
                    Ok(message_id) => outcome::sent(&mut entry, message_id, now_ms),
                    Err(failure) => outcome::failed(&mut entry, failure, now_ms),
                }
                delivery_queue::settle(tx, &entry).await?;
                task_end::note(tx, &entry, now_ms).await?;
                Ok(entry)
            })
        });
        let settled = done.await.map_err(|error| named(error, &self.control.db))?;
        // Whoever waits for a place may have one now.
        self.control.enqueued.send_replace(());
        Ok(settled)
    }
}

fn lost(id: &str) -> ServiceError {
    ServiceError::Conflict {
        what: "message",
        name: id.to_owned(),
        expected: "in the caller's hands".to_owned(),
        found: "in nobody's or another one's".to_owned(),
    }
}
