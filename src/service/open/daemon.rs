//! Opening a root as its daemon: at once, or refused at once with the name of who has it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{LOCK_WAIT, Service, is_initialised};
use crate::clock::Clock;
use crate::fs::process::{ProcessMark, boot_id, start_ticks};
use crate::fs::{Holder, HolderKind, Layout, LockError, LockText, RootLock};
use crate::service::ServiceError;
use crate::store::global::lease::{self, Lease};

/// Scope of the lease that says, in the control plane itself, who serves a root.
const SCOPE: &str = "gateway_locks";
/// Its key: there is one daemon a root.
const KEY: &str = "daemon";
/// Pause between two tries while a command finishes.
const POLL: Duration = Duration::from_millis(10);

impl Service {
    /// Opens an existing root for the life of a daemon; an older control plane is migrated.
    ///
    /// A command that is at work is waited for, a daemon is not: that one stays.
    ///
    /// The lock of the operating system is the truth. Where its file was deleted under a living daemon, the lease in
    /// the control plane still names that one.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotInitialised`] when there is no root, [`ServiceError::Lock`] when somebody holds it,
    /// [`ServiceError::Served`] when only the lease tells of a daemon, [`ServiceError::Open`] when the control plane
    /// is newer, damaged or foreign.
    pub async fn open_as_daemon(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        let layout = Layout::new(root.to_owned());
        let missing = || ServiceError::NotInitialised {
            root: root.to_owned(),
        };
        if !is_initialised(&layout) && !layout.restore_journal().exists() {
            return Err(missing());
        }
        let holder = Holder {
            kind: HolderKind::Daemon,
            since_ms: clock.now_ms(),
        };
        let lock = claim(&layout, holder).await?;
        crate::backup::recover(&layout, &clock).await?;
        // It may have been an import whose undoing leaves no state.
        if !is_initialised(&layout) {
            lock.remove(&layout)?;
            return Err(missing());
        }
        let service = Self::init_under(lock, HolderKind::Daemon, layout, clock).await?;
        match service.take_lease().await {
            Ok(()) => Ok(service),
            Err(error) => {
                service.close().await;
                Err(error)
            }
        }
    }

    /// Says in the control plane who serves it, unless somebody who lives is written there.
    async fn take_lease(&self) -> Result<(), ServiceError> {
        let own = ProcessMark::own();
        let now_ms = self.clock().now_ms();
        let lease = Lease {
            scope: SCOPE.to_owned(),
            lease_key: KEY.to_owned(),
            owner: format!("daemon (pid {})", std::process::id()),
            expires_at_ms: None,
            payload_json: serde_json::to_string(&own).ok(),
            created_at_ms: now_ms,
        };
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    let all = lease::list(tx).await?;
                    let held = all
                        .into_iter()
                        .find(|lease| lease.scope == SCOPE && lease.lease_key == KEY);
                    if let Some(held) = held.filter(|held| is_alive(held, &own)) {
                        return Err(ServiceError::Served { owner: held.owner });
                    }
                    Ok(lease::replace(tx, &lease).await?)
                })
            })
            .await
    }

    /// Takes that back, at the end of a daemon.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the control plane cannot be written; the next daemon sees all the same that this one is gone.
    pub async fn release_lease(&self) -> Result<(), ServiceError> {
        let owner = format!("daemon (pid {})", std::process::id());
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    lease::release(tx, SCOPE, KEY, &owner).await?;
                    Ok(())
                })
            })
            .await
    }
}

/// Whether a lease is another process's that is known to live.
fn is_alive(lease: &Lease, own: &ProcessMark) -> bool {
    let mark = lease.payload_json.as_deref().unwrap_or_default();
    serde_json::from_str::<ProcessMark>(mark)
        .is_ok_and(|mark| mark != *own && mark.is_gone() == Some(false))
}

async fn claim(layout: &Layout, holder: Holder) -> Result<RootLock, ServiceError> {
    let until = Instant::now() + LOCK_WAIT;
    loop {
        let held = match RootLock::try_exclusive(layout, holder) {
            Ok(lock) => return Ok(lock),
            Err(error @ LockError::Held { .. }) => error,
            Err(error) => return Err(error.into()),
        };
        let is_daemon = matches!(
            &held,
            LockError::Held { holder: Some(text), .. } if text.kind == HolderKind::Daemon.as_str() && lives(text)
        );
        if is_daemon || Instant::now() >= until {
            return Err(held.into());
        }
        tokio::time::sleep(POLL).await;
    }
}

/// A text outlives a killed daemon: who holds the lock then is a command that looks.
fn lives(text: &LockText) -> bool {
    match text.start_ticks {
        Some(start) => text.boot_id == boot_id() && start_ticks(text.pid) == Some(start),
        None => true,
    }
}
