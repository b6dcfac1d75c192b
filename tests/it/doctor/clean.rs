//! Old files deleted after their import was proven, and nothing else.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use zeroclaw::service::{Clock, HolderKind, Service};

use super::state::State;
use crate::cli::json::is_documented;
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::rows::{chat, jsonl, turns};
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite::{self, block_on};
use crate::support::tree::{assert_same_tree, tree_hash};

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";
const TALK: &str = "data/sessions/telegram_main_1_talk.jsonl";
const STORE: &str = "data/sessions/sessions.db";

/// A talk as a file, and a store whose last rows are in its log.
fn home_with_pair() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let pair = turns("pair", 4);
    install
        .config(CONFIG)
        .jsonl(TALK, &jsonl(&turns("talk", 4)))
        .sqlite_with_wal(
            STORE,
            "sessions_v0_8.sql",
            &[&chat("telegram_main_3_pair", "2026-03-01", &pair[..2])],
            &[&chat("telegram_main_4_pair", "2026-03-02", &pair[2..])],
        );
    (home, install)
}

fn import(home: &Sandbox) -> String {
    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]);
    let run = ran.json()["run"].as_str().map(str::to_owned);
    run.unwrap_or_else(|| panic!("no run: {}", ran.told()))
}

fn clean(home: &Sandbox, args: &[&str]) -> Value {
    let args = [&["doctor", "clean", "--json"], args].concat();
    home.zeroclaw(&args).exits(0).json()
}

/// What is kept of a run, below its folder.
fn kept(home: &Sandbox, run: &str) -> PathBuf {
    home.root().join("state/migrated").join(run)
}

/// Files that stay, by path below the run's folder, with the reasons.
fn stays(report: &Value, run: &str) -> Vec<(String, String)> {
    let folder = format!("state/migrated/{run}/");
    let runs = report["runs"].as_array().unwrap().iter();
    let files = runs.flat_map(|run| run["kept"].as_array().unwrap());
    files
        .map(|file| {
            let path = file["path"].as_str().unwrap();
            let below = path.strip_prefix(&folder).unwrap();
            (
                below.to_owned(),
                file["reason"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[test]
fn without_consent_it_lists_runs_files_and_bytes_and_changes_nothing() {
    let (home, _) = home_with_pair();
    let run = import(&home);
    let before = home.tree();
    let files = walkdir::WalkDir::new(kept(&home, &run)).into_iter();
    let sizes = files
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(fs::Metadata::is_file)
        .map(|meta| meta.len());
    let bytes: u64 = sizes.sum();

    let report = clean(&home, &["--dry-run"]);
    home.zeroclaw(&["doctor", "clean"])
        .exits(10)
        .says(&run)
        .says("3 files would be deleted")
        .complains("can no longer be undone")
        .complains("--yes");

    is_documented(&["doctor", "clean"], &report);
    assert_eq!(report["files"], 3);
    assert_eq!(report["bytes"], bytes);
    assert_eq!(report["written"], false);
    home.is_unchanged_since(&before);
}

#[test]
fn what_is_proven_goes_and_the_run_can_no_longer_be_undone() {
    let (home, _) = home_with_pair();
    let run = import(&home);
    let rows = State::of(home.root()).sessions();

    let report = clean(&home, &["--yes"]);

    assert_eq!(
        (&report["written"], &report["files"]),
        (&true.into(), &3.into())
    );
    assert!(!home.root().join("state/migrated").exists());
    let state = State::of(home.root());
    assert_eq!(state.sessions(), rows);
    let pointing = "SELECT count(*) FROM migration_sources WHERE retired_path IS NOT NULL";
    assert_eq!(sqlite::number(&state.global(), pointing), 0);
    let before = home.tree();
    home.zeroclaw(&["doctor", "undo", &run, "--yes"])
        .exits(10)
        .complains("deleted by `zeroclaw doctor clean`");
    home.zeroclaw(&["doctor", "clean", "--yes"])
        .exits(0)
        .says("no run keeps anything");
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
    assert_same_tree(&before, &home.tree());
}

#[test]
fn what_is_not_proven_stays_and_says_why() {
    let (home, install) = home_with_pair();
    let with_refused = "data/sessions/telegram_main_5_broken.jsonl";
    let mut lines = jsonl(&turns("broken", 2));
    lines.extend_from_slice(b"{\"role\": 7}\n");
    install.jsonl(with_refused, &lines);
    let run = import(&home);
    let mut bytes = fs::read(kept(&home, &run).join(TALK)).unwrap();
    bytes[3] ^= 1;
    fs::write(kept(&home, &run).join(TALK), &bytes).unwrap();
    fs::write(kept(&home, &run).join("data/stranger.txt"), "mine").unwrap();

    let report = clean(&home, &["--yes"]);

    let no_receipt = || "no receipt is of these bytes".to_owned();
    assert_eq!(
        stays(&report, &run),
        [
            (TALK.to_owned(), no_receipt()),
            (
                with_refused.to_owned(),
                "1 of its records were refused".to_owned()
            ),
            ("data/stranger.txt".to_owned(), no_receipt()),
        ]
    );
    assert!(!kept(&home, &run).join(STORE).exists());
    assert_eq!(fs::read(kept(&home, &run).join(TALK)).unwrap(), bytes);
    assert!(kept(&home, &run).join(with_refused).exists());
    assert!(home.root().join("state/quarantine").join(&run).exists());
}

#[test]
fn a_run_that_was_cut_off_keeps_everything() {
    let (home, _) = home_with_pair();
    let mut command = home.command(&["doctor", "--fix"]);
    command.env("ZEROCLAW_FAULT", "doctor-index");
    assert_eq!(Ran::of(command).code(), None);

    let report = clean(&home, &["--yes"]);

    assert_eq!(report["files"], 0);
    let reasons = report["runs"][0]["kept"].as_array().unwrap();
    assert!(
        reasons
            .iter()
            .all(|file| file["reason"] == "its run is not finished")
    );
    assert_eq!(reasons.len(), 2);
}

#[test]
fn a_file_that_came_back_unchanged_is_proven_by_its_first_receipt() {
    let (home, install) = home_with_pair();
    let talk = fs::read(install.path(TALK)).unwrap();
    import(&home);
    install.jsonl(TALK, &talk);
    let second = import(&home);
    assert!(kept(&home, &second).join(TALK).exists());

    let report = clean(&home, &[&second, "--yes"]);

    assert_eq!(report["files"], 1);
    assert!(!kept(&home, &second).exists());
    assert_eq!(
        fs::read_dir(home.root().join("state/migrated"))
            .unwrap()
            .count(),
        1
    );
}

#[test]
fn only_what_is_old_enough_or_named_goes() {
    let (home, _) = home_with_pair();
    let run = import(&home);
    let before = home.tree();

    assert_eq!(
        clean(&home, &["--older-than", "1", "--dry-run"])["files"],
        0
    );
    home.zeroclaw(&["doctor", "clean", "nobody", "--dry-run"])
        .exits(9);
    home.is_unchanged_since(&before);
    let two_days_ago = "UPDATE migration_runs SET finished_at_ms = finished_at_ms - 172800000";
    sqlite::change(&State::of(home.root()).global(), two_days_ago);

    assert_eq!(
        clean(&home, &["--older-than", "3", "--dry-run"])["files"],
        0
    );
    assert_eq!(
        clean(&home, &["--older-than", "1", &run, "--yes"])["files"],
        3
    );
}

#[test]
fn a_held_root_keeps_everything_and_its_holder_is_named() {
    let (home, _) = home_with_pair();
    import(&home);
    let (service, _) = block_on(Service::init(
        &home.root(),
        Clock::system(),
        HolderKind::Daemon,
    ))
    .unwrap();

    home.zeroclaw(&["doctor", "clean", "--dry-run"])
        .exits(4)
        .complains("daemon (pid");

    block_on(service.close());
}

#[test]
fn killed_anywhere_the_next_clean_ends_it() {
    for point in ["clean.marked", "clean.file", "clean.pair", "clean.pair:2"] {
        let (home, _) = home_with_pair();
        import(&home);
        let rows = State::of(home.root()).sessions();
        let mut command = home.command(&["doctor", "clean", "--yes"]);
        command.env("ZEROCLAW_FAULT", point);
        assert_eq!(Ran::of(command).code(), None, "{point}");

        home.zeroclaw(&["doctor", "clean", "--yes"]).exits(0);

        assert!(!home.root().join("state/migrated").exists(), "{point}");
        let state = State::of(home.root());
        assert_eq!(state.sessions(), rows);
        assert!(state.complaints().is_empty());
    }
}

#[test]
fn an_import_undone_and_then_cleaned_leaves_the_install_exactly_as_it_was() {
    for fault in [None, Some("clean.undone")] {
        let home = Sandbox::in_memory();
        let install = copy_sample(home.root());
        let before = tree_hash(install.root());
        let run = import(&home);
        home.zeroclaw(&["doctor", "undo", &run, "--yes"]).exits(0);
        // One that was undone goes only when it is named.
        home.zeroclaw(&["doctor", "clean", "--yes"]).exits(3);
        let shown = clean(&home, &[&run, "--dry-run"]);
        assert_eq!(shown["runs"][0]["what"], "undone");

        if let Some(fault) = fault {
            let mut command = home.command(&["doctor", "clean", &run, "--yes"]);
            command.env("ZEROCLAW_FAULT", fault);
            assert_eq!(Ran::of(command).code(), None);
        }
        home.zeroclaw(&["doctor", "clean", &run, "--yes"]).exits(0);

        assert_same_tree(&before, &tree_hash(install.root()));
    }
}
