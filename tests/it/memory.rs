//! Memories: stored, replaced, forgotten, and recalled by those who may.

use zeroclaw::model::{AgentId, AgentStatus, MemoryHit, NewMemory, RecallQuery, Recalled};
use zeroclaw::service::{Clock, HolderKind, Importer, Service};

use crate::support::sandbox::Sandbox;

mod expiry;
mod grants;
mod life;
mod recall;
mod reindex;

const NOW_MS: i64 = 1_767_608_100_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn agent(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

/// A root with three agents and a configuration.
async fn home(config: &str) -> Sandbox {
    let sandbox = Sandbox::in_memory();
    let clock = Clock::fixed(NOW_MS);
    let (service, _) = Service::init(&sandbox.root(), clock, HolderKind::Cli)
        .await
        .unwrap();
    let importer = Importer::new(service);
    for id in ["atlas", "birch", "cedar"] {
        importer
            .ensure_agent(&agent(id), AgentStatus::Active, None)
            .await
            .unwrap();
    }
    importer.close().await;
    std::fs::write(sandbox.root().join("config.toml"), config).unwrap();
    sandbox
}

async fn open(sandbox: &Sandbox, now_ms: i64) -> Service {
    Service::open(&sandbox.root(), Clock::fixed(now_ms), HolderKind::Cli)
        .await
        .unwrap()
}

fn memory(key: &str, content: &str) -> NewMemory {
    NewMemory {
        key: key.to_owned(),
        content: content.to_owned(),
        category: "core".to_owned(),
        namespace: "default".to_owned(),
        ..NewMemory::default()
    }
}

fn words(text: &str) -> RecallQuery {
    RecallQuery {
        text: Some(text.to_owned()),
        ..RecallQuery::default()
    }
}

async fn store(service: &Service, id: &str, new: NewMemory) -> MemoryHit {
    service.store_memory(&agent(id), new).await.unwrap()
}

/// Owner and key of each, in order.
fn keys(recalled: &[Recalled]) -> Vec<String> {
    let named = recalled
        .iter()
        .map(|one| format!("{}/{}", one.hit.agent_id, one.hit.memory.key));
    named.collect()
}
