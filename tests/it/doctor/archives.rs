//! What was put away: messages of a channel, agents that were deleted.

use std::path::Path;

use serde_json::{Value, json};

use super::state::{State, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::rows::{chat, memory, turns};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const DISCORD: &str = "data/memory/discord.db";
const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nenabled = true\n[agents.birch]\nchannels = ['discord.ops']\n";
const GONE: &str = "data/agents/_deleted/cinder-20260901T080000Z";

fn fix(home: &Sandbox, code: i32) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(code)
        .json()
}

fn messages(from: i64, to: i64) -> String {
    (from..=to)
        .map(|i| {
            let row = memory(
                &format!("discord_{i}"),
                &format!("message {i}"),
                "2026-08-01T09:00:00.500+02:00",
            );
            format!("{row} UPDATE memories SET category = 'discord' WHERE key = 'discord_{i}';")
        })
        .collect()
}

#[test]
fn a_channels_archive_belongs_to_the_agent_of_that_channel_wherever_it_lies() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install
        .config(CONFIG)
        .sqlite(DISCORD, "brain_v0_5_7.sql", &[&messages(3, 5)])
        .sqlite(
            "agents/default/workspace/memory/discord.db",
            "brain_v0_5_7.sql",
            &[&messages(1, 3)],
        );

    let report = fix(&home, 0);

    assert_eq!(report["total"]["imported"], 5);
    let state = State::of(home.root());
    assert_eq!(state.memories(), [("birch".to_owned(), 5)].into());
    let categories = sqlite::rows(
        &state.agent("birch"),
        "SELECT DISTINCT category FROM memories",
    );
    assert_eq!(categories, [["discord"]]);
    assert!(state.complaints().is_empty(), "{:?}", state.complaints());
    assert_eq!(fix(&home, 0)["changed"], false);
}

#[test]
fn a_channels_archive_without_an_agent_goes_to_the_fallback_and_says_so() {
    let home = Sandbox::in_memory();
    LegacyInstall::new(home.root())
        .config("schema_version = 3\n[agents.atlas]\nenabled = true\n")
        .sqlite(DISCORD, "brain_v0_5_7.sql", &[&messages(1, 2)]);

    let report = fix(&home, 0);

    assert_eq!(
        State::of(home.root()).memories(),
        [("atlas".to_owned(), 2)].into()
    );
    assert!(findings(&report).contains(&("owner-by-rule".to_owned(), "advice".to_owned())));
}

#[test]
fn a_successor_is_found_by_key_then_by_id_and_one_that_is_gone_keeps_its_word() {
    let home = Sandbox::in_memory();
    let at = "2026-08-01T09:00:00.500+02:00";
    let rows: String = ["by_key", "by_id", "by_none", "newer", "itself"]
        .map(|key| memory(key, key, at))
        .concat();
    LegacyInstall::new(home.root())
        .config(CONFIG)
        .sqlite(
            "data/memory/brain.db",
            "brain_v0_5_7.sql",
            &[
                &rows,
                "UPDATE memories SET superseded_by = 'newer' WHERE key = 'by_key';
                 UPDATE memories SET superseded_by = (SELECT id FROM memories WHERE key = 'newer') WHERE key = 'by_id';
                 UPDATE memories SET superseded_by = 'core_purged' WHERE key = 'by_none';
                 UPDATE memories SET superseded_by = 'itself' WHERE key = 'itself';
                 INSERT INTO embedding_cache VALUES ('00', X'00000000', '', '');",
            ],
        );

    let report = fix(&home, 0);

    let stored = sqlite::rows(
        &State::of(home.root()).agent("default"),
        "SELECT m.key, ifnull(n.key, ifnull(m.superseded_by, '-')) FROM memories m
         LEFT JOIN memories n ON n.memory_id = m.superseded_by ORDER BY m.key",
    );
    let stored: Vec<_> = stored.iter().map(|row| (&*row[0], &*row[1])).collect();
    assert_eq!(
        stored,
        [
            ("by_id", "newer"),
            ("by_key", "newer"),
            ("by_none", "core_purged"),
            ("itself", "-"),
            ("newer", "-")
        ]
    );
    let counts = &source(&report, "data/memory/brain.db").unwrap()["counts"];
    assert_eq!(counts["cached vectors"]["merged"], 1);
    let said = findings(&report);
    for code in ["successor-gone", "cache-not-taken"] {
        assert!(said.iter().any(|(found, _)| found == code), "{code}");
    }
}

/// An archive of a delete at `stamp`.
fn archive(install: &LegacyInstall, stamp: &str, label: &str) {
    let folder = format!("data/agents/_deleted/cinder-{stamp}");
    let file = |name: &str, value: Value| {
        install.file(Path::new(&folder).join(name), value.to_string().as_bytes());
    };
    file(
        "manifest.json",
        json!({"alias": "cinder", "memory_rows": 2, "cron_jobs": 1, "acp_sessions": 1, "sessions_cleared": 0, "warnings": []}),
    );
    file(
        "cascade/memory.json",
        json!([
            {"id": "m1", "key": "core_1", "content": format!("{label}, [ash] \"}}"), "category": "core",
             "timestamp": "2026-08-01T09:00:00.5+02:00", "kind": {"semantic": "fact"}, "pinned": true,
             "importance": 0.9, "superseded_by": null, "agent_alias": "cinder"},
            {"id": "m2", "key": "assistant_resp_1", "content": "self", "category": "conversation",
             "timestamp": "2026-08-01T10:00:00Z", "kind": "episodic", "pinned": false},
        ]),
    );
    file(
        "cascade/cron.json",
        json!([{"id": "nightly", "expression": "0 3 * * *", "schedule": {"kind": "cron", "expr": "0 3 * * *", "tz": "UTC"},
             "command": "true", "job_type": "shell", "agent_alias": "cinder", "enabled": true,
             "delivery": {"mode": "none"}, "delete_after_run": false, "created_at": "2026-08-01T09:00:00Z"}]),
    );
    file(
        "cascade/acp.json",
        json!([{"session_uuid": "u1", "workspace_dir": "/srv/ash", "created_at": "2026-08-01T09:00:00Z",
             "last_activity": "2026-08-02T09:00:00Z", "message_count": 4}]),
    );
    install.file(Path::new(&folder).join("workspace/notes.md"), b"kept");
}

#[test]
fn two_deletes_of_one_name_are_two_retired_agents_and_nothing_of_them_runs() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(&format!("{CONFIG}[agents.cinder]\nenabled = true\n"));
    archive(&install, "20260901080000", "first");
    archive(&install, "20260902080000", "second");

    let report = fix(&home, 0);

    let state = State::of(home.root());
    let (first, second) = ("cinder@20260901T080000Z", "cinder@20260902T080000Z");
    assert_eq!(
        state.memories(),
        [(first.to_owned(), 2), (second.to_owned(), 2)].into()
    );
    let agents = home
        .zeroclaw(&["agents", "show", first, "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&agents["status"], &agents["status_reason"]),
        (&json!("retired"), &json!("deleted by the old program"))
    );
    assert_eq!(
        state.jobs(),
        [
            ("nightly".to_owned(), first.to_owned(), false),
            ("nightly".to_owned(), second.to_owned(), false)
        ]
    );
    let kinds = sqlite::rows(
        &state.agent(first),
        "SELECT kind_json, is_trusted, created_at_text FROM memories ORDER BY memory_id",
    );
    assert_eq!(
        kinds[0],
        [
            "{\"semantic\":\"fact\"}",
            "1",
            "2026-08-01T09:00:00.5+02:00"
        ]
    );
    assert_eq!(kinds[1][..2], ["\"episodic\"", "0"]);
    let ended = home
        .zeroclaw(&["sessions", "acp", "--state", "ended", "--json"])
        .exits(0)
        .json();
    assert_eq!(ended["items"].as_array().unwrap().len(), 2);
    assert_eq!(report["total"]["imported"], 10);
    home.zeroclaw(&["memory", "search", "second"])
        .exits(0)
        .says(second);
    for stamp in ["20260901080000", "20260902080000"] {
        let folder = format!("data/agents/_deleted/cinder-{stamp}");
        assert!(install.path(&folder).join("workspace/notes.md").exists());
        assert!(!install.path(&folder).join("cascade/memory.json").exists());
    }
    assert_eq!(fix(&home, 0)["changed"], false);
}

#[test]
fn what_an_archive_counts_and_lacks_is_said_and_what_is_broken_is_kept() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    archive(&install, "20260901080000", "first");
    let folder = Path::new("data/agents/_deleted/cinder-20260901080000");
    std::fs::remove_file(install.path(folder).join("cascade/acp.json")).unwrap();
    install
        .file(
            folder.join("cascade/cron.json"),
            br#"[{"id":"x","job_type":"dance"},3,{"id":"#,
        )
        .file(Path::new(GONE).join("manifest.json"), b"{}");

    let report = fix(&home, 1);

    let said = findings(&report);
    for code in ["incomplete-archive", "partial-tail", "unreadable-source"] {
        assert!(
            said.iter().any(|(found, _)| found == code),
            "{code}: {said:?}"
        );
    }
    assert_eq!(report["total"]["refused"], 2);
    assert!(install.path(GONE).join("manifest.json").exists());
    assert_eq!(State::of(home.root()).memories().len(), 1);
}

#[test]
fn a_rename_that_died_half_way_is_asked_about_and_the_map_ends_it() {
    let home = Sandbox::in_memory();
    LegacyInstall::new(home.root())
        .config(
            "schema_version = 3\n[agents.atlas]\nenabled = true\n[agents.birch]\nenabled = true\n",
        )
        .file("agents/birch/workspace/SOUL.md", b"who I am")
        .sqlite(
            "data/sessions/sessions.db",
            "sessions_v0_8.sql",
            &[
                &chat("gw_1", "2026-08-01", &turns("one", 2)),
                "UPDATE session_metadata SET agent_alias = 'aspen';",
            ],
        );

    let looked = home.zeroclaw(&["doctor"]).exits(7);

    assert!(
        looked.stdout.contains("--agent-map aspen=birch"),
        "{}",
        looked.told()
    );
    home.zeroclaw(&["doctor", "--fix", "--agent-map", "aspen=birch"])
        .exits(0);
    let sessions = State::of(home.root()).sessions();
    assert_eq!(sessions, [("birch".to_owned(), "gw_1".to_owned(), 2)]);
}
