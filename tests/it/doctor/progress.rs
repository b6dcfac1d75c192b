//! What a run tells while it works.

use serde_json::Value;

use crate::cli::json::is_documented;
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::sandbox::Sandbox;
use crate::support::scale::Scale;

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";

/// Reports of a run with `--json`, in order.
fn events(stderr: &str) -> Vec<Value> {
    let parsed = stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    parsed
        .map(|value: Value| value["progress"].clone())
        .collect()
}

#[test]
fn with_json_each_report_is_a_line_on_stderr_and_stdout_holds_the_answer_alone() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());

    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]).exits(0);

    assert_eq!(ran.json()["changed"], true);
    let events = events(&ran.stderr);
    is_documented(
        &["doctor", "--fix"],
        &serde_json::json!({ "progress": events }),
    );
    let mut phases: Vec<&str> = events
        .iter()
        .map(|event| event["phase"].as_str().unwrap())
        .collect();
    phases.dedup();
    // Looked at once before the lock and once under it.
    assert_eq!(
        phases,
        ["look", "backup", "apply", "verify", "retire", "index"]
    );
    for phase in ["apply", "verify"] {
        let last = events
            .iter()
            .rfind(|event| event["phase"] == phase)
            .unwrap();
        assert_eq!(last["is_done"], true);
        assert!(last["total_bytes"].as_u64().unwrap() > 0);
        assert_eq!(last["done_bytes"], last["total_bytes"], "{last}");
        assert_eq!(last["done_records"], last["total_records"], "{last}");
        assert_eq!(last["left_ms"], 0);
    }
}

#[test]
fn reports_of_a_longer_run_are_bounded_in_number_and_never_go_back() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    install.many_files(300, 20, Scale::default());

    let begun = std::time::Instant::now();
    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]).exits(0);
    let tenths = begun.elapsed().as_millis() / 100;

    let events = events(&ran.stderr);
    // Ten a second, and the first and last of each of seven phases.
    assert!(
        events.len() as u128 <= tenths + 14,
        "{} reports",
        events.len()
    );
    let same_phase = events
        .windows(2)
        .filter(|pair| pair[0]["phase"] == pair[1]["phase"] && pair[0]["is_done"] == false);
    for pair in same_phase {
        for field in ["done_bytes", "done_records", "elapsed_ms"] {
            assert!(
                pair[0][field].as_u64() <= pair[1][field].as_u64(),
                "{pair:?}"
            );
        }
    }
}

#[test]
fn without_a_terminal_people_are_told_the_phases_in_plain_lines() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());

    let ran = home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert!(!ran.stderr.contains('\x1b') && !ran.stderr.contains('\r'));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("archiving what there is to "));
    assert!(lines[1].starts_with("importing "));
    assert_eq!(
        lines[2..],
        ["reading everything back", "building the full-text indexes"]
    );
}

#[test]
fn a_look_tells_nothing_but_its_answer_to_people() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());

    home.zeroclaw(&["doctor"]).exits(7).complains_of_nothing();
}
