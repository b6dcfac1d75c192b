//! The runtime's trace: both forms of its lines, its rotated parts, a place of its own, and what is torn.

use serde_json::{Value, json};

use super::state::{State, findings, source};
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const FILE: &str = "data/state/runtime-trace.jsonl";

/// An event as 0.8 writes it.
fn event(number: u32, level: &str, category: &str, message: &str) -> String {
    json!({
        "@timestamp": format!("2026-09-14T08:00:{:02}.500Z", number % 60),
        "attributes": {"url": "https://hooks.test/T0KEN"},
        "event": {"action": "invoke", "category": category, "outcome": "success"},
        "id": format!("7race000-0000-4000-8000-{number:012}"),
        "message": message,
        "schema_version": 2,
        "service": {"name": "zeroclaw", "version": "0.8.4"},
        "severity_number": 9,
        "severity_text": level,
        "zeroclaw": {"agent_alias": if number.is_multiple_of(2) { "birch" } else { "atlas" }},
    })
    .to_string()
}

fn lines(events: &[String]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|line| [line.as_bytes(), b"\n"].concat())
        .collect()
}

fn home_with(config: &str, files: &[(&str, Vec<u8>)]) -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(&format!("schema_version = 3\n{config}\n[agents.atlas]\n"));
    for (path, bytes) in files {
        install.file(path, bytes);
    }
    (home, install)
}

fn fix(home: &Sandbox, code: i32) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(code)
        .json()
}

fn logs(home: &Sandbox, args: &[&str]) -> Vec<Value> {
    let args = [&["logs", "--json"], args].concat();
    let page = home.zeroclaw(&args).exits(0).json();
    page["items"].as_array().unwrap().clone()
}

fn keys(events: &[Value]) -> Vec<String> {
    let key = |event: &Value| event["event_key"].as_str().unwrap().to_owned();
    events.iter().map(key).collect()
}

#[test]
fn both_forms_of_a_line_come_in_whole_and_say_their_level() {
    let old = r#"{"id":"old-1","timestamp":"2026-01-05T10:00:00.000Z","event_type":"tool_call","channel":"telegram.main","provider":"anthropic","model":"m","turn_id":"t","success":true,"message":"old","payload":{"tool":"shell"}}"#;
    let failed = r#"{"timestamp":"2026-01-05T10:00:01.000Z","event_type":"agent_error","success":false,"message":"no id","payload":null}"#;
    let plain = r#"{"id":"old-3","timestamp":"2026-01-05T10:00:02.000Z","event_type":"llm_request","payload":[1]}"#;
    let numbered = r#"{"id":"new-2","@timestamp":"2026-09-14T08:00:00+02:00","severity_number":13,"event":{},"unheard":1}"#;
    let new = event(1, "ERROR", "tool", "new");
    let all = [old, failed, plain, numbered, new.as_str()].map(str::to_owned);
    let (home, _) = home_with("", &[(FILE, lines(&all))]);

    let report = fix(&home, 0);

    assert_eq!(
        source(&report, FILE).unwrap()["counts"]["log events"],
        json!({"records": 5, "imported": 5, "present": 0, "merged": 0, "refused": 0})
    );
    let query = "SELECT level, category, action, outcome, agent_id, payload_json, created_at_ms
        FROM diagnostic_events ORDER BY created_at_ms";
    let rows = sqlite::rows(&State::of(home.root()).global(), query);
    let told: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| row[..5].iter().map(String::as_str).collect())
        .collect();
    assert_eq!(
        told,
        [
            ["info", "tool", "tool_call", "success", ""],
            ["error", "agent", "agent_error", "failure", ""],
            ["info", "", "llm_request", "", ""],
            ["warn", "", "", "", ""],
            ["error", "tool", "invoke", "success", "atlas"],
        ]
    );
    let payloads: Vec<&String> = rows.iter().map(|row| &row[5]).collect();
    assert_eq!(payloads, [old, failed, plain, numbered, new.as_str()]);
    assert_eq!(rows[3][6], "1789365600000");
}

#[test]
fn rotated_parts_come_in_and_temporary_files_do_not() {
    let event = |number| event(number, "INFO", "system", "tick");
    let (home, install) = home_with(
        "",
        &[
            (FILE, lines(&[event(3), event(4)])),
            (
                "data/state/runtime-trace.20260914-080000.jsonl",
                lines(&[event(1), event(2)]),
            ),
            (
                "data/state/runtime-trace.20260914-080000.1.jsonl",
                lines(&[event(2), event(3)]),
            ),
            ("data/state/runtime-trace.tmp.77.123456", lines(&[event(8)])),
            (
                "data/state/runtime-trace.migrate.77.123456",
                lines(&[event(9)]),
            ),
            ("workspace/state/runtime-trace.jsonl", lines(&[event(5)])),
        ],
    );

    let report = fix(&home, 0);

    let mut found = keys(&logs(&home, &[]));
    found.sort();
    let wanted = [1, 2, 3, 4, 5].map(|number| format!("7race000-0000-4000-8000-{number:012}"));
    assert_eq!(found, wanted);
    assert_eq!(report["total"]["present"], 2);
    assert!(
        install
            .path("data/state/runtime-trace.tmp.77.123456")
            .exists()
    );
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn c15_a_line_that_is_no_event_is_told_by_place_and_a_cut_one_is_kept() {
    let (one, two) = (
        event(1, "INFO", "tool", "one"),
        event(2, "INFO", "tool", "two"),
    );
    let bytes = format!(
        "{one}\nthis line is not json\n{{\"id\":\"x\"}}\n{two}\n{}",
        &one[..50]
    );
    let (home, _) = home_with("", &[(FILE, bytes.into_bytes())]);

    let report = fix(&home, 1);

    let source = source(&report, FILE).unwrap();
    assert_eq!(source["counts"]["log events"]["imported"], 2);
    let second = one.len() + 1;
    let places: Vec<&Value> = source["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refused| &refused["place"])
        .collect();
    assert_eq!(
        places,
        [
            &json!(format!("line 2 at byte {second}")),
            &json!(format!("line 3 at byte {}", second + 22)),
        ]
    );
    assert_eq!(source["partial_tails"].as_array().unwrap().len(), 1);
    let kept = State::of(home.root()).quarantined().concat();
    let wanted = format!("this line is not json{{\"id\":\"x\"}}{}", &one[..50]);
    assert_eq!(String::from_utf8(kept).unwrap(), wanted);
}

#[test]
fn c07_a_trace_that_keeps_its_last_lines_comes_back_and_gives_only_new_ones() {
    let event = |number| event(number, "INFO", "tool", "tick");
    let (home, install) = home_with("", &[(FILE, lines(&[event(1), event(2), event(3)]))]);
    fix(&home, 0);
    install.file(FILE, &lines(&[event(3), event(4)]));

    let report = fix(&home, 0);

    let counts = &source(&report, FILE).unwrap()["counts"]["log events"];
    assert_eq!(counts["imported"], 1, "{counts}");
    assert_eq!(counts["present"], 1, "{counts}");
    assert_eq!(logs(&home, &[]).len(), 4);
}

#[test]
fn a_place_of_its_own_is_followed_inside_the_root_and_stays_outside() {
    let event = |number| event(number, "INFO", "tool", "tick");
    for key in ["log_persistence_path", "runtime_trace_path"] {
        let config = format!("[observability]\n{key} = \"logs/own.jsonl\"");
        let own = ("data/logs/own.jsonl", lines(&[event(1)]));
        let part = ("data/logs/own.20260914-080000.jsonl", lines(&[event(2)]));
        let (home, install) = home_with(&config, &[own, part]);

        fix(&home, 0);

        assert_eq!(logs(&home, &[]).len(), 2, "{key}");
        assert!(!install.path("data/logs/own.jsonl").exists());
    }

    let (home, _) = home_with("", &[]);
    let outside = home.home().join("elsewhere/own.jsonl");
    std::fs::create_dir(outside.parent().unwrap()).unwrap();
    std::fs::write(&outside, lines(&[event(1)])).unwrap();
    LegacyInstall::new(home.root()).config(&format!(
        "schema_version = 3\n[observability]\nlog_persistence_path = {:?}\n[agents.atlas]\n",
        outside.display()
    ));

    fix(&home, 0);

    assert_eq!(logs(&home, &[]).len(), 1);
    assert!(outside.exists());
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
}

#[test]
fn a_variable_of_the_old_program_wins_over_the_file() {
    let (home, install) = home_with(
        "[observability]\nlog_persistence_path = \"wrong.jsonl\"",
        &[(
            "data/right.jsonl",
            lines(&[event(1, "INFO", "tool", "tick")]),
        )],
    );
    let mut command = home.command(&["doctor", "--fix", "--json"]);
    command.env(
        "ZEROCLAW_observability__log_persistence_path",
        "right.jsonl",
    );

    let report = crate::support::sandbox::Ran::of(command).exits(0).json();

    assert!(!install.path("data/right.jsonl").exists());
    let told = ("environment-override".to_owned(), "advice".to_owned());
    assert!(findings(&report).contains(&told), "{report}");
}

#[test]
fn logs_are_narrowed_by_each_flag_and_read_page_by_page() {
    let all = [
        event(1, "DEBUG", "tool", "the lantern"),
        event(2, "INFO", "channel", "100% \"sure\""),
        event(3, "WARN", "tool", "Tide turns"),
        event(4, "ERROR", "provider", "_under"),
    ];
    let (home, _) = home_with("", &[(FILE, lines(&all))]);
    fix(&home, 0);
    let count = |args: &[&str]| logs(&home, args).len();

    assert_eq!(count(&[]), 4);
    assert_eq!(count(&["--level", "warn"]), 2);
    assert_eq!(count(&["--agent", "birch"]), 2);
    assert_eq!(count(&["--category", "tool"]), 2);
    assert_eq!(count(&["--since", "2026-09-14T08:00:03Z"]), 2);
    assert_eq!(count(&["--since", "2026-09-15"]), 0);
    assert_eq!(count(&["--contains", "tide"]), 1);
    assert_eq!(count(&["--contains", "100% \"s"]), 1);
    assert_eq!(count(&["--contains", "%"]), 1);
    assert_eq!(count(&["--contains", "_under"]), 1);
    home.zeroclaw(&["logs", "--level", "error"])
        .exits(0)
        .says("_under");
    let (mut paged, mut before) = (Vec::new(), String::new());
    loop {
        let mut args = vec!["logs", "--json", "--limit", "1"];
        if !before.is_empty() {
            args.extend(["--before", &before]);
        }
        let page = home.zeroclaw(&args).exits(0).json();
        paged.extend(page["items"].as_array().unwrap().clone());
        match page["next"].as_str() {
            Some(next) => before = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(paged, logs(&home, &[]));
    home.zeroclaw(&["logs", "--since", "soon"]).exits(2);
}

#[test]
fn c33_an_event_of_many_mebibytes_comes_in_whole() {
    let big = event(1, "INFO", "tool", &"long ".repeat(2 * 1024 * 1024));
    let (home, _) = home_with(
        "",
        &[(FILE, lines(&[big.clone(), event(2, "INFO", "tool", "x")]))],
    );

    fix(&home, 0);

    let query =
        "SELECT length(CAST(payload_json AS BLOB)) FROM diagnostic_events ORDER BY event_key";
    let rows = sqlite::rows(&State::of(home.root()).global(), query);
    assert_eq!(rows[0][0], big.len().to_string());
}

#[test]
fn an_archive_without_secrets_has_no_payload() {
    let (home, _) = home_with("", &[(FILE, lines(&[event(1, "INFO", "tool", "said")]))]);
    fix(&home, 0);
    let archive = home.home().join("travel.tar.gz");
    let target = home.home().join("there");

    home.zeroclaw(&[
        "backup",
        "create",
        "--no-secrets",
        "--output",
        archive.to_str().unwrap(),
    ])
    .exits(0);
    let restore = [
        "backup",
        "restore",
        archive.to_str().unwrap(),
        "--target",
        target.to_str().unwrap(),
        "--yes",
    ];
    home.zeroclaw(&restore).exits(0);

    let rows = sqlite::rows(
        &target.join("state/state.sqlite"),
        "SELECT level, category, payload_json FROM diagnostic_events",
    );
    assert_eq!(rows, [["info", "tool", "{}"]]);
}
