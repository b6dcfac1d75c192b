//! `zeroclaw agents delete`, and `restore` as the way back.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::home::{assert_same, global, inhabited, said, traces};
use super::rename::killed;
use crate::cli::agent_life::STRANGE;
use crate::cli::json::is_documented;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{change, number, rows};

const DELETE: [&str; 4] = ["agents", "delete", "atlas", "--yes"];

/// Deletes `atlas`; gives the path of its archive.
fn deleted(home: &Sandbox) -> String {
    let done = home.zeroclaw(&[&DELETE[..], &["--json"]].concat());
    archive_in(&done.exits(0).json())
}

fn archive_in(report: &Value) -> String {
    report["archive"].as_str().unwrap().to_owned()
}

#[test]
fn a_deleted_agent_leaves_no_trace_and_comes_back_as_it_was() {
    let home = inhabited();
    let root = home.root();
    let before = said(&root, "atlas");
    let spent = number(&global(&root), "SELECT count(*) FROM usage_costs");

    let args = ["agents", "delete", "atlas", "--dry-run", "--json"];
    let planned = home.zeroclaw(&args).exits(0).json();
    assert_same(&said(&root, "atlas"), &before, "a dry run");
    let args = ["agents", "delete", "atlas", "--yes", "--json"];
    let done = home.zeroclaw(&args).exits(0).json();

    is_documented(&args[..2], &done);
    assert_eq!(done["rows"], planned["rows"]);
    assert_eq!(done["mentions"], 1);
    assert_eq!(traces(&root, "atlas"), Vec::<String>::new());
    // What was spent stays spent.
    assert_eq!(
        number(&global(&root), "SELECT count(*) FROM usage_costs"),
        spent
    );
    let birch = "SELECT originator_route IS NULL, caller_chain_json FROM task_runs";
    assert_eq!(rows(&global(&root), birch), [["1", "[\"birch\"]"]]);
    home.zeroclaw(&["db", "check"]).exits(0);
    home.zeroclaw(&["agents", "show", "atlas"]).exits(9);

    let archive = archive_in(&done);
    home.zeroclaw(&["backup", "verify", &archive, "--deep"])
        .exits(0);
    let back = ["agents", "restore", &archive, "--enable-cron"];
    home.zeroclaw(&back).exits(10).complains("agents restore");
    home.zeroclaw(&[&back[..], &["--dry-run"]].concat())
        .exits(0);
    assert_eq!(traces(&root, "atlas"), Vec::<String>::new());
    let told = home.zeroclaw(&[&back[..], &["--yes", "--json"]].concat());
    let told = told.exits(0).json();
    is_documented(&back[..2], &told);
    assert_eq!(told["rows"], done["rows"]);
    assert!(!told["notes"].to_string().contains("the rest"), "{told}");
    assert_same(&said(&root, "atlas"), &before, "restored");
    for path in [
        "agents/atlas/workspace/notes/tide.md",
        "state/deleted/atlas/session.jsonl",
    ] {
        assert!(root.join(path).exists(), "{path}");
    }
    home.zeroclaw(&["db", "check"]).exits(0);
}

#[test]
fn nothing_is_deleted_without_consent_under_a_strange_name_or_while_it_is_used() {
    let home = inhabited();
    let before = said(&home.root(), "atlas");

    home.zeroclaw(&["agents", "delete", "atlas"])
        .exits(10)
        .says_nothing()
        .complains("--dry-run");
    home.zeroclaw(&["agents", "delete", "nobody", "--yes"])
        .exits(9);
    for strange in STRANGE {
        home.zeroclaw(&["agents", "delete", "--yes", "--", strange])
            .exits(2);
    }
    let inside = home.root().join("agents/atlas/workspace/x.tar.gz");
    let inside = ["--output", inside.to_str().unwrap()];
    home.zeroclaw(&[&DELETE[..], &inside].concat()).exits(2);
    assert_same(&said(&home.root(), "atlas"), &before, "refused");
    change(
        &global(&home.root()),
        "UPDATE task_runs SET status = 'pending' WHERE agent_id = 'atlas'",
    );
    home.zeroclaw(&DELETE)
        .exits(4)
        .complains("task-1")
        .complains("zeroclaw tasks cancel task-1");

    assert!(home.root().join("agents/atlas").exists());
    assert!(!home.root().join("backups").exists());
}

#[test]
fn what_no_archive_can_hold_is_deleted_only_when_it_is_given_up() {
    let home = inhabited();
    let link = home.root().join("agents/atlas/workspace/link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();

    home.zeroclaw(&DELETE)
        .exits(10)
        .complains("agents/atlas/workspace/link (a link")
        .complains("--drop-unarchived");
    assert!(link.symlink_metadata().is_ok());
    home.zeroclaw(&[&DELETE[..], &["--drop-unarchived"]].concat())
        .exits(0)
        .complains("in no archive: agents/atlas/workspace/link");

    assert_eq!(traces(&home.root(), "atlas"), Vec::<String>::new());
}

#[test]
fn a_name_that_is_used_again_starts_empty_and_the_old_one_comes_back_beside_it() {
    let home = inhabited();
    let before = said(&home.root(), "atlas");
    let archive = deleted(&home);

    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let fresh = home
        .zeroclaw(&["agents", "show", "atlas", "--json"])
        .exits(0)
        .json();
    assert_eq!(
        (&fresh["sessions"], &fresh["memories"]),
        (&0.into(), &0.into())
    );
    home.zeroclaw(&["agents", "restore", &archive, "--yes"])
        .exits(10)
        .complains("there is an agent atlas already");
    home.zeroclaw(&[
        "agents",
        "restore",
        &archive,
        "--as",
        "aurora",
        "--enable-cron",
        "--yes",
    ])
    .exits(0)
    .says("named before");
    home.zeroclaw(&["agents", "delete", "atlas", "--yes"])
        .exits(0);

    assert_same(&said(&home.root(), "aurora"), &before, "under another name");
    assert_eq!(traces(&home.root(), "atlas"), Vec::<String>::new());
}

#[test]
fn jobs_come_back_switched_off_unless_they_are_wanted() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let add = [
        "cron", "add", "--agent", "atlas", "--every", "1h", "--shell", "true",
    ];
    home.zeroclaw(&add).exits(0);
    let archive = deleted(&home);

    home.zeroclaw(&["agents", "restore", &archive, "--yes"])
        .exits(0)
        .complains("came back switched off");
    let jobs = home.zeroclaw(&["cron", "list", "--json"]).exits(0).json();
    assert_eq!(jobs[0]["enabled"], false);
    assert_eq!(jobs[0]["disabled_reason"], "restored with its agent");
    deleted(&home);
    home.zeroclaw(&["agents", "restore", &archive, "--enable-cron", "--yes"])
        .exits(0);
    let jobs = home.zeroclaw(&["cron", "list", "--json"]).exits(0).json();
    assert_eq!(jobs[0]["enabled"], true);
}

#[test]
fn a_row_whose_place_another_has_stays_in_the_archive_and_is_told() {
    let home = inhabited();
    let archive = deleted(&home);
    change(
        &global(&home.root()),
        "INSERT INTO task_runs (task_id, owner_kind, agent_id, status, created_at_ms, output)
         VALUES ('task-1', 'task', 'birch', 'succeeded', 1, 'of birch')",
    );

    home.zeroclaw(&["agents", "restore", &archive, "--yes"])
        .exits(0)
        .complains("of 1 rows of task_runs 0 are there");

    let kept = "SELECT agent_id, output FROM task_runs WHERE task_id = 'task-1'";
    assert_eq!(rows(&global(&home.root()), kept), [["birch", "of birch"]]);
    // Nor does what hung on the one come to hang on the other.
    let goals = "SELECT count(*) FROM goal_tasks";
    assert_eq!(number(&global(&home.root()), goals), 0);
    home.zeroclaw(&["db", "check"]).exits(0);
}

#[test]
fn an_export_is_no_archive_of_a_deleted_agent_and_a_damaged_one_brings_nothing_back() {
    let home = inhabited();
    let export = ["agents", "export", "birch", "--output", "birch.tar.gz"];
    home.zeroclaw(&export).exits(0);
    home.zeroclaw(&["agents", "restore", "birch.tar.gz", "--as", "twin", "--yes"])
        .exits(2)
        .complains("agents import");
    let archive = deleted(&home);
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&archive, bytes).unwrap();

    home.zeroclaw(&["agents", "restore", &archive, "--yes"])
        .exits(6);

    assert_eq!(traces(&home.root(), "atlas"), Vec::<String>::new());
}

#[test]
fn a_deletion_that_is_killed_leaves_the_agent_or_its_archive() {
    for (point, is_gone) in [
        ("backup.captured", false),
        ("backup.packed", false),
        ("verify.proved", false),
        ("delete.journalled", true),
        ("delete.rows", true),
        ("delete.folder", true),
        ("delete.folder:2", true),
        ("restore.cleared", true),
    ] {
        let home = inhabited();
        let root = home.root();
        let before = said(&root, "atlas");

        killed(&home, point, &DELETE);
        home.zeroclaw(&["agents", "list"]).exits(0);

        if is_gone {
            assert_eq!(traces(&root, "atlas"), Vec::<String>::new(), "{point}");
            let archive = only_archive(&root);
            let back = ["agents", "restore", &archive, "--enable-cron", "--yes"];
            home.zeroclaw(&back).exits(0);
        }
        assert_same(&said(&root, "atlas"), &before, point);
        assert!(!root.join("state/restore.journal").exists(), "{point}");
    }
}

#[test]
fn a_restore_that_is_killed_leaves_nothing_or_the_whole_agent() {
    for (point, is_there) in [
        ("adopt.staging", false),
        ("adopt.unpacked", false),
        ("adopt.staged", false),
        ("adopt.journalled", true),
        ("restore.swap", true),
        ("restore.swapped", true),
        ("revive.rows", true),
        ("restore.registered", true),
        ("restore.cleared", true),
    ] {
        let home = inhabited();
        let root = home.root();
        let before = said(&root, "atlas");
        let archive = deleted(&home);
        let back = ["agents", "restore", &archive, "--enable-cron", "--yes"];

        killed(&home, point, &back);
        home.zeroclaw(&["agents", "list"]).exits(0);

        if !is_there {
            assert_eq!(traces(&root, "atlas"), Vec::<String>::new(), "{point}");
            home.zeroclaw(&back).exits(0);
        }
        assert_same(&said(&root, "atlas"), &before, point);
    }
}

/// The archive in the folder of backups.
fn only_archive(root: &Path) -> String {
    let names = fs::read_dir(root.join("backups")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].to_str().unwrap().to_owned()
}
