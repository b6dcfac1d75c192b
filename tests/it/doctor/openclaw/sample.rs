//! The sample home: all of it comes in, is shown by the lists, and every other file is named with a reason.

use super::super::state::State;
use super::{codes, import};
use crate::support::openclaw::sample_dir;
use crate::support::sandbox::Sandbox;

#[test]
fn the_sample_comes_in_with_the_counts_of_its_recipe() {
    let sandbox = Sandbox::in_memory();

    let report = import(&sandbox, &sample_dir(), 0);

    let state = State::of(sandbox.root());
    let of = |agent: &str, key: &str, messages| (agent.to_owned(), key.to_owned(), messages);
    assert_eq!(
        state.sessions(),
        [
            of("main", "agent:main:+15550100", 1),
            of("main", "agent:main:cron:job:run:5e550002-cron", 2),
            of("main", "agent:main:gone", 0),
            of("main", "agent:main:main", 4),
            of("main", "agent:main:recovered:5e550004-lost", 2),
            of("main", "agent:main:reset:5e550005-old", 2),
            of("main", "agent:main:telegram:group:-100:topic:1", 2),
            of("work-bot", "agent:work-bot:main", 2),
        ]
    );
    let mut told = codes(&report);
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "agent-name",
            "config-fragment",
            "recovered-session",
            "transcript-missing"
        ]
    );
}

#[test]
fn a_word_of_a_transcript_is_found_beside_one_of_an_own_session() {
    let sandbox = Sandbox::in_memory();
    crate::support::legacy::copy_sample(sandbox.root());
    sandbox.zeroclaw(&["doctor", "--fix"]).exits(0);
    let from = sample_dir();

    sandbox
        .zeroclaw(&["doctor", "--fix", "--from", from.to_str().unwrap()])
        .exits(0);

    sandbox
        .zeroclaw(&["sessions", "search", "heptagonal"])
        .exits(0)
        .says("5e550000-main");
    sandbox
        .zeroclaw(&["sessions", "search", "quillwort"])
        .exits(0)
        .says("cinder");
}

#[test]
fn c33_every_other_file_is_named_with_its_reason_and_has_a_receipt() {
    let sandbox = Sandbox::in_memory();

    let report = import(&sandbox, &sample_dir(), 0);

    let others = report["others"].as_array().unwrap();
    assert!(
        others.iter().all(|other| other["reason"].is_string()),
        "{others:#?}"
    );
    let fate = |path: &str| {
        let found = others.iter().find(|other| other["path"] == path);
        found.unwrap_or_else(|| panic!("{path} is not named"))["fate"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(fate("agents/main/agent/auth-profiles.json"), "kept");
    assert_eq!(fate("update-check.json"), "discarded");
    let history = sandbox
        .zeroclaw(&["doctor", "history", "--json"])
        .exits(0)
        .json();
    let run = history[0]["id"].as_str().unwrap();
    sandbox
        .zeroclaw(&["doctor", "history", run])
        .exits(0)
        .says("update-check.json");
}
