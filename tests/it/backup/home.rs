//! A root of its own for each test, and archives taken apart and put together again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use zeroclaw::backup::BackupError;
use zeroclaw::clock::Clock;
use zeroclaw::model::{
    AgentId, AgentStatus, BackupRun, MemoryRecord, PageLimit, TaskOrigin, TaskOwnerKind, TaskRun,
    TaskStatus, Tier,
};
use zeroclaw::service::backup::{
    self, CreateOptions, CreateReport, RestoreOptions, RestoreReport, VerifyReport,
};
use zeroclaw::service::{HolderKind, Importer, Request, Response, Service, ServiceError};
use zeroclaw::store::agent::memory;
use zeroclaw::store::global::task;

use crate::support::dump::{Skip, logical_dump};
use crate::support::recipe::sha256_hex;

/// 2026-11-30T12:00:00Z.
pub(super) const NOW_MS: i64 = 1_796_040_000_000;
/// Tables whose rows belong to a machine or a moment.
const HOST_BOUND: Skip<'_> = Skip {
    tables: &["state_leases", "backup_runs"],
    columns: &[],
};

/// A root with two agents, and a folder of its own beside it.
pub(super) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    /// `atlas` and `borea` with a few rows each, a configuration and a key.
    pub(super) async fn with_two_agents() -> Self {
        let home = Self::empty();
        home.fill(&home.root(), &["atlas", "borea"]).await;
        home
    }

    /// Nothing yet.
    pub(super) fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) async fn fill(&self, root: &Path, agents: &[&str]) {
        let importer = open(root).await;
        for (number, agent) in agents.iter().enumerate() {
            let id = AgentId::new(*agent).unwrap();
            importer
                .ensure_agent(&id, AgentStatus::Active, None)
                .await
                .unwrap();
            add_memories(&importer, agent, 3 + number).await;
        }
        add_task(&importer, "first").await;
        importer.close().await;
        for (name, text) in [("config.toml", "# settings\n"), (".secret_key", "k3y\n")] {
            let path = root.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn root(&self) -> PathBuf {
        self.path("root")
    }

    pub(super) fn global(&self) -> PathBuf {
        self.root().join("state/state.sqlite")
    }

    pub(super) fn agent(&self, id: &str) -> PathBuf {
        self.root().join(format!("agents/{id}/agent/agent.sqlite"))
    }

    /// An archive beside the root.
    pub(super) async fn archive(&self) -> PathBuf {
        self.create(CreateOptions::default()).await.unwrap().archive
    }

    pub(super) async fn create(
        &self,
        options: CreateOptions,
    ) -> Result<CreateReport, ServiceError> {
        let output = options.output.or_else(|| {
            let out = self.path("out");
            fs::create_dir_all(&out).unwrap();
            Some(out)
        });
        backup::create(&self.root(), clock(), CreateOptions { output, ..options }).await
    }

    pub(super) async fn restore(
        &self,
        archive: &Path,
        target: &Path,
    ) -> Result<RestoreReport, ServiceError> {
        let options = RestoreOptions {
            archive: archive.to_owned(),
            key: None,
            target: target.to_owned(),
            agent: None,
            dry_run: false,
            yes: true,
        };
        backup::restore(clock(), options).await
    }
}

pub(super) fn clock() -> Clock {
    Clock::fixed(NOW_MS)
}

pub(super) async fn open(root: &Path) -> Importer {
    let made = Service::init(root, clock(), HolderKind::Cli).await;
    Importer::new(made.unwrap().0)
}

pub(super) async fn add_memories(importer: &Importer, agent: &str, count: usize) {
    let tier = Tier::Agent(AgentId::new(agent).unwrap());
    let memories: Vec<MemoryRecord> = (0..count).map(|number| memory_of(agent, number)).collect();
    let mut bulk = importer.begin(&tier).await.unwrap();
    let mut tx = bulk.tx();
    memory::insert(&mut tx, &memories.iter().collect::<Vec<_>>())
        .await
        .unwrap();
    memory::rebuild(&mut tx).await.unwrap();
    bulk.commit().await.unwrap();
}

fn memory_of(agent: &str, number: usize) -> MemoryRecord {
    MemoryRecord {
        memory_id: format!("m-{number}"),
        key: format!("{agent} key {number}"),
        category: "core".to_owned(),
        namespace: "default".to_owned(),
        kind_json: None,
        importance: None,
        pinned: false,
        is_trusted: true,
        session_hint: None,
        tenant_id: None,
        superseded_by: None,
        embedding_provider: None,
        embedding_model: None,
        created_at_ms: NOW_MS,
        updated_at_ms: NOW_MS,
        created_at_text: None,
        updated_at_text: None,
        expires_at_ms: None,
        content: format!("what {agent} knows of {number}: \u{2728}"),
        embedding: Some(vec![0, 0, 128, 63]),
    }
}

pub(super) async fn add_task(importer: &Importer, id: &str) {
    let mut bulk = importer.begin(&Tier::Global).await.unwrap();
    let mut tx = bulk.tx();
    task::insert_new(&mut tx, &[task_of(id)]).await.unwrap();
    bulk.commit().await.unwrap();
}

fn task_of(id: &str) -> TaskRun {
    TaskRun {
        task_id: id.to_owned(),
        owner_kind: TaskOwnerKind::Task,
        source_id: None,
        agent_id: None,
        label: None,
        status: TaskStatus::Succeeded,
        status_detail: None,
        created_at_ms: NOW_MS,
        started_at_ms: None,
        ended_at_ms: None,
        duration_ms: None,
        output: None,
        error: None,
        detail_json: None,
        origin: TaskOrigin::default(),
    }
}

pub(super) async fn verify(archive: &Path) -> Result<VerifyReport, ServiceError> {
    backup::verify(archive, clock(), None, false, None).await
}

/// The item and the reason of a refused archive.
pub(super) async fn damage_of(archive: &Path) -> (String, String) {
    match verify(archive).await {
        Err(ServiceError::Backup(BackupError::Damaged { member, reason, .. })) => (member, reason),
        other => panic!("not found to be damaged: {other:?}"),
    }
}

pub(super) async fn runs(root: &Path) -> Vec<BackupRun> {
    let service = Service::look(root, clock()).await.unwrap();
    let limit = PageLimit::default();
    let answer = service.dispatch(Request::BackupList { limit }).await;
    service.close().await;
    match answer.unwrap() {
        Response::Backups(runs) => runs,
        other => panic!("{other:?}"),
    }
}

/// Every database of a root as text, by path.
pub(super) fn dumps(root: &Path) -> BTreeMap<String, String> {
    let mut dumps = BTreeMap::new();
    let agents = fs::read_dir(root.join("agents")).into_iter().flatten();
    let agents = agents.map(|entry| entry.unwrap().path().join("agent/agent.sqlite"));
    for path in std::iter::once(root.join("state/state.sqlite")).chain(agents) {
        if path.exists() {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            dumps.insert(name, logical_dump(&path, HOST_BOUND));
        }
    }
    dumps
}

/// The members of an archive, in order.
pub(super) fn unpack(archive: &Path) -> Vec<(String, Vec<u8>)> {
    let file = fs::File::open(archive).unwrap();
    let mut tar = tar::Archive::new(MultiGzDecoder::new(file));
    let entries = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (name, bytes)
    });
    entries.collect()
}

/// Packs members as they are.
pub(super) fn pack(archive: &Path, members: &[(String, Vec<u8>)]) {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, &bytes[..]).unwrap();
    }
    pack_raw(archive, &tar.into_inner().unwrap());
}

/// Compresses a finished tar.
pub(super) fn pack_raw(archive: &Path, tar: &[u8]) {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(tar).unwrap();
    fs::write(archive, gzip.finish().unwrap()).unwrap();
}

/// Packs members with a manifest that agrees with them: what only a look into the databases can find.
pub(super) fn pack_agreeing(
    archive: &Path,
    members: &mut [(String, Vec<u8>)],
    edit: impl FnOnce(&mut serde_json::Value),
) {
    let mut manifest: serde_json::Value = serde_json::from_slice(&members[0].1).unwrap();
    for (name, bytes) in &members[2..] {
        let listed = manifest["members"].as_array_mut().unwrap();
        if let Some(entry) = listed
            .iter_mut()
            .find(|entry| entry["archive_path"] == **name)
        {
            entry["bytes"] = bytes.len().into();
            entry["sha256"] = sha256_hex(bytes).into();
        }
    }
    edit(&mut manifest);
    members[0].1 = serde_json::to_vec(&manifest).unwrap();
    members[1].1 = format!("{}  manifest.json\n", sha256_hex(&members[0].1)).into_bytes();
    pack(archive, members);
}
