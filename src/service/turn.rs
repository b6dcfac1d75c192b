//! Turns: one at a time in a session, held by a lease with an owner and a cancel flag.
//!
//! A lease names the process that holds it and the turn within it. It is void once either is gone: nobody waits for a
//! time to lapse, and one that lives is never stolen. Callers of this process wait in line, in the order they came.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::Instant;

use super::append::{check_name, invalid, named, new_id};
use super::branch::stand_of;
use super::changes::{Change, ChangeKind, Changes};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::{Connection, Db};
use crate::fs::process;
use crate::model::{AgentId, SessionStatus};
use crate::store::StoreError;
use crate::store::agent::lease::{self, Lease};
use crate::store::agent::session_change;

pub(super) use live::Holder;
pub(super) use live::Turns;

mod live;

/// Kind of the leases of turns.
pub(super) const SCOPE: &str = "turn";
/// How often a turn that another process holds is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// First agent schema that has leases.
pub(super) const SINCE_SCHEMA: i64 = 9;

/// A turn under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnInfo {
    /// The session.
    pub session_id: String,
    /// Who holds it, in its own words.
    pub owner: String,
    /// Since when.
    pub since_ms: i64,
    /// When its owner last said that it lives.
    pub heartbeat_at_ms: i64,
    /// When somebody asked it to stop.
    pub cancel_requested_at_ms: Option<i64>,
}

impl From<Lease> for TurnInfo {
    fn from(lease: Lease) -> Self {
        Self {
            session_id: lease.lease_key,
            owner: lease.owner,
            since_ms: lease.created_at_ms,
            heartbeat_at_ms: lease.heartbeat_at_ms,
            cancel_requested_at_ms: lease.cancel_requested_at_ms,
        }
    }
}

/// A turn that the caller holds.
///
/// Ended by [`Turn::finish`]; one that is dropped instead, as by a panic or an aborted task, is closed as interrupted.
#[derive(Debug)]
pub struct Turn {
    held: Option<Held>,
    cancel: watch::Receiver<bool>,
    recovered: bool,
}

/// What it takes to give a turn back.
#[derive(Debug)]
struct Held {
    db: Arc<Db>,
    clock: Clock,
    turns: Turns,
    changes: Changes,
    agent: AgentId,
    session_id: String,
    turn_id: String,
    payload_json: String,
    // The next in line goes on when this goes.
    _place: OwnedMutexGuard<()>,
}

impl Held {
    async fn end(self, status: SessionStatus) -> Result<(), ServiceError> {
        let now_ms = self.clock.now_ms();
        let (id, payload) = (self.session_id.clone(), self.payload_json.clone());
        let change = Change {
            agent_id: self.agent.clone(),
            session_id: self.session_id.clone(),
            kind: ChangeKind::Changed,
        };
        let changes = self.changes.clone();
        let done = self.db.write_then(
            move |tx| {
                Box::pin(async move {
                    if !lease::release(tx, SCOPE, &id, &payload).await? {
                        return Err(ServiceError::Conflict {
                            what: "session",
                            name: id,
                            expected: "in the caller's turn".to_owned(),
                            found: "in none or another one's".to_owned(),
                        });
                    }
                    session_change::set_status(tx, &id, status, now_ms).await?;
                    Ok(())
                })
            },
            move |()| changes.tell(change),
        );
        done.await.map_err(|error| named(error, &self.db))
    }
}

impl Drop for Held {
    // Also where a caller goes away while it gives the turn back: what is not given back then is void.
    fn drop(&mut self) {
        self.turns.end(&self.turn_id);
    }
}

impl Turn {
    /// Identity of the turn.
    #[must_use]
    pub fn id(&self) -> &str {
        self.held.as_ref().map_or("", |held| &held.turn_id)
    }

    /// Whether the owner of the turn before had died, so that it was closed as interrupted.
    #[must_use]
    pub fn follows_an_interrupted_one(&self) -> bool {
        self.recovered
    }

    /// Whether somebody of this process asked it to stop; see [`Turn::beat`] for those of others.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.cancel.borrow()
    }

    /// Waits until somebody of this process asks it to stop.
    pub async fn cancelled(&mut self) {
        // The other end lives as long as the turn.
        let _ = self.cancel.wait_for(|is_set| *is_set).await;
    }

    /// Says that the owner lives, and looks whether somebody asked it to stop.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the turn is held no more.
    pub async fn beat(&self) -> Result<bool, ServiceError> {
        let Some(held) = &self.held else {
            return Ok(true);
        };
        let (id, payload) = (held.session_id.clone(), held.payload_json.clone());
        let now_ms = held.clock.now_ms();
        let found = held.db.write(move |tx| {
            Box::pin(async move {
                if lease::beat(tx, SCOPE, &id, &payload, now_ms).await? {
                    return Ok(lease::get(tx, SCOPE, &id).await?);
                }
                Err(ServiceError::Conflict {
                    what: "session",
                    name: id,
                    expected: "in the caller's turn".to_owned(),
                    found: "in none or another one's".to_owned(),
                })
            })
        });
        let found: Option<Lease> = found.await?;
        Ok(found.is_some_and(|lease| lease.cancel_requested_at_ms.is_some()))
    }

    /// Ends the turn; the session is in this state then.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for `running`, [`ServiceError::Conflict`] when the turn was lost.
    pub async fn finish(mut self, status: SessionStatus) -> Result<(), ServiceError> {
        if status == SessionStatus::Running {
            return Err(invalid("status", "running is no end of a turn"));
        }
        match self.held.take() {
            Some(held) => held.end(status).await,
            None => Ok(()),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Void from here on, not only once the write is through.
        held.turns.end(&held.turn_id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = held.end(SessionStatus::Interrupted).await {
                    tracing::warn!(%error, "a dropped turn is closed by the next one");
                }
            });
        }
    }
}

impl Service {
    /// Begins a turn of a session, after those who came before.
    ///
    /// * `owner`: who it is, for people.
    /// * `wait`: how long at most; zero asks once.
    ///
    /// # Errors
    ///
    /// [`ServiceError::TurnHeld`] names who holds it when `wait` is over, [`ServiceError::NotFound`] when there is no
    /// such session, [`super::LifeError::Retired`] when its agent is out of service.
    pub async fn begin_turn(
        &self,
        agent: &AgentId,
        session_id: &str,
        owner: &str,
        wait: Duration,
    ) -> Result<Turn, ServiceError> {
        check_name("owner", owner)?;
        let until = Instant::now() + wait;
        let db = self.agent(agent).await?;
        let line = self.turns().line(agent, session_id);
        let place = tokio::time::timeout_at(until, Arc::clone(&line).lock_owned()).await;
        let place = match place {
            Ok(place) => place,
            Err(_) => return Err(self.held(&db, session_id).await?),
        };
        self.refuse_retired(agent).await?;
        let mut recovered = false;
        loop {
            match self.holder(&db, session_id).await? {
                Some((_, true)) => recovered |= self.close_dead(&db, agent, session_id).await?,
                None => {}
                Some((_, false)) if Instant::now() >= until => {
                    return Err(self.held(&db, session_id).await?);
                }
                Some((_, false)) => {
                    tokio::time::sleep(ASK_AGAIN.min(until - Instant::now())).await;
                    continue;
                }
            }
            let turn_id = new_id();
            // Known as living before the row says so, or a look in between would take it for dead.
            let cancel = self.turns().begin(&turn_id);
            let holder = Holder {
                turn_id: turn_id.clone(),
                process: process::own(),
            };
            let payload_json = serde_json::to_string(&holder).unwrap_or_default();
            let turn = Turn {
                held: Some(Held {
                    db: Arc::clone(&db),
                    clock: self.clock().clone(),
                    turns: self.turns().clone(),
                    changes: self.changes().sender(),
                    agent: agent.clone(),
                    session_id: session_id.to_owned(),
                    turn_id,
                    payload_json: payload_json.clone(),
                    _place: place,
                }),
                cancel,
                recovered,
            };
            // Dropped from here on, the turn gives back what it may have got.
            return match self.take(&db, agent, session_id, owner, payload_json).await {
                Ok(true) => Ok(turn),
                Ok(false) => {
                    turn.forget();
                    Err(self.held(&db, session_id).await?)
                }
                Err(error) => {
                    turn.forget();
                    Err(error)
                }
            };
        }
    }

    async fn take(
        &self,
        db: &Arc<Db>,
        agent: &AgentId,
        session_id: &str,
        owner: &str,
        payload_json: String,
    ) -> Result<bool, ServiceError> {
        let now_ms = self.clock().now_ms();
        let row = Lease {
            scope: SCOPE.to_owned(),
            lease_key: session_id.to_owned(),
            owner: owner.to_owned(),
            payload_json,
            cancel_requested_at_ms: None,
            heartbeat_at_ms: now_ms,
            created_at_ms: now_ms,
        };
        let tell = self.teller(agent, session_id, ChangeKind::Changed);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    stand_of(tx, &row.lease_key).await?;
                    let is_taken = lease::take(tx, &row).await?;
                    if is_taken {
                        let running = SessionStatus::Running;
                        session_change::set_status(tx, &row.lease_key, running, now_ms).await?;
                    }
                    Ok(is_taken)
                })
            },
            move |_| tell(),
        );
        done.await.map_err(|error| named(error, db))
    }

    /// Asks the owner of a session's turn to stop; says whether there is one.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn cancel_turn(
        &self,
        agent: &AgentId,
        session_id: &str,
    ) -> Result<bool, ServiceError> {
        let db = self.agent(agent).await?;
        let Some((lease, false)) = self.holder(&db, session_id).await? else {
            return Ok(false);
        };
        let (id, now_ms) = (session_id.to_owned(), self.clock().now_ms());
        let asked = db.write(move |tx| {
            Box::pin(async move { Ok(lease::request_cancel(tx, SCOPE, &id, now_ms).await?) })
        });
        let asked = asked
            .await
            .map_err(|error: ServiceError| named(error, &db))?;
        if let Ok(holder) = serde_json::from_str::<Holder>(&lease.payload_json) {
            self.turns().cancel(&holder.turn_id);
        }
        Ok(asked)
    }

    /// The turn of a session that has a living owner.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn turn(
        &self,
        agent: &AgentId,
        session_id: &str,
    ) -> Result<Option<TurnInfo>, ServiceError> {
        let db = self.agent(agent).await?;
        let found = self.holder(&db, session_id).await?;
        Ok(found
            .filter(|(_, is_gone)| !is_gone)
            .map(|(lease, _)| lease.into()))
    }

    /// Closes every turn of an agent whose owner is gone as interrupted; gives their sessions.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn close_dead_turns(&self, agent: &AgentId) -> Result<Vec<String>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let dead = self.ownerless(&mut conn, db.version()).await.in_db(&db)?;
        drop(conn);
        for session_id in &dead {
            self.close_dead(&db, agent, session_id).await?;
        }
        Ok(dead.into_iter().collect())
    }

    /// Sessions that say they are running, and have no living owner.
    pub(super) async fn ownerless(
        &self,
        conn: &mut Connection,
        version: i64,
    ) -> Result<BTreeSet<String>, StoreError> {
        if version < SINCE_SCHEMA {
            let all = session_change::running_of_old(conn).await?;
            return Ok(all.into_iter().collect());
        }
        let running = session_change::running(conn, SCOPE).await?;
        let gone = running.into_iter().filter(|(_, payload)| {
            let is_gone = |payload: &String| self.turns().is_gone(payload, self.is_writer());
            payload.as_ref().is_none_or(is_gone)
        });
        Ok(gone.map(|(session_id, _)| session_id).collect())
    }

    /// The lease of a session's turn, and whether its holder is gone.
    async fn holder(
        &self,
        db: &Arc<Db>,
        session_id: &str,
    ) -> Result<Option<(Lease, bool)>, ServiceError> {
        if db.version() < SINCE_SCHEMA {
            return Ok(None);
        }
        let mut conn = db.read().await?;
        let found = lease::get(&mut conn, SCOPE, session_id).await.in_db(db)?;
        Ok(found.map(|lease| {
            let is_gone = self.turns().is_gone(&lease.payload_json, self.is_writer());
            (lease, is_gone)
        }))
    }

    /// Ends the turn of a holder that is gone. Another one may have done so first.
    async fn close_dead(
        &self,
        db: &Arc<Db>,
        agent: &AgentId,
        session_id: &str,
    ) -> Result<bool, ServiceError> {
        let found = self.holder(db, session_id).await?;
        let payload = match found {
            Some((_, false)) => return Ok(false),
            Some((lease, true)) => Some(lease.payload_json),
            None => None,
        };
        let (id, now_ms) = (session_id.to_owned(), self.clock().now_ms());
        let tell = self.teller(agent, session_id, ChangeKind::Changed);
        let done = db.write_then(
            move |tx| {
                Box::pin(async move {
                    if let Some(payload) = payload
                        && !lease::release(tx, SCOPE, &id, &payload).await?
                    {
                        return Ok(false);
                    }
                    Ok(session_change::interrupt(tx, &id, now_ms).await?)
                })
            },
            move |_| tell(),
        );
        done.await.map_err(|error| named(error, db))
    }

    /// The refusal that names who holds a turn.
    async fn held(&self, db: &Arc<Db>, session_id: &str) -> Result<ServiceError, ServiceError> {
        let found = self.holder(db, session_id).await?;
        Ok(ServiceError::TurnHeld {
            session_id: session_id.to_owned(),
            owner: found.map(|(lease, _)| lease.owner),
        })
    }
}

impl Turn {
    /// Lets go of a turn that was never had.
    fn forget(mut self) {
        drop(self.held.take());
    }
}
