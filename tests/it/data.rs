//! The data plane as an embedding runtime uses it: through [`Service`], in this process.

use std::path::Path;

use zeroclaw::model::{AgentId, Event};
use zeroclaw::service::{Clock, HolderKind, Service};

mod append;
mod branch;
mod busy;
mod exports;
mod kept;
mod kill;
mod large;
mod sessions;
mod storm;
mod tool_state;
mod turn;

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

/// A folder in memory where the system has room for one: a kill of a process loses nothing that it wrote.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    dir.unwrap()
}

/// A root open for writing.
async fn open(root: &Path, clock: Clock) -> Service {
    let opened = Service::init(root, clock, HolderKind::Cli).await;
    opened.unwrap().0
}

/// The same with these agents.
async fn with_agents(root: &Path, clock: Clock, agents: &[&AgentId]) -> Service {
    let service = open(root, clock).await;
    for agent in agents {
        service.add_agent(agent).await.unwrap();
    }
    service
}

/// Fails unless each event follows the one before it: one chain, one tail.
#[track_caller]
fn is_one_chain(events: &[Event]) {
    let mut before: Option<&Event> = None;
    for event in events {
        assert_eq!(
            event.parent_id.as_deref(),
            before.map(|event| event.event_id.as_str()),
            "event {} follows another one",
            event.seq
        );
        before = Some(event);
    }
}
