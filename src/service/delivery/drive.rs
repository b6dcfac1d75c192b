//! The loop that sends: claims what is due, gives it to the channels, and writes down what they say.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::outcome::SendFailure;
use super::{ASK_AGAIN, Deliveries, DeliveryClaim};
use crate::model::DeliveryEntry;

/// How often what dead senders left is put right.
const SWEEP_EVERY: Duration = Duration::from_secs(2);
/// How often the end of a send is written down at most, where the disk refuses.
const SETTLE_TRIES: u32 = 5;
/// Pause between those.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// How much may be under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimits {
    /// Messages, of all channels and all processes together.
    pub all: u32,
    /// Messages of one channel.
    pub per_channel: u32,
    /// How long a channel may take for one message; after that nobody knows whether it was sent.
    pub timeout: Duration,
}

impl Default for SendLimits {
    /// Eight, two a channel, and a minute.
    fn default() -> Self {
        Self {
            all: 8,
            per_channel: 2,
            timeout: Duration::from_secs(60),
        }
    }
}

impl Deliveries {
    /// Sends what is due until `stop` is done; then lets what is under way end, and returns.
    ///
    /// A message that is enqueued in this process is sent at once, one of another process within half a second. A failing
    /// disk ends nothing: it is tried again, and what cannot be written down is told to the log.
    ///
    /// * `send`: gives a message to its channel; the channel's own id of it where it took it.
    pub async fn drive<F, S>(&self, limits: SendLimits, send: F, stop: impl Future<Output = ()>)
    where
        F: Fn(DeliveryEntry) -> S + Clone + Send + 'static,
        S: Future<Output = Result<Option<String>, SendFailure>> + Send + 'static,
    {
        let mut stop = pin!(stop);
        let mut enqueued = self.control.enqueued.subscribe();
        let mut sends = JoinSet::new();
        let mut next_sweep = Instant::now();
        loop {
            if Instant::now() >= next_sweep {
                self.sweep_or_tell().await;
                next_sweep = Instant::now() + SWEEP_EVERY;
            }
            enqueued.borrow_and_update();
            match self.claim_due(limits).await {
                Ok(claims) => {
                    for claim in claims {
                        sends.spawn(send_one(claim, send.clone(), limits.timeout));
                    }
                }
                Err(error) => tracing::warn!(%error, "nothing can be claimed now"),
            }
            tokio::select! {
                () = &mut stop => break,
                // The sender of this channel is in `self`: it cannot be gone.
                _ = enqueued.changed() => {}
                // What panicked has let go of its claim; the sweep finds it.
                _ = sends.join_next(), if !sends.is_empty() => {}
                () = tokio::time::sleep(ASK_AGAIN) => {}
            }
        }
        while sends.join_next().await.is_some() {}
        self.sweep_or_tell().await;
    }

    async fn sweep_or_tell(&self) {
        match self.sweep().await {
            Ok(sweep) if sweep.unknown > 0 => {
                tracing::warn!(messages = sweep.unknown, "may have been sent, nobody knows");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the queue cannot be swept now"),
        }
    }
}

async fn send_one<F, S>(claim: DeliveryClaim, send: F, timeout: Duration)
where
    F: Fn(DeliveryEntry) -> S,
    S: Future<Output = Result<Option<String>, SendFailure>>,
{
    if let Err(error) = claim.mark_send_started().await {
        // Without the mark it must not leave.
        tracing::warn!(%error, "a message is not sent now");
        return;
    }
    let outcome = match tokio::time::timeout(timeout, send(claim.entry().clone())).await {
        Ok(outcome) => outcome,
        Err(_) => Err(SendFailure::unknown(format!(
            "no answer within {timeout:?}"
        ))),
    };
    for tries in 1.. {
        match claim.settle(outcome.clone()).await {
            Ok(_) => return,
            Err(error) if tries == SETTLE_TRIES => {
                tracing::warn!(%error, message = claim.entry().id, "what became of it is not written down");
                return;
            }
            Err(_) => tokio::time::sleep(SETTLE_PAUSE).await,
        }
    }
}
