//! The knowledge graph, what was done to memories, heartbeats, and the emergency stop.

use serde_json::{Value, json};

use super::state::{State, digest_of, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::recipe;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal};

const CONFIG: &str =
    "schema_version = 3\n[agents.atlas]\n[agents.birch]\n[heartbeat]\nagent = 'birch'\n";
const KNOWLEDGE: &str = "knowledge.db";
const AUDIT: &str = "data/memory/audit.db";
const HEARTBEAT: &str = "data/heartbeat/history.db";

fn home() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    (home, install)
}

fn fix(home: &Sandbox, code: i32) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(code)
        .json()
}

fn rows(home: &Sandbox, query: &str) -> Vec<Vec<String>> {
    sqlite::rows(&State::of(home.root()).global(), query)
}

fn codes(report: &Value) -> Vec<String> {
    findings(report).into_iter().map(|found| found.0).collect()
}

fn counts(records: u64, imported: u64, present: u64, merged: u64, refused: u64) -> Value {
    json!({"records": records, "imported": imported, "present": present, "merged": merged, "refused": refused})
}

fn node(id: &str, title: &str, day: u32) -> String {
    format!(
        "INSERT OR REPLACE INTO nodes (id, node_type, title, content, tags, created_at, updated_at)
         VALUES ('{id}', 'decision', '{title}', 'content of {id}', 'house, energy', '2026-09-01T09:00:00+00:00', '2026-09-{day:02}T09:00:00+00:00');"
    )
}

#[test]
fn nodes_and_edges_come_in_and_an_edge_without_its_node_is_kept_and_named() {
    let (home, install) = home();
    let rows_of = [
        node("n1", "Heating", 2),
        node("n2", "Тепло", 3),
        "INSERT INTO edges VALUES ('n1', 'n2', 'uses'), ('n1', 'lost', 'replaces');".to_owned(),
        "INSERT INTO nodes VALUES ('n3', 'from_later', 'x', X'ff', '', '', '', NULL);
         INSERT INTO edges VALUES (X'ff', 'n1', 'uses');"
            .to_owned(),
    ];
    install.sqlite(KNOWLEDGE, "knowledge_v0_5.sql", &[&rows_of.concat()]);

    let report = fix(&home, 1);

    let found = &source(&report, KNOWLEDGE).unwrap()["counts"];
    assert_eq!(found["knowledge nodes"], counts(3, 2, 0, 0, 1));
    assert_eq!(found["knowledge edges"], counts(3, 2, 0, 0, 1));
    assert!(codes(&report).contains(&"edge-without-node".to_owned()));
    let shown = home
        .zeroclaw(&["knowledge", "show", "n1", "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["node"]["tags"], json!(["house", "energy"]));
    assert_eq!(shown["edges"].as_array().unwrap().len(), 2);
    let list = home
        .zeroclaw(&["knowledge", "list", "--type", "decision", "--json"])
        .exits(0)
        .json();
    assert_eq!(list["items"][0]["title"], "Тепло");
    home.zeroclaw(&["knowledge", "show", "lost"]).exits(9);
}

#[test]
fn c07_a_graph_that_comes_back_brings_what_is_newer_and_rolls_nothing_back() {
    let (home, install) = home();
    install.sqlite(
        KNOWLEDGE,
        "knowledge_v0_5.sql",
        &[&(node("n1", "first", 5) + &node("n2", "first", 5))],
    );
    let bytes = std::fs::read(install.path(KNOWLEDGE)).unwrap();
    fix(&home, 0);
    let changed = node("n1", "older", 4) + &node("n2", "newer", 6) + &node("n3", "new", 1);
    install
        .file(KNOWLEDGE, &bytes)
        .alter(KNOWLEDGE, Journal::Wal, &changed);

    let report = fix(&home, 0);

    assert_eq!(
        source(&report, KNOWLEDGE).unwrap()["counts"]["knowledge nodes"],
        counts(3, 1, 0, 2, 0)
    );
    let found = rows(
        &home,
        "SELECT node_id, title FROM knowledge_nodes ORDER BY node_id",
    );
    assert_eq!(found, [["n1", "first"], ["n2", "newer"], ["n3", "new"]]);
}

#[test]
fn a_graph_that_the_configuration_puts_elsewhere_is_found_by_its_full_path_too() {
    let (home, install) = home();
    let path = install.path("notes/graph.db");
    install
        .config(&format!(
            "{CONFIG}[knowledge]\ndb_path = '{}'\n",
            path.display()
        ))
        .sqlite(
            "notes/graph.db",
            "knowledge_v0_5.sql",
            &[&node("n1", "there", 1)],
        );

    let report = fix(&home, 0);

    assert_eq!(
        source(&report, "notes/graph.db").unwrap()["status"],
        "imported"
    );
    home.zeroclaw(&["knowledge", "list"]).exits(0).says("there");
}

const EVENTS: &str =
    "INSERT INTO memory_audit (operation, key, namespace, session_id, timestamp, metadata) VALUES
    ('store', 'pump', 'work', 's1', '2026-09-02T00:30:00.12+02:00', 'agent_alias=atlas'),
    ('recall', NULL, NULL, NULL, '2026-09-01T23:00:00+00:00', 'query=pump, agent_alias=cinder'),
    ('forget', NULL, NULL, NULL, 'never', NULL);";

#[test]
fn what_was_done_to_memories_is_listed_by_the_instant_and_not_by_the_text() {
    let (home, install) = home();
    install.sqlite(AUDIT, "audit_v0_5_7.sql", &[EVENTS]);

    let report = fix(&home, 0);

    assert_eq!(
        source(&report, AUDIT).unwrap()["counts"]["audit events"],
        counts(3, 3, 0, 0, 0)
    );
    let list = home.zeroclaw(&["audit", "list", "--json"]).exits(0).json();
    let told: Vec<(&str, &str)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (
                it["operation"].as_str().unwrap(),
                it["agent_id"].as_str().unwrap_or("-"),
            )
        })
        .collect();
    // 00:30 at +02:00 is before 23:00 at +00:00.
    assert_eq!(
        told,
        [("recall", "cinder"), ("store", "atlas"), ("forget", "-")]
    );
    assert_eq!(list["items"][1]["at_text"], "2026-09-02T00:30:00.12+02:00");
    assert_eq!(list["items"][1]["at_ms"], 1_788_301_800_120_i64);
    let of_atlas = home
        .zeroclaw(&["audit", "list", "--agent", "atlas", "--json"])
        .exits(0)
        .json();
    assert_eq!(of_atlas["items"].as_array().unwrap().len(), 1);
    assert!(codes(&report).contains(&"odd-value".to_owned()));
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn events_of_two_generations_and_of_a_parted_log_are_told_once() {
    let (home, install) = home();
    let more =
        "INSERT INTO memory_audit (operation, timestamp) VALUES ('purge', '2025-12-01T00:00:00Z');";
    let old = sqlite::pair(&recipe::ddl("audit_v0_5_7.sql"), &[EVENTS], &[more]);
    install
        .file(
            "backup-20260101T000000/legacy-workspace/memory/audit.db",
            &old.main,
        )
        .file(
            "backup-20260101T000000/legacy-workspace/memory/audit.db-wal",
            &old.wal,
        )
        .file("agents/default/workspace/memory/audit.db-wal", &old.wal)
        .sqlite(AUDIT, "audit_v0_5_7.sql", &[EVENTS])
        .sqlite("workspace/memory/audit.db", "audit_v0_5_7.sql", &[more]);

    fix(&home, 0);

    assert_eq!(rows(&home, "SELECT count(*) FROM audit_events"), [["4"]]);
}

#[test]
fn heartbeats_of_every_place_are_runs_of_the_agent_they_run_as() {
    let (home, install) = home();
    let beat = |task: &str, at: &str, status: &str| {
        format!(
            "INSERT INTO heartbeat_runs (task_text, task_priority, started_at, finished_at, status, output, duration_ms)
             VALUES ('{task}', 'high', '{at}', '{at}', '{status}', 'said', 1500);"
        )
    };
    let shared = beat("water", "2026-09-01T09:00:00.5+00:00", "ok");
    let odd = "INSERT INTO heartbeat_runs (task_text, task_priority, started_at, finished_at, status, output)
        VALUES (X'ff', '', '', '', 'ok', NULL), ('x', '', '', '', 'later', NULL);";
    install
        .sqlite(
            HEARTBEAT,
            "heartbeat_v0_4_3.sql",
            &[
                &shared,
                &beat("pump", "2026-09-02T09:00:00+00:00", "error"),
                odd,
            ],
        )
        .sqlite(
            "agents/default/workspace/heartbeat/history.db",
            "heartbeat_v0_4_3.sql",
            &[&beat("old", "2025-09-01T09:00:00+00:00", "ok"), &shared],
        )
        .sqlite(
            "workspace/heartbeat/history.db",
            "heartbeat_v0_4_3.sql",
            &[&beat("oldest", "2024-09-01T09:00:00+00:00", "ok")],
        );

    let report = fix(&home, 1);

    let kind = "heartbeat runs";
    assert_eq!(
        source(&report, HEARTBEAT).unwrap()["counts"][kind],
        counts(4, 3, 0, 0, 1)
    );
    let lost = source(&report, "agents/default/workspace/heartbeat/history.db").unwrap();
    assert_eq!(lost["counts"][kind], counts(2, 1, 1, 0, 0));
    let found = rows(
        &home,
        "SELECT label, agent_id, status, status_detail, started_at_ms FROM task_runs WHERE owner_kind = 'heartbeat'
         ORDER BY started_at_ms",
    );
    assert_eq!(found.len(), 5);
    assert_eq!(
        found[3],
        ["water", "birch", "succeeded", "ok", "1788253200500"]
    );
    assert_eq!(found[4][2..4], ["failed", "error"]);
    assert_eq!(found[0][2..4], ["failed", "later"]);
}

#[test]
fn an_emergency_stop_stays_in_force_and_is_told_until_it_is_lifted() {
    let (home, install) = home();
    let stop = "estop-state.json";
    for (text, told) in [
        (
            r#"{"kill_all":true,"network_kill":false,"blocked_domains":[],"frozen_tools":["shell"]}"#,
            "everything, 1 tools",
        ),
        ("torn {", "it cannot be read"),
    ] {
        install.file(stop, text.as_bytes());
        let before = digest_of(&install.path(stop));

        let report = fix(&home, 1);

        assert_eq!(digest_of(&install.path(stop)), before);
        let found = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["code"] == "emergency-stop")
            .unwrap();
        assert_eq!(
            (&found["level"], &found["place"]),
            (&json!("warning"), &json!(stop))
        );
        assert!(found["message"].as_str().unwrap().contains(told), "{found}");
    }
    install.file(stop, br#"{"kill_all":false}"#);
    assert!(!codes(&fix(&home, 0)).contains(&"emergency-stop".to_owned()));

    install.config(&format!(
        "{CONFIG}[security.estop]\nstate_file = 'my-stop.json'\n"
    ));
    install.file("my-stop.json", br#"{"network_kill":true}"#);
    home.zeroclaw(&["doctor"]).exits(1).says("my-stop.json");
}
