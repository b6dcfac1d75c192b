//! What history tells of one run.

use crate::cli::json::is_documented;
use crate::support::legacy::LegacyInstall;
use crate::support::rows::{jsonl, turns};
use crate::support::sandbox::Sandbox;

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";
const BROKEN: &str = "data/sessions/telegram_main_5_broken.jsonl";

/// A file with a line that is no message, and a last line that was cut off.
fn home_with_broken_file() -> (Sandbox, String) {
    let home = Sandbox::in_memory();
    let mut lines = jsonl(&turns("broken", 2));
    lines.extend_from_slice(b"{\"role\": 7}\n{\"role\": \"us");
    LegacyInstall::new(home.root())
        .config(CONFIG)
        .jsonl(BROKEN, &lines);
    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]).exits(1);
    let run = ran.json()["run"].as_str().unwrap().to_owned();
    (home, run)
}

#[test]
fn of_one_run_it_tells_the_quarantine_what_was_refused_and_what_was_said() {
    let (home, run) = home_with_broken_file();

    let shown = home.zeroclaw(&["doctor", "history", &run, "--json"]);
    let told = shown.exits(0).json();
    home.zeroclaw(&["doctor", "history", &run])
        .exits(0)
        .says(&format!("state/quarantine/{run}"))
        .says("[refused-record]")
        .says("[partial-tail]");

    is_documented(&["doctor", "history"], &told);
    assert_eq!(told["quarantine"], format!("state/quarantine/{run}"));
    assert_eq!(told["refused"][0]["source"], BROKEN);
    assert_eq!(told["findings"][0]["code"], "partial-tail");
    assert_eq!(told["is_kept"], true);
    assert!(told["undone_at_ms"].is_null());
}

#[test]
fn a_run_that_was_undone_is_shown_as_that_with_and_without_a_control_plane() {
    let (home, first) = home_with_broken_file();
    let install = LegacyInstall::new(home.root());
    install.jsonl(
        "data/sessions/telegram_main_6_more.jsonl",
        &jsonl(&turns("more", 2)),
    );
    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]).exits(0);
    let second = ran.json()["run"].as_str().unwrap().to_owned();
    let is_shown_undone = |run: &str| {
        let shown = home.zeroclaw(&["doctor", "history", run, "--json"]);
        assert!(shown.exits(0).json()["undone_at_ms"].is_i64());
        home.zeroclaw(&["doctor", "history", run])
            .exits(0)
            .says("undone");
    };

    home.zeroclaw(&["doctor", "undo", &second, "--yes"])
        .exits(0);
    is_shown_undone(&second);
    home.zeroclaw(&["doctor", "undo", &first, "--yes"]).exits(0);
    is_shown_undone(&first);

    home.zeroclaw(&["doctor", "history"]).exits(3);
    home.zeroclaw(&["doctor", "history", "nobody"]).exits(3);
}
