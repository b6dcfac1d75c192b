//! Opening a root as its daemon: at once, or refused at once with the name of who has it.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{LOCK_WAIT, Service, is_initialised};
use crate::clock::Clock;
use crate::fs::{Holder, HolderKind, Layout, LockError, LockText, RootLock, process};
use crate::model::{Liveness, ProcessIdentity};
use crate::service::{HeldLease, ServiceError};

/// Scope of the lease that says, in the control plane itself, who serves a root.
const SCOPE: &str = "gateway_locks";
/// Its key: there is one daemon a root.
const KEY: &str = "root";
/// How long a daemon may be silent, where nobody can tell whether it lives.
const SILENCE: Duration = Duration::from_secs(5 * 60);
/// Pause between two tries while a command finishes.
const POLL: Duration = Duration::from_millis(10);

impl Service {
    /// Opens an existing root for the life of a daemon; an older control plane is migrated.
    ///
    /// A command that is at work is waited for, a daemon is not: that one stays.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotInitialised`] when there is no root, [`ServiceError::Lock`] when somebody holds it,
    /// [`ServiceError::Open`] when the control plane is newer, damaged or foreign.
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
        Self::init_under(lock, HolderKind::Daemon, layout, clock).await
    }

    /// Says in the control plane itself who serves it, unless somebody who lives is written there already.
    ///
    /// The lock of the operating system is the truth. Where its file was deleted under a living daemon, this still names
    /// that one.
    ///
    /// # Errors
    ///
    /// [`ServiceError::LeaseHeld`] names who serves the root.
    pub async fn take_daemon_lease(&self) -> Result<HeldLease, ServiceError> {
        let leases = self.leases();
        leases
            .acquire(
                SCOPE,
                KEY,
                HolderKind::Daemon.as_str(),
                SILENCE,
                Duration::ZERO,
            )
            .await
    }
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
    let process = ProcessIdentity {
        pid: text.pid,
        start_ticks: text.start_ticks,
        boot_id: text.boot_id.clone(),
    };
    process::liveness(&process) != Liveness::Gone
}
