//! A source that cannot come in stays byte for byte, the others come in, and the exit code tells.

use super::space::Mount;
use super::state::{SAMPLE_SESSIONS, State, age, digest_of, source};
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::rows::{jsonl, turns};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const BRAIN: &str = "data/memory/brain.db";

/// The sample, its jobs imported, so that the databases are there.
fn home_with_agents() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    age(install.root());
    home.zeroclaw(&["doctor", "--fix", "--only", "cron"])
        .exits(0);
    (home, install)
}

#[test]
fn c05_a_source_whose_rows_are_refused_stays_and_the_others_come_in() {
    let (home, install) = home_with_agents();
    let state = State::of(home.root());
    let before = digest_of(&install.path(BRAIN));
    let trigger = "CREATE TRIGGER planted BEFORE INSERT ON memories BEGIN SELECT RAISE(ABORT, 'planted'); END";
    sqlite::change(&state.agent("birch"), trigger);

    let run = home.zeroclaw(&["doctor", "--fix", "--json"]).exits(1);

    let report = run.json();
    assert_eq!(source(&report, BRAIN).unwrap()["status"], "failed");
    assert!(
        source(&report, BRAIN).unwrap()["reason"]
            .as_str()
            .unwrap()
            .contains("planted")
    );
    assert_eq!(digest_of(&install.path(BRAIN)), before);
    assert_eq!(state.sessions().len(), SAMPLE_SESSIONS);
    assert!(state.memories().is_empty(), "{:?}", state.memories());
    assert!(!install.path("data/sessions/sessions.db").exists());
    let told = home.zeroclaw(&["doctor", "--fix"]).exits(1);
    assert!(
        told.stdout.contains("failed-source") && told.stdout.contains(BRAIN),
        "{}",
        told.told()
    );

    sqlite::change(&state.agent("birch"), "DROP TRIGGER planted");
    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert_eq!(state.memories().values().sum::<usize>(), 12);
    assert!(state.complaints().is_empty(), "{:?}", state.complaints());
    assert!(!install.path(BRAIN).exists());
}

#[test]
fn c05_jobs_that_are_refused_stay_and_the_others_come_in() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    home.zeroclaw(&["doctor", "--fix", "--only", "memories"])
        .exits(0);
    let state = State::of(home.root());
    let before = digest_of(&install.path("data/cron/jobs.db"));
    let trigger = "CREATE TRIGGER planted BEFORE INSERT ON task_runs BEGIN SELECT RAISE(ABORT, 'planted'); END";
    sqlite::change(&state.global(), trigger);

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    assert_eq!(
        source(&report, "data/cron/jobs.db").unwrap()["status"],
        "failed"
    );
    assert_eq!(digest_of(&install.path("data/cron/jobs.db")), before);
    assert!(state.jobs().is_empty(), "{:?}", state.jobs());
    assert_eq!(state.sessions().len(), SAMPLE_SESSIONS);
}

#[test]
fn c05_rows_that_changed_on_the_way_in_are_not_taken_for_proof() {
    let (home, install) = home_with_agents();
    let state = State::of(home.root());
    let before = digest_of(&install.path(BRAIN));
    let trigger = "CREATE TRIGGER planted AFTER INSERT ON memories BEGIN
        UPDATE memories SET content = 'something else' WHERE memory_no = new.memory_no; END";
    sqlite::change(&state.agent("birch"), trigger);

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    let brain = source(&report, BRAIN).unwrap();
    assert_eq!(brain["status"], "failed");
    assert!(
        brain["reason"].as_str().unwrap().contains("read back"),
        "{brain}"
    );
    assert_eq!(digest_of(&install.path(BRAIN)), before);
}

const LARGE: &str = "data/sessions/slack_ops_1_large.jsonl";
const SMALL: &str = "data/sessions/telegram_main_1_small.jsonl";

/// A large session of birch, whose folder is to be a small filesystem, and a small one of atlas.
fn home_with_two_talks() -> (Sandbox, LegacyInstall) {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    let mut long = turns("large", 40);
    for (_, text) in &mut long {
        text.push_str(&" and on".repeat(15_000));
    }
    install
        .config(
            "schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n\
             [agents.birch]\nchannels = ['slack.ops']\n",
        )
        .jsonl(LARGE, &jsonl(&long))
        .jsonl(SMALL, &jsonl(&turns("small", 3)))
        .folder("agents/birch");
    (home, install)
}

#[test]
fn c05_a_tier_without_room_keeps_its_sources_in_place_and_the_others_come_in() {
    // Room for the database and not for the talk, and not even for the database.
    for size in ["2m", "64k"] {
        let (home, install) = home_with_two_talks();
        let before = digest_of(&install.path(LARGE));
        let Some(mount) = Mount::tmpfs(&install.path("agents/birch"), size) else {
            return;
        };

        let run = home.zeroclaw(&["doctor", "--fix", "--json"]);

        assert!(matches!(run.code(), Some(1 | 8)), "{}", run.told());
        assert!(run.stdout.contains(LARGE), "{}", run.told());
        assert!(run.stdout.contains("full"), "{}", run.told());
        assert_eq!(digest_of(&install.path(LARGE)), before);
        assert!(!install.path(SMALL).exists(), "{}", run.told());

        mount.resize("64m");
        home.zeroclaw(&["doctor", "--fix"]).exits(0);
        assert_eq!(State::of(home.root()).sessions().len(), 2);
    }
}
