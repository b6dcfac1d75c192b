//! Stores of tasks of every version, of builds that went their own way, and ends that were decided and never applied.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::state::{State, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::recipe::sha256_hex;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal};

mod settlement;

pub(super) const STORE: &str = "data/control_plane.db";
pub(super) const CONFIG: &str = "schema_version = 3\n[agents.atlas]\n[agents.birch]\n";

/// The schema as version `version` of the old program left it.
pub(super) fn ddl(version: u32) -> String {
    let mut ddl = String::from(
        "CREATE TABLE tasks (
            id TEXT PRIMARY KEY, kind TEXT NOT NULL, agent TEXT NOT NULL, status TEXT NOT NULL,
            owner_pid INTEGER NOT NULL DEFAULT 0, owner_boot_id TEXT NOT NULL DEFAULT '', heartbeat_at TEXT,
            depth INTEGER NOT NULL DEFAULT 0, parent_id TEXT, originator_route TEXT,
            delivered INTEGER NOT NULL DEFAULT 0, idem_key TEXT, principal_id TEXT, started_at TEXT NOT NULL,
            finished_at TEXT, output TEXT, error TEXT);
         CREATE INDEX idx_tasks_status ON tasks(status);",
    );
    if version >= 1 {
        ddl.push_str(
            "CREATE TABLE goal_tasks (task_id TEXT PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE,
                objective TEXT NOT NULL);",
        );
    }
    if version >= 2 {
        ddl.push_str(
            "ALTER TABLE goal_tasks ADD COLUMN effective_token_limit INTEGER;
             ALTER TABLE goal_tasks ADD COLUMN effective_cost_limit_usd REAL;",
        );
    }
    if version >= 3 {
        ddl.push_str(
            "ALTER TABLE goal_tasks ADD COLUMN pause_reason TEXT;
             ALTER TABLE goal_tasks ADD COLUMN pause_description TEXT;
             ALTER TABLE goal_tasks ADD COLUMN blockers_json TEXT NOT NULL DEFAULT '[]';",
        );
    }
    if version >= 4 {
        ddl.push_str(
            "CREATE UNIQUE INDEX idx_tasks_active_goal_context
                ON tasks(agent, COALESCE(originator_route, ''), COALESCE(principal_id, ''))
                WHERE kind = 'goal' AND status NOT IN ('completed','failed','cancelled','lost','timed_out');",
        );
    }
    if version >= 5 {
        ddl.push_str(
            "CREATE TABLE task_continuation_contexts (
                task_id TEXT PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE, context_json TEXT NOT NULL);",
        );
    }
    if version >= 6 {
        ddl.push_str(
            "CREATE TRIGGER trg_goal_tasks_require_goal_kind BEFORE INSERT ON goal_tasks FOR EACH ROW
                WHEN COALESCE((SELECT kind FROM tasks WHERE id = NEW.task_id), '') != 'goal'
                BEGIN SELECT RAISE(ABORT, 'goal_tasks.task_id must reference TaskKind::Goal'); END;",
        );
    }
    if version >= 8 {
        ddl.push_str(
            "CREATE TABLE terminal_settlement_intents (
                task_id TEXT PRIMARY KEY REFERENCES tasks(id) ON DELETE CASCADE, owner_pid INTEGER NOT NULL,
                owner_boot_id TEXT NOT NULL, desired_status TEXT NOT NULL, artifact_path TEXT NOT NULL,
                artifact_ref TEXT, artifact_sha256 TEXT NOT NULL, terminal_error TEXT);
             CREATE INDEX idx_intents_owner ON terminal_settlement_intents(owner_pid, owner_boot_id);",
        );
    }
    ddl.push_str(&format!("PRAGMA user_version = {version};"));
    ddl
}

/// A task's id by its number.
pub(super) fn id(number: u32) -> String {
    format!("7a5c0000-0000-4000-8000-{number:012}")
}

/// A row of the process that is gone, `extra` as `(column, SQL)`.
pub(super) fn task(number: u32, kind: &str, status: &str, extra: &[(&str, &str)]) -> String {
    let mut columns = String::from("id, kind, agent, status, owner_pid, owner_boot_id, started_at");
    let mut values = format!(
        "'{}', '{kind}', 'birch', '{status}', 4242, 'boot-1', '2026-08-22T21:44:00.123456789+00:00'",
        id(number)
    );
    for (column, value) in extra {
        columns.push_str(&format!(", {column}"));
        values.push_str(&format!(", {value}"));
    }
    format!("INSERT INTO tasks ({columns}) VALUES ({values});")
}

/// An install with such a store, in a root of its own.
pub(super) fn install(ddl: &str, rows: &[String]) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    install
        .config(CONFIG)
        .store(STORE, Journal::Wal, ddl, &rows);
    (home, install)
}

/// Imports, and shows that a second run has nothing to do.
pub(super) fn imported(home: &Sandbox, exit: i32) -> Value {
    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(exit)
        .json();
    let after = home.tree();
    let again = home.zeroclaw(&["doctor", "--fix", "--json"]).json();
    assert_eq!(again["changed"], false);
    home.is_unchanged_since(&after);
    let complaints = State::of(home.root()).complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
    report
}

pub(super) fn counts(report: &Value, path: &str, kind: &str) -> [u64; 5] {
    let counts = &source(report, path).unwrap()["counts"][kind];
    ["records", "imported", "present", "merged", "refused"]
        .map(|name| counts[name].as_u64().unwrap_or(0))
}

/// Columns of one task of the ledger; NULL is empty.
pub(super) fn row(home: &Sandbox, number: u32, columns: &str) -> Vec<String> {
    let query = format!(
        "SELECT {columns} FROM task_runs WHERE task_id = '{}'",
        id(number)
    );
    let mut rows = sqlite::rows(&State::of(home.root()).global(), &query);
    assert_eq!(rows.len(), 1, "task {number}");
    rows.remove(0)
}

fn detail(home: &Sandbox, number: u32) -> Value {
    serde_json::from_str(&row(home, number, "detail_json")[0]).unwrap()
}

fn codes(report: &Value) -> Vec<String> {
    findings(report).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn every_version_comes_in_with_what_it_knew() {
    for version in 0..=8 {
        let mut rows = vec![
            task(
                1,
                "delegate",
                "completed",
                &[("output", "'done'"), ("delivered", "1"), ("depth", "2")],
            ),
            task(
                2,
                "subagent",
                "running",
                &[("parent_id", &format!("'{}'", id(1)))],
            ),
            task(
                3,
                "goal",
                "paused",
                &[
                    ("originator_route", "'telegram.main:1'"),
                    ("principal_id", "'p'"),
                ],
            ),
        ];
        if version >= 1 {
            rows.push(format!(
                "INSERT INTO goal_tasks (task_id, objective) VALUES ('{}', 'warm');",
                id(3)
            ));
        }
        if version >= 2 {
            rows.push(
                "UPDATE goal_tasks SET effective_token_limit = 5, effective_cost_limit_usd = 0.5;"
                    .to_owned(),
            );
        }
        if version >= 3 {
            rows.push(
                "UPDATE goal_tasks SET pause_reason = 'daemon_restarted', blockers_json = '[{\"kind\":\"budget\"}]';"
                    .to_owned(),
            );
        }
        if version >= 5 {
            rows.push(format!(
                "INSERT INTO task_continuation_contexts VALUES ('{}', '{{\"channel\":\"telegram\"}}');",
                id(3)
            ));
        }
        let (home, install) = install(&ddl(version), &rows);

        let report = imported(&home, 0);

        assert_eq!(
            counts(&report, STORE, "tasks"),
            [3, 3, 0, 0, 0],
            "{version}"
        );
        assert_eq!(
            row(
                &home,
                1,
                "owner_kind, agent_id, status, status_detail, output, depth, execution_owner_pid"
            ),
            [
                "delegate",
                "birch",
                "succeeded",
                "completed",
                "done",
                "2",
                "4242"
            ]
        );
        assert_eq!(
            row(
                &home,
                2,
                "owner_kind, status, status_detail, started_at_ms, error IS NOT NULL"
            ),
            ["subagent", "lost", "running", "1787435040123", "1"]
        );
        assert_eq!(row(&home, 2, "parent_task_id"), [id(1)]);
        assert_eq!(
            row(
                &home,
                3,
                "owner_kind, task_kind, status, status_detail, originator_route"
            ),
            ["task", "goal", "waiting", "paused", "telegram.main:1"]
        );
        let state = State::of(home.root());
        let goals = sqlite::rows(
            &state.global(),
            "SELECT objective, effective_token_limit, effective_cost_limit_usd, pause_reason, blockers_json FROM goal_tasks",
        );
        let wanted: &[&[&str]] = match version {
            0 => &[],
            1 => &[&["warm", "", "", "", "[]"]],
            2 => &[&["warm", "5", "0.5", "", "[]"]],
            _ => &[&[
                "warm",
                "5",
                "0.5",
                "daemon_restarted",
                "[{\"kind\":\"budget\"}]",
            ]],
        };
        assert_eq!(goals, wanted, "{version}");
        assert_eq!(
            state.count(&state.global(), "task_continuations"),
            usize::from(version >= 5)
        );
        assert_eq!(state.count(&state.global(), "task_delivery_state"), 2);
        assert!(
            !codes(&report).contains(&"newer-store".to_owned()),
            "{version}"
        );
        assert!(!install.path(STORE).exists(), "retired");
    }
}

/// One build's own way from version 9 on.
fn fork(version: u32) -> String {
    format!(
        "{}
         ALTER TABLE tasks ADD COLUMN session_key TEXT;
         ALTER TABLE tasks ADD COLUMN workspace TEXT;
         ALTER TABLE tasks ADD COLUMN cancellation_state TEXT NOT NULL DEFAULT 'none';
         ALTER TABLE tasks ADD COLUMN checkpoint_id TEXT;
         ALTER TABLE tasks ADD COLUMN recovery_outcome TEXT NOT NULL DEFAULT 'fresh';
         CREATE TABLE task_events (id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, event TEXT NOT NULL);
         CREATE TABLE task_runner_specs (task_id TEXT PRIMARY KEY, spec_json TEXT NOT NULL);
         CREATE TABLE task_runner_ledger (id INTEGER PRIMARY KEY, task_id TEXT, line TEXT);
         PRAGMA user_version = {version};",
        ddl(8)
    )
}

#[test]
fn a_build_that_went_its_own_way_comes_in_with_its_tables_and_statuses() {
    for version in 9..=12 {
        let rows = [
            task(
                1,
                "delegate",
                "queued",
                &[
                    ("session_key", "'cli:1'"),
                    ("cancellation_state", "'requested'"),
                ],
            ),
            task(
                2,
                "delegate",
                "needs_review",
                &[("cancellation_state", "'draining'")],
            ),
            task(3, "delegate", "retrying", &[]),
            task(4, "delegate", "waiting", &[]),
            task(5, "delegate", "validating", &[("checkpoint_id", "'c-5'")]),
            format!(
                "INSERT INTO task_events (task_id, event) VALUES ('{0}', 'made'), ('{0}', 'queued'), ('nobody', 'x');",
                id(1)
            ),
            format!(
                "INSERT INTO task_runner_specs VALUES ('{}', '{{\"cmd\":[\"x\"]}}');",
                id(1)
            ),
            "INSERT INTO task_runner_ledger (task_id, line) VALUES (NULL, 'of no task');"
                .to_owned(),
        ];
        let (home, _install) = install(&fork(version), &rows);

        let report = imported(&home, 1);

        assert_eq!(counts(&report, STORE, "tasks"), [5, 5, 0, 0, 0]);
        assert_eq!(counts(&report, STORE, "task records"), [5, 0, 0, 3, 2]);
        let refused = &source(&report, STORE).unwrap()["refused"];
        assert_eq!(refused[0]["place"], "table task_runner_ledger, row 1");
        assert_eq!(
            refused[1]["place"],
            "table task_events, a row of task nobody"
        );
        let stands = |number| row(&home, number, "status, status_detail, cancel_state");
        assert_eq!(stands(1), ["lost", "queued", "requested"]);
        assert_eq!(stands(2), ["waiting", "needs_review", "none"]);
        assert_eq!(stands(3), ["lost", "retrying", "none"]);
        assert_eq!(stands(4), ["waiting", "waiting", "none"]);
        assert_eq!(stands(5), ["lost", "validating", "none"]);
        let kept = detail(&home, 1);
        assert_eq!(kept["session_key"], "cli:1");
        assert_eq!(kept["task_events"][1]["event"], "queued");
        assert_eq!(
            kept["task_runner_specs"][0]["spec_json"],
            "{\"cmd\":[\"x\"]}"
        );
        assert_eq!(detail(&home, 2)["cancellation_state"], "draining");
        assert_eq!(detail(&home, 5)["checkpoint_id"], "c-5");
        assert!(codes(&report).contains(&"newer-store".to_owned()));
        let quarantined = State::of(home.root()).quarantined().concat();
        assert!(
            String::from_utf8(quarantined)
                .unwrap()
                .contains("of no task")
        );
    }
}

#[test]
fn a_nine_that_only_adds_a_chain_of_callers_is_known_by_its_column() {
    let ddl = format!(
        "{} ALTER TABLE tasks ADD COLUMN originator_chain TEXT; PRAGMA user_version = 9;",
        ddl(8)
    );
    let rows = [
        task(
            1,
            "delegate",
            "completed",
            &[
                ("originator_route", "'atlas'"),
                ("originator_chain", "'[\"atlas\",\"cinder\"]'"),
                ("principal_id", "'cli:7'"),
                ("heartbeat_at", "'2026-08-22T21:45:00Z'"),
                ("output", "'artifact:x'"),
            ],
        ),
        task(
            2,
            "delegate",
            "failed",
            &[("originator_chain", "'atlas>cinder'")],
        ),
    ];
    let (home, _install) = install(&ddl, &rows);

    let report = imported(&home, 0);

    assert_eq!(
        row(
            &home,
            1,
            "agent_id, originator_route, caller_chain_json, principal_id, heartbeat_at_ms"
        ),
        [
            "birch",
            "atlas",
            "[\"atlas\",\"cinder\"]",
            "cli:7",
            "1787435100000"
        ]
    );
    assert_eq!(row(&home, 2, "caller_chain_json"), [""]);
    assert_eq!(detail(&home, 2)["originator_chain"], "atlas>cinder");
    assert!(codes(&report).contains(&"no-callers".to_owned()));
}

#[test]
fn a_version_of_the_future_keeps_columns_and_words_that_nobody_knows_yet() {
    let ddl = format!(
        "{} ALTER TABLE tasks ADD COLUMN mood TEXT; ALTER TABLE tasks ADD COLUMN raw BLOB;
         ALTER TABLE goal_tasks ADD COLUMN horizon TEXT;
         CREATE TABLE moons (name TEXT); PRAGMA user_version = 13;",
        ddl(8)
    );
    let rows = [
        task(
            1,
            "pilgrimage",
            "sleeping",
            &[("mood", "'calm'"), ("raw", "x'00ff'")],
        ),
        task(2, "goal", "running", &[]),
        format!(
            "INSERT INTO goal_tasks (task_id, objective, horizon) VALUES ('{}', 'o', 'far');",
            id(2)
        ),
        "INSERT INTO moons VALUES ('Io');".to_owned(),
    ];
    let (home, _install) = install(&ddl, &rows);

    let report = imported(&home, 1);

    assert_eq!(
        row(&home, 1, "owner_kind, task_kind, status, status_detail"),
        ["task", "pilgrimage", "lost", "sleeping"]
    );
    assert_eq!(
        detail(&home, 1),
        json!({"mood": "calm", "raw": {"hex": "00ff"}})
    );
    let goal = sqlite::rows(
        &State::of(home.root()).global(),
        "SELECT detail_json FROM goal_tasks",
    );
    assert_eq!(goal, [["{\"horizon\":\"far\"}"]]);
    assert_eq!(counts(&report, STORE, "task records"), [1, 0, 0, 0, 1]);
    for code in ["newer-store", "unknown-status", "interrupted-task"] {
        assert!(codes(&report).contains(&code.to_owned()), "{code}");
    }
}

#[test]
fn c37_what_is_no_text_is_refused_or_kept_by_place() {
    let rows = [
        task(
            1,
            "delegate",
            "completed",
            &[("output", "x'ff00'"), ("finished_at", "'soon'")],
        ),
        task(2, "delegate", "completed", &[]),
        format!("UPDATE tasks SET status = x'ff' WHERE id = '{}';", id(2)),
        task(3, "delegate", "completed", &[("error", "x'6f6b'")]),
        format!("UPDATE tasks SET agent = 'агент✨' WHERE id = '{}';", id(3)),
    ];
    let (home, _install) = install(&ddl(7), &rows);

    let report = imported(&home, 1);

    assert_eq!(counts(&report, STORE, "tasks"), [3, 2, 0, 0, 1]);
    assert_eq!(
        source(&report, STORE).unwrap()["refused"][0]["place"],
        "table tasks, row 2"
    );
    assert_eq!(
        detail(&home, 1),
        json!({"output": {"hex": "ff00"}, "finished_at": "soon"})
    );
    assert_eq!(row(&home, 3, "error, agent_id"), ["ok", ""]);
    assert_eq!(detail(&home, 3)["agent"], "агент✨");
}

#[test]
fn goals_without_a_task_are_refused_and_limits_that_are_none_are_kept_beside() {
    let rows = [
        task(1, "goal", "completed", &[]),
        format!(
            "INSERT INTO goal_tasks VALUES ('{}', 'o', -5, 'much', NULL, NULL, 'blocked'), ('gone', 'p', 1, 1, NULL, NULL, '[]');",
            id(1)
        ),
    ];
    let (home, _install) = install(&ddl(3), &rows);

    let report = imported(&home, 1);

    assert_eq!(counts(&report, STORE, "goals"), [2, 1, 0, 0, 1]);
    let goal = sqlite::rows(
        &State::of(home.root()).global(),
        "SELECT effective_token_limit, effective_cost_limit_usd, blockers_json, detail_json FROM goal_tasks",
    );
    let beside: Value = serde_json::from_str(&goal[0][3]).unwrap();
    assert_eq!(goal[0][..3], ["", "", "[]"]);
    assert_eq!(
        beside,
        json!({"effective_token_limit": "-5", "effective_cost_limit_usd": "much", "blockers_json": "blocked"})
    );
}

#[test]
fn an_agent_that_no_configuration_has_gets_a_retired_database() {
    let rows = [
        task(1, "delegate", "completed", &[]),
        format!("UPDATE tasks SET agent = 'cinder' WHERE id = '{}';", id(1)),
    ];
    let (home, _install) = install(&ddl(0), &rows);

    let report = imported(&home, 0);

    let agents = report["agents"].as_array().unwrap();
    let cinder = agents
        .iter()
        .find(|agent| agent["agent"] == "cinder")
        .unwrap();
    assert_eq!(cinder["status"], "retired");
}

#[test]
fn two_generations_become_one_and_the_newer_word_holds() {
    let (home, install) = install(
        &ddl(7),
        &[
            task(1, "delegate", "completed", &[("output", "'new'")]),
            task(2, "delegate", "running", &[]),
        ],
    );
    let older = [
        task(1, "delegate", "running", &[("idem_key", "'k'")]),
        task(2, "delegate", "failed", &[("error", "'old'")]),
        task(3, "delegate", "lost", &[]),
    ];
    let older: Vec<&str> = older.iter().map(String::as_str).collect();
    let place = "workspace/control_plane.db";
    install.store(place, Journal::Wal, &ddl(0), &older);

    let report = imported(&home, 0);

    assert_eq!(counts(&report, STORE, "tasks"), [2, 2, 0, 0, 0]);
    assert_eq!(counts(&report, place, "tasks"), [3, 1, 0, 2, 0]);
    assert_eq!(
        row(&home, 1, "status, output, idempotency_key"),
        ["succeeded", "new", "k"]
    );
    assert_eq!(row(&home, 2, "status, error"), ["failed", "old"]);
    assert_eq!(row(&home, 3, "status"), ["lost"]);
}

#[test]
fn c07_an_old_store_that_comes_back_brings_new_tasks_and_rolls_none_back() {
    let (home, install) = install(
        &ddl(7),
        &[task(1, "delegate", "completed", &[("output", "'done'")])],
    );
    imported(&home, 0);

    let back = [
        task(1, "delegate", "running", &[]),
        task(2, "delegate", "cancelled", &[]),
    ];
    let back: Vec<&str> = back.iter().map(String::as_str).collect();
    install.store(STORE, Journal::Wal, &ddl(7), &back);
    let report = imported(&home, 0);

    assert_eq!(counts(&report, STORE, "tasks"), [2, 1, 0, 1, 0]);
    assert_eq!(row(&home, 1, "status, output"), ["succeeded", "done"]);
    assert_eq!(row(&home, 2, "status"), ["cancelled"]);
}

#[test]
fn a_store_without_tasks_stays_and_is_named() {
    let (home, install) = install("CREATE TABLE jobs (id TEXT);", &[]);

    let report = imported(&home, 1);

    assert!(install.path(STORE).exists());
    assert!(codes(&report).contains(&"unreadable-source".to_owned()));
}

#[test]
fn what_came_in_is_shown() {
    let (home, _install) = install(
        &ddl(7),
        &[
            task(
                1,
                "delegate",
                "completed",
                &[("output", "'found it'"), ("originator_route", "'atlas'")],
            ),
            task(
                2,
                "goal",
                "paused",
                &[("parent_id", &format!("'{}'", id(1)))],
            ),
            format!(
                "INSERT INTO goal_tasks (task_id, objective, pause_reason) VALUES ('{}', 'warm', 'verifier_blocked');",
                id(2)
            ),
        ],
    );
    imported(&home, 0);

    home.zeroclaw(&["tasks", "list"])
        .exits(0)
        .says("found it")
        .says("goal");
    home.zeroclaw(&["tasks", "goals"])
        .exits(0)
        .says("verifier_blocked")
        .says("waiting");
    home.zeroclaw(&["tasks", "show", &id(1)])
        .exits(0)
        .says("not told")
        .says(&id(2));
    home.zeroclaw(&["tasks", "output", &id(1)])
        .exits(0)
        .says("found it");
    home.zeroclaw(&["tasks", "show", "7a5c"]).exits(2);
    home.zeroclaw(&["tasks", "show", "nothing"]).exits(9);
    let listed = home
        .zeroclaw(&["tasks", "list", "--status", "waiting", "--json"])
        .exits(0)
        .json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["task_kind"], "goal");
    let paged = home
        .zeroclaw(&["tasks", "list", "--limit", "1", "--json"])
        .exits(0)
        .json();
    assert_eq!(paged["next"].as_str().unwrap().split(':').count(), 2);
}

pub(super) fn result_path(number: u32) -> PathBuf {
    PathBuf::from("data/delegate_results").join(format!("{}.json", id(number)))
}

/// An output alone, as the newer program writes it.
pub(super) fn output_file(number: u32, output: &str) -> Vec<u8> {
    serde_json::to_vec_pretty(&json!({"task_id": id(number), "output": output})).unwrap()
}

pub(super) fn digest(bytes: &[u8]) -> String {
    sha256_hex(bytes)
}
