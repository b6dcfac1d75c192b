//! Results of background delegates: both forms of file, every place they lie in, and what the store of tasks says beside.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};

use super::control_plane::{
    CONFIG, STORE, counts, ddl, digest, id, imported, output_file, result_path, row, task,
};
use super::state::{State, source};
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal};

/// A file as releases up to 0.8.4 write it.
fn status_file(number: u32, status: &str, output: Option<&str>, error: Option<&str>) -> Vec<u8> {
    let finished = (status != "running").then_some("2026-08-22T21:44:05+00:00");
    serde_json::to_vec_pretty(&json!({
        "task_id": id(number), "agent": "birch", "status": status, "output": output, "error": error,
        "started_at": "2026-08-22T21:44:00+00:00", "finished_at": finished,
    }))
    .unwrap()
}

fn in_place_of(agent: &str, number: u32) -> String {
    format!(
        "agents/{agent}/workspace/delegate_results/{}.json",
        id(number)
    )
}

fn empty() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    (home, install)
}

/// Tasks and outputs of an agent: run, bytes.
fn artifacts(home: &Sandbox, agent: &str) -> Vec<(String, String)> {
    let query = "SELECT run_id, CAST(blob AS TEXT) FROM run_artifacts ORDER BY run_id, path";
    sqlite::rows(&State::of(home.root()).agent(agent), query)
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect()
}

#[test]
fn both_forms_come_in_from_every_place_for_results() {
    let (home, install) = empty();
    install
        .file(
            result_path(1),
            &status_file(1, "completed", Some("one"), None),
        )
        .file(
            in_place_of("birch", 2),
            &status_file(2, "failed", None, Some("no provider")),
        )
        .file(in_place_of("default", 3), &output_file(3, "three"))
        .file(
            format!("workspace/delegate_results/{}.json", id(4)),
            &status_file(4, "cancelled", Some("part"), None),
        )
        .file(
            in_place_of("atlas", 5),
            &status_file(5, "running", None, None),
        );

    let report = imported(&home, 0);

    let stands = |number| {
        row(
            &home,
            number,
            "owner_kind, agent_id, status, status_detail, output",
        )
    };
    assert_eq!(
        stands(1),
        ["delegate", "birch", "succeeded", "completed", "one"]
    );
    assert_eq!(stands(2), ["delegate", "birch", "failed", "failed", ""]);
    assert_eq!(stands(3), ["delegate", "", "lost", "unknown", "three"]);
    assert_eq!(
        stands(4),
        ["delegate", "birch", "cancelled", "cancelled", "part"]
    );
    assert_eq!(stands(5), ["delegate", "birch", "lost", "running", ""]);
    assert_eq!(
        row(&home, 1, "started_at_ms, ended_at_ms, duration_ms"),
        ["1787435040000", "1787435045000", "5000"]
    );
    // Nobody tells whose `data/` and `workspace/` are: the first agent of the configuration keeps them.
    assert_eq!(
        artifacts(&home, "atlas"),
        [(id(1), "one".to_owned()), (id(4), "part".to_owned())]
    );
    assert_eq!(artifacts(&home, "default"), [(id(3), "three".to_owned())]);
    assert_eq!(report["sources"].as_array().unwrap().len(), 5);
    home.zeroclaw(&["tasks", "output", &id(3)])
        .exits(0)
        .says("three");
}

#[test]
fn c23_a_file_and_a_row_of_one_task_become_one_task() {
    let (home, install) = empty();
    let rows = [
        task(
            1,
            "delegate",
            "completed",
            &[("output", "'by the row'"), ("depth", "1")],
        ),
        task(2, "delegate", "running", &[]),
        task(3, "subagent", "lost", &[]),
        task(
            4,
            "delegate",
            "failed",
            &[("error", "'by the row'"), ("output", "'artifact:x'")],
        ),
        task(5, "delegate", "timed_out", &[]),
    ];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    install
        .store(STORE, Journal::Wal, &ddl(8), &rows)
        .file(
            result_path(1),
            &status_file(1, "completed", Some("by the file"), None),
        )
        .file(
            result_path(2),
            &status_file(2, "cancelled", None, Some("by the file")),
        )
        .file(result_path(3), &status_file(3, "running", None, None))
        .file(result_path(4), &output_file(4, "by the file"))
        .file(result_path(5), &status_file(5, "running", None, None));

    let report = imported(&home, 0);

    let stands = |number| row(&home, number, "status, output, error");
    assert_eq!(stands(1), ["succeeded", "by the file", ""]);
    assert_eq!(row(&home, 1, "depth, execution_owner_pid"), ["1", "4242"]);
    let beside: Value = serde_json::from_str(&row(&home, 1, "detail_json")[0]).unwrap();
    assert_eq!(beside["output_of_store"], "by the row");
    assert_eq!(beside["result_file"]["agent"], "birch");
    assert_eq!(stands(2), ["cancelled", "", "by the file"]);
    assert_eq!(stands(3)[0], "lost");
    assert_eq!(
        row(&home, 3, "status_detail, owner_kind"),
        ["lost", "subagent"]
    );
    assert_eq!(stands(4), ["failed", "by the file", "by the row"]);
    assert_eq!(stands(5)[0], "timed_out");
    let path = result_path(1);
    let path = path.to_str().unwrap();
    assert_eq!(counts(&report, path, "tasks"), [1, 0, 0, 1, 0]);
    assert_eq!(counts(&report, path, "artifacts"), [1, 1, 0, 0, 0]);
    assert_eq!(State::of(home.root()).runs(), 5);
}

#[test]
fn two_generations_of_a_result_keep_both_outputs_and_the_later_end() {
    let (home, install) = empty();
    let later = String::from_utf8(status_file(1, "completed", Some("later"), None)).unwrap();
    let later = later.replace("21:44:05", "21:50:05");
    install
        .file(
            in_place_of("default", 1),
            &status_file(1, "failed", Some("first"), Some("no")),
        )
        .file(
            format!("workspace/delegate_results/{}.json", id(1)),
            later.as_bytes(),
        )
        .config("schema_version = 3\n[agents.default]\n");

    imported(&home, 0);

    assert_eq!(row(&home, 1, "status, output"), ["succeeded", "later"]);
    let mut outputs: Vec<String> = artifacts(&home, "default")
        .into_iter()
        .map(|found| found.1)
        .collect();
    outputs.sort();
    assert_eq!(outputs, ["first", "later"]);
    home.zeroclaw(&["tasks", "output", &id(1)]).exits(2);
}

#[test]
fn c15_what_is_no_result_is_refused_by_place_and_a_cut_off_one_is_named() {
    let (home, install) = empty();
    let folder = Path::new("data/delegate_results");
    let odd = std::ffi::OsStr::from_bytes(b"\xff.json");
    let whole = status_file(2, "completed", Some("x"), None);
    let torn = result_path(2);
    let files: [(&Path, Vec<u8>); 8] = [
        (
            "other.json".as_ref(),
            status_file(1, "completed", Some("x"), None),
        ),
        (torn.file_name().unwrap().as_ref(), whole[..40].to_vec()),
        (
            "short.json".as_ref(),
            br#"{"task_id":"short","output":"x"}"#.to_vec(),
        ),
        (
            "extra.json".as_ref(),
            br#"{"task_id":"extra","output":"x","mood":1}"#.to_vec(),
        ),
        ("list.json".as_ref(), b"[]".to_vec()),
        ("none.json".as_ref(), Vec::new()),
        ("bytes.json".as_ref(), b"\xff".to_vec()),
        (odd.as_ref(), status_file(3, "completed", Some("x"), None)),
    ];
    for (name, bytes) in &files {
        install.file(folder.join(name), bytes);
    }
    let cut_off = folder.join(format!("{}.json.{}.tmp", id(9), id(8)));
    install.file(&cut_off, b"{\"task_id\": \"7a5");
    install.file(folder.join("README"), b"mine");

    let report = imported(&home, 1);

    let state = State::of(home.root());
    assert_eq!(state.runs(), 0);
    let total = &report["total"];
    assert_eq!(
        (total["records"].as_u64(), total["refused"].as_u64()),
        (Some(8), Some(8))
    );
    let mut kept = state.quarantined();
    let mut wanted: Vec<Vec<u8>> = files.into_iter().map(|(_, bytes)| bytes).collect();
    kept.sort();
    wanted.sort();
    assert_eq!(kept, wanted);
    for file in [cut_off.to_str().unwrap(), "data/delegate_results/README"] {
        assert!(install.path(file).exists());
        let others = report["others"].as_array().unwrap();
        assert!(others.iter().any(|other| other["path"] == file), "{file}");
    }
}

#[test]
fn an_output_of_any_size_comes_in_whole_and_its_row_says_where_it_is() {
    let (home, install) = empty();
    let large = "каша ".repeat(300_000);
    install.file(in_place_of("atlas", 1), &output_file(1, &large));

    imported(&home, 0);

    assert_eq!(
        row(&home, 1, "output"),
        [format!("artifact:{}.json", id(1))]
    );
    let kept = sqlite::rows(
        &State::of(home.root()).agent("atlas"),
        "SELECT sha256, size_bytes FROM run_artifacts",
    );
    assert_eq!(kept, [[digest(large.as_bytes()), large.len().to_string()]]);
    let shown = home
        .zeroclaw(&["tasks", "output", &id(1), "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["text"], large);
    let printed = home.zeroclaw(&["tasks", "output", &id(1)]).exits(0);
    assert_eq!(printed.stdout, large);
}

/// Sessions of clients as 0.8 keeps them, and as the first release of the feature did.
const SESSIONS: [&str; 2] = [
    "CREATE TABLE acp_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, session_uuid TEXT NOT NULL UNIQUE,
        agent_alias TEXT NOT NULL, workspace_dir TEXT NOT NULL, token_count INTEGER NOT NULL DEFAULT 0, killed_at TEXT,
        created_at TEXT NOT NULL, last_activity TEXT NOT NULL, plan_json TEXT);
     CREATE TABLE acp_messages (id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL REFERENCES acp_sessions(id),
        role TEXT NOT NULL, content TEXT NOT NULL, reasoning_content TEXT, created_at TEXT NOT NULL);
     CREATE TABLE acp_tool_calls (id INTEGER PRIMARY KEY, message_id INTEGER NOT NULL, tool_call_id TEXT NOT NULL,
        tool_name TEXT NOT NULL, event_kind TEXT NOT NULL, payload TEXT NOT NULL, outcome TEXT, created_at TEXT NOT NULL);
     CREATE TABLE acp_session_events (id INTEGER PRIMARY KEY, session_id INTEGER NOT NULL, action TEXT NOT NULL,
        outcome TEXT NOT NULL, payload TEXT, created_at TEXT NOT NULL);",
    "CREATE TABLE acp_sessions (session_id TEXT PRIMARY KEY, workspace_dir TEXT NOT NULL, created_at TEXT NOT NULL,
        last_activity TEXT NOT NULL);
     CREATE TABLE acp_messages (id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, message_json TEXT NOT NULL,
        created_at TEXT NOT NULL);",
];

fn session(shape: usize, number: u32, folder: &str) -> String {
    let at = "'2026-08-22T21:44:00+00:00'";
    match shape {
        0 => format!(
            "INSERT INTO acp_sessions (session_uuid, agent_alias, workspace_dir, created_at, last_activity)
             VALUES ('5e550000-0000-4000-8000-{number:012}', 'birch', '{folder}', {at}, {at});"
        ),
        _ => format!("INSERT INTO acp_sessions VALUES ('s{number}', '{folder}', {at}, {at});"),
    }
}

#[test]
fn results_where_a_client_worked_are_read_and_never_moved() {
    for shape in [0, 1] {
        let (home, install) = empty();
        let elsewhere = home.home().join("project");
        let there = LegacyInstall::new(&elsewhere);
        let file = there.path(format!("delegate_results/{}.json", id(1)));
        there.file(
            &file,
            &status_file(1, "completed", Some("from the project"), None),
        );
        let within = install.path("agents/atlas/workspace");
        install.file(
            in_place_of("atlas", 2),
            &status_file(2, "completed", Some("within"), None),
        );
        let sessions = [
            session(shape, 1, elsewhere.to_str().unwrap()),
            session(shape, 2, elsewhere.to_str().unwrap()),
            session(shape, 3, within.to_str().unwrap()),
            session(shape, 4, "/no/such/place/of/another/machine"),
            session(shape, 5, "C:\\work"),
        ];
        let sessions: Vec<&str> = sessions.iter().map(String::as_str).collect();
        install.store(
            "data/sessions/acp-sessions.db",
            Journal::Wal,
            SESSIONS[shape],
            &sessions,
        );
        let before = digest(&std::fs::read(&file).unwrap());

        let report = home.zeroclaw(&["doctor", "--fix", "--json"]).json();
        let after = home.tree();
        let again = home.zeroclaw(&["doctor", "--fix", "--json"]).json();

        assert_eq!(again["changed"], false);
        home.is_unchanged_since(&after);
        assert_eq!(digest(&std::fs::read(&file).unwrap()), before);
        assert_eq!(
            row(&home, 1, "status, output"),
            ["succeeded", "from the project"]
        );
        let owner = if shape == 0 { "birch" } else { "atlas" };
        assert!(artifacts(&home, owner).contains(&(id(1), "from the project".to_owned())));
        assert!(artifacts(&home, "atlas").contains(&(id(2), "within".to_owned())));
        let found: &Value = source(&report, file.to_str().unwrap()).unwrap();
        assert_eq!(found["status"], "imported");
        assert_eq!(found["now_at"], file.to_str().unwrap());
        assert!(!install.path(in_place_of("atlas", 2)).exists());
    }
}

#[test]
fn results_in_a_workspace_that_the_configuration_names_belong_to_its_agent() {
    let (home, install) = empty();
    let far = home.home().join("far");
    LegacyInstall::new(&far).file(
        format!("delegate_results/{}.json", id(1)),
        &status_file(1, "completed", Some("far"), None),
    );
    let near = "rooms/birch/delegate_results";
    install
        .file(format!("{near}/{}.json", id(2)), &status_file(2, "completed", Some("near"), None))
        .config(&format!(
            "schema_version = 3\n[agents.atlas.workspace]\npath = '{}'\n[agents.birch.workspace]\npath = 'rooms/birch'\n",
            far.display()
        ));

    imported(&home, 0);

    assert_eq!(artifacts(&home, "atlas"), [(id(1), "far".to_owned())]);
    assert_eq!(artifacts(&home, "birch"), [(id(2), "near".to_owned())]);
    assert!(
        far.join("delegate_results")
            .join(format!("{}.json", id(1)))
            .exists()
    );
    assert!(!install.path(near).join(format!("{}.json", id(2))).exists());
}

#[test]
fn a_link_among_results_is_named_and_not_followed() {
    let (home, install) = empty();
    let target = home.home().join("target.json");
    std::fs::write(&target, status_file(1, "completed", Some("x"), None)).unwrap();
    install.folder("data/delegate_results");
    std::os::unix::fs::symlink(&target, install.path(result_path(1))).unwrap();

    let report = home.zeroclaw(&["doctor", "--fix", "--json"]).json();

    assert_eq!(report["total"]["records"], 0);
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding["code"] == "linked-source")
    );
    assert!(target.exists());
}
