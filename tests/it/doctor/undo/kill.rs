//! Killed anywhere and run again, an undone import ends as one that was not disturbed.

use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{home_with_sample, import, tree_without_state, undo, without_runs};
use crate::doctor::state::State;
use crate::support::rng::Rng;
use crate::support::rows::{jsonl, turns};
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::tree::{TreeEntry, assert_same_tree};

const MORE: &str = "data/sessions/telegram_main_2_more.jsonl";

/// Kills the undoing of a first import at a planted point; says whether it came there.
fn killed_at(fault: &str, goes_on: &dyn Fn(&Sandbox, &str)) -> bool {
    let (home, install) = home_with_sample();
    let before = tree_without_state(install.root());
    let run = import(&home);

    let mut command = home.command(&["doctor", "undo", &run, "--yes"]);
    command.env("ZEROCLAW_FAULT", fault);
    let killed = Ran::of(command);

    if killed.code().is_some() {
        killed.exits(0);
        return false;
    }
    goes_on(&home, &run);
    undo(&home, &run).exits(0);
    assert_same_tree(&before, &tree_without_state(install.root()));
    true
}

const POINTS: [&str; 7] = [
    "undo.staging",
    "undo.staged",
    "undo.journalled",
    "restore.swap",
    "restore.swapped",
    "undo.recorded",
    "restore.cleared",
];

#[test]
fn killed_at_any_step_it_ends_all_undone_when_it_is_run_again() {
    for point in POINTS {
        assert!(killed_at(point, &|_, _| {}), "{point} is never passed");
    }
}

#[test]
fn killed_between_any_two_moves_it_ends_all_undone_when_it_is_run_again() {
    for (point, passages) in [
        ("restore.swap", 5),
        ("restore.aside", 5),
        ("undo.aside", 2),
        ("undo.back", 20),
    ] {
        let passed = (1..)
            .take_while(|passage| killed_at(&format!("{point}:{passage}"), &|_, _| {}))
            .count();
        assert_eq!(passed, passages, "{point}");
    }
}

#[test]
fn whoever_looks_next_ends_what_was_cut_off_and_doctor_says_so_first() {
    for point in [
        "undo.journalled",
        "restore.swap:2",
        "undo.back:3",
        "undo.recorded",
    ] {
        assert!(killed_at(point, &|home, run| {
            let before = home.tree();
            home.zeroclaw(&["doctor"])
                .exits(1)
                .says("unfinished-undo")
                .says(run);
            home.zeroclaw(&["doctor", "undo", run, "--dry-run"])
                .exits(10)
                .complains("cut off");
            home.is_unchanged_but_for_indexes_since(&before);
            home.zeroclaw(&["status"]).exits(3);
            home.zeroclaw(&["doctor"]).exits(7);
        }));
    }
}

#[test]
fn doctor_fix_ends_it_first_and_then_imports_again() {
    let (home, _) = home_with_sample();
    let run = import(&home);
    let imported = State::of(home.root()).dump();
    let mut command = home.command(&["doctor", "undo", &run, "--yes"]);
    command.env("ZEROCLAW_FAULT", "undo.back:2");
    assert_eq!(Ran::of(command).code(), None);

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    let dump = State::of(home.root()).dump();
    assert!(without_runs(&dump) == without_runs(&imported));
    assert!(home.root().join("state/undone").join(&run).is_dir());
}

/// Kills the undoing of an import into a root that had databases.
fn killed_at_later(fault: &str) {
    let (home, install) = home_with_sample();
    import(&home);
    let rows = State::of(home.root()).dump();
    install.jsonl(MORE, &jsonl(&turns("more", 3)));
    let files = files_of(&home);
    let run = import(&home);

    let mut command = home.command(&["doctor", "undo", &run, "--yes"]);
    command.env("ZEROCLAW_FAULT", fault);
    assert_eq!(Ran::of(command).code(), None, "{fault}");
    undo(&home, &run).exits(0);

    let state = State::of(home.root());
    assert!(
        without_runs(&state.dump()) == without_runs(&rows),
        "{fault}"
    );
    assert!(state.complaints().is_empty());
    assert_same_tree(&files, &files_of(&home));
}

/// Every file but databases, which come back as rows and not as pages.
fn files_of(home: &Sandbox) -> Vec<TreeEntry> {
    let mut tree = super::tree_of(&home.root());
    tree.retain(|entry| !entry.path.ends_with(b".sqlite"));
    tree
}

#[test]
fn killed_anywhere_the_databases_of_before_come_back_whole() {
    for point in POINTS {
        killed_at_later(point);
    }
    for point in [
        "undo.unpacked",
        "restore.swap:3",
        "restore.aside:4",
        "undo.back",
    ] {
        killed_at_later(point);
    }
}

/// Kills imports and their undoing at random moments, `kills` times, over one install.
fn random_kills(kills: u32) {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let seed = u64::try_from(seed % u128::from(u64::MAX)).unwrap();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let (home, install) = home_with_sample();
    let before = tree_without_state(install.root());

    for round in 0..kills / 2 {
        let what = format!("seed {seed}, round {round}");
        kill_after(home.command(&["doctor", "--fix"]), rng.below(400_000));
        home.zeroclaw(&["doctor", "--fix"]).exits(0);
        let state = State::of(home.root());
        assert!(state.complaints().is_empty(), "{what}");
        let history = home.zeroclaw(&["doctor", "history", "--json"]).exits(0);
        let run = history.json()[0]["id"].as_str().unwrap().to_owned();

        let args = ["doctor", "undo", &run, "--yes"];
        kill_after(home.command(&args), rng.below(150_000));
        undo(&home, &run).exits(0);

        println!("{what}");
        assert_same_tree(&before, &tree_without_state(install.root()));
    }
}

#[test]
fn c23_killed_at_random_moments_imports_and_their_undoing_end_as_if_undisturbed() {
    random_kills(12);
}

#[test]
#[ignore = "takes minutes; the short one runs always"]
fn c23_killed_a_hundred_times_imports_and_their_undoing_end_as_if_undisturbed() {
    random_kills(100);
}

fn kill_after(mut command: Command, micros: u64) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_micros(micros));
    // It may have ended already, which is a moment too.
    let _ = child.kill();
    child.wait().unwrap();
}
