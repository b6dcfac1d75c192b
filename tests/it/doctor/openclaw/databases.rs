//! Homes whose state is in databases already: read by role and version, from a private copy, by the columns known.

use serde_json::json;

use super::super::state::State;
use super::{codes, has, import};
use crate::support::legacy::LegacyInstall;
use crate::support::openclaw::{NOON, home, said, talk, transcript};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal};

const META: &str = "CREATE TABLE schema_meta (meta_key TEXT PRIMARY KEY, role TEXT, schema_version INTEGER, agent_id TEXT) STRICT;";
/// As schemas 4 to 13 had them.
const SESSIONS: &str = "CREATE TABLE sessions (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL,
        session_scope TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, status TEXT) STRICT;
    CREATE TABLE session_routes (session_key TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL, updated_at INTEGER NOT NULL) STRICT;
    CREATE TABLE session_entries (session_key TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL, entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL) STRICT;
    CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT NOT NULL,
        created_at INTEGER NOT NULL, PRIMARY KEY (session_id, seq)) STRICT;";
/// As schema 23 has them.
const WINDOWS: &str = "CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL,
        entry_json TEXT NOT NULL, entry_valid INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL, label TEXT, archived_at INTEGER) STRICT;
    CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL, session_scope TEXT NOT NULL,
        created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, status TEXT, chat_type TEXT, channel TEXT, account_id TEXT) STRICT;
    CREATE TABLE conversations (conversation_id TEXT NOT NULL PRIMARY KEY, channel TEXT NOT NULL, account_id TEXT NOT NULL,
        kind TEXT NOT NULL, peer_id TEXT NOT NULL, thread_id TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL) STRICT;
    CREATE TABLE session_conversations (session_id TEXT NOT NULL, conversation_id TEXT NOT NULL, role TEXT NOT NULL) STRICT;
    CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,
        event_zstd BLOB, event_utf8_bytes INTEGER, navigation_json TEXT, PRIMARY KEY (session_id, seq)) STRICT;
    CREATE TABLE memory_index_chunks (id TEXT) STRICT;
    CREATE TABLE from_the_future (id TEXT) STRICT;";
/// A message as schemas since 22 pack long ones.
const PACKED: &str = "28b52ffd0468850400c2891d18804f0790aca89cb801b682a4c888eec13b2493a65223919559a6647fcf3adb9a9bb879cb106c4dc165dbc4557cdb9c07a1b657f7b6b8137d3fee0799bbf7db8e4f8c7b3d43703aa6ee486606993aa4a6701009080914430ed74bd176e4e8e9c6e8c7d34a7717a4eb9be7eeec6c8c1c5dcfd2d5c7020800817a2a05dc5b8a538d823fcab313ea6706a808d41369998719";

fn agent_db(there: &LegacyInstall, agent: &str, ddl: &str, version: i64, rows: &str) {
    let meta = format!("INSERT INTO schema_meta VALUES ('m', 'agent', {version}, '{agent}');");
    let path = format!("agents/{agent}/agent/openclaw-agent.sqlite");
    there.store(path, Journal::Wal, &format!("{META} {ddl}"), &[&meta, rows]);
}

fn state_db(there: &LegacyInstall, ddl: &str, version: i64, rows: &str) {
    let meta = format!("INSERT INTO schema_meta VALUES ('m', 'global', {version}, NULL);");
    there.store(
        "state/openclaw.sqlite",
        Journal::Wal,
        &format!("{META} {ddl}"),
        &[&meta, rows],
    );
}

fn event(session: &str, seq: i64, event: &serde_json::Value) -> String {
    let text = event.to_string().replace('\'', "''");
    format!(
        "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES ('{session}', {seq}, '{text}', {NOON});"
    )
}

#[test]
fn c25_a_database_of_the_first_schema_has_no_sessions_and_the_files_have() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    agent_db(
        &there,
        "main",
        "CREATE TABLE auth_profile_store (store_key TEXT, store_json TEXT) STRICT;",
        1,
        "INSERT INTO auth_profile_store VALUES ('k', 'secret-of-old');",
    );
    transcript(&there, "main", "one.jsonl", &talk("one", &["in a file"]));

    let report = import(&sandbox, there.root(), 0);

    assert!(has(&report, "table-left") && !report.to_string().contains("secret-of-old"));
    assert_eq!(State::of(sandbox.root()).sessions().len(), 1);
}

#[test]
fn c25_sessions_of_the_schemas_in_between_come_in_by_their_columns() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let rows = [
        format!(
            "INSERT INTO sessions VALUES ('one', 'agent:main:main', 'shared-main', {NOON}, {NOON}, 'running');"
        ),
        format!(
            "INSERT INTO session_routes VALUES ('agent:main:main', 'one', {NOON}), ('agent:main:empty', 'two', {NOON});"
        ),
        format!(
            "INSERT INTO session_entries VALUES ('agent:main:main', 'one', '{{\"sessionId\":\"one\",\"label\":\"the first\",\"status\":\"running\"}}', {NOON}), ('agent:main:empty', 'two', '{{}}', {NOON});"
        ),
        event(
            "one",
            0,
            &json!({"type": "session", "version": 3, "id": "one"}),
        ),
        event("one", 1, &said("a", None, "user", "by the columns")),
        event("one", 2, &said("b", Some("a"), "assistant", "yes")),
    ];
    agent_db(&there, "main", SESSIONS, 8, &rows.concat());

    import(&sandbox, there.root(), 0);

    let state = State::of(sandbox.root());
    let of = |key: &str, messages| ("main".to_owned(), key.to_owned(), messages);
    assert_eq!(
        state.sessions(),
        [of("agent:main:empty", 0), of("agent:main:main", 2)]
    );
    let named = "SELECT display_name, status FROM sessions WHERE session_id = 'one'";
    assert_eq!(
        sqlite::rows(&state.agent("main"), named),
        [["the first", "interrupted"]]
    );
}

#[test]
fn c25_the_newest_schema_comes_in_with_packed_events_and_earlier_windows_as_history() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let rows = [
        format!("INSERT INTO session_nodes (session_key, current_session_id, entry_json, updated_at, label) VALUES
            ('agent:main:slack:channel:c', 'now', '{{\"sessionId\":\"now\"}}', {NOON}, 'planning'), ('agent:main:gone', 'gone', '{{}}', {NOON}, NULL);"),
        format!("INSERT INTO session_windows VALUES ('before', 'agent:main:slack:channel:c', 'channel', 1, 2, 'done', 'channel', 'slack', 'work'),
            ('now', 'agent:main:slack:channel:c', 'channel', 3, {NOON}, 'done', 'channel', 'slack', 'work');"),
        format!("INSERT INTO conversations VALUES ('conv_1', 'slack', 'work', 'channel', 'C', NULL, 1, {NOON});
            INSERT INTO session_conversations VALUES ('now', 'conv_1', 'primary');"),
        event("before", 0, &said("x", None, "user", "an earlier time")),
        event("now", 0, &said("m1", None, "user", "and now")),
        format!("INSERT INTO transcript_events (session_id, seq, created_at, event_zstd) VALUES ('now', 1, {NOON}, X'{PACKED}'), ('now', 2, {NOON}, X'00');"),
        "INSERT INTO memory_index_chunks VALUES ('c'); INSERT INTO from_the_future VALUES ('f');".to_owned(),
    ];
    agent_db(&there, "main", WINDOWS, 23, &rows.concat());

    let report = import(&sandbox, there.root(), 1);

    sandbox
        .zeroclaw(&["sessions", "search", "oleander"])
        .exits(0)
        .says("now");
    let store = State::of(sandbox.root()).agent("main");
    let stand = sqlite::rows(
        &store,
        "SELECT session_id, archived_at_ms IS NULL, message_count FROM sessions ORDER BY 1",
    );
    assert_eq!(
        stand,
        [["before", "0", "1"], ["gone", "1", "0"], ["now", "1", "2"]]
    );
    let with = sqlite::rows(
        &store,
        "SELECT session_id, peer_id FROM sessions JOIN conversations ON conversation_id = primary_conversation_id",
    );
    assert_eq!(with, [["now", "C"]]);
    let told = report["findings"].to_string();
    assert!(
        has(&report, "table-left") && told.contains("from_the_future"),
        "{told}"
    );
    assert!(codes(&report).contains(&"unknown-table"));
    let refused = report["sources"].to_string();
    assert!(refused.contains("session now, event 2"), "{refused}");
}

#[test]
fn a_newer_schema_is_read_where_it_is_known_and_another_role_is_not_read_at_all() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    agent_db(
        &there,
        "main",
        WINDOWS,
        99,
        &event("s", 0, &said("a", None, "user", "hi")),
    );
    agent_db(
        &there,
        "ops",
        WINDOWS,
        23,
        "UPDATE schema_meta SET role = 'global';",
    );

    let report = import(&sandbox, there.root(), 1);

    assert!(has(&report, "newer-schema") && has(&report, "unreadable-source"));
}

#[test]
fn c26_work_of_a_state_database_comes_in_and_nothing_of_it_runs() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let ddl = "CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, declaration_key TEXT, enabled INTEGER, job_json TEXT, state_json TEXT, schedule_identity TEXT, sort_order INTEGER) STRICT;
        CREATE TABLE cron_run_logs (job_id TEXT, seq INTEGER, ts INTEGER, run_at_ms INTEGER, entry_json TEXT) STRICT;
        CREATE TABLE task_runs (task_id TEXT, runtime TEXT, source_id TEXT, agent_id TEXT, task TEXT, status TEXT, created_at INTEGER, started_at INTEGER, ended_at INTEGER, what_is_this TEXT) STRICT;
        CREATE TABLE device_pairing_paired (device_id TEXT, public_key TEXT, tokens_json TEXT, created_at_ms INTEGER, approved_at_ms INTEGER) STRICT;
        CREATE TABLE delivery_queue_entries (queue_name TEXT, id TEXT, status TEXT, channel TEXT, target TEXT, retry_count INTEGER, recovery_state TEXT, entry_json TEXT, enqueued_at INTEGER) STRICT;";
    let job = json!({"name": "Brief", "agentId": "main", "schedule": {"kind": "every", "everyMs": 1000}, "payload": {"kind": "agentTurn", "message": "go"}});
    let run = json!({"ts": NOON, "jobId": "j", "action": "finished", "status": "ok", "runAtMs": NOON, "delivered": false});
    let rows = format!(
        "INSERT INTO cron_jobs VALUES ('/x', 'j', NULL, 1, '{job}', '{{\"runningAtMs\":5,\"nextRunAtMs\":9}}', NULL, 0), ('/x', 'own', 'heartbeat:main', 1, '{{}}', '{{}}', NULL, 1);
         INSERT INTO cron_run_logs VALUES ('j', 1, {NOON}, {NOON}, '{run}');
         INSERT INTO task_runs VALUES ('t1', 'cron', 'j', 'main', 'go', 'succeeded', {NOON}, {NOON}, {NOON}, 'odd'), ('t2', 'subagent', NULL, 'main', 'count', 'running', {NOON}, {NOON}, NULL, NULL);
         INSERT INTO device_pairing_paired VALUES ('d', 'pk', '{{\"node\":{{\"token\":\"secret-token\",\"scopes\":[]}}}}', 1, 2);
         INSERT INTO delivery_queue_entries VALUES ('outbound', 'm1', 'pending', 'telegram', '42', 0, 'send_attempt_started', '{{}}', {NOON}), ('outbound', 'm2', 'failed', NULL, NULL, 1, 'completed_permanent', '{{}}', {NOON});"
    );
    state_db(&there, ddl, 1, &rows);

    let report = import(&sandbox, there.root(), 0);

    let global = State::of(sandbox.root()).global();
    assert_eq!(
        sqlite::rows(
            &global,
            "SELECT job_id, agent_id, enabled, claim_task_id IS NULL FROM cron_jobs"
        ),
        [["j", "main", "1", "1"]]
    );
    assert_eq!(
        sqlite::rows(
            &global,
            "SELECT owner_kind, status FROM task_runs ORDER BY 1"
        ),
        [["cron", "succeeded"], ["subagent", "lost"]]
    );
    assert_eq!(
        sqlite::rows(&global, "SELECT id, status FROM delivery_queue_entries"),
        [["m1", "unknown"]]
    );
    assert_eq!(
        sqlite::rows(&global, "SELECT device_id, status FROM device_auth_tokens"),
        [["d", "unverified"]]
    );
    for code in [
        "program-job",
        "claim-dropped",
        "unverified-device",
        "column-left",
    ] {
        assert!(has(&report, code), "{code}: {:?}", codes(&report));
    }
    assert!(!report.to_string().contains("secret-token"));
}

#[test]
fn a_log_that_was_not_folded_in_is_read_with_its_database_and_both_stay() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    agent_db(
        &there,
        "main",
        SESSIONS,
        8,
        &format!(
            "INSERT INTO sessions VALUES ('one', 'agent:main:main', 'shared-main', {NOON}, {NOON}, 'done');"
        ),
    );
    let store = there.path("agents/main/agent/openclaw-agent.sqlite");
    let kept = sandbox.home().join("kept");
    std::fs::create_dir(&kept).unwrap();
    let event = event("one", 0, &said("a", None, "user", "in the log alone"));
    sqlite::block_on(async {
        let mut connection = sqlite::open(&store, Journal::Wal).await;
        sqlite::run_together(&mut connection, &[&event]).await;
        for ending in ["", "-wal"] {
            let name = format!("openclaw-agent.sqlite{ending}");
            std::fs::copy(store.with_file_name(&name), kept.join(&name)).unwrap();
        }
        sqlx::Connection::close(connection).await.unwrap();
    });
    for ending in ["", "-wal"] {
        let name = format!("openclaw-agent.sqlite{ending}");
        std::fs::copy(kept.join(&name), store.with_file_name(&name)).unwrap();
    }

    import(&sandbox, there.root(), 0);

    let mine = ("main".to_owned(), "agent:main:main".to_owned(), 1);
    assert_eq!(State::of(sandbox.root()).sessions(), [mine]);
}
