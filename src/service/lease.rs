//! Leases of the control plane: one holder at a time, free at once when its process is gone, never taken from one that lives.
//!
//! Who holds a lease is judged when somebody wants it, by its process and not by a time: a holder that was stopped for an
//! hour still has it, one that was killed has it no more. Times decide only where nobody can tell. Whoever held a lease
//! without knowing that it was lost is found out by its fencing token: [`lease::is_current`] belongs into the transaction
//! that writes what the lease guards.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::append::check_name;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::db::Db;
use crate::fs::process;
use crate::model::Liveness;
use crate::store::global::lease::{self, Lease};

/// How often a lease that another holds is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The leases of a root, for who holds the root and for workers beside it.
#[derive(Clone, Debug)]
pub struct Leases {
    db: Arc<Db>,
    clock: Clock,
}

/// A lease that the caller holds. Dropped, it is given back as soon as can be.
#[derive(Debug)]
pub struct HeldLease {
    held: Option<Lease>,
    leases: Leases,
    silence: Duration,
}

/// A lease as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseShown {
    /// The lease.
    #[serde(flatten)]
    pub lease: Lease,
    /// Whether its holder counts no more.
    pub is_void: bool,
}

/// Whether the holder of a lease counts no more.
///
/// A process that lives always counts, one proven gone never does. Where nobody can tell, the lease lapses by its time.
/// One that names no process at all counts only as long as its times make sense: stamped in the future, as after a clock
/// was set back, or without an end, it would block for ever.
#[must_use]
pub fn is_void(lease: &Lease, now_ms: i64) -> bool {
    let has_lapsed = lease.expires_at_ms.is_some_and(|end| end <= now_ms);
    match &lease.process {
        Some(process) => match process::liveness(process) {
            Liveness::Alive => false,
            Liveness::Gone => true,
            Liveness::Unknown => has_lapsed,
        },
        None => {
            let stamped_at_ms = lease.heartbeat_at_ms.unwrap_or(lease.created_at_ms);
            has_lapsed || lease.expires_at_ms.is_none() || stamped_at_ms > now_ms
        }
    }
}

impl Service {
    /// The leases of this root.
    #[must_use]
    pub fn leases(&self) -> Leases {
        Leases::new(Arc::clone(self.global()), self.clock().clone())
    }
}

impl Service {
    pub(super) async fn list_leases(&self) -> Result<Vec<LeaseShown>, ServiceError> {
        let now_ms = self.clock().now_ms();
        let leases = self.leases().list().await?.into_iter();
        let shown = leases.map(|lease| LeaseShown {
            is_void: is_void(&lease, now_ms),
            lease,
        });
        Ok(shown.collect())
    }
}

impl Leases {
    pub(super) fn new(db: Arc<Db>, clock: Clock) -> Self {
        Self { db, clock }
    }

    /// Takes a lease for this process.
    ///
    /// * `owner`: who it is, for people.
    /// * `silence`: how long the holder may go without a beat, where nobody can tell whether it lives.
    /// * `wait`: how long at most, by a clock that nobody sets; zero asks once.
    ///
    /// # Errors
    ///
    /// [`ServiceError::LeaseHeld`] names who has it when `wait` is over.
    pub async fn acquire(
        &self,
        scope: &str,
        key: &str,
        owner: &str,
        silence: Duration,
        wait: Duration,
    ) -> Result<HeldLease, ServiceError> {
        check_name("scope", scope)?;
        check_name("key", key)?;
        check_name("owner", owner)?;
        let until = Instant::now() + wait;
        loop {
            let found = self.ask(scope, key, owner, silence).await?;
            match found {
                Ok(lease) => {
                    return Ok(HeldLease {
                        held: Some(lease),
                        leases: self.clone(),
                        silence,
                    });
                }
                Err(_) if Instant::now() < until => {
                    tokio::time::sleep(ASK_AGAIN.min(until - Instant::now())).await;
                }
                Err(held) => return Err(held_by(held)),
            }
        }
    }

    async fn ask(
        &self,
        scope: &str,
        key: &str,
        owner: &str,
        silence: Duration,
    ) -> Result<Result<Lease, Lease>, ServiceError> {
        let now_ms = self.clock.now_ms();
        let wanted = Lease {
            scope: scope.to_owned(),
            lease_key: key.to_owned(),
            owner: owner.to_owned(),
            process: Some(process::own()),
            expires_at_ms: Some(lapse(now_ms, silence)),
            created_at_ms: now_ms,
            ..Lease::default()
        };
        let done = self.db.write(move |tx| {
            Box::pin(async move {
                lease::acquire(tx, &wanted, |held| is_void(held, now_ms))
                    .await
                    .map_err(ServiceError::from)
            })
        });
        done.await
    }

    /// All leases, oldest first, void ones too.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn list(&self) -> Result<Vec<Lease>, ServiceError> {
        let mut conn = self.db.read().await?;
        lease::list(&mut conn).await.in_db(&self.db)
    }
}

impl HeldLease {
    /// What is held; for [`lease::is_current`].
    ///
    /// # Panics
    ///
    /// Never: only giving it back empties it, and takes it away.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        self.held
            .as_ref()
            .expect("invariant: a lease is here until it is given back, which consumes it")
    }

    /// Says that the holder lives.
    ///
    /// # Errors
    ///
    /// [`ServiceError::LeaseHeld`] or [`ServiceError::NotFound`] when it was lost.
    pub async fn beat(&self) -> Result<(), ServiceError> {
        let held = self.lease().clone();
        let now_ms = self.leases.clock.now_ms();
        let expires_at_ms = Some(lapse(now_ms, self.silence));
        let done = self.leases.db.write(move |tx| {
            Box::pin(async move {
                if lease::beat(tx, &held, now_ms, expires_at_ms).await? {
                    return Ok(());
                }
                Err(match lease::get(tx, &held.scope, &held.lease_key).await? {
                    Some(other) => held_by(other),
                    None => ServiceError::NotFound {
                        what: "lease",
                        name: format!("{} {}", held.scope, held.lease_key),
                    },
                })
            })
        });
        done.await
    }

    /// Gives it back; says whether it was still held.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn release(mut self) -> Result<bool, ServiceError> {
        match self.held.take() {
            Some(held) => give_back(&self.leases.db, held).await,
            None => Ok(false),
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        // Without a runtime the process is ending, and the lease is void with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let db = Arc::clone(&self.leases.db);
            runtime.spawn(async move {
                if let Err(error) = give_back(&db, held).await {
                    tracing::warn!(%error, "a dropped lease stays until its process ends");
                }
            });
        }
    }
}

async fn give_back(db: &Db, held: Lease) -> Result<bool, ServiceError> {
    db.write(move |tx| Box::pin(async move { Ok(lease::give_back(tx, &held).await?) }))
        .await
}

fn lapse(now_ms: i64, silence: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(silence.as_millis()).unwrap_or(i64::MAX))
}

fn held_by(lease: Lease) -> ServiceError {
    ServiceError::LeaseHeld {
        scope: lease.scope,
        key: lease.lease_key,
        pid: lease.process.map(|process| process.pid),
        owner: lease.owner,
    }
}
