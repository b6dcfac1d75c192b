//! A root with something of everything in it, made through the library.

mod background;
mod records;
mod spent;

use std::path::Path;

use zeroclaw::model::{
    AcpSession, AcpState, AgentId, AgentStatus, BackupKind, BackupRun, BackupStatus, ChatType,
    CronJob, CronOrigin, CronPolicy, CronState, Delivery, IndexedEntry, IndexedFile, KindCount,
    MemoryRecord, MigrationRun, MigrationStatus, NewEvent, PayloadKind, RunPhase, Schedule,
    SessionRecord, SessionScope, SessionStatus, ShellOutputFormat, SourceReceipt, SourceStatus,
    TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier, TimeZoneOrigin, ToolArtifact,
    ToolArtifactKind,
};
use zeroclaw::model::{ArtifactInfo, CacheValue, RunArtifact};
use zeroclaw::model::{VfsNamespace, VfsPath};
use zeroclaw::service::{Clock, HolderKind, Importer, Service, WriteMode};
use zeroclaw::store::agent::{artifact, cache, parent_stream, trajectory};
use zeroclaw::store::agent::{memory, memory_index, session, tool_artifact, transcript};
use zeroclaw::store::global::{acp, backup, cron, task};

use super::sqlite::block_on;

/// 2026-01-05T10:15:00Z.
pub(crate) const START_MS: i64 = 1_767_608_100_000;

/// What a stranger wrote, to be seen and never obeyed: it clears the screen, names the window, hides a text.
pub(crate) const HOSTILE: &str = "hi\x1b[2J\x1b]0;owned\x07 \u{9b}31m\r\u{202e}txt.exe";

/// Sessions of `atlas`, besides the large one.
pub(crate) const SMALL_SESSIONS: i64 = 3;
/// Events of the large session, about a KiB each: more than a pipe holds.
pub(crate) const LARGE_EVENTS: i64 = 1_200;

/// An agent's id.
pub(crate) fn agent(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

/// Makes a root with the agents `atlas` and, retired, `brook`.
pub(crate) fn build(root: &Path) {
    block_on(async {
        let clock = Clock::fixed(START_MS);
        let (service, is_new) = Service::init(root, clock, HolderKind::Doctor)
            .await
            .unwrap();
        assert!(is_new);
        let importer = Importer::new(service);
        fill_agents(&importer).await;
        fill_control_plane(&importer).await;
        importer.close().await;
    });
}

async fn fill_agents(importer: &Importer) {
    for (id, status, reason) in [
        ("atlas", AgentStatus::Active, None),
        (
            "brook",
            AgentStatus::Retired,
            Some("no longer in the configuration"),
        ),
    ] {
        importer
            .ensure_agent(&agent(id), status, reason)
            .await
            .unwrap();
    }
    let mut tx = importer.begin(&Tier::Agent(agent("atlas"))).await.unwrap();
    for number in 1..=SMALL_SESSIONS {
        let record = record("atlas", &format!("session-{number}"), number);
        let events = vec![
            said(1, "user", &format!("the lantern number {number}")),
            said(2, "assistant", HOSTILE),
        ];
        add_session(&mut tx.tx(), &record, &events).await;
    }
    let large: Vec<_> = (1..=LARGE_EVENTS)
        .map(|place| said(place, "user", &format!("{place} {}", "long ".repeat(200))))
        .collect();
    add_session(&mut tx.tx(), &record("atlas", "large", 0), &large).await;
    memory_index::replace(&mut tx.tx(), &indexed_file())
        .await
        .unwrap();
    tool_artifact::insert(&mut tx.tx(), &[payload()])
        .await
        .unwrap();
    add_streams(&mut tx.tx()).await;
    memory::insert(
        &mut tx.tx(),
        &[
            &note("harbour", "the tide turns at nine"),
            &note("hostile", HOSTILE),
        ],
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();

    let mut tx = importer.begin(&Tier::Agent(agent("brook"))).await.unwrap();
    let mut old = record("brook", "old-talk", 9);
    old.archived_at_ms = Some(START_MS);
    add_session(
        &mut tx.tx(),
        &old,
        &[said(1, "user", "only the heron knew")],
    )
    .await;
    tx.commit().await.unwrap();

    store_files(importer).await;
    for id in ["atlas", "brook"] {
        importer.index(&agent(id)).await.unwrap();
    }
}

async fn store_files(importer: &Importer) {
    let tree = VfsNamespace::default();
    let vfs = importer.service().vfs(&agent("atlas"), tree).await.unwrap();
    for (path, text) in [
        ("log/tide.md", "the tide turns at nine"),
        ("hostile", HOSTILE),
    ] {
        let path = VfsPath::new(path).unwrap();
        let written = vfs.write(&path, text.into(), WriteMode::default());
        written.await.unwrap();
    }
    let hostile = VfsPath::new(&format!("log/{}", HOSTILE.replace('/', "-"))).unwrap();
    vfs.make_folder(&hostile).await.unwrap();
}

async fn add_session(
    tx: &mut zeroclaw::db::WriteTx<'_>,
    record: &SessionRecord,
    events: &[NewEvent],
) {
    let mut tail = session::insert(tx, record).await.unwrap();
    for slice in events.chunks(transcript::MAX_INSERT) {
        let placed: Vec<_> = slice
            .iter()
            .zip(tail.last_seq + 1..)
            .map(|(event, seq)| transcript::PlacedEvent {
                session_no: tail.session_no,
                seq,
                event,
            })
            .collect();
        transcript::insert(tx, &placed).await.unwrap();
        let count = i64::try_from(slice.len()).unwrap();
        tail.last_seq += count;
        session::grow(tx, tail, count, count, record.updated_at_ms)
            .await
            .unwrap();
    }
}

fn record(agent_id: &str, id: &str, minute: i64) -> SessionRecord {
    SessionRecord {
        agent_id: agent(agent_id),
        session_id: id.to_owned(),
        session_key: format!("telegram:main:{id}"),
        session_scope: SessionScope::Conversation,
        status: SessionStatus::Idle,
        chat_type: Some(ChatType::Direct),
        channel: Some("telegram".to_owned()),
        account_id: Some("main".to_owned()),
        primary_conversation_id: None,
        display_name: (id == "session-1").then(|| HOSTILE.to_owned()),
        model_provider: None,
        model: None,
        event_count: 0,
        message_count: 0,
        created_at_ms: START_MS,
        updated_at_ms: START_MS + minute * 60_000,
        archived_at_ms: None,
        has_synthetic_times: false,
        revision: 0,
        pinned_at_ms: None,
        forked_from: None,
    }
}

fn said(place: i64, role: &str, text: &str) -> NewEvent {
    NewEvent {
        event_id: format!("event-{place}"),
        event_type: "message".to_owned(),
        role: Some(role.to_owned()),
        parent_id: None,
        idempotency_key: None,
        created_at_ms: START_MS + place,
        text: text.to_owned(),
        event_json: None,
    }
}

fn note(key: &str, content: &str) -> MemoryRecord {
    MemoryRecord {
        memory_id: format!("memory-{key}"),
        key: key.to_owned(),
        category: "core".to_owned(),
        namespace: "default".to_owned(),
        kind_json: None,
        importance: Some(0.5),
        pinned: true,
        is_trusted: true,
        session_hint: None,
        tenant_id: None,
        superseded_by: None,
        embedding_provider: None,
        embedding_model: None,
        created_at_ms: START_MS,
        updated_at_ms: START_MS,
        created_at_text: None,
        updated_at_text: None,
        expires_at_ms: None,
        content: content.to_owned(),
        embedding: None,
    }
}

async fn fill_control_plane(importer: &Importer) {
    let mut tx = importer.begin(&Tier::Global).await.unwrap();
    assert!(cron::insert_new(&mut tx.tx(), &job()).await.unwrap());
    let runs: Vec<_> = (1..=5).map(run_of_job).collect();
    task::insert_new(&mut tx.tx(), &runs).await.unwrap();
    background::fill(&mut tx.tx(), run_of_job(9)).await;
    records::fill(&mut tx.tx()).await;
    acp::insert(&mut tx.tx(), &[acp_session()]).await.unwrap();
    spent::fill(&mut tx.tx()).await;
    backup::insert(&mut tx.tx(), &backup_run()).await.unwrap();
    tx.commit().await.unwrap();
    importer.insert_run(&import_run()).await.unwrap();
    importer.put_receipts(vec![receipt()]).await.unwrap();
}

fn job() -> CronJob {
    CronJob {
        store_key: "runtime".to_owned(),
        job_id: "job-1".to_owned(),
        name: "morning watch".to_owned(),
        origin: CronOrigin::Runtime,
        agent_id: Some(agent("atlas")),
        enabled: true,
        disabled_reason: None,
        delete_after_run: false,
        schedule: Schedule::Cron {
            expr: "0 9 * * *".to_owned(),
            tz: Some("Europe/Berlin".to_owned()),
            tz_origin: Some(TimeZoneOrigin::Job),
        },
        session_target: "isolated".to_owned(),
        payload_kind: PayloadKind::AgentTurn,
        payload_message: "look at the tide".to_owned(),
        payload_model: None,
        tools_allow: None,
        uses_memory: true,
        shell_output_format: ShellOutputFormat::Wrapped,
        delivery: Delivery::default(),
        next_run_at_ms: Some(START_MS),
        last_run_at_ms: None,
        last_run_status: None,
        last_output: None,
        job_json: "{}".to_owned(),
        created_at_ms: START_MS,
        updated_at_ms: START_MS,
        policy: CronPolicy::default(),
        state: CronState::default(),
    }
}

fn run_of_job(number: i64) -> TaskRun {
    TaskRun {
        task_id: format!("run-{number}"),
        owner_kind: TaskOwnerKind::Cron,
        source_id: Some("job-1".to_owned()),
        agent_id: Some(agent("atlas")),
        label: None,
        status: TaskStatus::Succeeded,
        status_detail: Some("ok".to_owned()),
        created_at_ms: START_MS + number,
        started_at_ms: Some(START_MS + number),
        ended_at_ms: Some(START_MS + number + 1_500),
        duration_ms: Some(1_500),
        output: Some(HOSTILE.to_owned()),
        error: None,
        detail_json: None,
        origin: TaskOrigin::default(),
    }
}

fn acp_session() -> AcpSession {
    AcpSession {
        agent_id: agent("atlas"),
        session_id: "session-1".to_owned(),
        session_key: "acp:session-1".to_owned(),
        cwd: HOSTILE.to_owned(),
        state: AcpState::Ended,
        token_count: 17,
        created_at_ms: START_MS,
        last_activity_at_ms: START_MS,
        ended_at_ms: Some(START_MS),
    }
}

fn indexed_file() -> IndexedFile {
    IndexedFile {
        path: "agents/atlas/workspace/MEMORY.md".to_owned(),
        hash: "00".repeat(32),
        mtime_ms: START_MS,
        size_bytes: 64,
        entries: vec![IndexedEntry {
            id: "entry-1".to_owned(),
            start_line: 3,
            end_line: 3,
            category: "core".to_owned(),
            key: Some("hostile".to_owned()),
            text: HOSTILE.to_owned(),
        }],
    }
}

/// What runtimes did, told, gave and cached.
async fn add_streams(tx: &mut zeroclaw::db::WriteTx<'_>) {
    let events = [r#"{"step":"plan"}"#.to_owned(), "[]".to_owned()];
    trajectory::append(tx, "session-1", Some("run-1"), &events, START_MS)
        .await
        .unwrap();
    parent_stream::append(tx, "session-1", "run-1", &events, START_MS)
        .await
        .unwrap();
    let value = CacheValue {
        value_json: Some("1".to_owned()),
        blob: None,
    };
    cache::put(tx, HOSTILE, "key", &value, None, START_MS)
        .await
        .unwrap();
    let output = RunArtifact {
        about: ArtifactInfo {
            run_id: "run-1".to_owned(),
            path: HOSTILE.to_owned(),
            kind: "text".to_owned(),
            metadata_json: "{}".to_owned(),
            sha256: "00".repeat(32),
            size_bytes: 2,
            created_at_ms: START_MS,
        },
        blob: b"ok".to_vec(),
    };
    assert!(artifact::insert_new(tx, &output).await.unwrap());
}

fn payload() -> ToolArtifact {
    ToolArtifact {
        run_id: "session-1".to_owned(),
        artifact_id: "artifact-1".to_owned(),
        session_id: Some("session-1".to_owned()),
        kind: ToolArtifactKind::Result,
        metadata_json: HOSTILE.to_owned(),
        sha256: "00".repeat(32),
        size_bytes: i64::try_from(HOSTILE.len()).unwrap(),
        created_at_ms: START_MS,
        blob: HOSTILE.as_bytes().to_vec(),
    }
}

fn backup_run() -> BackupRun {
    BackupRun {
        id: "backup-1".to_owned(),
        kind: BackupKind::Create,
        created_at_ms: START_MS,
        finished_at_ms: Some(START_MS + 2_000),
        archive_path: "backups/one.tar.gz".to_owned(),
        archive_bytes: Some(4_096),
        status: BackupStatus::Completed,
        error: None,
        manifest_json: "{}".to_owned(),
    }
}

fn import_run() -> MigrationRun {
    MigrationRun {
        id: "20260105T101500Z-aaaa".to_owned(),
        started_at_ms: START_MS,
        finished_at_ms: Some(START_MS + 3_000),
        status: MigrationStatus::Completed,
        phase: RunPhase::Report,
        from_path: None,
        backup_path: None,
        app_version: "0.1.0".to_owned(),
        report_json: "{}".to_owned(),
    }
}

fn receipt() -> SourceReceipt {
    SourceReceipt {
        source_key: "sessions:one".to_owned(),
        migration_kind: "sessions".to_owned(),
        source_path: "data/one".to_owned(),
        target_table: "sessions".to_owned(),
        source_sha256: "00".repeat(32),
        source_size_bytes: 12_288,
        total: KindCount {
            records: 4,
            imported: 4,
            ..KindCount::default()
        },
        last_run_id: import_run().id,
        status: SourceStatus::Retired,
        imported_at_ms: START_MS,
        removed_source: true,
        retired_path: Some("state/migrated/one".to_owned()),
        report_json: "{}".to_owned(),
    }
}
