//! `zeroclaw backup prune`, the archives in `backup list`, and who is told when backups stop.

use std::path::PathBuf;

use serde_json::Value;
use zeroclaw::service::Clock;
use zeroclaw::service::backup::{self, CreateOptions};

use crate::support::inhabited;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, block_on};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A root with archives of these ages in days, in its own folder.
fn with_archives(days: &[i64]) -> (Sandbox, Vec<PathBuf>) {
    let home = Sandbox::new();
    let root = home.root();
    inhabited::build(&root);
    let made = days.iter().map(|days| {
        let clock = Clock::fixed(Clock::system().now_ms() - days * DAY_MS);
        let made = backup::create(&root, clock, CreateOptions::default());
        block_on(made).unwrap().archive
    });
    let archives = made.collect();
    (home, archives)
}

fn backup_advice(home: &Sandbox) -> Vec<Value> {
    let report = home.zeroclaw(&["doctor", "--json"]).exits(0).json();
    let findings = report["findings"].as_array().unwrap().clone();
    let is_backup = |it: &Value| it["code"].as_str().unwrap().starts_with("backup-");
    findings.into_iter().filter(is_backup).collect()
}

#[test]
fn c67_a_number_that_is_none_exits_2_and_no_rule_exits_10() {
    let (home, _) = with_archives(&[3, 2]);
    let before = home.tree();

    for value in ["-1", "x", "", "1.5", "99999999999999999999"] {
        for flag in [
            "--keep-last",
            "--keep-daily",
            "--keep-weekly",
            "--keep-monthly",
        ] {
            home.zeroclaw(&["backup", "prune", flag, value, "--yes"])
                .exits(2)
                .says_nothing();
            let joined = format!("{flag}={value}");
            home.zeroclaw(&["backup", "prune", &joined, "--yes"])
                .exits(2);
        }
    }
    for rules in [&[][..], &["--keep-last", "0", "--keep-monthly", "0"]] {
        let args = [&["backup", "prune", "--yes"], rules].concat();
        home.zeroclaw(&args)
            .exits(10)
            .says_nothing()
            .complains("no rule")
            .complains("--keep-last 7");
    }
    home.zeroclaw(&["backup", "prune", "--keep-last", "1", "--yes", "--dry-run"])
        .exits(2);

    home.is_unchanged_since(&before);
}

#[test]
fn c67_a_plan_is_printed_and_carried_out_only_with_consent() {
    let (home, archives) = with_archives(&[3, 2, 1]);
    let before = home.tree();
    let keep = ["backup", "prune", "--keep-last", "1"];
    let with = |flags: &[&str]| home.zeroclaw(&[&keep, flags].concat());

    let unasked = with(&[]).exits(10).says(archives[0].to_str().unwrap());
    let as_json = with(&["--json"]).exits(10);
    let planned = with(&["--dry-run", "--json"]).exits(0).json();
    home.is_unchanged_since(&before);
    let done = with(&["--yes", "--json"]).exits(0).json();
    with(&["--yes"]).exits(0);
    with(&[]).exits(0);

    unasked
        .complains("deleting 2 archives needs consent")
        .complains("--yes");
    assert_eq!(as_json.json(), planned);
    assert_eq!(as_json.json_error()["error"]["kind"], "refused");
    let deletes = |report: &Value| -> Vec<Value> {
        let items = report["archives"].as_array().unwrap().iter();
        let items = items.filter(|it| it["action"] == "delete");
        items.map(|it| it["path"].clone()).collect()
    };
    assert_eq!(deletes(&planned).len(), 2);
    assert_eq!(deletes(&planned), deletes(&done));
    let left: Vec<_> = archives.iter().filter(|path| path.exists()).collect();
    assert_eq!(left, [&archives[2]]);
}

#[test]
fn c67_a_folder_that_cannot_be_written_keeps_everything() {
    use std::os::unix::fs::PermissionsExt;

    let (home, archives) = with_archives(&[3, 2]);
    let folder = home.root().join("backups");
    let set = |mode| {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    };

    set(0o500);
    let ran = home.zeroclaw(&["backup", "prune", "--keep-last", "1", "--yes"]);
    set(0o700);

    if ran.code() == Some(0) {
        // Nothing keeps the superuser out.
        return;
    }
    ran.exits(10).says_nothing().complains("cannot remove");
    assert!(archives.iter().all(|path| path.exists()));
}

#[test]
fn archives_are_listed_with_their_age_and_leave_no_trace() {
    let (home, archives) = with_archives(&[3]);
    std::fs::create_dir(home.home().join("far")).unwrap();
    std::fs::write(home.home().join("far/bad.tar.gz"), "x").unwrap();
    let before = home.tree();

    home.zeroclaw(&["backup", "list", "--archives"])
        .exits(0)
        .says("3 d")
        .says("inside")
        .says(archives[0].to_str().unwrap());
    let both = home
        .zeroclaw(&["backup", "list", "--json", "--archives"])
        .exits(0)
        .json();
    home.zeroclaw(&["backup", "list", "--archives", "far"])
        .exits(0)
        .says("unreadable")
        .complains("far/bad.tar.gz");
    home.zeroclaw(&["backup", "list", "--archives", "nowhere"])
        .exits(9)
        .complains("nowhere");

    assert_eq!(both["archives"][0]["is_recorded"], true);
    assert_eq!(both["runs"].as_array().unwrap().len(), 2);
    home.is_unchanged_since(&before);
}

#[test]
fn every_field_of_retention_is_documented() {
    let (home, _) = with_archives(&[3, 2]);
    std::fs::write(home.root().join("backups/bad.tar.gz"), "x").unwrap();

    for args in [
        &["backup", "list", "--json", "--archives"][..],
        &["backup", "prune", "--keep-last", "1", "--dry-run", "--json"],
        &["status", "--json"],
    ] {
        super::json::is_documented(args, &home.zeroclaw(args).exits(0).json());
    }
}

#[test]
fn c59_status_and_doctor_say_that_there_is_no_backup_and_end_well() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);

    home.zeroclaw(&["status"])
        .exits(0)
        .complains("there is no good backup");
    let status = home.zeroclaw(&["status", "--json"]).exits(0);
    let found = backup_advice(&home);
    home.zeroclaw(&["backup", "create"]).exits(0);
    home.zeroclaw(&["status"]).exits(0).complains_of_nothing();

    assert_eq!(status.json()["backup_freshness"], "missing");
    assert_eq!(status.json()["warnings"].as_array().unwrap().len(), 1);
    status.complains_of_nothing();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["code"], "backup-missing");
    assert_eq!(found[0]["level"], "advice");
    assert_eq!(found[0]["remedy"], "`zeroclaw backup create`");
    assert!(backup_advice(&home).is_empty());
}

#[test]
fn c59_a_backup_of_fifteen_days_ago_is_told_of() {
    let (home, _) = with_archives(&[15]);

    home.zeroclaw(&["status"])
        .exits(0)
        .says("15 d ago")
        .complains("15 days old");
    let found = backup_advice(&home);

    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["code"], "backup-stale");
    assert!(found[0]["message"].as_str().unwrap().contains("15 days"));
}

#[test]
fn c59_a_killed_backup_shows_as_interrupted_and_is_marked_at_the_next_start() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let mut killed = home.command(&["backup", "create"]);
    killed.env("ZEROCLAW_FAULT", "backup.packed");
    assert_eq!(killed.output().unwrap().status.code(), None);
    let sql = "SELECT status FROM backup_runs WHERE id <> 'backup-1' ORDER BY created_at_ms";
    let stored = || sqlite::rows(&home.root().join("state/state.sqlite"), sql);

    home.zeroclaw(&["backup", "list"])
        .exits(0)
        .says("interrupted");
    assert_eq!(stored(), [["running"]]);
    home.zeroclaw(&["backup", "create"]).exits(0);

    assert_eq!(stored(), [["interrupted"], ["completed"]]);
    let left = std::fs::read_dir(home.root().join("backups")).unwrap();
    assert_eq!(left.count(), 1);
}

#[test]
fn c58_a_name_with_blanks_and_a_dash_in_front_is_taken_and_never_overwritten() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let create = |output: &str| home.zeroclaw(&["backup", "create", output]);

    create("--output=-my own backup.tar.gz").exits(0);
    let first = std::fs::read(home.home().join("-my own backup.tar.gz")).unwrap();
    create("--output=-my own backup.tar.gz")
        .exits(10)
        .says_nothing()
        .complains("exists already");
    create("--output=no such/folder.tar.gz")
        .exits(9)
        .says_nothing()
        .complains("no folder");
    home.zeroclaw(&["backup", "verify", "--", "-my own backup.tar.gz"])
        .exits(0);

    let now = std::fs::read(home.home().join("-my own backup.tar.gz")).unwrap();
    assert!(first == now);
}
