//! `sessions.json` in every shape: what it says comes in, and where it says nothing the messages come in all the same.

use serde_json::json;

use super::super::state::State;
use super::{has, import};
use crate::support::openclaw::{entry, home, index, talk, transcript};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

fn routes(sandbox: &Sandbox, agent: &str) -> Vec<Vec<String>> {
    let state = State::of(sandbox.root());
    sqlite::rows(
        &state.agent(agent),
        "SELECT session_key, session_id FROM session_routes ORDER BY 1",
    )
}

#[test]
fn c03_an_index_that_is_none_stays_and_the_messages_come_in_under_keys_of_their_own() {
    for text in [
        "",
        "null",
        "[]",
        "\"x\"",
        "{\"agent:main:main\": {\"sessionId\": \"one\", \"upd",
    ] {
        let sandbox = Sandbox::in_memory();
        let there = home(sandbox.home().join("there"));
        there.file("agents/main/sessions/sessions.json", text.as_bytes());
        transcript(
            &there,
            "main",
            "one.jsonl",
            &talk("one", &["a cranberry", "yes"]),
        );

        let report = import(&sandbox, there.root(), 1);

        assert!(has(&report, "unreadable-source"), "{text}");
        sandbox
            .zeroclaw(&["sessions", "search", "cranberry"])
            .exits(0)
            .says("one");
        let state = State::of(sandbox.root());
        let archived = "SELECT count(archived_at_ms) FROM sessions";
        assert_eq!(sqlite::number(&state.agent("main"), archived), 0);
    }
}

#[test]
fn c03_a_repaired_index_finds_the_messages_that_came_in_without_it() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    there.file("agents/main/sessions/sessions.json", b"{");
    transcript(&there, "main", "one.jsonl", &talk("one", &["hi", "ho"]));
    import(&sandbox, there.root(), 1);
    index(&there, "main", &json!({"agent:main:main": entry("one", 1)}));

    import(&sandbox, there.root(), 0);

    let wanted = [
        ["agent:main:main", "one"],
        ["agent:main:recovered:one", "one"],
    ];
    assert_eq!(routes(&sandbox, "main"), wanted);
    assert_eq!(State::of(sandbox.root()).sessions().len(), 1);
}

#[test]
fn c04_without_an_index_every_transcript_is_an_archived_session_and_none_is_an_orphan() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    transcript(&there, "main", "one.jsonl", &talk("one", &["hi"]));
    transcript(&there, "main", "two-topic-7.jsonl", &talk("two", &["hi"]));

    let looked = sandbox
        .zeroclaw(&["doctor", "--from", there.root().to_str().unwrap()])
        .exits(7);
    let report = import(&sandbox, there.root(), 0);

    assert!(!looked.stdout.contains("orphan"));
    assert!(has(&report, "recovered-session"));
    let wanted = [
        ["agent:main:recovered:one", "one"],
        ["agent:main:recovered:two", "two"],
    ];
    assert_eq!(routes(&sandbox, "main"), wanted);
}

#[test]
fn c05_two_keys_of_one_session_lead_to_it_and_its_messages_come_in_once() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let all = json!({
        "agent:main:cron:j": entry("one", 5), "agent:main:cron:j:run:one": entry("one", 5),
        "agent:main:main": entry("two", 9), "agent:main:telegram:direct:7": entry("two", 3),
    });
    index(&there, "main", &all);
    for id in ["one", "two"] {
        transcript(
            &there,
            "main",
            &format!("{id}.jsonl"),
            &talk(id, &["hi", "ho"]),
        );
    }

    import(&sandbox, there.root(), 0);

    assert_eq!(routes(&sandbox, "main").len(), 4);
    let mine = |key: &str| ("main".to_owned(), key.to_owned(), 2);
    assert_eq!(
        State::of(sandbox.root()).sessions(),
        [mine("agent:main:cron:j:run:one"), mine("agent:main:main")]
    );
}

#[test]
fn c08_two_forms_of_one_key_are_one_and_the_older_session_is_kept_without_it() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    index(
        &there,
        "main",
        &json!({"agent:main:Slack:Channel:C1": entry("new", 9), "slack:channel:c1": entry("old", 3)}),
    );
    for id in ["new", "old"] {
        transcript(&there, "main", &format!("{id}.jsonl"), &talk(id, &["hi"]));
    }

    let report = import(&sandbox, there.root(), 0);

    assert!(has(&report, "two-keys"));
    let wanted = [
        ["agent:main:recovered:old", "old"],
        ["agent:main:slack:channel:c1", "new"],
    ];
    assert_eq!(routes(&sandbox, "main"), wanted);
}

#[test]
fn c10_where_the_oldest_layout_has_no_shared_session_its_newest_direct_one_becomes_it() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let all = json!({"+1": entry("old", 1), "+2": entry("new", 5), "group:9": entry("group", 9), "agent:main:subagent:x": entry("sub", 8)});
    there.file("sessions/sessions.json", all.to_string().as_bytes());
    there.file("sessions/new.jsonl", &talk("new", &["hi"]));

    let report = import(&sandbox, there.root(), 0);

    assert!(has(&report, "main-session"));
    assert!(
        routes(&sandbox, "main").contains(&vec!["agent:main:main".to_owned(), "new".to_owned()])
    );
}

#[test]
fn c10_a_shared_session_of_the_agents_own_index_stays() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    there.file(
        "sessions/sessions.json",
        json!({"+2": entry("new", 5), "main": entry("older", 5)})
            .to_string()
            .as_bytes(),
    );
    index(&there, "main", &json!({"agent:main:main": entry("own", 5)}));

    let report = import(&sandbox, there.root(), 0);

    assert!(!has(&report, "main-session") && has(&report, "two-keys"));
    assert!(
        routes(&sandbox, "main").contains(&vec!["agent:main:main".to_owned(), "own".to_owned()])
    );
}

#[test]
fn c11_what_a_key_says_is_typed_once_and_only_what_a_channel_tells_apart_keeps_its_case() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let mut topic = entry("topic", 1);
    topic["deliveryContext"] =
        json!({"channel": "telegram", "to": "telegram:-100", "accountId": "work", "threadId": 1});
    let mut main = entry("main", 1);
    main["lastChannel"] = json!("Telegram");
    main["lastTo"] = json!("telegram:42");
    index(
        &there,
        "main",
        &json!({
            "agent:main:telegram:group:-100:topic:1": topic, "agent:main:main": main,
            "agent:main:matrix:channel:!Ab:Server": entry("upper", 1), "agent:main:matrix:channel:!ab:Server": entry("lower", 1),
        }),
    );

    import(&sandbox, there.root(), 0);

    let store = State::of(sandbox.root()).agent("main");
    let typed = sqlite::rows(
        &store,
        "SELECT s.session_id, session_scope, chat_type, c.channel, c.account_id, c.peer_id, c.thread_id
         FROM sessions s JOIN conversations c ON c.conversation_id = s.primary_conversation_id ORDER BY 1",
    );
    assert_eq!(
        typed,
        [
            [
                "lower",
                "channel",
                "channel",
                "matrix",
                "default",
                "!ab:Server",
                ""
            ],
            [
                "main",
                "shared-main",
                "direct",
                "telegram",
                "default",
                "42",
                ""
            ],
            ["topic", "group", "group", "telegram", "work", "-100", "1"],
            [
                "upper",
                "channel",
                "channel",
                "matrix",
                "default",
                "!Ab:Server",
                ""
            ],
        ]
    );
}

#[test]
fn c13_nothing_runs_by_import_and_what_names_no_session_is_refused_by_its_key() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let mut running = entry("one", 1);
    running["status"] = json!("running");
    index(
        &there,
        "main",
        &json!({"agent:main:main": running, "agent:main:x": {"updatedAt": 1}, "agent:main:y": null, "agent:main:z": {"sessionId": "../../etc"}}),
    );

    let report = import(&sandbox, there.root(), 1);

    let store = State::of(sandbox.root()).agent("main");
    assert_eq!(
        sqlite::rows(&store, "SELECT session_id, status FROM sessions"),
        [["one", "interrupted"]]
    );
    let refused = report["sources"][0]["refused"].as_array().unwrap();
    let places: Vec<&str> = refused
        .iter()
        .map(|refused| refused["place"].as_str().unwrap())
        .collect();
    assert_eq!(
        places,
        ["key agent:main:x", "key agent:main:y", "key agent:main:z"]
    );
    assert_eq!(State::of(sandbox.root()).quarantined().len(), 1);
}

#[test]
fn c15_a_path_of_another_machine_is_found_by_its_name_and_one_that_leads_away_is_not_followed() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    let with = |id: &str, file: &str| {
        let mut found = entry(id, 1);
        found["sessionFile"] = json!(file);
        found
    };
    there.file("secret.jsonl", &talk("away", &["never seen"]));
    index(
        &there,
        "main",
        &json!({
            "agent:main:a": with("bob", "/Users/bob/.clawdbot/agents/main/sessions/named.jsonl"),
            "agent:main:b": with("win", "C:\\Users\\x\\sessions\\win-topic-3.jsonl"),
            "agent:main:c": with("away", "../../../secret.jsonl"),
        }),
    );
    transcript(&there, "main", "named.jsonl", &talk("bob", &["of bob"]));
    transcript(
        &there,
        "main",
        "win-topic-3.jsonl",
        &talk("win", &["of windows"]),
    );

    let report = import(&sandbox, there.root(), 0);

    let counts: Vec<_> = State::of(sandbox.root())
        .sessions()
        .into_iter()
        .map(|row| (row.1, row.2))
        .collect();
    let of = |key: &str, messages| (key.to_owned(), messages);
    assert_eq!(
        counts,
        [
            of("agent:main:a", 1),
            of("agent:main:b", 1),
            of("agent:main:c", 0)
        ]
    );
    assert!(has(&report, "transcript-missing"));
}

#[test]
fn c07_a_changed_index_that_comes_back_adds_keys_and_never_turns_one_away() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    index(&there, "main", &json!({"agent:main:main": entry("one", 1)}));
    transcript(&there, "main", "one.jsonl", &talk("one", &["hi", "ho"]));
    import(&sandbox, there.root(), 0);
    index(
        &there,
        "main",
        &json!({"agent:main:main": entry("two", 9), "agent:main:new": entry("three", 2)}),
    );
    transcript(
        &there,
        "main",
        "one.jsonl",
        &talk("one", &["hi", "ho", "more"]),
    );
    transcript(
        &there,
        "main",
        "two.jsonl",
        &talk("two", &["after a reset"]),
    );

    import(&sandbox, there.root(), 0);

    let found = routes(&sandbox, "main");
    assert!(
        found.contains(&vec!["agent:main:main".to_owned(), "one".to_owned()]),
        "{found:?}"
    );
    assert!(
        found.contains(&vec!["agent:main:new".to_owned(), "three".to_owned()]),
        "{found:?}"
    );
    let counts: Vec<usize> = State::of(sandbox.root())
        .sessions()
        .into_iter()
        .map(|row| row.2)
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 4);
}
