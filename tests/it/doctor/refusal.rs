//! What keeps a run from beginning: named, with its own exit code, and nothing is changed.

use std::fs::File;

use super::state::{SAMPLE_SESSIONS, State};
use crate::support::cases;
use crate::support::legacy::copy_sample;
use crate::support::recipe::legacy_fixtures;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;
use crate::support::tree::{assert_same_tree, tree_hash};

#[test]
fn c60_a_newer_control_plane_stops_look_and_run_untouched() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    home.zeroclaw(&["doctor", "--fix", "--only", "cron"])
        .exits(0);
    sqlite::change(&State::of(home.root()).global(), "PRAGMA user_version = 99");
    let before = home.tree();

    for args in [&["doctor"][..], &["doctor", "--fix"]] {
        home.zeroclaw(args)
            .exits(5)
            .says_nothing()
            .complains("99")
            .complains("state.sqlite");
    }

    home.is_unchanged_since(&before);
}

#[test]
fn c60_beside_a_newer_agent_every_source_stays_and_the_file_is_named() {
    let home = Sandbox::in_memory();
    copy_sample(home.root());
    home.zeroclaw(&["doctor", "--fix", "--only", "cron"])
        .exits(0);
    let state = State::of(home.root());
    let version = sqlite::number(&state.agent("birch"), "PRAGMA user_version");
    sqlite::change(&state.agent("birch"), "PRAGMA user_version = 99");
    let before = home.tree();

    home.zeroclaw(&["doctor", "--fix"])
        .exits(5)
        .says_nothing()
        .complains("agents/birch/agent/agent.sqlite")
        .complains("99");

    home.is_unchanged_since(&before);
    assert!(state.sessions().is_empty());

    let back = format!("PRAGMA user_version = {version}");
    sqlite::change(&state.agent("birch"), &back);
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    assert_eq!(state.sessions().len(), SAMPLE_SESSIONS);
}

#[test]
fn a_configuration_that_does_not_parse_stops_a_run_untouched() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    install.config("schema_version = 3\n[agents.atlas\n");
    let before = home.tree();

    for args in [&["doctor"][..], &["doctor", "--fix"]] {
        home.zeroclaw(args)
            .exits(10)
            .says_nothing()
            .complains("config.toml")
            .complains("hint: ");
    }

    home.is_unchanged_since(&before);
}

#[test]
fn beside_a_living_old_daemon_nothing_is_begun() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    install.file("data/daemon.sock.lock", b"");
    let held = File::open(install.path("data/daemon.sock.lock")).unwrap();
    held.lock().unwrap();
    let before = home.tree();

    home.zeroclaw(&["doctor", "--fix"])
        .exits(4)
        .says_nothing()
        .complains("old zeroclaw daemon");
    home.is_unchanged_since(&before);

    drop(held);
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
}

#[test]
fn a_foreign_root_that_is_none_exits_9() {
    let home = Sandbox::in_memory();
    let before = home.tree();

    home.zeroclaw(&["doctor", "--fix", "--from", "/nowhere/at/all"])
        .exits(9)
        .says_nothing()
        .complains("/nowhere/at/all");

    home.is_unchanged_since(&before);
}

#[test]
fn c28_looking_at_any_install_leaves_no_trace() {
    for (name, build) in cases::all() {
        let home = Sandbox::in_memory();
        build(&home.root());
        let before = home.tree();

        for args in [
            &["doctor"][..],
            &["doctor", "--json"],
            &["doctor", "--only", "sessions"],
        ] {
            let code = home.zeroclaw(args).code();
            assert!(matches!(code, Some(0 | 1 | 7)), "{name}: {code:?}");
        }

        home.is_unchanged_since(&before);
    }
}

#[test]
fn c28_looking_where_nothing_is_makes_nothing() {
    let home = Sandbox::in_memory();
    let before = home.tree();

    home.zeroclaw(&["doctor"])
        .exits(0)
        .says("nothing to import");
    home.zeroclaw(&["doctor", "--json"]).exits(0);
    home.zeroclaw(&["doctor", "--fix"])
        .exits(0)
        .says("nothing was changed");

    home.is_unchanged_since(&before);
}

#[test]
fn c28_looking_at_an_older_schema_migrates_nothing_and_names_what_does() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    let dumps = legacy_fixtures().join("../../db/v0003");
    for (dump, store) in [
        ("global", "state/state.sqlite"),
        ("agent", "agents/atlas/agent/agent.sqlite"),
    ] {
        let text = std::fs::read_to_string(dumps.join(format!("{dump}.sql"))).unwrap();
        install.store(store, sqlite::Journal::Wal, "", &[]).alter(
            store,
            sqlite::Journal::Wal,
            &text,
        );
    }
    let before = home.tree();

    let looked = home.zeroclaw(&["doctor"]).exits(7);

    home.is_unchanged_since(&before);
    assert!(looked.stdout.contains("older-schema"), "{}", looked.told());
}

#[test]
fn c30_a_snapshot_that_shares_its_files_keeps_their_content() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    let snapshot = home.home().join("snapshot");
    for entry in walkdir::WalkDir::new(install.root())
        .into_iter()
        .map(Result::unwrap)
    {
        let to = snapshot.join(entry.path().strip_prefix(install.root()).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir(to).unwrap();
        } else {
            std::fs::hard_link(entry.path(), to).unwrap();
        }
    }
    let contents = |tree: Vec<crate::support::tree::TreeEntry>| {
        let mut files = tree;
        files.retain(|entry| !entry.sha256.is_empty());
        files
    };
    let before = contents(tree_hash(&snapshot));

    home.zeroclaw(&["doctor", "--fix"]).exits(0);

    assert_same_tree(&before, &contents(tree_hash(&snapshot)));
    assert_eq!(State::of(home.root()).sessions().len(), SAMPLE_SESSIONS);
}

#[test]
fn a_link_is_named_and_not_followed() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());
    let elsewhere = home.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in [
        "data/memory/brain.db",
        "data/sessions/telegram_main_42_lantern.jsonl",
    ] {
        let to = elsewhere.join(std::path::Path::new(name).file_name().unwrap());
        std::fs::rename(install.path(name), &to).unwrap();
        std::os::unix::fs::symlink(&to, install.path(name)).unwrap();
    }
    let before = tree_hash(&elsewhere);

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    assert_same_tree(&before, &tree_hash(&elsewhere));
    let linked = super::state::findings(&report).into_iter();
    assert_eq!(
        linked.filter(|(code, _)| code == "linked-source").count(),
        2
    );
    assert!(install.path("data/memory/brain.db").is_symlink());
    assert_eq!(State::of(home.root()).sessions().len(), SAMPLE_SESSIONS - 1);
}
