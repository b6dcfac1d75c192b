//! Whose records are: what the command line can say about it.

use super::state::{SAMPLE_SESSIONS, State, findings, source};
use crate::support::legacy::{LegacyInstall, copy_sample};
use crate::support::rows::{chat, jsonl, turns};
use crate::support::sandbox::Sandbox;

#[test]
fn only_named_surfaces_come_in_and_the_rest_waits() {
    let home = Sandbox::in_memory();
    let install = copy_sample(home.root());

    home.zeroclaw(&["doctor", "--fix", "--only", "cron", "--only", "memories"])
        .exits(0);

    let state = State::of(home.root());
    assert_eq!(
        (state.jobs().len(), state.memories().values().sum::<usize>()),
        (6, 12)
    );
    assert!(state.sessions().is_empty());
    assert!(install.path("data/sessions/sessions.db").exists());
    home.zeroclaw(&["doctor"])
        .exits(7)
        .says("data/sessions/sessions.db");
    home.zeroclaw(&["doctor", "--fix"]).exits(0);
    assert_eq!(state.sessions().len(), SAMPLE_SESSIONS);
}

#[test]
fn an_unknown_surface_is_refused_with_the_names_there_are() {
    let home = Sandbox::in_memory();

    home.zeroclaw(&["doctor", "--only", "memorise"])
        .exits(2)
        .says_nothing()
        .complains("memorise")
        .complains("memories");
}

/// An install whose chats belong to an alias that is no legal name here.
fn install_of_odd_alias(home: &Sandbox) -> LegacyInstall {
    let install = LegacyInstall::new(home.root());
    install
        .config("schema_version = 3\n[agents.atlas]\n")
        .sqlite(
            "data/sessions/sessions.db",
            "sessions_v0_8.sql",
            &[
                &chat("gw_odd", "2026-09-01", &turns("odd", 3)),
                &chat("gw_plain", "2026-09-01", &turns("plain", 2)),
                "UPDATE session_metadata SET agent_alias = 'агент✨' WHERE session_key = 'gw_odd';
             UPDATE session_metadata SET agent_alias = 'atlas' WHERE session_key = 'gw_plain';",
            ],
        );
    install
}

#[test]
fn an_illegal_alias_is_refused_by_name_and_kept() {
    let home = Sandbox::in_memory();
    install_of_odd_alias(&home);

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    let state = State::of(home.root());
    assert_eq!(
        state.sessions(),
        [("atlas".to_owned(), "gw_plain".to_owned(), 2)]
    );
    let refused = source(&report, "data/sessions/sessions.db").unwrap()["refused"].to_string();
    assert!(
        refused.contains("агент✨") && refused.contains("--agent-map"),
        "{refused}"
    );
    // The session and its three messages.
    assert_eq!(report["total"]["refused"], 4);
    let kept = state.quarantined().concat();
    let kept = String::from_utf8_lossy(&kept);
    assert!(
        (1..=3).all(|n| kept.contains(&format!("odd {n}"))),
        "{kept}"
    );
}

#[test]
fn a_mapped_alias_comes_in_under_its_new_name() {
    let home = Sandbox::in_memory();
    install_of_odd_alias(&home);

    home.zeroclaw(&["doctor", "--fix", "--agent-map", "агент✨=agent"])
        .exits(0);

    let sessions = State::of(home.root()).sessions();
    assert!(
        sessions.contains(&("agent".to_owned(), "gw_odd".to_owned(), 3)),
        "{sessions:?}"
    );
}

#[test]
fn what_was_refused_for_its_alias_comes_in_when_the_file_is_put_back_with_a_map() {
    let home = Sandbox::in_memory();
    let install = install_of_odd_alias(&home);
    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();
    let store = "data/sessions/sessions.db";
    let now_at = source(&report, store).unwrap()["now_at"]
        .as_str()
        .unwrap()
        .to_owned();
    std::fs::copy(install.path(now_at), install.path(store)).unwrap();

    home.zeroclaw(&["doctor", "--fix", "--agent-map", "агент✨=agent"])
        .exits(0);

    let sessions = State::of(home.root()).sessions();
    assert!(
        sessions.contains(&("agent".to_owned(), "gw_odd".to_owned(), 3)),
        "{sessions:?}"
    );
    assert_eq!(sessions.len(), 2);
}

#[test]
fn a_map_that_is_none_is_refused() {
    let home = Sandbox::in_memory();

    for map in ["atlas", "atlas=", "atlas=Bad Name", "atlas=../x"] {
        home.zeroclaw(&["doctor", "--agent-map", map])
            .exits(2)
            .says_nothing()
            .complains(map);
    }
}

#[test]
fn an_agent_that_the_configuration_names_illegally_is_a_finding() {
    let home = Sandbox::in_memory();
    let install = LegacyInstall::new(home.root());
    install
        .config("schema_version = 3\n[agents.atlas]\nchannels = ['telegram.main']\n[agents.'Bad Name']\n")
        .jsonl("data/sessions/telegram_main_1_x.jsonl", &jsonl(&turns("x", 2)));

    let report = home
        .zeroclaw(&["doctor", "--fix", "--json"])
        .exits(1)
        .json();

    assert!(
        findings(&report)
            .iter()
            .any(|(code, _)| code == "illegal-agent-name")
    );
    assert_eq!(State::of(home.root()).sessions().len(), 1);
}
