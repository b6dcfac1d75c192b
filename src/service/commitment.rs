//! What agents have promised or noticed, to come back to in its time.
//!
//! A commitment is due within its window and never after: one that nobody kept in time expires, whatever the reason, since
//! a question that comes late is worse than none.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::append::{check_name, invalid, named, new_id};
use super::control::Control;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::model::{AgentId, Commitment, CommitmentStatus, NewCommitment, Page, PageLimit};
use crate::store::global::commitment::{self, CommitmentFilter};

/// Most that one sweep expires in one go.
const SWEEP_BATCH: u32 = 200;
/// Longest text of a commitment, bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// What became of a commitment that was to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Committed {
    /// The commitment.
    pub commitment: Commitment,
    /// The conversation had a living one of its key: nothing was made, and this is that one.
    pub is_repeat: bool,
}

/// The commitments of all agents, for whoever makes and keeps them.
///
/// Clones share one connection. Any number of processes may have one each.
#[derive(Clone, Debug)]
pub struct Commitments {
    control: Arc<Control>,
}

impl Service {
    /// The commitments of all agents.
    #[must_use]
    pub fn commitments(&self) -> Commitments {
        Commitments {
            control: Arc::new(Control::of(self)),
        }
    }
}

impl Commitments {
    /// Opens the commitments of a root beside whoever holds that, as a process does that only works.
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

    /// Makes a commitment, unless its conversation has a living one of its key.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a window that ends before it begins, a confidence outside 0 to 1, names and texts
    /// that are too long.
    pub async fn create(&self, new: NewCommitment) -> Result<Committed, ServiceError> {
        check(&new)?;
        let now_ms = self.control.clock.now_ms();
        let commitment = Commitment {
            id: new_id(),
            status: CommitmentStatus::Pending,
            what: new,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            attempts: 0,
            last_attempt_at_ms: None,
            sent_at_ms: None,
            dismissed_at_ms: None,
            snoozed_until_ms: None,
            expired_at_ms: None,
            detail_json: None,
        };
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                if commitment::insert_new(tx, &commitment).await? {
                    return Ok(Committed {
                        commitment,
                        is_repeat: false,
                    });
                }
                let living = commitment::living(tx, &commitment.what).await?;
                let living = living.ok_or_else(|| no_such(&commitment.what.dedupe_key))?;
                Ok(Committed {
                    commitment: living,
                    is_repeat: true,
                })
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }

    /// Commitments, newest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor, or when SQLite fails.
    pub async fn list(
        &self,
        filter: &CommitmentFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<Commitment>, ServiceError> {
        let mut conn = self.control.db.read().await?;
        commitment::list(&mut conn, filter, before, limit)
            .await
            .in_db(&self.control.db)
    }

    /// One commitment.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none of that id.
    pub async fn get(&self, id: &str) -> Result<Commitment, ServiceError> {
        let mut conn = self.control.db.read().await?;
        let found = commitment::get(&mut conn, id)
            .await
            .in_db(&self.control.db)?;
        found.ok_or_else(|| no_such(id))
    }

    /// Commitments that are due now, the earliest window first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn due(
        &self,
        agent: Option<&AgentId>,
        limit: PageLimit,
    ) -> Result<Vec<Commitment>, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        self.due_within(agent, now_ms, now_ms, limit).await
    }

    /// Commitments whose window meets a span of time, both ends within, the earliest window first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn due_within(
        &self,
        agent: Option<&AgentId>,
        from_ms: i64,
        until_ms: i64,
        limit: PageLimit,
    ) -> Result<Vec<Commitment>, ServiceError> {
        let mut conn = self.control.db.read().await?;
        commitment::due(&mut conn, agent, from_ms, until_ms, limit)
            .await
            .in_db(&self.control.db)
    }

    /// Counts an attempt to keep a commitment; how often it was tried is the caller's to judge.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for one that is not open or whose window is closed, [`ServiceError::NotFound`].
    pub async fn attempt(&self, id: &str) -> Result<Commitment, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        self.decide(id, move |commitment| {
            if commitment.what.due_latest_ms < now_ms {
                return Err(not_open(commitment, "past its window"));
            }
            commitment.attempts += 1;
            commitment.last_attempt_at_ms = Some(now_ms);
            Ok(())
        })
        .await
    }

    /// A commitment was kept.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for one that is not open, [`ServiceError::NotFound`].
    pub async fn fulfil(&self, id: &str) -> Result<Commitment, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        self.decide(id, move |commitment| {
            commitment.status = CommitmentStatus::Sent;
            commitment.sent_at_ms = Some(now_ms);
            Ok(())
        })
        .await
    }

    /// A commitment is dropped.
    ///
    /// # Errors
    ///
    /// As [`fulfil`](Self::fulfil).
    pub async fn dismiss(&self, id: &str) -> Result<Commitment, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        self.decide(id, move |commitment| {
            commitment.status = CommitmentStatus::Dismissed;
            commitment.dismissed_at_ms = Some(now_ms);
            Ok(())
        })
        .await
    }

    /// A commitment is put off, within its window.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a time past its window, else as [`fulfil`](Self::fulfil).
    pub async fn snooze(&self, id: &str, until_ms: i64) -> Result<Commitment, ServiceError> {
        self.decide(id, move |commitment| {
            if until_ms > commitment.what.due_latest_ms {
                return Err(invalid("the time", "is past the end of the window"));
            }
            commitment.status = CommitmentStatus::Snoozed;
            commitment.snoozed_until_ms = Some(until_ms);
            Ok(())
        })
        .await
    }

    async fn decide(
        &self,
        id: &str,
        change: impl FnOnce(&mut Commitment) -> Result<(), ServiceError> + Send + 'static,
    ) -> Result<Commitment, ServiceError> {
        let (id, now_ms) = (id.to_owned(), self.control.clock.now_ms());
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let found = commitment::get(tx, &id).await?;
                let mut commitment = found.ok_or_else(|| no_such(&id))?;
                if !commitment.status.is_open() {
                    return Err(not_open(&commitment, commitment.status.as_str()));
                }
                change(&mut commitment)?;
                commitment.updated_at_ms = now_ms;
                commitment::settle(tx, &commitment).await?;
                Ok(commitment)
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }

    /// Commitments whose window has closed expire, so many in one go; gives how many. Called every now and then.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn expire(&self) -> Result<u64, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        let limit = PageLimit::from(SWEEP_BATCH);
        let done = self.control.db.write(move |tx| {
            Box::pin(async move { Ok(commitment::expire(tx, now_ms, limit).await?) })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }
}

fn check(new: &NewCommitment) -> Result<(), ServiceError> {
    let names = [
        ("session key", &new.session_key),
        ("channel", &new.channel),
        ("kind", &new.kind),
        ("sensitivity", &new.sensitivity),
        ("source", &new.source),
        ("dedupe key", &new.dedupe_key),
        ("time zone", &new.due_timezone),
    ];
    for (what, name) in names {
        check_name(what, name)?;
    }
    if new.reason.len().max(new.suggested_text.len()) > MAX_TEXT_BYTES {
        return Err(invalid("commitment", "has a text of more than 16 KiB"));
    }
    if new.due_latest_ms < new.due_earliest_ms {
        return Err(invalid("window", "ends before it begins"));
    }
    if !(0.0..=1.0).contains(&new.confidence) {
        return Err(invalid("confidence", "is not between 0 and 1"));
    }
    Ok(())
}

fn not_open(commitment: &Commitment, found: &str) -> ServiceError {
    ServiceError::Conflict {
        what: "commitment",
        name: commitment.id.clone(),
        expected: "open".to_owned(),
        found: found.to_owned(),
    }
}

fn no_such(id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "commitment",
        name: id.to_owned(),
    }
}
