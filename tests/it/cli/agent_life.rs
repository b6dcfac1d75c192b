//! `zeroclaw agents retire` and `activate`.

use super::json::is_documented;
use crate::support::inhabited;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::change;

/// Names that nobody may have: C59.
pub(crate) const STRANGE: [&str; 9] = [
    "агент✨",
    "../main",
    "MAIN",
    "",
    "-x",
    "a/b",
    ".",
    "a b",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
];

/// A root with the agent `atlas`.
fn with_atlas() -> Sandbox {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    home
}

#[test]
fn a_retired_agent_keeps_its_history_and_its_jobs_go_off() {
    let home = with_atlas();
    home.zeroclaw(&["memory", "store", "--agent", "atlas", "harbour", "tide"])
        .exits(0);
    let add = [
        "cron",
        "add",
        "--agent",
        "atlas",
        "--cron",
        "0 9 * * *",
        "--shell",
        "true",
        "--json",
    ];
    let job = home.zeroclaw(&add).exits(0).json();
    let job = job["job_id"].as_str().unwrap();

    let args = ["agents", "retire", "atlas", "--reason", "moved", "--json"];
    let retired = home.zeroclaw(&args).exits(0).json();

    is_documented(&args[..2], &retired);
    assert_eq!(retired["status"], "retired");
    assert_eq!(retired["status_reason"], "moved");
    assert_eq!(retired["jobs_off"], serde_json::json!([job]));
    home.zeroclaw(&["memory", "search", "--agent", "atlas", "tide"])
        .exits(0)
        .says("harbour");
    let shown = home.zeroclaw(&["cron", "show", job, "--json"]).exits(0);
    assert_eq!(shown.json()["enabled"], false);
    assert_eq!(shown.json()["disabled_reason"], "its agent is retired");

    home.zeroclaw(&["agents", "activate", "atlas"])
        .exits(0)
        .says("activated atlas")
        .complains(&format!("zeroclaw cron resume {job}"));
    let shown = home
        .zeroclaw(&["agents", "show", "atlas", "--json"])
        .exits(0);
    assert_eq!(shown.json()["status"], "active");
    assert_eq!(shown.json()["status_reason"], serde_json::Value::Null);
}

#[test]
fn an_agent_with_work_under_way_is_not_retired_and_the_work_is_named() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    change(
        &home.root().join("state/state.sqlite"),
        "UPDATE task_runs SET status = 'waiting', ended_at_ms = NULL
         WHERE task_id = (SELECT min(task_id) FROM task_runs WHERE agent_id = 'atlas')",
    );
    let before = home.zeroclaw(&["agents", "show", "atlas"]).exits(0).stdout;

    let refused = home.zeroclaw(&["agents", "retire", "atlas"]).exits(4);

    refused
        .says_nothing()
        .complains("agent atlas is in use: task")
        .complains("zeroclaw tasks cancel");
    let after = home.zeroclaw(&["agents", "show", "atlas"]).exits(0).stdout;
    assert_eq!(before, after);
}

#[test]
fn strange_and_unknown_names_touch_nothing() {
    let home = with_atlas();
    let before = home.tree();

    for verb in ["retire", "activate"] {
        for strange in STRANGE {
            home.zeroclaw(&["agents", verb, "--", strange]).exits(2);
        }
        home.zeroclaw(&["agents", verb, "nobody"]).exits(9);
    }

    assert_eq!(home.tree(), before);
}
