//! What people decide about messages, and channels that can prove what happened.

use serde::{Deserialize, Serialize};

use super::{Deliveries, SWEEP_BATCH, no_such, outcome, task_end};
use crate::model::{DeadReason, DeliveryEntry, DeliveryStatus, NewDelivery, PageLimit};
use crate::service::ServiceError;
use crate::service::append::named;
use crate::service::error::InDb;
use crate::store::global::delivery_queue::{self, DeliveryFilter};

/// What was deleted, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryPrune {
    /// Dead messages.
    pub messages: u64,
    /// Whether they are still there.
    pub is_dry_run: bool,
}

/// What waits again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRetried {
    /// Messages.
    pub messages: u64,
}

impl Deliveries {
    /// Sends a message anew: a dead one, one that waits, or one of which nobody knows and that was not sent.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for one that was sent or is under way, [`ServiceError::NotFound`].
    pub async fn retry(&self, id: &str) -> Result<DeliveryEntry, ServiceError> {
        let can = &[
            DeliveryStatus::Dead,
            DeliveryStatus::Unknown,
            DeliveryStatus::Pending,
        ];
        self.decide(id, can, |entry, now_ms| {
            outcome::anew(entry, NewDelivery::MAX_AGE_MS, now_ms);
        })
        .await
    }

    /// Sends all dead messages anew, of one channel or of all; gives how many. Those of which nobody knows stay.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn retry_dead(&self, channel: Option<&str>) -> Result<DeliveryRetried, ServiceError> {
        let filter = DeliveryFilter {
            status: Some(DeliveryStatus::Dead),
            channel: channel.map(str::to_owned),
        };
        let mut messages = 0;
        let mut before = None;
        loop {
            // Pages, so that what dies again meanwhile does not make it go on for ever.
            let limit = PageLimit::from(SWEEP_BATCH);
            let page = self.list(&filter, before.as_deref(), limit).await?;
            for entry in &page.items {
                match self.retry(&entry.id).await {
                    Ok(_) => messages += 1,
                    Err(ServiceError::Conflict { .. } | ServiceError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            before = page.next;
            if before.is_none() {
                return Ok(DeliveryRetried { messages });
            }
        }
    }

    /// A message of which nobody knew was sent, as somebody saw or the channel can prove.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for one that is not `unknown`, [`ServiceError::NotFound`].
    pub async fn confirm(
        &self,
        id: &str,
        message_id: Option<String>,
    ) -> Result<DeliveryEntry, ServiceError> {
        self.decide(id, &[DeliveryStatus::Unknown], |entry, now_ms| {
            outcome::sent(entry, message_id, now_ms);
        })
        .await
    }

    /// A message is not to be sent: it is dead then, and can still be seen.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for one that was sent, is under way or is dead, [`ServiceError::NotFound`].
    pub async fn give_up(&self, id: &str) -> Result<DeliveryEntry, ServiceError> {
        let can = &[DeliveryStatus::Pending, DeliveryStatus::Unknown];
        self.decide(id, can, |entry, now_ms| {
            outcome::die(entry, DeadReason::GivenUp, now_ms);
        })
        .await
    }

    async fn decide(
        &self,
        id: &str,
        can: &'static [DeliveryStatus],
        change: impl FnOnce(&mut DeliveryEntry, i64) + Send + 'static,
    ) -> Result<DeliveryEntry, ServiceError> {
        let (id, now_ms) = (id.to_owned(), self.now_ms());
        let told = self.control.enqueued.clone();
        let done = self.control.db.write_then(
            move |tx| {
                Box::pin(async move {
                    let entry = delivery_queue::get(tx, &id).await?;
                    let mut entry = entry.ok_or_else(|| no_such(&id))?;
                    if !can.contains(&entry.status) {
                        let expected: Vec<_> = can.iter().map(|status| status.as_str()).collect();
                        return Err(ServiceError::Conflict {
                            what: "message",
                            name: id,
                            expected: expected.join(" or "),
                            found: entry.status.to_string(),
                        });
                    }
                    change(&mut entry, now_ms);
                    delivery_queue::settle(tx, &entry).await?;
                    task_end::note(tx, &entry, now_ms).await?;
                    Ok(entry)
                })
            },
            move |_| {
                told.send_replace(());
            },
        );
        done.await.map_err(|error| named(error, &self.control.db))
    }

    /// Deletes messages that died before an instant, or counts them.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn prune(
        &self,
        before_ms: i64,
        is_dry_run: bool,
    ) -> Result<DeliveryPrune, ServiceError> {
        let mut messages = 0;
        let mut after = String::new();
        loop {
            let mut conn = self.control.db.read().await?;
            let limit = PageLimit::from(SWEEP_BATCH);
            let found = delivery_queue::dead_before(&mut conn, before_ms, &after, limit)
                .await
                .in_db(&self.control.db)?;
            drop(conn);
            let Some(last) = found.last() else {
                return Ok(DeliveryPrune {
                    messages,
                    is_dry_run,
                });
            };
            after.clone_from(last);
            messages += match is_dry_run {
                true => found.len() as u64,
                false => self.delete(found).await?,
            };
        }
    }

    async fn delete(&self, ids: Vec<String>) -> Result<u64, ServiceError> {
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let mut deleted = 0;
                for id in &ids {
                    // One that is sent anew meanwhile stays.
                    deleted += u64::from(delivery_queue::delete_dead(tx, id).await?);
                }
                Ok(deleted)
            })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }
}
