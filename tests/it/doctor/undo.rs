//! A run undone: the install is as it was before, and nothing that was written since goes in silence.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use zeroclaw::service::{Clock, HolderKind, Service};

use super::state::{State, age};
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::rows::{chat, jsonl, turns};
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite::{self, block_on};
use crate::support::tree::{TreeEntry, assert_same_tree, tree_hash};

mod kill;

const CONFIG: &str = "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n";
const TALK: &str = "data/sessions/telegram_main_1_talk.jsonl";
const MORE: &str = "data/sessions/telegram_main_2_more.jsonl";

fn home_with_sample() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    age(install.root());
    (home, install)
}

fn home_with_talk() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install
        .config(CONFIG)
        .jsonl(TALK, &jsonl(&turns("talk", 4)));
    (home, install)
}

/// Imports, and gives the run.
fn import(home: &Sandbox) -> String {
    let ran = home.zeroclaw(&["doctor", "--fix", "--json"]);
    let run = ran.json()["run"].as_str().map(str::to_owned);
    run.unwrap_or_else(|| panic!("no run: {}", ran.told()))
}

fn undo(home: &Sandbox, run: &str) -> Ran {
    home.zeroclaw(&["doctor", "undo", run, "--yes", "--json"])
}

/// Everything below the root but the folder of what the undone runs had made.
fn tree_of(root: &Path) -> Vec<TreeEntry> {
    let mut tree = tree_hash(root);
    tree.retain(|entry| !entry.path.starts_with(b"state/undone"));
    tree
}

/// The same as it was before `state/` was made, which holds that folder.
fn tree_without_state(root: &Path) -> Vec<TreeEntry> {
    let mut tree = tree_of(root);
    tree.retain(|entry| entry.path != b"state");
    tree
}

fn times(root: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let files = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    files
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| !entry.path().starts_with(root.join("state/undone")))
        .map(|entry| {
            let time = entry.metadata().unwrap().modified().unwrap();
            (entry.path().to_owned(), time)
        })
        .collect()
}

/// Opens and closes the root as a runtime does, with work between.
fn as_runtime(home: &Sandbox, script: &[(&str, &str)]) {
    let root = home.root();
    block_on(async {
        let service = Service::open(&root, Clock::system(), HolderKind::Cli).await;
        service.unwrap().close().await;
    });
    for (tier, sql) in script {
        sqlite::change(&root.join(tier), sql);
    }
}

/// A dump without the runs, of which one says what it found and what became of it.
fn without_runs(dump: &str) -> Vec<&str> {
    let mut is_runs = false;
    let lines = dump.lines().filter(|line| {
        if line.starts_with("== ") {
            is_runs = line.starts_with("== migration_runs");
        }
        !is_runs
    });
    lines.collect()
}

fn lost(report: &Value) -> Vec<(String, String, i64, i64)> {
    let rows = report["lost"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["tier"].as_str().unwrap().to_owned(),
            row["table"].as_str().unwrap().to_owned(),
            row["written"].as_i64().unwrap(),
            row["deleted"].as_i64().unwrap(),
        )
    })
    .collect()
}

#[test]
fn the_first_import_undone_leaves_the_install_as_it_was_but_for_one_folder() {
    let (home, install) = home_with_sample();
    let before = tree_without_state(install.root());
    let times_before = times(install.root());
    let run = import(&home);
    let sources = State::of(home.root()).retired().len();

    let report = undo(&home, &run).exits(0).json();

    assert_same_tree(&before, &tree_without_state(install.root()));
    assert_eq!(times_before, times(install.root()));
    assert_eq!(report["written"], true);
    assert_eq!(report["had_state"], false);
    assert_eq!(report["previous"], format!("state/undone/{run}"));
    assert_eq!(report["sources"].as_array().unwrap().len(), sources);
    assert!(lost(&report).is_empty(), "{report}");
    let aside = home.root().join("state/undone").join(&run);
    assert!(aside.join("state/state.sqlite").is_file());
    assert!(aside.join("agents/atlas/agent/agent.sqlite").is_file());
    let archive = fs::read_dir(aside.join("backups")).unwrap().count();
    assert_eq!(archive, 1);
    home.zeroclaw(&["status"]).exits(3);
}

#[test]
fn an_install_that_was_undone_can_be_imported_again() {
    let (home, _) = home_with_sample();
    let run = import(&home);
    let imported = State::of(home.root()).dump();
    undo(&home, &run).exits(0);

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    let again = State::of(home.root());
    assert!(without_runs(&again.dump()) == without_runs(&imported));
    assert!(again.complaints().is_empty());
}

#[test]
fn a_dry_run_shows_everything_and_without_consent_nothing_happens() {
    let (home, _) = home_with_talk();
    let run = import(&home);
    let before = home.tree();

    let dry = home.zeroclaw(&["doctor", "undo", &run, "--dry-run", "--json"]);
    let report = dry.exits(0).json();
    home.zeroclaw(&["doctor", "undo", &run, "--dry-run"])
        .exits(0)
        .says(TALK)
        .says("set_aside")
        .complains("nothing was written since the run")
        .complains("nothing was changed");
    home.zeroclaw(&["doctor", "undo", &run])
        .exits(10)
        .says(TALK)
        .complains("--yes");

    home.is_unchanged_since(&before);
    crate::cli::json::is_documented(&["doctor", "undo"], &report);
    assert_eq!(report["written"], false);
    assert_eq!(report["sources"][0]["path"], TALK);
    assert_eq!(report["previous"], Value::Null);
}

#[test]
fn a_later_import_undone_brings_back_the_rows_of_before_it() {
    let (home, install) = home_with_talk();
    let first = import(&home);
    as_runtime(
        &home,
        &[(
            "agents/atlas/agent/agent.sqlite",
            "UPDATE sessions SET display_name = 'mine'",
        )],
    );
    let rows_of_before = State::of(home.root()).dump();
    let before = tree_of(install.root());
    install.jsonl(MORE, &jsonl(&turns("more", 3)));
    let second = import(&home);

    // The first cannot be undone under the second.
    let tree = home.tree();
    home.zeroclaw(&["doctor", "undo", &first, "--yes"])
        .exits(10)
        .complains(&second);
    home.is_unchanged_since(&tree);
    let report = undo(&home, &second).exits(0).json();

    assert_eq!(report["had_state"], true);
    let state = State::of(home.root());
    assert_eq!(without_runs(&state.dump()), without_runs(&rows_of_before));
    let runs = "SELECT id, status, report_json ->> 'undone_at_ms' IS NULL FROM migration_runs ORDER BY rowid";
    let undone = |id: &str, stands: &str| [id, "completed", stands].map(str::to_owned).to_vec();
    assert_eq!(
        sqlite::rows(&state.global(), runs),
        [undone(&first, "1"), undone(&second, "0")]
    );
    assert!(state.complaints().is_empty());
    // Databases come back as rows, not as pages; every other file is the same.
    let files = |tree: &[TreeEntry]| -> Vec<TreeEntry> {
        let others = tree.iter().filter(|entry| {
            !entry.path.ends_with(b".sqlite") && !entry.path.ends_with(MORE.as_bytes())
        });
        others.cloned().collect()
    };
    assert_same_tree(&files(&before), &files(&tree_of(install.root())));
    assert!(install.path(MORE).is_file());

    // Then the first can be undone too, and the install is as it was.
    undo(&home, &first).exits(0);
    assert!(install.path(TALK).is_file() && !state.global().exists());
}

#[test]
fn what_was_written_since_is_counted_by_tier_and_table_before_it_goes() {
    let (home, _) = home_with_talk();
    let run = import(&home);
    let later = "9000000000000";
    let agent = "agents/atlas/agent/agent.sqlite";
    as_runtime(
        &home,
        &[
            // A clock that was set back hides no new row: there are more of them.
            (
                agent,
                "INSERT INTO transcript_events (session_no, seq, event_type, role, created_at_ms, text)
                 SELECT session_no, 100 + seq, 'message', 'user', 5, 'since' FROM transcript_events WHERE seq <= 2",
            ),
            // A row changed in place is told by its own time.
            (agent, &format!("UPDATE sessions SET updated_at_ms = {later}")),
        ],
    );

    let dry = home.zeroclaw(&["doctor", "undo", &run, "--dry-run", "--json"]);
    let report = dry.exits(0).json();
    let told = home.zeroclaw(&["doctor", "undo", &run, "--yes"]).exits(0);

    let agent = || "agent atlas".to_owned();
    assert_eq!(
        lost(&report),
        [
            (agent(), "sessions".to_owned(), 1, 0),
            (agent(), "transcript_events".to_owned(), 2, 0),
        ]
    );
    let first_line = told.stderr.lines().next().unwrap();
    assert_eq!(
        first_line,
        "lost from agent atlas: 1 rows of sessions written since the run"
    );
}

#[test]
fn a_held_root_is_not_undone_and_its_holder_is_named() {
    let (home, _) = home_with_talk();
    let run = import(&home);
    let (service, _) = block_on(Service::init(
        &home.root(),
        Clock::system(),
        HolderKind::Daemon,
    ))
    .unwrap();

    for flag in ["--dry-run", "--yes"] {
        home.zeroclaw(&["doctor", "undo", &run, flag])
            .exits(4)
            .complains(&format!("daemon (pid {}", std::process::id()));
    }

    block_on(service.close());
    undo(&home, &run).exits(0);
}

#[test]
fn what_is_missing_changed_or_in_the_way_is_named_and_nothing_changes() {
    let refused = |spoil: &dyn Fn(&Sandbox, &str) -> String| {
        let (home, _) = home_with_talk();
        let run = import(&home);
        let named = spoil(&home, &run);
        let before = home.tree();

        for flag in ["--dry-run", "--yes"] {
            home.zeroclaw(&["doctor", "undo", &run, flag])
                .exits(10)
                .complains(&named)
                .complains("nothing was changed");
        }
        home.is_unchanged_since(&before);
    };
    let kept = |home: &Sandbox, run: &str| home.root().join("state/migrated").join(run).join(TALK);

    refused(&|home, run| {
        fs::remove_file(kept(home, run)).unwrap();
        kept(home, run).display().to_string()
    });
    refused(&|home, run| {
        let mut bytes = fs::read(kept(home, run)).unwrap();
        bytes[3] ^= 1;
        fs::write(kept(home, run), bytes).unwrap();
        "is not as it was".to_owned()
    });
    refused(&|home, run| {
        let name = format!("backups/zeroclaw-backup-{run}-before-import.tar.gz");
        fs::remove_file(home.root().join(&name)).unwrap();
        name
    });
    refused(&|home, _| {
        fs::write(home.root().join(TALK), "somebody else's").unwrap();
        format!("{TALK} is there again")
    });
}

#[test]
fn a_damaged_archive_is_noticed_before_anything_changes() {
    let (home, install) = home_with_talk();
    import(&home);
    install.jsonl(MORE, &jsonl(&turns("more", 3)));
    let run = import(&home);
    let archive = format!("backups/zeroclaw-backup-{run}-before-import.tar.gz");
    let archive = home.root().join(archive);
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&archive, bytes).unwrap();
    let before = tree_of(&home.root());

    undo(&home, &run).exits(6);

    assert_same_tree(&before, &tree_of(&home.root()));
}

#[test]
fn a_name_nobody_has_is_not_found_and_a_root_without_state_says_so() {
    let (home, _) = home_with_talk();
    home.zeroclaw(&["doctor", "undo", "x", "--yes"]).exits(3);
    assert!(!home.root().join("state").exists());
    import(&home);

    for name in ["x", "../x", "", "."] {
        home.zeroclaw(&["doctor", "undo", name, "--yes"])
            .exits(9)
            .complains("doctor history");
    }
}

#[test]
fn undone_twice_it_changes_nothing_the_second_time() {
    let (home, _) = home_with_talk();
    let run = import(&home);
    undo(&home, &run).exits(0);
    let before = home.tree();

    let again = undo(&home, &run).exits(0).json();
    home.zeroclaw(&["doctor", "undo", &run, "--dry-run"])
        .exits(0)
        .says("was undone before");

    home.is_unchanged_since(&before);
    assert_eq!(
        (&again["written"], &again["was_undone"]),
        (&false.into(), &true.into())
    );
}

#[test]
fn an_import_from_a_foreign_root_undone_leaves_no_copy_of_its_files() {
    let home = Sandbox::in_memory();
    let foreign = home.home().join("foreign");
    let install = LegacyInstall::new(&foreign);
    install
        .config(CONFIG)
        .secret_key()
        .jsonl(TALK, &jsonl(&turns("talk", 4)));
    let theirs = tree_hash(&foreign);
    let from = foreign.to_str().unwrap();
    let ran = home.zeroclaw(&["doctor", "--fix", "--from", from, "--json"]);
    let run = ran.exits(0).json()["run"].as_str().unwrap().to_owned();
    assert!(home.root().join("config.toml").exists());

    undo(&home, &run).exits(0);

    assert_same_tree(&theirs, &tree_hash(&foreign));
    assert_eq!(tree_without_state(&home.root()), []);
    let aside = home.root().join("state/undone").join(&run);
    assert!(aside.join("config.toml").exists() && aside.join(".secret_key").exists());
}

#[test]
fn a_foreign_import_into_an_empty_control_plane_leaves_that() {
    let home = Sandbox::in_memory();
    home.zeroclaw(&["init"]).exits(0);
    let foreign = home.home().join("foreign");
    LegacyInstall::new(&foreign)
        .config(CONFIG)
        .jsonl(TALK, &jsonl(&turns("talk", 4)));
    let from = foreign.to_str().unwrap();
    let ran = home.zeroclaw(&["doctor", "--fix", "--from", from, "--json"]);
    let run = ran.exits(0).json()["run"].as_str().unwrap().to_owned();

    undo(&home, &run).exits(0);

    assert!(State::of(home.root()).agents().is_empty());
    home.zeroclaw(&["status"]).exits(0);
}

#[test]
fn odd_names_and_folders_that_were_empty_come_back_as_they_were() {
    let (home, install) = home_with_talk();
    let odd = OsStr::from_bytes(b"data/sessions/telegram_main_9_u\xFF%41.jsonl");
    install
        .jsonl(odd, &jsonl(&turns("odd", 2)))
        .folder("backups")
        .folder("agents/atlas")
        .folder("state");
    let before = tree_of(install.root());
    let run = import(&home);
    assert!(!install.path(odd).exists());

    undo(&home, &run).exits(0);

    assert_same_tree(&before, &tree_of(install.root()));
}

#[test]
fn a_store_with_its_log_comes_back_as_a_pair() {
    let (home, install) = home_with_talk();
    let store = "data/sessions/sessions.db";
    let turns = turns("pair", 4);
    install.sqlite_with_wal(
        store,
        "sessions_v0_8.sql",
        &[&chat("telegram_main_3_pair", "2026-03-01", &turns[..2])],
        &[&chat("telegram_main_4_pair", "2026-03-02", &turns[2..])],
    );
    assert!(install.path("data/sessions/sessions.db-wal").exists());
    let before = tree_without_state(install.root());
    let run = import(&home);

    undo(&home, &run).exits(0);

    assert_same_tree(&before, &tree_without_state(install.root()));
}

#[test]
fn c25_of_two_files_that_had_one_place_the_older_comes_back_and_the_other_is_kept() {
    let (home, install) = home_with_talk();
    let first = fs::read(install.path(TALK)).unwrap();
    let second = jsonl(&turns("talk", 6));
    // Killed after the first move, the run is taken up with another file in the same place.
    let mut command = home.command(&["doctor", "--fix"]);
    command.env("ZEROCLAW_FAULT", "doctor-index");
    assert_eq!(Ran::of(command).code(), None);
    install.jsonl(TALK, &second);
    let run = import(&home);

    undo(&home, &run).exits(0);

    assert_eq!(fs::read(install.path(TALK)).unwrap(), first);
    let kept = home.root().join("state/undone").join(&run);
    let kept = kept.join("state/migrated").join(&run);
    assert_eq!(fs::read(kept.join(format!("{TALK}.1"))).unwrap(), second);
}

#[test]
fn a_run_that_was_cut_off_can_be_undone_too() {
    for point in [
        "doctor-apply",
        "doctor-verify",
        "doctor-mid-retire",
        "doctor-index",
    ] {
        let (home, install) = home_with_sample();
        let before = tree_without_state(install.root());
        let mut command = home.command(&["doctor", "--fix"]);
        command.env("ZEROCLAW_FAULT", point);
        assert_eq!(Ran::of(command).code(), None);
        let history = home.zeroclaw(&["doctor", "history", "--json"]).exits(0);
        let run = history.json()[0]["id"].as_str().unwrap().to_owned();

        undo(&home, &run).exits(0);

        assert_same_tree(&before, &tree_without_state(install.root()));
    }
}
