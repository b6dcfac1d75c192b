//! Runs of standing procedures, their events and proposals.

use serde_json::{Value, json};

use super::state::{State, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::rows::memory;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal};

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\n";
const RUNS: &str = "data/sop/runs.db";

fn home() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    (home, install)
}

/// A run's row; `column` is what its row says of whether it ended.
fn run(id: &str, revision: i64, status: &str, column: i64) -> String {
    let json = json!({
        "version": 1, "revision": revision, "trigger_source": "manual", "redacted": false,
        "run": {
            "run_id": id, "sop_name": "heating", "status": status, "current_step": 2, "total_steps": 3,
            "started_at": "2026-09-01T09:00:00Z", "from_later": {"kept": true},
        },
    });
    format!(
        "INSERT INTO sop_runs VALUES ('{id}', {revision}, {column}, '2026-09-01T09:0{revision}:00Z', '{json}');"
    )
}

fn event(id: &str, kind: &str, payload: &str) -> String {
    format!(
        "INSERT INTO sop_events (run_id, ts, kind, actor, payload) VALUES ('{id}', '2026-09-01T09:00:00Z', '{kind}', 'demo', '{payload}');"
    )
}

fn proposal(id: &str, column: &str, status: &str) -> String {
    let json = json!({
        "id": id, "kind": "create", "status": status, "source_run_id": "r1", "sop_name": "heating",
        "manifest_toml": "[sop]", "created_at": "2026-09-01T10:00:00Z", "updated_at": "2026-09-02T10:00:00Z",
    });
    format!("INSERT INTO sop_proposals VALUES ('{id}', '{column}', '{json}');")
}

fn fix(home: &Sandbox, code: i32) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(code)
        .json()
}

fn rows(home: &Sandbox, query: &str) -> Vec<Vec<String>> {
    sqlite::rows(&State::of(home.root()).global(), query)
}

fn all(n: u64) -> Value {
    json!({"records": n, "imported": n, "present": 0, "merged": 0, "refused": 0})
}

#[test]
fn every_status_comes_in_and_what_was_under_way_is_interrupted() {
    let (home, install) = home();
    let statuses = [
        ("r1", "pending", 0, "interrupted", "pending"),
        ("r2", "running", 0, "interrupted", "running"),
        ("r3", "waiting_approval", 0, "waiting_approval", ""),
        ("r4", "paused_checkpoint", 0, "paused", "paused_checkpoint"),
        ("r5", "completed", 1, "completed", ""),
        ("r6", "failed", 1, "failed", ""),
        // The row says otherwise: the JSON holds.
        ("r7", "cancelled", 0, "cancelled", ""),
        ("r8", "from_later", 0, "interrupted", "from_later"),
    ];
    let sql: String = statuses
        .iter()
        .map(|(id, status, column, ..)| run(id, 1, status, *column))
        .collect();
    let events = [
        event("r1", "run_started", "{\"a\":1}"),
        event("r1", "gate_vote", "no json"),
        event("gone", "x", "1"),
    ];
    let proposals = [
        proposal("p1", "pending", "pending"),
        proposal("p2", "applied", "applied"),
        proposal("p3", "rejected", "rejected"),
        proposal("p4", "quarantined", "quarantined"),
        proposal("p5", "pending", "stale"),
        proposal("p6", "pending", "from_later"),
    ];
    let claim = "INSERT INTO sop_claims VALUES ('r2', 'heating', '2026-09-01T10:00:00Z', '{}');";
    let sql = [sql, events.concat(), proposals.concat(), claim.to_owned()];
    install.sqlite(RUNS, "sop_v0_8_2.sql", &[&sql.concat()]);

    let report = fix(&home, 0);

    let counts = &source(&report, RUNS).unwrap()["counts"];
    assert_eq!(counts["flow runs"], all(8));
    assert_eq!(counts["flow events"], all(3));
    assert_eq!(counts["flow proposals"], all(6));
    assert_eq!(counts["flow claims"]["merged"], 1);
    let found = rows(
        &home,
        "SELECT flow_id, status, ifnull(status_detail, '') FROM flow_runs ORDER BY flow_id",
    );
    let wanted: Vec<Vec<String>> = statuses
        .iter()
        .map(|(id, _, _, status, detail)| {
            [id, status, detail].map(|text| (*text).to_owned()).to_vec()
        })
        .collect();
    assert_eq!(found, wanted);
    let of_p = rows(
        &home,
        "SELECT status, ifnull(status_detail, '') FROM flow_proposals ORDER BY proposal_id",
    );
    assert_eq!(of_p[4], ["stale", ""]);
    assert_eq!(of_p[5], ["quarantined", "from_later"]);
    let codes: Vec<String> = findings(&report).into_iter().map(|found| found.0).collect();
    for code in [
        "interrupted-run",
        "unknown-status",
        "terminal-differs",
        "claim-dropped",
        "odd-value",
    ] {
        assert!(
            codes.iter().any(|found| found == code),
            "{code} in {codes:?}"
        );
    }

    let shown = home
        .zeroclaw(&["flows", "show", "r1", "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["run"]["trigger_source"], "manual");
    assert_eq!(shown["run"]["updated_at_ms"], 1_788_253_260_000_i64);
    // What this release does not know is kept.
    assert!(
        shown["run"]["state_json"]
            .as_str()
            .unwrap()
            .contains("from_later")
    );
    let payloads: Vec<&str> = shown["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["payload_json"].as_str().unwrap())
        .collect();
    assert_eq!(payloads, ["{\"a\":1}", "\"no json\""]);
    assert_eq!(shown["proposals"].as_array().unwrap().len(), 6);
    let waiting = home
        .zeroclaw(&["flows", "list", "--status", "waiting_approval", "--json"])
        .exits(0)
        .json();
    assert_eq!(waiting["items"].as_array().unwrap().len(), 1);
    let page = home
        .zeroclaw(&["flows", "list", "--limit", "3", "--json"])
        .exits(0)
        .json();
    let next = page["next"].as_str().unwrap();
    let rest = home
        .zeroclaw(&["flows", "list", "--before", next, "--json"])
        .exits(0)
        .json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 5);
    home.zeroclaw(&["flows", "proposals"])
        .exits(0)
        .says("quarantined");
    home.zeroclaw(&["flows", "show", "nobody"]).exits(9);
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn c07_of_a_store_that_comes_back_the_higher_revision_wins_and_events_are_not_doubled() {
    let (home, install) = home();
    let first = run("r1", 3, "waiting_approval", 0)
        + &run("r2", 3, "completed", 1)
        + &event("r1", "a", "1");
    install.sqlite(RUNS, "sop_v0_8_2.sql", &[&first]);
    let bytes = std::fs::read(install.path(RUNS)).unwrap();
    fix(&home, 0);

    // r1 went on, r2 is older than what is there, r3 is new.
    let older = "DELETE FROM sop_runs;".to_owned()
        + &run("r1", 5, "failed", 1)
        + &run("r2", 2, "running", 0)
        + &run("r3", 1, "completed", 1)
        + &event("r1", "b", "2");
    install.file(RUNS, &bytes).alter(RUNS, Journal::Wal, &older);
    let report = fix(&home, 0);

    let found = rows(
        &home,
        "SELECT flow_id, status, revision FROM flow_runs ORDER BY flow_id",
    );
    assert_eq!(
        found,
        [
            ["r1", "failed", "5"],
            ["r2", "completed", "3"],
            ["r3", "completed", "1"]
        ]
    );
    let counts = &source(&report, RUNS).unwrap()["counts"];
    assert_eq!(counts["flow runs"]["merged"], 2);
    assert_eq!(counts["flow events"]["present"], 1);
    assert_eq!(counts["flow events"]["imported"], 1);
}

#[test]
fn rows_that_cannot_be_read_are_named_and_kept_and_the_others_come_in() {
    let (home, install) = home();
    let odd = "INSERT INTO sop_runs VALUES ('bad', 1, 0, NULL, '{\"version\":1');
        INSERT INTO sop_runs VALUES ('blob', 1, 0, NULL, X'ff00');
        INSERT INTO sop_runs VALUES (NULL, 1, 0, NULL, '{}');
        INSERT INTO sop_runs VALUES ('bare', 1, 0, '9999-12-31T23:59:59Z', '{\"sop_name\":\"heating\",\"status\":\"failed\"}');
        INSERT INTO sop_runs VALUES ('newer', -4, 1, 'no time', '{\"version\":9,\"run\":{\"status\":\"completed\"}}');
        INSERT INTO sop_proposals VALUES ('p1', 'pending', '[]');
        INSERT INTO sop_events (run_id, ts, kind, payload) VALUES ('r1', 'x', 'y', X'ff');";
    let later = "ALTER TABLE sop_runs ADD COLUMN from_later TEXT;";
    let told = "UPDATE sop_runs SET from_later = 'kept' WHERE run_id = 'bare';";
    install.sqlite(RUNS, "sop_v0_8_2.sql", &[odd, later, told]);

    let report = fix(&home, 1);

    let runs = source(&report, RUNS).unwrap();
    assert_eq!(
        runs["counts"]["flow runs"],
        json!({"records": 5, "imported": 2, "present": 0, "merged": 0, "refused": 3})
    );
    assert_eq!(runs["counts"]["flow proposals"]["refused"], 1);
    assert_eq!(runs["counts"]["flow events"]["refused"], 1);
    let places: Vec<&str> = runs["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["place"].as_str().unwrap())
        .collect();
    assert!(places.contains(&"table sop_runs, row 2"), "{places:?}");
    let found = rows(
        &home,
        "SELECT flow_id, controller_id, status, revision, ifnull(detail_json, '') FROM flow_runs ORDER BY flow_id",
    );
    assert_eq!(
        found[0],
        [
            "bare",
            "heating",
            "failed",
            "1",
            "{\"from_later\":\"kept\"}"
        ]
    );
    assert_eq!(found[1], ["newer", "unnamed", "completed", "0", ""]);
    let kept = State::of(home.root()).quarantined().concat();
    assert!(String::from_utf8_lossy(&kept).contains("ff00"));
}

#[test]
fn a_store_that_the_configuration_puts_elsewhere_is_followed_inside_the_root_only() {
    let (home, install) = home();
    install
        .config(&format!("{CONFIG}[sop]\nrun_state_dir = 'my/runs'\n"))
        .sqlite(
            "my/runs/runs.db",
            "sop_v0_8_2.sql",
            &[&run("r1", 1, "failed", 1)],
        )
        .sqlite(RUNS, "sop_v0_8_2.sql", &[&run("r2", 1, "failed", 1)]);

    let report = fix(&home, 0);

    assert_eq!(report["sources"].as_array().unwrap().len(), 2);
    assert_eq!(
        rows(&home, "SELECT flow_id FROM flow_runs ORDER BY flow_id"),
        [["r1"], ["r2"]]
    );
    assert!(!install.path("my/runs/runs.db").exists());

    let outside = LegacyInstall::new(home.home().join("outside"));
    outside.sqlite("runs.db", "sop_v0_8_2.sql", &[&run("r3", 1, "failed", 1)]);
    install.config(&format!(
        "{CONFIG}[sop]\nrun_state_dir = '{}'\n",
        outside.root().display()
    ));
    let report = fix(&home, 1);

    assert_eq!(rows(&home, "SELECT count(*) FROM flow_runs"), [["2"]]);
    let told = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["code"] == "outside-root");
    assert!(
        told.unwrap()["remedy"]
            .as_str()
            .unwrap()
            .contains("sop.run_state_dir")
    );
}

#[test]
fn copies_of_runs_among_the_memories_stay_memories_and_are_no_second_run() {
    let (home, install) = home();
    let copy = memory(
        "sop_run_r1",
        "heating: completed",
        "2026-09-01T09:05:00+02:00",
    );
    install
        .sqlite(RUNS, "sop_v0_8_2.sql", &[&run("r1", 1, "completed", 1)])
        .sqlite("data/memory/brain.db", "brain_v0_5_7.sql", &[&copy]);

    fix(&home, 0);

    assert_eq!(rows(&home, "SELECT count(*) FROM flow_runs"), [["1"]]);
    home.zeroclaw(&["memory", "list"])
        .exits(0)
        .says("sop_run_r1");
}
