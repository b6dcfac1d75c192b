//! `zeroclaw sessions` as it changes, copies and deletes. What that means is the business of the data plane's tests.

use serde_json::Value;

use super::json::is_documented;
use crate::support::inhabited;
use crate::support::sandbox::Sandbox;

fn home() -> Sandbox {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    home
}

/// Runs a command with `--json`; every field it prints must be documented.
#[track_caller]
fn answer(home: &Sandbox, args: &[&str]) -> Value {
    let answer = home.zeroclaw(&[args, &["--json"]].concat()).exits(0).json();
    is_documented(args, &answer);
    answer
}

#[test]
fn a_session_is_renamed_archived_pinned_copied_and_reset() {
    let home = home();

    let renamed = answer(&home, &["sessions", "rename", "session-1", "Kiln talk"]);
    let revision = renamed["revision"].to_string();
    let pinned = answer(&home, &["sessions", "pin", "session-1"]);
    let archived = answer(&home, &["sessions", "archive", "session-1"]);
    answer(&home, &["sessions", "archive", "session-1", "--undo"]);
    let forked = answer(&home, &["sessions", "fork", "session-1", "--key", "aside"]);
    let reset = answer(&home, &["sessions", "reset", "aside"]);

    assert_eq!(renamed["display_name"], "Kiln talk");
    assert!(pinned["pinned_at_ms"].is_i64() && archived["archived_at_ms"].is_i64());
    assert_eq!(forked["forked_from"], "session-1");
    assert_eq!(reset["old_session_id"], forked["session"]["session_id"]);
    let late = [
        "sessions",
        "rename",
        "session-1",
        "Late",
        "--if-revision",
        &revision,
    ];
    home.zeroclaw(&late).exits(10).complains("display_name");
    home.zeroclaw(&["sessions", "show", "session-1"])
        .exits(0)
        .says("Kiln talk")
        .says("pinned");
    home.zeroclaw(&["sessions", "rename", "nobody", "x"])
        .exits(9);
}

#[test]
fn deleting_wants_consent_and_can_be_taken_back() {
    let home = home();
    let before = home
        .zeroclaw(&["sessions", "show", "session-1", "--all", "--json"])
        .exits(0);

    let planned = answer(&home, &["sessions", "delete", "session-1", "--dry-run"]);
    home.zeroclaw(&["sessions", "delete", "session-1"])
        .exits(10)
        .complains("--yes");
    let deleted = answer(&home, &["sessions", "delete", "session-1", "--yes"]);
    home.zeroclaw(&["sessions", "show", "session-1"]).exits(9);
    let copy = deleted["copy"].as_str().unwrap();
    answer(&home, &["sessions", "import", copy]);

    assert_eq!(
        (&planned["deleted"], &planned["copy"]),
        (&Value::Bool(false), &Value::Null)
    );
    assert_eq!(deleted["deleted"], true);
    let after = home
        .zeroclaw(&["sessions", "show", "session-1", "--all", "--json"])
        .exits(0);
    assert_eq!(after.stdout, before.stdout);
    home.zeroclaw(&["sessions", "import", copy]).exits(10);
    home.zeroclaw(&["db", "check"]).exits(0);
    home.zeroclaw(&["backup", "create"]).exits(0);
}

#[test]
fn c67_rules_are_off_by_themselves_and_garbage_is_refused() {
    let home = home();
    let count = |home: &Sandbox| {
        answer(home, &["sessions", "list", "--archived"])["items"]
            .as_array()
            .unwrap()
            .len()
    };
    let before = count(&home);

    for off in [
        &["sessions", "prune", "--yes"][..],
        &["sessions", "prune", "--max-age-days", "0", "--yes"],
        &["sessions", "prune", "--max-sessions", "-1", "--yes"],
    ] {
        assert_eq!(
            answer(&home, off)["items"],
            serde_json::json!([]),
            "{off:?}"
        );
    }
    for garbage in ["x", "1d", "", "99999999999999999999"] {
        home.zeroclaw(&["sessions", "prune", "--max-age-days", garbage, "--yes"])
            .exits(2);
    }
    assert_eq!(count(&home), before);

    let dry = answer(
        &home,
        &[
            "sessions",
            "prune",
            "--agent",
            "atlas",
            "--max-sessions",
            "1",
            "--dry-run",
        ],
    );
    let unasked = [
        "sessions",
        "prune",
        "--agent",
        "atlas",
        "--max-sessions",
        "1",
    ];
    home.zeroclaw(&unasked).exits(10).complains("--yes");
    let done = answer(&home, &[&unasked[..], &["--yes"]].concat());
    let names = |report: &Value| -> Vec<String> {
        let items = report["items"].as_array().unwrap().iter();
        items.map(|item| item["session_id"].to_string()).collect()
    };
    assert_eq!(names(&dry), names(&done));
    assert_eq!(count(&home), before - names(&done).len());
}

#[test]
fn an_export_is_data_and_leaves_no_trace() {
    let home = home();
    let before = home.tree();

    for format in ["jsonl", "markdown", "html"] {
        let ran = home
            .zeroclaw(&["sessions", "export", "large", "--format", format])
            .exits(0);
        assert!(ran.stdout.len() > 100_000, "{format}");
    }
    home.is_unchanged_since(&before);

    let to = ["sessions", "export", "large", "--output", "large.jsonl"];
    assert!(answer(&home, &to)["events"].as_u64().unwrap() > 1_000);
    home.zeroclaw(&to).exits(10);
    home.zeroclaw(&["sessions", "import", "missing.jsonl"])
        .exits(9);
}

#[test]
fn a_transcript_is_read_from_its_end_and_lists_are_cut_by_time() {
    let home = home();

    let last = answer(
        &home,
        &["sessions", "show", "large", "--newest", "--limit", "2"],
    );
    let before = last["next_before"].to_string();
    let older = answer(
        &home,
        &[
            "sessions", "show", "large", "--before", &before, "--limit", "1",
        ],
    );

    assert_eq!(last["next_after"], Value::Null);
    assert_eq!(last["events"].as_array().unwrap().len(), 2);
    let place = |page: &Value| page["events"][0]["seq"].as_i64().unwrap();
    assert_eq!(place(&older), place(&last) - 1);
    let none = answer(&home, &["sessions", "list", "--until", "1970-01-01"]);
    assert_eq!(none["items"], serde_json::json!([]));
    let all = answer(
        &home,
        &["sessions", "list", "--since", "1970-01-01T00:00:00Z"],
    );
    assert!(!all["items"].as_array().unwrap().is_empty());
}

#[test]
fn c20_a_large_event_is_named_with_its_size_and_printed_whole_when_asked_for() {
    let home = home();
    let payload = format!("\"{}\"", "A".repeat(3_000_000));
    let lines = home.home().join("large.session");
    let export = [
        "sessions",
        "export",
        "session-1",
        "--format",
        "jsonl",
        "--output",
    ];
    home.zeroclaw(&[&export[..], &[lines.to_str().unwrap()]].concat())
        .exits(0);
    let mut whole: Vec<Value> = std::fs::read_to_string(&lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    whole[0]["session"]["session_id"] = "huge".into();
    whole[0]["session"]["session_key"] = "huge-key".into();
    whole[0]["routes"] = Value::Array(Vec::new());
    whole[1]["text"] = "see the picture".into();
    whole[1]["event_json"] = payload.clone().into();
    let text: String = whole.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&lines, text).unwrap();
    answer(
        &home,
        &[
            "sessions",
            "import",
            lines.to_str().unwrap(),
            "--agent",
            "atlas",
        ],
    );

    home.zeroclaw(&["sessions", "show", "huge"])
        .exits(0)
        .says("see the picture")
        .says("[data of 2.9 MiB; `sessions event` shows it whole]");
    let shown = answer(&home, &["sessions", "show", "huge"]);
    assert_eq!(shown["events"][0]["cut"]["json_bytes"], 3_000_002);
    assert!(shown["events"][0].get("event_json").is_none());
    let whole = answer(&home, &["sessions", "show", "huge", "--whole"]);
    assert_eq!(whole["events"][0]["event_json"], payload.as_str());
    home.zeroclaw(&["sessions", "event", "huge", "1"])
        .exits(0)
        .says("see the picture");
    let data = home
        .zeroclaw(&["sessions", "event", "huge", "1", "--data"])
        .exits(0);
    assert_eq!(data.stdout, payload);
    answer(&home, &["sessions", "event", "huge", "1"]);
    home.zeroclaw(&["sessions", "event", "huge", "999"])
        .exits(9)
        .complains("no event");
    let said = [
        "sessions",
        "search",
        "picture",
        "--role",
        "user",
        "--since",
        "2020-01-01",
    ];
    assert_eq!(answer(&home, &said)["hits"].as_array().unwrap().len(), 1);
    let by_nobody = ["sessions", "search", "picture", "--role", "nobody"];
    assert!(
        answer(&home, &by_nobody)["hits"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}
