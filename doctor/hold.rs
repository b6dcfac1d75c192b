//! The root, taken for a moment by an operation on what runs left.

use std::time::Duration;

use zeroclaw::clock::Clock;
use zeroclaw::fs::{FsError, Holder, HolderKind, Layout, LockError, RootLock, SharedLock};
use zeroclaw::service::ServiceError;

/// How long to wait for whoever holds the root.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// Takes the root, off the runtime's threads: waiting blocks.
///
/// # Errors
///
/// [`ServiceError::Lock`] when somebody holds it.
pub(crate) async fn hold(layout: &Layout, clock: &Clock) -> Result<RootLock, ServiceError> {
    let place = layout.clone();
    let holder = Holder {
        kind: HolderKind::Doctor,
        since_ms: clock.now_ms(),
    };
    let taken = tokio::task::spawn_blocking(move || RootLock::exclusive(&place, holder, LOCK_WAIT));
    match taken.await {
        Ok(taken) => Ok(taken?),
        Err(error) => {
            let stopped = std::io::Error::other(error);
            Err(FsError::at("lock", &layout.daemon_lock())(stopped).into())
        }
    }
}

/// Says what [`hold`] would say, without taking anything.
///
/// # Errors
///
/// [`ServiceError::Lock`] when somebody holds the root.
pub(crate) fn refuse_held(layout: &Layout) -> Result<(), ServiceError> {
    match RootLock::shared_if_present(layout)? {
        SharedLock::WriterAlive(holder) => Err(LockError::Held {
            path: layout.daemon_lock(),
            holder: holder.map(Box::new),
            waited: Duration::ZERO,
        }
        .into()),
        SharedLock::NoFile | SharedLock::Held(_) => Ok(()),
    }
}
