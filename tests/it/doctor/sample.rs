//! The sample install: what its recipe says is in it is what comes out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::state::{SAMPLE_SESSIONS, State, digest_of, findings, source};
use crate::support::legacy::{copy_sample, sample_dir};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;
use crate::support::tree::{assert_same_tree, tree_hash};

/// Sessions and messages by agent, as the recipe's README has them.
const SESSIONS: [(&str, usize, usize); 3] = [("atlas", 8, 49), ("birch", 4, 23), ("cinder", 1, 6)];

fn holds_what_the_recipe_says(home: &Sandbox) {
    let state = State::of(home.root());
    let sessions = state.sessions();
    for (agent, count, messages) in SESSIONS {
        let own = sessions.iter().filter(|session| session.0 == agent);
        let (n, sum) = own.fold((0, 0), |(n, sum), session| (n + 1, sum + session.2));
        assert_eq!((n, sum), (count, messages), "{agent}");
    }
    assert_eq!(sessions.len(), SAMPLE_SESSIONS);
    let memories = [("atlas", 6), ("birch", 4), ("default", 2)];
    let memories: BTreeMap<_, _> = memories.map(|(agent, n)| (agent.to_owned(), n)).into();
    assert_eq!(state.memories(), memories);
    let jobs = state.jobs();
    let of = |agent: &str| jobs.iter().filter(|job| job.1 == agent).count();
    assert_eq!((jobs.len(), of("atlas"), of("birch")), (6, 3, 3));
    // Nine runs of jobs, five tasks of background work, two heartbeats.
    assert_eq!(state.runs(), 16);
    let stands = "SELECT substr(task_id, -1), status FROM task_runs WHERE owner_kind NOT IN ('cron', 'heartbeat') ORDER BY 1";
    let stands = sqlite::rows(&state.global(), stands);
    let wanted = [
        ["1", "succeeded"],
        ["2", "succeeded"],
        ["3", "lost"],
        ["4", "timed_out"],
        ["5", "waiting"],
    ];
    assert_eq!(stands, wanted);
    assert_eq!(state.count(&state.agent("atlas"), "run_artifacts"), 2);
    assert_eq!(state.count(&state.global(), "device_auth_tokens"), 4);
    assert_eq!(state.count(&state.global(), "usage_costs"), 6);
    assert_eq!(state.count(&state.global(), "diagnostic_events"), 6);
    assert!(state.complaints().is_empty(), "{:?}", state.complaints());
}

/// Each source of the sample with its records by kind, and how they come in.
fn balances_as_the_recipe_says(report: &Value) {
    let all =
        |n: u64| json!({"records": n, "imported": n, "present": 0, "merged": 0, "refused": 0});
    let merged =
        |n: u64| json!({"records": n, "imported": 0, "present": 0, "merged": n, "refused": 0});
    let wanted = [
        (
            "data/sessions/sessions.db",
            json!({"sessions": all(8), "messages": all(60), "receipts": merged(1)}),
        ),
        (
            "data/sessions/telegram_main_42_lantern.jsonl",
            json!({"sessions": all(1), "messages": all(6)}),
        ),
        (
            "data/sessions/telegram_main_43_tide.jsonl",
            json!({"sessions": all(1), "messages": all(4)}),
        ),
        (
            "data/sessions/telegram_main_555_orchard.jsonl.migrated",
            json!({"sessions": merged(1), "messages": merged(5)}),
        ),
        (
            "data/sessions/archive/2026-01-05_old_talk.jsonl",
            json!({"sessions": all(1), "messages": all(4)}),
        ),
        (
            "data/sessions/acp-sessions.db",
            json!({"sessions": all(2), "messages": all(4), "events": all(6), "ACP sessions": all(2)}),
        ),
        (
            "data/memory/brain.db",
            json!({"memories": all(12), "cached vectors": merged(2)}),
        ),
        (
            "data/cron/jobs.db",
            json!({"cron jobs": all(6), "cron runs": all(9)}),
        ),
        (
            "data/control_plane.db",
            json!({"tasks": all(5), "goals": all(1), "continuations": all(1), "settlements": merged(1)}),
        ),
        (
            "data/delegate_results/7a5c0000-0000-4000-8000-000000000001.json",
            json!({"tasks": merged(1), "artifacts": all(1)}),
        ),
        (
            "data/delegate_results/7a5c0000-0000-4000-8000-000000000002.json",
            json!({"tasks": merged(1), "artifacts": all(1)}),
        ),
        ("data/devices.db", json!({"devices": all(3)})),
        (
            "data/sop/runs.db",
            json!({
                "flow runs": all(3), "flow events": all(2), "flow proposals": all(1), "flow claims": merged(1),
            }),
        ),
        (
            "data/heartbeat/history.db",
            json!({"heartbeat runs": all(2)}),
        ),
        (
            "knowledge.db",
            json!({"knowledge nodes": all(2), "knowledge edges": all(1)}),
        ),
        ("data/memory/audit.db", json!({"audit events": all(2)})),
        (
            "config.toml",
            json!({"devices": {"records": 3, "imported": 1, "present": 2, "merged": 0, "refused": 0}}),
        ),
        ("data/state/costs.jsonl", json!({"costs": all(6)})),
        (
            "data/state/runtime-trace.jsonl",
            json!({"log events": all(4)}),
        ),
        (
            "data/state/runtime-trace.20260914-080003.jsonl",
            json!({"log events": all(2)}),
        ),
    ];
    assert_eq!(report["sources"].as_array().unwrap().len(), wanted.len());
    for (path, counts) in wanted {
        assert_eq!(source(report, path).unwrap()["counts"], counts, "{path}");
    }
    assert_eq!(report["total"]["refused"], 0);
    let torn = source(report, "data/sessions/telegram_main_43_tide.jsonl").unwrap();
    assert_eq!(torn["partial_tails"].as_array().unwrap().len(), 1);
}

#[test]
fn c28_a_look_at_the_sample_names_every_source_changes_nothing_and_exits_7() {
    let home = Sandbox::new();
    copy_sample(home.root());
    let before = home.tree();

    let looked = home.zeroclaw(&["doctor"]).exits(7);
    let report = home.zeroclaw(&["doctor", "--json"]).exits(7).json();

    home.is_unchanged_since(&before);
    for source in report["sources"].as_array().unwrap() {
        assert_eq!(source["status"], "planned");
        assert!(looked.stdout.contains(source["path"].as_str().unwrap()));
    }
    assert_eq!(report["changed"], false);
    assert!(source(&report, "data/sessions/sessions.db").is_some());
}

#[test]
fn the_sample_comes_in_from_elsewhere_with_its_recipes_counts_and_is_left_alone() {
    let home = Sandbox::new();
    let from = sample_dir();
    let before = tree_hash(&from);

    let args = [
        "doctor",
        "--fix",
        "--json",
        "--from",
        from.to_str().unwrap(),
    ];
    let report = home.zeroclaw(&args).exits(0).json();

    assert_same_tree(&before, &tree_hash(&from));
    holds_what_the_recipe_says(&home);
    let receipts = State::of(home.root()).receipts();
    assert!(
        receipts.iter().all(|(_, status, _)| status == "kept"),
        "{receipts:?}"
    );
    assert_eq!(
        report["from"],
        from.canonicalize().unwrap().to_str().unwrap()
    );
}

#[test]
fn the_sample_comes_in_in_place_and_every_source_is_kept_byte_for_byte() {
    let home = Sandbox::new();
    let install = copy_sample(home.root());
    let sources: BTreeMap<PathBuf, String> = tree_hash(&install.path("data"))
        .iter()
        .filter(|entry| !entry.sha256.is_empty())
        .map(|entry| PathBuf::from("data").join(String::from_utf8(entry.path.clone()).unwrap()))
        .chain([PathBuf::from("knowledge.db")])
        .map(|path| (path.clone(), digest_of(&install.path(&path))))
        .collect();
    let kept = ["config.toml", ".secret_key"].map(|name| digest_of(&install.path(name)));

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();

    holds_what_the_recipe_says(&home);
    balances_as_the_recipe_says(&report);
    let state = State::of(home.root());
    assert_eq!(state.retired(), sources);
    for path in sources.keys() {
        assert!(!install.path(path).exists(), "{}", path.display());
    }
    assert_eq!(
        ["config.toml", ".secret_key"].map(|name| digest_of(&install.path(name))),
        kept
    );
    let run = report["run"].as_str().unwrap();
    let moved = report["sources"].as_array().unwrap().iter();
    for source in moved.filter(|source| source["path"] != "config.toml") {
        let now_at = source["now_at"].as_str().unwrap();
        assert!(
            now_at.starts_with(&format!("state/migrated/{run}/")),
            "{now_at}"
        );
        assert!(install.path(now_at).exists(), "{now_at}");
    }
    // 106 bytes of a line that never was whole.
    assert_eq!(
        state.quarantined().iter().map(Vec::len).collect::<Vec<_>>(),
        [106]
    );
}

#[test]
fn what_stays_by_design_and_is_in_force_is_named_and_exits_1() {
    let home = Sandbox::new();
    let install = copy_sample(home.root());
    let stop = br#"{"kill_all":true}"#;
    install.file("estop-state.json", stop);

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();
    let after_first = home.tree();
    let again = home.zeroclaw(&["doctor", "--fix"]).exits(1);

    home.is_unchanged_since(&after_first);
    assert_eq!(
        std::fs::read(install.path("estop-state.json")).unwrap(),
        stop
    );
    let in_force = ("emergency-stop".to_owned(), "warning".to_owned());
    let named = findings(&report)
        .into_iter()
        .filter(|found| *found == in_force)
        .count();
    assert_eq!(named, 1);
    assert!(
        again.stdout.contains("estop-state.json"),
        "{}",
        again.told()
    );
    assert!(
        again.stdout.contains("nothing was changed"),
        "{}",
        again.told()
    );
}

#[test]
fn what_came_in_is_shown_by_every_list_and_found_by_a_word() {
    let home = Sandbox::new();
    copy_sample(home.root());
    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    // Only in a transcript of an agent that the configuration no longer has.
    home.zeroclaw(&["sessions", "search", "quillwort"])
        .exits(0)
        .says("cinder");
    home.zeroclaw(&["sessions", "list"])
        .exits(0)
        .says("telegram_main_42_lantern");
    home.zeroclaw(&["agents", "list"])
        .exits(0)
        .says("cinder")
        .says("retired");
    home.zeroclaw(&["cron", "list"]).exits(0).says("birch");
    home.zeroclaw(&["memory", "list"]).exits(0).says("atlas");
    home.zeroclaw(&["tasks", "list"]).exits(0).says("lanterns");
    home.zeroclaw(&["tasks", "goals"]).exits(0).says("orchard");
    home.zeroclaw(&["status"]).exits(0);
    home.zeroclaw(&["db", "check"]).exits(0);
    let history = home
        .zeroclaw(&["doctor", "history", "--json"])
        .exits(0)
        .json();
    let run = history[0]["id"].as_str().unwrap();
    home.zeroclaw(&["doctor", "history", run])
        .exits(0)
        .says("data/sessions/sessions.db");
}
