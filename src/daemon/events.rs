//! What happens, told live: a ring of the last events, which each listener reads at its own pace.
//!
//! Nobody is waited for. A listener that is further behind than the ring is long gets a gap that says how many it
//! missed, and goes on; events are words that something changed, so who reads the rows then has missed nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use super::bound::MAX_EVENTS;
use crate::model::{DeliveryStatus, TaskOwnerKind, TaskStatus};
use crate::service::{Change, ChangeKind, ControlChange};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind")]
pub(super) enum Event {
    /// Events were appended to a transcript.
    #[serde(rename = "session.appended")]
    Appended {
        agent_id: String,
        session_id: String,
        last_seq: i64,
    },
    /// A session stands elsewhere in its transcript, or lost events.
    #[serde(rename = "session.moved")]
    Moved {
        agent_id: String,
        session_id: String,
    },
    /// Fields of a session changed.
    #[serde(rename = "session.changed")]
    Changed {
        agent_id: String,
        session_id: String,
    },
    /// A session is gone.
    #[serde(rename = "session.deleted")]
    Deleted {
        agent_id: String,
        session_id: String,
    },
    /// A task stands elsewhere.
    #[serde(rename = "task.changed")]
    Task {
        agent_id: Option<String>,
        task_id: String,
        owner_kind: TaskOwnerKind,
        status: TaskStatus,
    },
    /// A run of a job stands elsewhere.
    #[serde(rename = "cron.run")]
    CronRun {
        agent_id: Option<String>,
        job_id: Option<String>,
        task_id: String,
        status: TaskStatus,
    },
    /// A message stands elsewhere.
    #[serde(rename = "delivery.changed")]
    Delivery {
        agent_id: Option<String>,
        message_id: String,
        status: DeliveryStatus,
    },
    /// The daemon can do less than before, or all again.
    #[serde(rename = "health")]
    Health {
        status: &'static str,
        problems: Vec<String>,
    },
    /// The configuration was read anew.
    #[serde(rename = "reloaded")]
    Reloaded { generation: u64 },
    /// Events were missed; `None` where nobody knows how many.
    #[serde(rename = "gap")]
    Gap { missed: Option<u64> },
}

impl Event {
    /// Whether somebody who wants only one agent or session wants it.
    pub(super) fn concerns(&self, agent: Option<&str>, session: Option<&str>) -> bool {
        match self {
            Self::Appended {
                agent_id,
                session_id,
                ..
            }
            | Self::Moved {
                agent_id,
                session_id,
            }
            | Self::Changed {
                agent_id,
                session_id,
            }
            | Self::Deleted {
                agent_id,
                session_id,
            } => {
                agent.is_none_or(|agent| agent == agent_id)
                    && session.is_none_or(|session| session == session_id)
            }
            // They belong to no session.
            Self::Task { agent_id, .. }
            | Self::CronRun { agent_id, .. }
            | Self::Delivery { agent_id, .. } => {
                session.is_none() && agent.is_none_or(|agent| Some(agent) == agent_id.as_deref())
            }
            Self::Health { .. } | Self::Reloaded { .. } | Self::Gap { .. } => true,
        }
    }
}

impl From<Change> for Event {
    fn from(change: Change) -> Self {
        let agent_id = change.agent_id.to_string();
        let session_id = change.session_id;
        match change.kind {
            ChangeKind::Appended { last_seq } => Self::Appended {
                agent_id,
                session_id,
                last_seq,
            },
            ChangeKind::Moved => Self::Moved {
                agent_id,
                session_id,
            },
            ChangeKind::Changed => Self::Changed {
                agent_id,
                session_id,
            },
            ChangeKind::Deleted => Self::Deleted {
                agent_id,
                session_id,
            },
        }
    }
}

impl From<ControlChange> for Event {
    fn from(change: ControlChange) -> Self {
        match change {
            ControlChange::Task {
                task_id,
                owner_kind,
                agent_id,
                status,
            } => Self::Task {
                agent_id,
                task_id,
                owner_kind,
                status,
            },
            ControlChange::CronRun {
                task_id,
                job_id,
                agent_id,
                status,
            } => Self::CronRun {
                agent_id,
                job_id,
                task_id,
                status,
            },
            ControlChange::Delivery {
                message_id,
                agent_id,
                status,
            } => Self::Delivery {
                agent_id,
                message_id,
                status,
            },
        }
    }
}

/// Where a listener is: number of the last event it has.
pub(super) type Place = u64;

/// The ring.
#[derive(Debug)]
pub(super) struct Events {
    // One of an earlier daemon counted otherwise.
    epoch: String,
    ring: Mutex<VecDeque<Event>>,
    // Events ever told: number of the newest.
    told: watch::Sender<Place>,
}

impl Events {
    pub(super) fn new(epoch: String) -> Self {
        Self {
            epoch,
            ring: Mutex::new(VecDeque::new()),
            told: watch::Sender::new(0),
        }
    }

    pub(super) fn tell(&self, event: Event) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if ring.len() == MAX_EVENTS {
            ring.pop_front();
        }
        ring.push_back(event);
        // Under the lock, so that number and ring agree.
        self.told.send_modify(|told| *told += 1);
    }

    /// Hears when there is more.
    pub(super) fn ear(&self) -> watch::Receiver<Place> {
        self.told.subscribe()
    }

    /// The place of the newest event.
    pub(super) fn newest(&self) -> Place {
        *self.told.borrow()
    }

    /// A place as clients keep it.
    pub(super) fn cursor(&self, place: Place) -> String {
        format!("{}:{place}", self.epoch)
    }

    /// The place of a cursor, and whether events since then are lost: it may be of a daemon that is gone.
    pub(super) fn place(&self, cursor: &str) -> Option<(Place, bool)> {
        let (epoch, place) = cursor.rsplit_once(':')?;
        let place: Place = place.parse().ok()?;
        let newest = self.newest();
        if epoch == self.epoch && place <= newest {
            Some((place, false))
        } else {
            Some((newest, true))
        }
    }

    /// At most `most` events behind a place, each with its own; a gap first where some are gone.
    pub(super) fn since(&self, place: Place, most: usize) -> Vec<(Place, Event)> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let told = *self.told.borrow();
        let oldest = told - ring.len() as u64;
        let mut found = Vec::new();
        let from = place.max(oldest);
        if from > place {
            let missed = Some(from - place);
            found.push((from, Event::Gap { missed }));
        }
        let skip = usize::try_from(from - oldest).unwrap_or(usize::MAX);
        let rest = ring.iter().skip(skip).take(most);
        found.extend(rest.zip(from + 1..).map(|(event, at)| (at, event.clone())));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reloaded(generation: u64) -> Event {
        Event::Reloaded { generation }
    }

    #[test]
    fn who_is_behind_reads_on_and_who_is_far_behind_is_told_of_a_gap() {
        let events = Events::new("e".to_owned());
        for generation in 1..=3 {
            events.tell(reloaded(generation));
        }
        assert_eq!(events.since(1, 10), [(2, reloaded(2)), (3, reloaded(3))]);
        assert_eq!(events.since(3, 10), []);

        for generation in 4..=MAX_EVENTS as u64 + 5 {
            events.tell(reloaded(generation));
        }

        let found = events.since(2, 1);
        assert_eq!(found[0], (5, Event::Gap { missed: Some(3) }));
        assert_eq!(found[1], (6, reloaded(6)));
    }

    #[test]
    fn a_cursor_of_another_daemon_stands_at_the_newest_and_says_so() {
        let events = Events::new("e".to_owned());
        events.tell(reloaded(1));

        assert_eq!(events.place(&events.cursor(1)), Some((1, false)));
        assert_eq!(events.place("d:7"), Some((1, true)));
        assert_eq!(events.place("e:99"), Some((1, true)));
        assert_eq!(events.place("e"), None);
    }
}
