//! Secrets: said to be inside, or proved to be gone; programs of workspaces; many agents.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use zeroclaw::db::{DbCopy, Erase, Erased};
use zeroclaw::fs::atomic;
use zeroclaw::model::{AgentId, Tier};
use zeroclaw::service::backup::{CreateOptions, CreateReport, MemberKind};

use super::home::{Home, add_memories, open, unpack, verify};
use crate::support::inhabited;
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite;

const KEY_IN_CONFIG: &str = "sk-canary-provider-0123";
const SECRET_KEY: &str = "canary-secret-key-4567";
const WEBHOOK: &str = "https://hooks.example/canary-webhook-89";
const LEASE: &str = "canary-lease-payload-10";
const PLUGIN: &str = "canary-plugin-token-11";
/// Digest of a device's token.
const DEVICE: &str = "ca4a12345678ca4a12345678ca4a12345678ca4a12345678ca4a12345678ca4a";
const CREDENTIALS: [&str; 6] = [KEY_IN_CONFIG, SECRET_KEY, WEBHOOK, LEASE, PLUGIN, DEVICE];
const SAID: &str = "canary transcript said aloud";
const REMEMBERED: &str = "canary memory kept";
/// Without its first letters, which an index may share with the word before it.
const DELETED: &str = "canarydeletedword12";

/// Where a text lies in the unpacked archive, as `strings` would find it.
fn places(archive: &Path, canary: &str) -> Vec<String> {
    let canary = canary.as_bytes();
    let holds = |bytes: &[u8]| {
        bytes
            .windows(canary.len())
            .any(|part| part.eq_ignore_ascii_case(canary))
    };
    let members = unpack(archive).into_iter();
    members.filter(|it| holds(&it.1)).map(|it| it.0).collect()
}

/// A root with a canary wherever a secret can lie, and one that was deleted.
async fn with_canaries() -> Home {
    let home = Home::with_two_agents().await;
    let root = home.root();
    let config = format!("[providers.one]\napi_key = \"{KEY_IN_CONFIG}\"\n");
    fs::write(root.join("config.toml"), config).unwrap();
    fs::write(root.join(".secret_key"), SECRET_KEY).unwrap();
    let plugin = root.join("plugins/tokens.db");
    fs::create_dir(plugin.parent().unwrap()).unwrap();
    fs::write(&plugin, "").unwrap();
    sqlite::change(
        &plugin,
        &format!("CREATE TABLE t (token); INSERT INTO t VALUES ('{PLUGIN}')"),
    );
    sqlite::change(
        &home.global(),
        &format!(
            "INSERT INTO state_leases (scope, lease_key, owner, payload_json, created_at_ms, updated_at_ms)
                 VALUES ('s', 'k', 'o', '{{\"token\": \"{LEASE}\"}}', 1, 1);
             INSERT INTO device_auth_tokens (token_sha256, device_id, status) VALUES ('{DEVICE}', 'd1', 'active');
             INSERT INTO cron_jobs (store_key, job_id, name, origin, enabled, schedule_kind, every_ms,
                     session_target, payload_kind, payload_message, delivery_mode, delivery_to, job_json,
                     created_at_ms, updated_at_ms)
                 VALUES ('default', 'hook', 'hook', 'runtime', 0, 'every', 1000, 'main', 'agent_turn', 'hello',
                         'webhook', '{WEBHOOK}', '{{\"delivery\": {{\"to\": \"{WEBHOOK}\"}}}}', 1, 1),
                        ('default', 'chat', 'chat', 'runtime', 0, 'every', 1000, 'main', 'agent_turn', 'hello',
                         'announce', 'chat-4711', '{{\"failure\": \"{WEBHOOK}\"}}', 1, 1);"
        ),
    );
    sqlite::change(
        &home.agent("atlas"),
        &format!(
            "INSERT INTO sessions (session_id, session_key, status, created_at_ms, updated_at_ms, last_seq)
                 VALUES ('s1', 'k1', 'idle', 1, 1, 1);
             INSERT INTO transcript_events (session_no, seq, event_type, role, created_at_ms, text)
                 VALUES (1, 1, 'message', 'user', 1, '{SAID}');
             INSERT INTO transcript_events_fts (transcript_events_fts) VALUES ('rebuild');"
        ),
    );
    remember(&home, 100, REMEMBERED);
    remember(&home, 101, &format!("zq{DELETED}"));
    // As a store forgets: the row, and its words by the row's old text.
    sqlite::change(
        &home.agent("atlas"),
        "INSERT INTO memories_fts (memories_fts, rowid, key, content)
             SELECT 'delete', memory_no, key, content FROM memories WHERE memory_no = 101;
         DELETE FROM memories WHERE memory_no = 101;",
    );
    home
}

fn remember(home: &Home, number: i64, content: &str) {
    sqlite::change(
        &home.agent("atlas"),
        &format!(
            "INSERT INTO memories (memory_no, memory_id, key, category, created_at_ms, updated_at_ms, content)
                 VALUES ({number}, 'id{number}', '{content}', 'core', 1, 1, '{content}');
             INSERT INTO memories_fts (rowid, key, content) VALUES ({number}, '{content}', '{content}');
             ANALYZE;"
        ),
    );
}

fn without_secrets() -> CreateOptions {
    CreateOptions {
        with_secrets: false,
        ..CreateOptions::default()
    }
}

fn left_out<'a>(report: &'a CreateReport, path: &str) -> Option<&'a str> {
    let left = report.left_out.iter().find(|left| left.path == path);
    left.map(|left| {
        assert!(left.is_secret, "{path}");
        left.reason.as_str()
    })
}

#[tokio::test]
async fn c56_a_default_archive_says_that_secrets_are_inside_and_holds_nothing_deleted() {
    let home = with_canaries().await;
    let live = fs::read(home.agent("atlas")).unwrap();
    assert!(
        live.windows(DELETED.len())
            .any(|part| part == DELETED.as_bytes()),
        "the deleted word is not in the live file: nothing would be proved"
    );

    let report = home.create(CreateOptions::default()).await.unwrap();

    assert!(report.has_secrets);
    for canary in CREDENTIALS.iter().chain(&[SAID, REMEMBERED]) {
        assert!(!places(&report.archive, canary).is_empty(), "{canary}");
    }
    assert_eq!(places(&report.archive, DELETED), Vec::<String>::new());
    verify(&report.archive).await.unwrap();
}

#[tokio::test]
async fn c56_an_archive_without_secrets_holds_no_credential_and_names_what_is_missing() {
    let home = with_canaries().await;

    let report = home.create(without_secrets()).await.unwrap();

    assert!(!report.has_secrets);
    for canary in CREDENTIALS.iter().chain(&[DELETED]) {
        assert_eq!(places(&report.archive, canary), Vec::<String>::new());
    }
    for canary in [SAID, REMEMBERED, "chat-4711"] {
        assert!(!places(&report.archive, canary).is_empty(), "{canary}");
    }
    for path in ["config.toml", ".secret_key", "plugins/tokens.db"] {
        assert!(left_out(&report, path).is_some(), "{path}");
    }
    for (column, rows) in [
        ("cron_jobs.delivery_to", "(1 row)"),
        ("cron_jobs.job_json", "(2 rows)"),
        ("state_leases", "(1 row)"),
        ("device_auth_tokens", "(1 row)"),
    ] {
        let told = left_out(&report, &format!("state/state.sqlite: {column}"));
        assert!(told.unwrap().ends_with(rows), "{told:?}");
    }
    assert!(report.warnings[0].contains("transcripts"));
    let global = report
        .members
        .iter()
        .find(|it| it.path.ends_with("state.sqlite"));
    let rows = global.unwrap().rows.as_ref().unwrap();
    assert_eq!((rows["state_leases"], rows["cron_jobs"]), (0, 2));
    verify(&report.archive).await.unwrap();
}

#[tokio::test]
async fn c56_a_restore_without_secrets_says_what_to_put_back_and_keeps_what_is_there() {
    let home = with_canaries().await;
    let archive = home.create(without_secrets()).await.unwrap().archive;

    let here = home.restore(&archive, &home.root()).await.unwrap();
    let there = home.restore(&archive, &home.path("new")).await.unwrap();

    let says = |text: &str| there.notes.iter().any(|note| note.contains(text));
    assert!(says("config.toml: ") && says(".secret_key: ") && says("cron_jobs.delivery_to: "));
    assert!(!home.path("new").join("config.toml").exists());
    let config = fs::read_to_string(home.root().join("config.toml")).unwrap();
    assert!(config.contains(KEY_IN_CONFIG));
    assert!(here.notes.len() == there.notes.len());
}

#[test]
fn c56_a_person_is_told_in_plain_words() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    fs::write(home.root().join(".secret_key"), SECRET_KEY).unwrap();

    home.zeroclaw(&["backup", "create"])
        .exits(0)
        .says("inside: keep the archive as safe as the root")
        .says(".secret_key lies in it beside what it opens");
    for dry_run in [&["--dry-run"][..], &[]] {
        let ran = home
            .zeroclaw(&[&["backup", "create", "--no-secrets"], dry_run].concat())
            .exits(0)
            .says("left out")
            .complains("left out .secret_key: the key of what is encrypted")
            .complains("transcripts, memories, prompts of jobs");
        assert!(!ran.stderr.contains(SECRET_KEY) && !ran.stdout.contains(SECRET_KEY));
        // What is emptied is known by name before, and by count after.
        let names_columns = ran
            .stderr
            .contains("state/state.sqlite: cron_jobs.job_json");
        assert_eq!(names_columns, !dry_run.is_empty());
    }
}

#[tokio::test]
async fn what_is_erased_is_in_no_byte_of_the_copy_and_what_remains_is_counted() {
    let home = with_canaries().await;
    let tier = Tier::Agent(AgentId::new("atlas").unwrap());
    let copy = home.path("copy.sqlite");
    atomic::copy_private(&home.agent("atlas"), &copy).unwrap();
    let column = |column| Erase {
        table: "memories",
        only: None,
        what: Erased::Column(column),
    };
    let steps = [
        column("content"),
        column("kind_json"),
        column("no_such_column"),
        Erase {
            table: "transcript_events",
            only: Some(("role", "user")),
            what: Erased::Row,
        },
        Erase {
            table: "no_such_table",
            only: None,
            what: Erased::Row,
        },
    ];

    let mut db = DbCopy::open(&copy, &tier).await.unwrap();
    let before = db.remains(&steps).await.unwrap();
    let changed = db.erase(&steps).await.unwrap();
    let mut db = db.rewrite(&tier).await.unwrap();

    assert_eq!(before, [4, 0, 0, 1, 0]);
    assert_eq!(changed, [4, 0, 0, 1, 0]);
    assert_eq!(db.remains(&steps).await.unwrap(), [0; 5]);
    assert!(db.integrity().await.unwrap().is_ok());
    assert!(db.full_text().await.unwrap().is_ok());
    assert_eq!(db.rows().await.unwrap()["memories"], 4);
    db.close().await.unwrap();
    let bytes = fs::read(&copy).unwrap();
    let holds = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(!holds(SAID) && !holds("knows of"));
    let mode = fs::metadata(&copy).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_workspace_keeps_its_programs_and_names_its_links() {
    let home = Home::with_two_agents().await;
    let workspace = home.root().join("agents/atlas/workspace");
    fs::create_dir_all(workspace.join("bin")).unwrap();
    for (name, mode) in [("bin/run.sh", 0o755), ("notes.md", 0o644), ("odd", 0o611)] {
        let path = workspace.join(name);
        fs::write(&path, name).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    symlink("/etc/passwd", workspace.join("file")).unwrap();
    symlink("bin", workspace.join("folder")).unwrap();
    let options = CreateOptions {
        include_workspace: true,
        ..CreateOptions::default()
    };

    let report = home.create(options).await.unwrap();
    let new = home.path("new");
    home.restore(&report.archive, &new).await.unwrap();

    let restored = new.join("agents/atlas/workspace");
    for (name, mode) in [("bin/run.sh", 0o700), ("notes.md", 0o600), ("odd", 0o600)] {
        let meta = fs::metadata(restored.join(name)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, mode, "{name}");
        assert_eq!(fs::read_to_string(restored.join(name)).unwrap(), name);
    }
    let told: Vec<_> = report
        .left_out
        .iter()
        .map(|left| (left.path.as_str(), left.reason.as_str()))
        .collect();
    let link = "a link; links are not followed";
    assert_eq!(
        told,
        [
            ("agents/atlas/workspace/file", link),
            ("agents/atlas/workspace/folder", link)
        ]
    );
    assert!(restored.join("file").symlink_metadata().is_err());
    // Also for who unpacks by hand.
    let unpacked = home.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let file = fs::File::open(&report.archive).unwrap();
    let inflated = flate2::read::MultiGzDecoder::new(file);
    tar::Archive::new(inflated).unpack(&unpacked).unwrap();
    let by_hand = unpacked.join("agents/atlas/workspace/bin/run.sh");
    assert_eq!(
        fs::metadata(by_hand).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(
        report
            .members
            .iter()
            .filter(|it| it.kind == MemberKind::Workspace)
            .count(),
        3
    );
}

/// As `zeroclaw backup create` runs in a shell that allows few files.
fn create_under(home: &Sandbox, limits: &str) -> Ran {
    let inner = home.command(&["backup", "create", "--no-verify"]);
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear()
        .envs(
            inner
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .current_dir(home.home());
    Ran::of(shell)
}

#[test]
fn many_agents_are_captured_where_the_shell_allows_few_files() {
    let home = Sandbox::in_memory();
    let names: Vec<String> = (0..60).map(|number| format!("agent-{number:02}")).collect();
    sqlite::block_on(async {
        let importer = open(&home.root()).await;
        let active = zeroclaw::model::AgentStatus::Active;
        for name in &names {
            let id = AgentId::new(name.as_str()).unwrap();
            importer.ensure_agent(&id, active, None).await.unwrap();
        }
        add_memories(&importer, "agent-07", 2).await;
        importer.close().await;
    });

    // 61 databases need 491.
    create_under(&home, "ulimit -Sn 200 && ulimit -Hn 400")
        .exits(8)
        .complains("61 databases")
        .complains("400");
    create_under(&home, "ulimit -Sn 200")
        .exits(0)
        .says("agents/agent-59/agent/agent.sqlite");
}
