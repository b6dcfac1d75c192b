//! What no reader takes: files that stay, caches that go aside, and what nobody knows.

use serde_json::Value;

use super::state::{State, findings, source};
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite;

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\n";
const COST: &[u8] =
    br#"{"id":"a","usage":{"model":"m","cost_usd":0.5,"timestamp":"2026-02-01T10:00:00Z"}}"#;

fn home_with(files: &[&str]) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    for file in files {
        install.file(file, b"{}");
    }
    (home, install)
}

fn fix(home: &Sandbox) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json()
}

#[test]
fn caches_are_moved_aside_with_a_receipt_and_nothing_of_them_comes_in() {
    let caches = [
        "data/state/models_cache.json",
        "workspace/state/models_cache.json",
        "agents/atlas/workspace/state/models_cache.json",
        "agents/atlas/workspace/state/slash-commands.json",
        "data/state/memory_hygiene_state.json",
        ".selftest_probe",
        "data/.zeroclaw_doctor_probe_77",
    ];
    let (home, install) = home_with(&caches);
    let ddl = "CREATE TABLE response_cache (prompt_hash TEXT PRIMARY KEY, response TEXT)";
    let row = "INSERT INTO response_cache VALUES ('h', 'said')";
    install
        .store(
            "data/memory/response_cache.db",
            sqlite::Journal::Wal,
            ddl,
            &[row],
        )
        .sqlite("data/memory.db", "brain_v0_8_3.sql", &[])
        .file("workspace/memory.db", b"");

    let looked = home.zeroclaw(&["doctor", "--json"]).exits(7).json();
    let report = fix(&home);

    let all = caches.into_iter().chain([
        "data/memory/response_cache.db",
        "data/memory.db",
        "workspace/memory.db",
    ]);
    let receipts = State::of(home.root()).receipts();
    for path in all {
        assert_eq!(
            source(&looked, path).unwrap()["action"],
            "archive",
            "{path}"
        );
        assert_eq!(
            source(&report, path).unwrap()["status"],
            "archived",
            "{path}"
        );
        assert!(!install.path(path).exists(), "{path}");
        let receipt = receipts.iter().find(|receipt| receipt.0 == path).unwrap();
        assert_eq!((receipt.1.as_str(), receipt.2), ("discarded", [0; 5]));
    }
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn a_probe_that_holds_rows_is_none_and_stays() {
    let (home, install) = home_with(&[]);
    install.store(
        "data/memory.db",
        sqlite::Journal::Wal,
        "CREATE TABLE notes (text TEXT)",
        &["INSERT INTO notes VALUES ('mine')"],
    );

    let report = home.zeroclaw(&["doctor", "--json"]).exits(1).json();

    let told = ("unknown-database".to_owned(), "warning".to_owned());
    assert!(findings(&report).contains(&told));
    assert!(source(&report, "data/memory.db").is_none());
}

#[test]
fn what_stays_a_file_is_put_on_record_in_a_run_that_has_other_work_and_only_then() {
    let kept = [
        ".secret_key",
        "auth-profiles.json",
        "otp-secret",
        "acp-bridge-token",
        "ms365_token_cache_ab.json",
        "state/matrix/home/session.json",
        "state/whatsapp-web/main.db",
        "shared/skills/core/SKILL.md",
        "agents/default/workspace/skills/old/SKILL.md",
        "workspace/skills/older/SKILL.md",
        "plugins/a/manifest.toml",
        "workspace/plugins/b/manifest.toml",
        "hardware/board.toml",
        "hands/left/context.json",
        "data/pricing.json",
        "data/backups/backup-20260901T000000Z/manifest.json",
        "backup-20260901T000000/legacy-workspace/SOUL.md",
        "data/memory/brain.db.backup-20260901T000000",
        "workspaces/work/profile.toml",
        "zerocode-config.toml",
        "agents/atlas/workspace/SOUL.md",
        "workspace/USER.md",
        "audit.log",
    ];
    let (home, install) = home_with(&kept);

    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
    assert!(!install.path("state/state.sqlite").exists());
    install.file("data/state/costs.jsonl", COST);
    fix(&home);

    let on_record = State::of(home.root()).kept();
    for path in kept {
        assert!(install.path(path).exists(), "{path}");
        let is_on_record = on_record.iter().any(|place| path.starts_with(place));
        assert!(is_on_record, "{path} is not in {on_record:?}");
    }
    let before = home.tree();
    install.file("agents/atlas/workspace/SOUL.md", b"other words");
    let changed = home.tree();
    assert_ne!(before.len(), 0);
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
    home.is_unchanged_since(&changed);
}

#[test]
fn what_nobody_knows_is_told_once_and_never_offered_for_deletion() {
    let (home, _) = home_with(&["strange/a", "strange/b", "data/odd.bin"]);

    let ran = home.zeroclaw(&["doctor"]).exits(0);

    assert!(
        ran.stdout.contains("3 files that no table"),
        "{}",
        ran.told()
    );
    assert!(!ran.stdout.contains("orphan") && !ran.stdout.contains("delete"));
}

#[test]
fn nothing_of_the_sample_or_of_this_product_is_unknown() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    let unknown = |report: &Value| {
        findings(report)
            .iter()
            .any(|(code, _)| code == "unknown-files")
    };

    assert!(!unknown(
        &home.zeroclaw(&["doctor", "--json"]).exits(7).json()
    ));
    fix(&home);
    home.zeroclaw(&["backup", "create"]).exits(0);
    assert!(!unknown(
        &home.zeroclaw(&["doctor", "--json"]).exits(0).json()
    ));
}

#[test]
fn a_redirect_and_a_second_root_are_named_until_they_are_imported() {
    let (home, install) = home_with(&[]);
    let other = home.home().join("other");
    LegacyInstall::new(&other)
        .config(CONFIG)
        .file("data/state/costs.jsonl", COST);
    install.file(
        "active_workspace.toml",
        format!("config_dir = {:?}\n", other.display()).as_bytes(),
    );
    let told = |code: &str| (code.to_owned(), "warning".to_owned());

    let report = home.zeroclaw(&["doctor", "--json"]).exits(1).json();
    assert!(
        findings(&report).contains(&told("root-redirect")),
        "{report}"
    );
    let mut command = home.command(&["doctor", "--json", "--config-dir"]);
    command.arg(home.root()).env("ZEROCLAW_DATA_DIR", &other);
    let report = Ran::of(command).exits(1).json();
    assert!(findings(&report).contains(&told("second-root")), "{report}");

    let from = ["doctor", "--fix", "--from", other.to_str().unwrap()];
    home.zeroclaw(&from).exits(0);
    let report = home.zeroclaw(&["doctor", "--json"]).exits(0).json();
    assert!(!findings(&report).contains(&told("root-redirect")));
}
