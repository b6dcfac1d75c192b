//! The turns of this process, and who waits for one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::fs::process;
use crate::model::{AgentId, ProcessIdentity};

/// Who holds a turn, as a program reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::service) struct Holder {
    pub(in crate::service) turn_id: String,
    pub(in crate::service) process: ProcessIdentity,
}

type Line = Arc<tokio::sync::Mutex<()>>;

/// The turns of this process, and who waits for them.
#[derive(Clone, Debug, Default)]
pub(in crate::service) struct Turns(Arc<TurnsInner>);

#[derive(Debug, Default)]
struct TurnsInner {
    /// Cancel flags by turn id: a turn that is not here has no owner any more.
    live: Mutex<HashMap<String, watch::Sender<bool>>>,
    lines: Mutex<HashMap<(AgentId, String), Line>>,
}

impl Turns {
    pub(super) fn line(&self, agent: &AgentId, session_id: &str) -> Line {
        let mut lines = self.0.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // Lines nobody stands in go, or there would be one for every session that ever had a turn.
        lines.retain(|_, line| Arc::strong_count(line) > 1);
        let place = (agent.clone(), session_id.to_owned());
        Arc::clone(lines.entry(place).or_default())
    }

    pub(super) fn begin(&self, turn_id: &str) -> watch::Receiver<bool> {
        let (flag, seen) = watch::channel(false);
        let mut live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.insert(turn_id.to_owned(), flag);
        seen
    }

    pub(super) fn end(&self, turn_id: &str) {
        let mut live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.remove(turn_id);
    }

    pub(super) fn cancel(&self, turn_id: &str) {
        let live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flag) = live.get(turn_id) {
            flag.send_replace(true);
        }
    }

    /// Whether the holder of a lease is proven gone.
    ///
    /// * `is_writer`: this service writes the root, so that all turns of this process are its own.
    pub(in crate::service) fn is_gone(&self, payload_json: &str, is_writer: bool) -> bool {
        let Ok(holder) = serde_json::from_str::<Holder>(payload_json) else {
            // Nobody can be asked whether they live who did not say who they are.
            return true;
        };
        if is_writer && holder.process == process::own() {
            let live = self.0.live.lock().unwrap_or_else(PoisonError::into_inner);
            return !live.contains_key(&holder.turn_id);
        }
        process::liveness(&holder.process).is_gone()
    }
}
