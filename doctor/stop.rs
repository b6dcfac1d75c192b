//! Signals that ask a run to stop.
//!
//! The first drops the work where it waits: a transaction that is open is taken back, what was committed stays, and the
//! next run goes on from there, as after a kill. The second ends the process at once.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Work was asked to stop.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("stopped by a signal")]
pub(crate) struct Stopped;

/// Hears whether to stop. Clones hear the same.
#[derive(Clone, Debug)]
pub(crate) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Listens to the interrupt key and to a request to terminate, from now on.
    ///
    /// * `tell`: hears when the first signal came.
    pub(crate) fn listen(tell: impl Fn() + Send + 'static) -> Self {
        let (sender, receiver) = watch::channel(false);
        let signals = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        );
        if let (Ok(interrupt), Ok(terminate)) = signals {
            tokio::spawn(attend(interrupt, terminate, sender, tell));
        } else {
            // Then they end the process, which every step survives.
            tracing::debug!("signals cannot be listened to");
        }
        Self(receiver)
    }

    /// Hears nothing: signals are somebody else's.
    pub(crate) fn never() -> Self {
        Self(watch::channel(false).1)
    }

    /// Does the work, unless a signal comes first: then the work is dropped.
    ///
    /// # Errors
    ///
    /// Those of the work, and [`Stopped`].
    pub(crate) async fn or<T, E: From<Stopped>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut stop = self.0.clone();
        tokio::select! {
            biased;
            done = work => done,
            Ok(_) = stop.wait_for(|is_asked| *is_asked) => Err(Stopped.into()),
        }
    }
}

async fn attend(
    mut interrupt: Signal,
    mut terminate: Signal,
    stop: watch::Sender<bool>,
    tell: impl Fn(),
) {
    next(&mut interrupt, &mut terminate).await;
    tell();
    stop.send_replace(true);
    next(&mut interrupt, &mut terminate).await;
    // As a kill, which every step survives: nothing that still runs is waited for.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_ends_as_it_ends_until_it_is_asked_to_stop() {
        let (sender, receiver) = watch::channel(false);
        let stop = Stop(receiver);
        assert!(matches!(
            stop.or(async { Ok::<_, Stopped>(1) }).await,
            Ok(1)
        ));

        sender.send_replace(true);

        let endless = std::future::pending::<Result<u32, Stopped>>();
        assert!(stop.or(endless).await.is_err());
        assert!(matches!(
            stop.or(async { Ok::<_, Stopped>(2) }).await,
            Ok(2)
        ));
    }

    #[tokio::test]
    async fn without_anybody_to_ask_work_goes_on() {
        let (sender, receiver) = watch::channel(false);
        drop(sender);

        let work = async {
            tokio::task::yield_now().await;
            Ok::<_, Stopped>(1)
        };

        assert!(matches!(Stop(receiver).or(work).await, Ok(1)));
    }
}
