//! The commands, on a fresh root and on an imported one.

use serde_json::json;

use super::{global, home, now_ms};
use crate::support::legacy::copy_sample;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{number, rows};

#[test]
fn a_job_is_made_shown_changed_paused_resumed_and_removed() {
    let home = home();
    let made = home
        .zeroclaw(&[
            "cron",
            "add",
            "--cron",
            "0 9 * * 1-5",
            "--tz",
            "Europe/Berlin",
            "--agent",
            "atlas",
            "--message",
            "look at the tide",
            "--name",
            "tide",
            "--catch-up",
            "skip",
            "--json",
        ])
        .exits(0)
        .json();
    let id = made["job_id"].as_str().unwrap().to_owned();
    assert_eq!(made["payload_kind"], "agent_turn");
    assert_eq!(made["catch_up"], "skip");
    assert!(made["next_run_at_ms"].as_i64().unwrap() > now_ms());

    let before = home.zeroclaw(&["cron", "list", "--json"]).exits(0).json();
    assert_eq!(before, home.zeroclaw(&["cron", "list", "--json"]).json());
    home.zeroclaw(&["cron", "show", &id[..13]])
        .exits(0)
        .says("0 9 * * 1-5");

    let edited = home
        .zeroclaw(&[
            "cron",
            "edit",
            "tide",
            "--every",
            "90m",
            "--timeout",
            "5s",
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(edited["schedule"]["every_ms"], 5_400_000);
    assert_eq!(
        (&edited["catch_up"], &edited["timeout_ms"]),
        (&json!("skip"), &json!(5_000))
    );
    home.zeroclaw(&["cron", "pause", "tide"])
        .exits(0)
        .says("off: paused");
    let resumed = home
        .zeroclaw(&["cron", "resume", "tide", "--json"])
        .exits(0)
        .json();
    assert_eq!(resumed["enabled"], true);
    home.zeroclaw(&["cron", "remove", "tide"])
        .exits(10)
        .complains("--yes");
    home.zeroclaw(&["cron", "remove", "tide", "--dry-run"])
        .exits(0);
    home.zeroclaw(&["cron", "remove", "tide", "--yes"]).exits(0);
    home.zeroclaw(&["cron", "show", "tide"])
        .exits(9)
        .complains("cron list");
}

#[test]
fn what_cannot_be_followed_is_refused_with_its_place() {
    let home = home();
    let add = |more: &[&str]| {
        home.zeroclaw(
            &[
                &["cron", "add", "--agent", "atlas", "--shell", "true"],
                more,
            ]
            .concat(),
        )
    };

    add(&["--cron", "0 25 * * *"])
        .exits(2)
        .complains("the field hour of");
    add(&["--cron", "0 9 * * *", "--tz", "Mars/Olympus"])
        .exits(2)
        .complains("Mars/Olympus");
    add(&["--cron", "0 0 30 2 *"])
        .exits(2)
        .complains("never be due");
    add(&["--at", "2020-01-01"])
        .exits(2)
        .complains("never be due");
    add(&["--every", "0s"]).exits(2);
    add(&[]).exits(2).complains("--cron");
    home.zeroclaw(&[
        "cron", "add", "--agent", "nobody", "--shell", "true", "--every", "1h",
    ])
    .exits(9);
    assert_eq!(number(&global(&home), "SELECT count(*) FROM cron_jobs"), 0);
}

#[test]
fn a_command_run_now_shows_its_result_and_leaves_its_schedule_alone() {
    let home = home();
    let add = |name: &str, command: &str| {
        home.zeroclaw(&[
            "cron",
            "add",
            "--agent",
            "atlas",
            "--every",
            "1h",
            "--raw",
            "--name",
            name,
            "--shell",
            command,
            "--timeout",
            "2s",
            "--json",
        ])
        .exits(0)
        .json()
    };
    let made = add("good", "pwd; env | grep -c SECRET");
    add("bad", "echo why >&2; exit 3");
    add("slow", "sleep 30 & sleep 30");

    let mut command = home.command(&["cron", "run", "bad", "--json"]);
    command.env("SECRET", "x");
    let bad = crate::support::sandbox::Ran::of(command).exits(1).json();
    assert_eq!(bad["error"], "exit status: 3: why");
    let good = home.zeroclaw(&["cron", "run", "good", "--json"]).json();
    let workspace = home.root().join("agents/atlas/workspace");
    assert_eq!(good["output"], format!("{}\n0\n", workspace.display()));
    let slow = home
        .zeroclaw(&["cron", "run", "slow", "--json"])
        .exits(1)
        .json();
    assert_eq!(slow["status"], "timed_out");
    let after = home.zeroclaw(&["cron", "show", "good", "--json"]).json();
    assert_eq!(after["next_run_at_ms"], made["next_run_at_ms"]);
    home.zeroclaw(&["cron", "runs"]).exits(0).says("timed_out");
}

#[test]
fn an_imported_root_keeps_off_what_was_off() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    home.zeroclaw(&["doctor", "--fix"]);
    let off = "SELECT job_id, disabled_reason FROM cron_jobs WHERE enabled = 0 ORDER BY 1";
    let before = rows(&global(&home), off);
    assert!(!before.is_empty());

    let ran = home.zeroclaw(&["cron", "tick", "--json"]);

    assert!(matches!(ran.code(), Some(0 | 1)), "{}", ran.told());
    let after = rows(&global(&home), off);
    for job in &before {
        assert!(
            after.contains(job),
            "{job:?} of {before:?} is not in {after:?}"
        );
    }
    let ids = rows(&global(&home), "SELECT job_id FROM cron_jobs ORDER BY 1");
    for id in ids.iter().map(|row| row[0].as_str()) {
        home.zeroclaw(&["cron", "show", id]).exits(0);
        home.zeroclaw(&["cron", "pause", id]).exits(0);
    }
    home.zeroclaw(&["cron", "list"]).exits(0);
    home.zeroclaw(&["cron", "runs"]).exits(0);
    assert_eq!(
        number(
            &global(&home),
            "SELECT count(*) FROM cron_jobs WHERE enabled = 1"
        ),
        0
    );
}
