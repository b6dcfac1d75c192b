//! `zeroclaw agents rename`.

use std::fs;

use super::home::{assert_same, inhabited, said, traces};
use crate::cli::agent_life::STRANGE;
use crate::cli::json::is_documented;
use crate::support::sandbox::{Ran, Sandbox};

/// Every durable step of a renaming.
const POINTS: [&str; 6] = [
    "rename.journalled",
    "rename.moved",
    "rename.copies",
    "rename.tier",
    "rename.rows",
    "restore.cleared",
];

#[test]
fn a_renamed_agent_leaves_no_trace_of_its_old_name_and_says_the_same() {
    let home = inhabited();
    let root = home.root();
    let before = said(&root, "atlas");
    let config = "[agents.atlas]\n[agents.birch]\nread_memory_from = [\"atlas\"]\n";
    fs::write(root.join("config.toml"), config).unwrap();

    let args = ["agents", "rename", "atlas", "aurora", "--dry-run", "--json"];
    let planned = home.zeroclaw(&args).exits(0).json();
    assert_same(&said(&root, "atlas"), &before, "all");
    let args = ["agents", "rename", "atlas", "aurora", "--json"];
    let done = home.zeroclaw(&args).exits(0).json();

    is_documented(&args[..2], &done);
    assert_eq!(done["rows"], planned["rows"]);
    assert_eq!(
        (&planned["written"], &done["written"]),
        (&false.into(), &true.into())
    );
    let in_config = serde_json::json!(["agents.atlas", "agents.birch.read_memory_from"]);
    assert_eq!(done["in_config"], in_config);
    assert_eq!(
        fs::read_to_string(root.join("config.toml")).unwrap(),
        config
    );
    assert_eq!(traces(&root, "atlas"), Vec::<String>::new());
    assert_same(&said(&root, "aurora"), &before, "all");
    assert!(root.join("agents/aurora/workspace/notes/tide.md").exists());
    assert!(root.join("state/deleted/aurora/session.jsonl").exists());
    home.zeroclaw(&["db", "check"]).exits(0);
    home.zeroclaw(&["tasks", "list", "--agent", "aurora"])
        .exits(0);
    // The old name is free.
    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
}

#[test]
fn a_renaming_that_is_killed_at_any_step_is_ended_by_the_next_command() {
    for point in POINTS {
        let home = inhabited();
        let before = said(&home.root(), "atlas");

        killed(&home, point, &["agents", "rename", "atlas", "aurora"]);
        let agents = home.zeroclaw(&["agents", "list", "--json"]).exits(0).json();

        assert_eq!(agents[0]["agent_id"], "aurora", "{point}");
        assert_eq!(
            traces(&home.root(), "atlas"),
            Vec::<String>::new(),
            "{point}"
        );
        assert_same(&said(&home.root(), "aurora"), &before, point);
        assert!(
            !home.root().join("state/restore.journal").exists(),
            "{point}"
        );
    }
}

#[test]
fn a_recovery_that_is_killed_is_taken_up_by_the_next() {
    let home = inhabited();
    let before = said(&home.root(), "atlas");

    killed(
        &home,
        "rename.journalled",
        &["agents", "rename", "atlas", "aurora"],
    );
    for point in &POINTS[1..] {
        killed(&home, point, &["agents", "list"]);
    }
    home.zeroclaw(&["agents", "show", "aurora"]).exits(0);

    assert_eq!(traces(&home.root(), "atlas"), Vec::<String>::new());
    assert_same(&said(&home.root(), "aurora"), &before, "all");
}

#[test]
fn a_name_that_is_taken_strange_or_unknown_touches_nothing() {
    let home = inhabited();
    fs::create_dir_all(home.root().join("agents/leftover")).unwrap();
    let before = said(&home.root(), "atlas");
    let rename = |old: &str, new: &str| home.zeroclaw(&["agents", "rename", "--", old, new]);

    rename("atlas", "birch")
        .exits(10)
        .complains("is there already");
    rename("atlas", "atlas").exits(10);
    rename("atlas", "leftover").exits(10);
    rename("nobody", "aurora").exits(9);
    rename("atlas", "aurora@20260105T101500Z").exits(2);
    for strange in STRANGE {
        rename("atlas", strange).exits(2);
        rename(strange, "aurora").exits(2);
    }

    assert_same(&said(&home.root(), "atlas"), &before, "all");
    assert!(!home.root().join("agents/aurora").exists());
}

/// Runs a command that is sent to its end at `point`.
pub(super) fn killed(home: &Sandbox, point: &str, args: &[&str]) {
    let mut command = home.command(args);
    command.env("ZEROCLAW_FAULT", point);
    let ran = Ran::of(command);
    assert_eq!(
        ran.code(),
        None,
        "{point} was never reached: {}",
        ran.told()
    );
}
