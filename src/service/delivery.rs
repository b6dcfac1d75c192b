//! What is to be sent through channels.
//!
//! A message is sent by whoever claims it. Between the claim and its end stands a mark: the channel begins to send. A
//! sender that ends before the mark has sent nothing, and another one goes on at once; one that ends behind it may have
//! sent, so that the message is `unknown` until a person or the channel says what happened. It is never sent again
//! blindly, unless its writer said that it may come twice.
//!
//! Nothing here knows a channel. What is refused: holding a transaction over a send, and order among messages to one
//! target beyond one at a time: a message that waits for its next attempt lets younger ones pass.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::append::{check_name, invalid, named, new_id};
use super::claim::is_void;
use super::control::Control;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::WriteTx;
use crate::model::{DeliveryEntry, DeliveryStatus, NewDelivery, Page, PageLimit};
use crate::store::global::delivery_queue::{self, DeliveryFilter};

pub use claim::DeliveryClaim;
pub use drive::SendLimits;
pub use outcome::SendFailure;
pub use people::{DeliveryPrune, DeliveryRetried};

mod claim;
mod drive;
mod outcome;
mod people;
mod task_end;

/// The queue of messages for channels.
const QUEUE: &str = "outbound";
/// Largest message, bytes. What is larger is an artifact, and the message names it.
const MAX_ENTRY_BYTES: usize = 1024 * 1024;
/// How long a sent message is kept, so that its key is known: a week.
const SENT_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Most rows that one sweep changes in one go.
const SWEEP_BATCH: u32 = 200;
/// How often the queue is looked at for what other processes put in.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What became of a message that was to be enqueued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enqueued {
    /// The message.
    pub id: String,
    /// Its key was known: nothing was enqueued, and this is the message of before.
    pub is_repeat: bool,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliverySweep {
    /// Too old, now dead.
    pub expired: u64,
    /// Their sender ended before the send: they wait again.
    pub given_back: u64,
    /// Their sender ended during the send: unknown now.
    pub unknown: u64,
    /// Their sender ended once too often: dead now.
    pub exhausted: u64,
    /// Sent long ago, deleted.
    pub forgotten: u64,
    /// Ends of tasks that somebody waits for, now enqueued.
    pub ends: u64,
}

/// The queue of messages, for those who put in and those who send.
///
/// Clones share one connection. Any number of processes may have one each.
#[derive(Clone, Debug)]
pub struct Deliveries {
    control: Arc<Control>,
}

impl Service {
    /// The queue of messages.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        Deliveries {
            control: Arc::new(Control::of(self)),
        }
    }
}

impl Deliveries {
    /// Opens the queue of a root beside whoever holds that, as a process does that only works.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is no state or it cannot be opened.
    pub async fn open(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        Ok(Self {
            control: Arc::new(Control::open(root, clock).await?),
        })
    }

    /// Closes its connection, where it has one of its own and this is the last clone.
    pub async fn close(self) {
        self.control.close().await;
    }

    fn now_ms(&self) -> i64 {
        self.control.clock.now_ms()
    }

    /// Puts a message in; once this returns it is on disk, and those who send know.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for what cannot be sent.
    pub async fn enqueue(&self, new: NewDelivery) -> Result<Enqueued, ServiceError> {
        check(&new)?;
        let now_ms = self.now_ms();
        let told = self.control.enqueued.clone();
        let done = self.control.db.write_then(
            move |tx| Box::pin(async move { insert(tx, &new, now_ms).await }),
            move |_: &Enqueued| {
                told.send_replace(());
            },
        );
        done.await.map_err(|error| named(error, &self.control.db))
    }

    /// Messages without what is to be sent, newest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor, or when SQLite fails.
    pub async fn list(
        &self,
        filter: &DeliveryFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<DeliveryEntry>, ServiceError> {
        let mut conn = self.control.db.read().await?;
        delivery_queue::list(&mut conn, filter, before, limit)
            .await
            .in_db(&self.control.db)
    }

    /// One message, with what is to be sent.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none of that id.
    pub async fn get(&self, id: &str) -> Result<DeliveryEntry, ServiceError> {
        let mut conn = self.control.db.read().await?;
        let found = delivery_queue::get(&mut conn, id)
            .await
            .in_db(&self.control.db)?;
        found.ok_or_else(|| no_such(id))
    }

    /// Puts right what dead senders left, kills what is too old, forgets what was sent long ago, and enqueues the ends of
    /// tasks that somebody waits for.
    ///
    /// Each in one bounded go; what is left comes with the next. Called at start and every now and then, and safe at any
    /// time by any process.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn sweep(&self) -> Result<DeliverySweep, ServiceError> {
        let mut conn = self.control.db.read().await?;
        let under_way = delivery_queue::under_way(&mut conn)
            .await
            .in_db(&self.control.db)?;
        drop(conn);
        let orphans: Vec<_> = under_way
            .into_iter()
            .filter(|(_, claim)| is_void(&claim.owner_json))
            .collect();
        let now_ms = self.now_ms();
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let batch = PageLimit::from(SWEEP_BATCH);
                let mut sweep = DeliverySweep::default();
                for (id, claim) in orphans {
                    let is_same = delivery_queue::claim_of(tx, &id).await?.as_ref() == Some(&claim);
                    let found = delivery_queue::get(tx, &id).await?;
                    // Another sweep may have been here first.
                    let Some(mut entry) = found.filter(|_| is_same) else {
                        continue;
                    };
                    outcome::abandoned(&mut entry, now_ms);
                    delivery_queue::settle(tx, &entry).await?;
                    match entry.status {
                        DeliveryStatus::Unknown => sweep.unknown += 1,
                        DeliveryStatus::Dead => sweep.exhausted += 1,
                        _ => sweep.given_back += 1,
                    }
                }
                sweep.expired = delivery_queue::expire(tx, now_ms, batch).await?;
                let sent_before = now_ms.saturating_sub(SENT_KEPT_MS);
                sweep.forgotten = delivery_queue::forget_sent(tx, sent_before, batch).await?;
                Ok(sweep)
            })
        });
        let done = done.await;
        let mut sweep = done.map_err(|error: ServiceError| named(error, &self.control.db))?;
        sweep.ends = self.tell_ends().await?;
        Ok(sweep)
    }
}

/// Puts a message in, or finds the one of its key.
pub(super) async fn insert(
    tx: &mut WriteTx<'_>,
    new: &NewDelivery,
    now_ms: i64,
) -> Result<Enqueued, ServiceError> {
    let id = new_id();
    if delivery_queue::insert_new(tx, &id, QUEUE, new, now_ms).await? {
        return Ok(Enqueued {
            id,
            is_repeat: false,
        });
    }
    let key = new.idempotency_key.as_deref().unwrap_or_default();
    let known = delivery_queue::by_key(tx, QUEUE, key).await?;
    let known = known.ok_or_else(|| no_such(key))?;
    Ok(Enqueued {
        id: known.id,
        is_repeat: true,
    })
}

/// Refuses what no channel could send or no row could hold.
fn check(new: &NewDelivery) -> Result<(), ServiceError> {
    check_name("channel", &new.route.channel)?;
    check_name("target", &new.route.target)?;
    let names = [
        ("account", &new.route.account_id),
        ("thread", &new.route.thread_id),
        ("session key", &new.route.session_key),
        ("idempotency key", &new.idempotency_key),
        ("task", &new.task_id),
        ("kind", &new.entry_kind),
    ];
    for (what, name) in names {
        name.as_deref()
            .map_or(Ok(()), |name| check_name(what, name))?;
    }
    if new.entry_json.len() > MAX_ENTRY_BYTES {
        return Err(invalid("message", "is larger than 1 MiB"));
    }
    if serde_json::from_str::<&serde_json::value::RawValue>(&new.entry_json).is_err() {
        return Err(invalid("message", "is no JSON"));
    }
    if new.max_retries < 0 || new.max_age_ms <= 0 {
        return Err(invalid("message", "could never be sent"));
    }
    Ok(())
}

fn no_such(id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "message",
        name: id.to_owned(),
    }
}
