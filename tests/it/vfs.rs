//! Files in an agent's database: against a tree in memory, large ones, out to a disk, and by command.

use std::path::PathBuf;

use zeroclaw::model::{AgentId, AgentStatus, PageLimit, VfsEntry, VfsNamespace, VfsPath};
use zeroclaw::service::{Clock, HolderKind, Importer, Service, Vfs};

use crate::support::sandbox::Sandbox;

mod commands;
mod export;
mod large;
mod model;
mod modes;
mod tree;

/// A root with the agents `atlas` and `birch`, open to write.
struct Home {
    sandbox: Sandbox,
    service: Service,
}

fn atlas() -> AgentId {
    AgentId::new("atlas").unwrap()
}

fn path(text: &str) -> VfsPath {
    VfsPath::new(text).unwrap()
}

impl Home {
    async fn new() -> Self {
        let sandbox = Sandbox::in_memory();
        let clock = Clock::fixed(1_000);
        let (service, _) = Service::init(&sandbox.root(), clock.clone(), HolderKind::Cli)
            .await
            .unwrap();
        let importer = Importer::new(service);
        for agent in ["atlas", "birch"] {
            let agent = AgentId::new(agent).unwrap();
            importer
                .ensure_agent(&agent, AgentStatus::Active, None)
                .await
                .unwrap();
        }
        importer.close().await;
        let service = Service::open(&sandbox.root(), clock, HolderKind::Cli)
            .await
            .unwrap();
        Self { sandbox, service }
    }

    /// The same root, opened again after some time.
    async fn later(self, passed_ms: i64) -> Self {
        let now_ms = self.service.clock().now_ms() + passed_ms;
        self.service.close().await;
        let clock = Clock::fixed(now_ms);
        let service = Service::open(&self.sandbox.root(), clock, HolderKind::Cli)
            .await
            .unwrap();
        Self {
            sandbox: self.sandbox,
            service,
        }
    }

    async fn vfs(&self, namespace: &str) -> Vfs {
        let namespace = VfsNamespace::new(namespace).unwrap();
        self.service.vfs(&atlas(), namespace).await.unwrap()
    }

    fn database(&self) -> PathBuf {
        self.sandbox.root().join("agents/atlas/agent/agent.sqlite")
    }
}

/// All below a folder, in pages of `rows`.
async fn all_below(vfs: &Vfs, folder: &VfsPath, rows: u32) -> Vec<VfsEntry> {
    let mut entries = Vec::new();
    let mut after = None;
    loop {
        let page = vfs
            .list_below(folder, after.as_deref(), PageLimit::from(rows))
            .await
            .unwrap();
        entries.extend(page.items);
        after = page.next;
        if after.is_none() {
            return entries;
        }
    }
}

/// Bytes that differ from place to place, so that a chunk in a wrong place shows.
fn bytes_of(seed: u8, length: usize) -> Vec<u8> {
    let mut state = u32::from(seed) + 1;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24).to_le_bytes()[0]
    };
    (0..length).map(next).collect()
}
