//! What was committed, told to whoever listens in this process.
//!
//! A word that something is new, never the news itself: who hears it reads the rows. So a listener that is too slow, or
//! that hears the same twice, misses nothing.

use tokio::sync::broadcast;

use crate::model::AgentId;

/// Words kept for slow listeners; one that is further behind is told that it missed some.
const KEPT: usize = 1_024;

/// Something was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Owner of the session.
    pub agent_id: AgentId,
    /// The session.
    pub session_id: String,
    /// What happened to it.
    pub kind: ChangeKind,
}

/// What happened to a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Events were appended, the last of them at this place.
    Appended {
        /// Its place.
        last_seq: i64,
    },
    /// It stands elsewhere in its transcript now, or lost events.
    Moved,
    /// Its own fields changed.
    Changed,
    /// It is gone.
    Deleted,
}

/// The ear and the mouth of a service.
#[derive(Clone, Debug)]
pub(super) struct Changes(broadcast::Sender<Change>);

impl Changes {
    pub(super) fn new() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }

    /// A handle that may outlive the call it was taken for.
    pub(super) fn sender(&self) -> Self {
        self.clone()
    }

    /// Tells all who listen; nobody is fine.
    pub(super) fn tell(&self, change: Change) {
        let _ = self.0.send(change);
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<Change> {
        self.0.subscribe()
    }
}
