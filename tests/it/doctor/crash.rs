//! Killed anywhere and run again, an import ends as an undisturbed one does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::state::{State, age};
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::rng::Rng;
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::tree::{TreeEntry, assert_same_tree};

/// How an import ended: every row of every tier, and every retired file.
#[derive(PartialEq, Eq)]
struct Ended {
    dump: String,
    retired: BTreeMap<PathBuf, String>,
    quarantined: Vec<Vec<u8>>,
}

impl Ended {
    fn of(home: &Sandbox) -> Self {
        let state = State::of(home.root());
        assert!(state.complaints().is_empty(), "{:?}", state.complaints());
        assert!(state.without_log().is_empty(), "{:?}", state.without_log());
        Self {
            dump: state.dump(),
            retired: state.retired(),
            quarantined: state.quarantined(),
        }
    }

    #[track_caller]
    fn is_like(&self, other: &Self, what: &str) {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let differing: Vec<_> = lines(&self.dump)
            .into_iter()
            .zip(lines(&other.dump))
            .filter(|(a, b)| a != b)
            .take(10)
            .collect();
        assert!(
            self.dump == other.dump,
            "{what}: rows differ: {differing:#?}"
        );
        assert_eq!(self.retired, other.retired, "{what}: retired files");
        assert!(self.quarantined == other.quarantined, "{what}: quarantine");
    }
}

/// A HOME with the sample in it, its files as old in each.
fn home_with_sample() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    age(install.root());
    (home, install)
}

fn undisturbed() -> Ended {
    let (home, _) = home_with_sample();
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    Ended::of(&home)
}

/// Every source of before is still in place, or kept by a run: never neither.
fn nothing_is_lost(home: &Sandbox, install: &LegacyInstall, sources: &BTreeMap<PathBuf, String>) {
    let retired = State::of(home.root()).retired();
    for (path, digest) in sources {
        let there = install.path(path);
        let in_place = there.exists() && super::state::digest_of(&there) == *digest;
        assert!(
            in_place || retired.get(path) == Some(digest),
            "{} is lost",
            path.display()
        );
    }
}

fn sources_of(install: &LegacyInstall) -> BTreeMap<PathBuf, String> {
    let knowledge = walkdir::WalkDir::new(install.path("knowledge.db"));
    let files = walkdir::WalkDir::new(install.path("data"))
        .into_iter()
        .chain(knowledge)
        .map(Result::unwrap);
    files
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let below = entry
                .path()
                .strip_prefix(install.root())
                .unwrap()
                .to_owned();
            (below, super::state::digest_of(entry.path()))
        })
        .collect()
}

/// A look beside what a kill left: it works, and names the run that was cut off once there is one.
fn status_tells(home: &Sandbox) {
    let state = State::of(home.root());
    if !state.global().exists() {
        home.zeroclaw(&["status"]).exits(3);
        return;
    }
    let before = durable(home);
    let status = home.zeroclaw(&["status", "--json"]);
    // Killed while the control plane was made, it holds nothing yet.
    if status.code() == Some(0) {
        let last = &status.json()["last_import"];
        if *last != Value::Null && last["status"] == "running" {
            let id = last["id"].as_str().unwrap();
            home.zeroclaw(&["status"]).exits(0).says(id);
        }
    } else {
        assert!(matches!(status.code(), Some(3)), "{}", status.told());
    }
    assert_same_tree(&before, &durable(home));
}

/// Everything below HOME but the `-shm` files: a log that a kill left is read through one, which is made anew each time.
fn durable(home: &Sandbox) -> Vec<TreeEntry> {
    let mut tree = home.tree();
    tree.retain(|entry| !entry.path.ends_with(b"-shm"));
    tree
}

/// Kills an import at a planted point; says whether it came there.
fn killed_at(fault: &str, undisturbed: &Ended) -> bool {
    let (home, install) = home_with_sample();
    let sources = sources_of(&install);

    let mut command = home.command(&["doctor", "--fix"]);
    command.env("ZEROCLAW_FAULT", fault);
    let killed = Ran::of(command);

    if killed.code().is_some() {
        killed.exits(0);
        return false;
    }
    nothing_is_lost(&home, &install, &sources);
    status_tells(&home);
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    Ended::of(&home).is_like(undisturbed, fault);
    let before = home.tree();
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");
    home.is_unchanged_since(&before);
    true
}

#[test]
fn killed_at_the_door_of_any_phase_a_rerun_ends_as_an_undisturbed_run() {
    let undisturbed = undisturbed();

    for point in [
        "doctor-backup",
        "doctor-after-archive",
        "doctor-apply",
        "doctor-verify",
        "doctor-retire",
        "doctor-index",
        "doctor-report",
    ] {
        assert!(killed_at(point, &undisturbed), "{point} is never passed");
    }
}

/// Every passage of a point, until a run gets through; the passages there were.
fn killed_at_each(point: &str) -> usize {
    let undisturbed = undisturbed();
    (1..)
        .take_while(|passage| killed_at(&format!("{point}:{passage}"), &undisturbed))
        .count()
}

#[test]
fn killed_before_any_commit_a_rerun_ends_as_an_undisturbed_run() {
    // One for each tier that a store writes to; small files that follow one another share theirs.
    assert_eq!(killed_at_each("doctor-before-commit"), 20);
}

#[test]
fn killed_after_any_commit_a_rerun_ends_as_an_undisturbed_run() {
    assert_eq!(killed_at_each("doctor-after-commit"), 20);
}

#[test]
fn killed_between_any_two_moves_a_rerun_ends_as_an_undisturbed_run() {
    let (home, _install) = home_with_sample();
    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(0)
        .json();
    let moved = report["sources"].as_array().unwrap().iter();
    let moved = moved.filter(|it| {
        it["now_at"]
            .as_str()
            .unwrap()
            .starts_with("state/migrated/")
    });
    assert_eq!(killed_at_each("doctor-mid-retire"), moved.count());
}

#[test]
fn killed_at_any_moment_a_rerun_ends_as_an_undisturbed_run() {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let seed = u64::try_from(seed % u128::from(u64::MAX)).unwrap();
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let undisturbed = undisturbed();

    for _ in 0..10 {
        let (home, install) = home_with_sample();
        let sources = sources_of(&install);
        let after = Duration::from_micros(rng.below(400_000));

        kill_after(home.command(&["doctor", "--fix"]), after);

        nothing_is_lost(&home, &install, &sources);
        status_tells(&home);
        home.zeroclaw(&["doctor", "--fix"]).exits(0);
        Ended::of(&home).is_like(
            &undisturbed,
            &format!("seed {seed}, killed after {after:?}"),
        );
    }
}

/// Starts a program and kills it, if it has not ended by then.
fn kill_after(mut command: Command, after: Duration) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    // It may have ended already, which is a moment too.
    let _ = child.kill();
    child.wait().unwrap();
}
