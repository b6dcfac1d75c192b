//! What is a home, under which names, and whose its sessions are.

use serde_json::json;

use super::super::state::State;
use super::{has, import};
use crate::support::openclaw::{entry, home, index, talk, transcript};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

#[test]
fn c01_a_home_is_named_once_whatever_leads_to_it_and_nothing_of_it_is_imported_unasked() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join(".openclaw"));
    index(&there, "main", &json!({"agent:main:main": entry("one", 1)}));
    std::os::unix::fs::symlink(there.root(), sandbox.home().join(".clawdbot")).unwrap();
    let profile = home(sandbox.home().join(".openclaw-work"));
    let mut command = sandbox.command(&["doctor", "--json"]);
    command.env("OPENCLAW_STATE_DIR", sandbox.home().join(".clawdbot"));

    let report = crate::support::sandbox::Ran::of(command).exits(0).json();

    let findings = report["findings"].as_array().unwrap();
    let homes: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["code"] == "other-home")
        .map(|finding| finding["place"].as_str().unwrap())
        .collect();
    let real = |path: &std::path::Path| path.canonicalize().unwrap().display().to_string();
    assert_eq!(homes, [real(there.root()), real(profile.root())]);
    assert_eq!(report["total"]["records"], 0);
}

#[test]
fn c01_the_same_home_by_two_names_comes_in_once() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("real"));
    index(&there, "main", &json!({"agent:main:main": entry("one", 1)}));
    transcript(&there, "main", "one.jsonl", &talk("one", &["hi", "ho"]));
    let link = sandbox.home().join(".moldbot");
    std::os::unix::fs::symlink(there.root(), &link).unwrap();
    import(&sandbox, there.root(), 0);

    let from = [
        "doctor",
        "--fix",
        "--json",
        "--from",
        link.to_str().unwrap(),
    ];
    let again = sandbox.zeroclaw(&from).exits(0).json();

    assert_eq!(again["changed"], false);
    let named = sandbox.zeroclaw(&["doctor", "--json"]).exits(0).json();
    assert!(!has(&named, "other-home"), "it was imported: {named:#}");
}

#[test]
fn every_old_name_of_the_configuration_makes_a_home_and_so_do_sessions_without_one() {
    for config in [
        "openclaw.json",
        "clawdbot.json",
        "moldbot.json",
        "moltbot.json",
        "",
    ] {
        let sandbox = Sandbox::in_memory();
        let there = crate::support::legacy::LegacyInstall::new(sandbox.home().join("there"));
        if !config.is_empty() {
            there.file(config, b"{agents: {list: [{id: 'solo'}]}} // mine");
        }
        transcript(&there, "solo", "one.jsonl", &talk("one", &["hi"]));

        let report = import(&sandbox, there.root(), 0);

        assert_eq!(State::of(sandbox.root()).agents(), ["solo"], "{config}");
        assert!(has(&report, "recovered-session"));
    }
}

#[test]
fn two_folders_of_one_name_are_one_agent_and_a_name_that_is_none_waits_for_the_map() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    for (folder, id) in [("a b", "one"), ("a-b", "two")] {
        transcript(&there, folder, &format!("{id}.jsonl"), &talk(id, &["hi"]));
    }
    transcript(&there, "odd_", "three.jsonl", &talk("three", &["hi"]));

    let report = import(&sandbox, there.root(), 1);

    assert_eq!(State::of(sandbox.root()).sessions().len(), 2);
    assert!(has(&report, "agent-name") && has(&report, "unreadable-source"));
    let from = there.root().to_str().unwrap();
    let mapped = [
        "doctor",
        "--fix",
        "--json",
        "--from",
        from,
        "--agent-map",
        "odd_=odd",
    ];
    sandbox.zeroclaw(&mapped).exits(0);
    assert_eq!(State::of(sandbox.root()).agents(), ["a-b", "main", "odd"]);
}

#[test]
fn the_fragment_names_the_agents_and_no_configuration_is_written() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    there.file(
        "openclaw.json",
        br#"{agents: {entries: {main: {}, ops: {workspace: '~/ops'}}},
             bindings: [{agentId: 'ops', match: {channel: 'slack'}}]}"#,
    );
    index(&there, "ops", &json!({"agent:ops:main": entry("one", 1)}));

    let report = import(&sandbox, there.root(), 0);

    let findings = report["findings"].as_array().unwrap();
    let fragment = findings
        .iter()
        .find(|finding| finding["code"] == "config-fragment")
        .unwrap();
    let text = fragment["message"].as_str().unwrap();
    assert!(
        text.contains("[agents.ops]") && text.contains("channels = [\"slack.default\"]"),
        "{text}"
    );
    assert!(!sandbox.root().join("config.toml").exists());
}

#[test]
fn a_broken_configuration_costs_no_session() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    there.file("openclaw.json", b"{\"agents\": {");
    transcript(&there, "main", "one.jsonl", &talk("one", &["hi"]));

    let report = import(&sandbox, there.root(), 1);

    assert!(has(&report, "unreadable-config"));
    assert_eq!(State::of(sandbox.root()).sessions().len(), 1);
}

#[test]
fn c65_a_store_that_agents_share_is_parted_by_its_keys() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    there.file("openclaw.json", br#"{"session": {"store": "shared/store.json"}, "agents": {"list": [{"id": "a"}, {"id": "b"}]}}"#);
    let all = json!({"agent:a:main": entry("one", 1), "agent:b:main": entry("two", 1), "+1555": entry("three", 1)});
    there.file("shared/store.json", all.to_string().as_bytes());

    let report = import(&sandbox, there.root(), 0);

    let state = State::of(sandbox.root());
    let keys = |agent: &str| {
        sqlite::rows(
            &state.agent(agent),
            "SELECT session_key FROM session_routes ORDER BY 1",
        )
        .concat()
    };
    assert_eq!(keys("a"), ["agent:a:+1555", "agent:a:main"]);
    assert_eq!(keys("b"), ["agent:b:main"]);
    assert!(has(&report, "owner-by-rule"));
}
