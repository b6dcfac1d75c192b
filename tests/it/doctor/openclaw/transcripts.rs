//! Transcripts of every version, and with every fault.

use serde_json::{Value, json};

use super::super::state::State;
use super::{has, import};
use crate::support::legacy::LegacyInstall;
use crate::support::openclaw::{
    entry, header, home, index, lines, said, said_v1, stamp, talk, transcript,
};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

/// A home whose only session has this transcript.
fn one(sandbox: &Sandbox, bytes: &[u8]) -> LegacyInstall {
    let there = home(sandbox.home().join("there"));
    index(&there, "main", &json!({"agent:main:main": entry("one", 1)}));
    transcript(&there, "main", "one.jsonl", bytes);
    there
}

/// Type, role and text of every event, in order.
fn events(sandbox: &Sandbox) -> Vec<Vec<String>> {
    let store = State::of(sandbox.root()).agent("main");
    sqlite::rows(
        &store,
        "SELECT event_type, role, text FROM transcript_events ORDER BY event_no",
    )
}

fn source<'r>(report: &'r Value, ending: &str) -> &'r Value {
    let mut sources = report["sources"].as_array().unwrap().iter();
    sources
        .find(|source| source["path"].as_str().unwrap().ends_with(ending))
        .unwrap()
}

#[test]
fn versions_1_to_3_come_in_with_every_type_of_record() {
    let sandbox = Sandbox::in_memory();
    let of = |more: Value| {
        let mut record =
            json!({"id": format!("{}", more["type"]), "parentId": null, "timestamp": stamp(5)});
        record
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        record
    };
    let there = one(
        &sandbox,
        &lines(&[
            header("one", 3),
            of(json!({"type": "model_change", "provider": "p", "modelId": "m"})),
            of(json!({"type": "thinking_level_change", "thinkingLevel": "off"})),
            of(
                json!({"type": "compaction", "summary": "in short", "firstKeptEntryId": "x", "tokensBefore": 9}),
            ),
            of(json!({"type": "branch_summary", "fromId": "x", "summary": "elsewhere"})),
            of(json!({"type": "custom", "customType": "openclaw.cache-ttl", "data": {}})),
            of(
                json!({"type": "custom_message", "customType": "c", "content": "noted", "display": true}),
            ),
            of(json!({"type": "label", "targetId": "x", "label": "here"})),
            of(json!({"type": "session_info", "name": "a title"})),
            of(json!({"type": "reset", "reason": "idle"})),
            of(json!({"type": "from-the-future", "what": 1})),
            said("m", None, "toolResult", "a file"),
        ]),
    );
    transcript(
        &there,
        "main",
        "v1.jsonl",
        &lines(&[
            header("v1", 1),
            said_v1("user", "plain"),
            said_v1("hookMessage", "hooked"),
        ]),
    );
    let mut untold = header("v0", 1);
    untold.as_object_mut().unwrap().remove("version");
    transcript(
        &there,
        "main",
        "v0.jsonl",
        &lines(&[untold, said_v1("user", "no version")]),
    );

    import(&sandbox, there.root(), 0);

    assert_eq!(
        events(&sandbox),
        [
            ["session", "", ""],
            ["model_change", "", ""],
            ["thinking_level_change", "", ""],
            ["compaction", "", "in short"],
            ["branch_summary", "", "elsewhere"],
            ["custom", "", ""],
            ["custom_message", "", "noted"],
            ["label", "", "here"],
            ["session_info", "", "a title"],
            ["reset", "", ""],
            ["from-the-future", "", ""],
            ["message", "toolResult", "a file"],
            ["session", "", ""],
            ["message", "user", "no version"],
            ["session", "", ""],
            ["message", "user", "plain"],
            ["message", "custom", "hooked"],
        ]
    );
}

#[test]
fn c17_a_conversation_stands_where_its_last_record_or_its_leaf_says() {
    let fork = [
        header("one", 3),
        said("a", None, "user", "question"),
        said("b", Some("a"), "assistant", "first answer"),
        said("c", Some("a"), "assistant", "second answer"),
    ];
    let mut back = fork.to_vec();
    back.push(
        json!({"type": "leaf", "id": "l", "parentId": "c", "targetId": "b", "timestamp": stamp(9)}),
    );
    for (records, wanted, unwanted) in [
        (fork.to_vec(), "second answer", "first answer"),
        (back, "first answer", "second answer"),
    ] {
        let sandbox = Sandbox::in_memory();
        let there = one(&sandbox, &lines(&records));

        let report = import(&sandbox, there.root(), 0);

        assert_eq!(
            source(&report, "one.jsonl")["counts"]["branches"]["imported"],
            1
        );
        let shown = sandbox
            .zeroclaw(&["sessions", "show", "agent:main:main"])
            .exits(0)
            .says(wanted);
        assert!(!shown.stdout.contains(unwanted), "{}", shown.stdout);
    }
}

#[test]
fn a_plain_list_needs_no_branch_and_a_parent_that_is_not_there_makes_none() {
    let sandbox = Sandbox::in_memory();
    let there = one(
        &sandbox,
        &lines(&[
            header("one", 3),
            said("a", Some("nowhere"), "user", "cut before"),
            said("b", Some("a"), "assistant", "yes"),
            said("c", Some("gone"), "user", "cut between"),
        ]),
    );

    let report = import(&sandbox, there.root(), 0);

    assert!(source(&report, "one.jsonl")["counts"]["branches"].is_null());
    sandbox
        .zeroclaw(&["sessions", "show", "agent:main:main"])
        .exits(0)
        .says("cut before")
        .says("cut between");
}

#[test]
fn c18_a_torn_last_line_is_told_and_a_broken_one_is_refused_by_its_place() {
    let sandbox = Sandbox::in_memory();
    let mut bytes = lines(&[header("one", 3), said("a", None, "user", "whole")]);
    bytes.extend(b"{\"type\":\"message\",\"id\":\"b\"\n\n  \r\n");
    bytes.extend(lines(&[
        json!({"no": "type"}),
        said("c", Some("a"), "assistant", "behind it"),
    ]));
    bytes.extend(b"{\"type\":\"message\",\"id\":\"d\",\"mess");
    let there = one(&sandbox, &bytes);

    let report = import(&sandbox, there.root(), 1);

    let found = source(&report, "one.jsonl");
    let places: Vec<&str> = found["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refused| refused["place"].as_str().unwrap())
        .collect();
    assert_eq!(places.len(), 2, "{found:#}");
    assert!(
        places[0].starts_with("line 3 at byte ") && places[1].starts_with("line 6 at byte "),
        "{places:?}"
    );
    assert_eq!(found["partial_tails"].as_array().unwrap().len(), 1);
    assert_eq!(events(&sandbox).len(), 3);
    let kept = State::of(sandbox.root()).quarantined().concat();
    let kept = String::from_utf8(kept).unwrap();
    assert!(kept.contains("\"mess") && kept.contains("\"no\""), "{kept}");
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_told() {
    let sandbox = Sandbox::in_memory();
    let mut bytes = b"\xEF\xBB\xBF".to_vec();
    bytes.extend(lines(&[header("one", 3)]));
    bytes.extend(b"{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"message\":{\"role\":\"user\",\"content\":\"half \\ud83d and \xFF\"}}\r\n");
    let there = one(&sandbox, &bytes);

    let report = import(&sandbox, there.root(), 0);

    assert!(has(&report, "replaced-text"));
    assert_eq!(events(&sandbox)[1][2], "half \u{FFFD} and \u{FFFD}");
}

#[test]
fn c20_ids_that_occur_twice_cost_no_record() {
    let sandbox = Sandbox::in_memory();
    let twice = said("a", None, "user", "once");
    let there = one(
        &sandbox,
        &lines(&[
            header("one", 3),
            twice.clone(),
            twice,
            said("a", None, "user", "another of that id"),
            said("b", Some("a"), "assistant", "yes"),
        ]),
    );

    let report = import(&sandbox, there.root(), 0);

    let counts = &source(&report, "one.jsonl")["counts"]["messages"];
    assert_eq!(
        (counts["imported"].as_u64(), counts["merged"].as_u64()),
        (Some(3), Some(1))
    );
    assert!(has(&report, "repeated-id"));
}

#[test]
fn a_session_that_was_compacted_under_a_new_header_comes_in_beside_what_it_was() {
    let sandbox = Sandbox::in_memory();
    let there = one(&sandbox, &talk("one", &["hello", "yes?"]));
    import(&sandbox, there.root(), 0);
    let mut later = header("one", 3);
    later["timestamp"] = json!(stamp(600));
    let kept = said("kept-0", None, "assistant", "yes?");
    transcript(&there, "main", "one.jsonl", &lines(&[later, kept]));

    let report = import(&sandbox, there.root(), 0);

    let counts = &source(&report, "one.jsonl")["counts"];
    assert_eq!(counts["messages"]["imported"], 1, "{counts}");
    let of_type = |wanted: &str| {
        let all = events(&sandbox);
        all.iter().filter(|event| event[0] == wanted).count()
    };
    assert_eq!((of_type("session"), of_type("message")), (2, 3));
    import(&sandbox, there.root(), 0);
    assert_eq!((of_type("session"), of_type("message")), (2, 3));
}

#[test]
fn headers_that_are_missing_or_differ_or_occur_twice_are_told_and_cost_nothing() {
    let headless = lines(&[said("a", Some("cut"), "user", "the end of a long talk")]);
    let other = lines(&[header("someone-else", 3), said("a", None, "user", "hi")]);
    let two = lines(&[
        header("one", 3),
        said("a", None, "user", "hi"),
        header("two", 3),
        said("b", None, "user", "ho"),
    ]);
    let newer = lines(&[header("one", 7), said("a", None, "user", "hi")]);
    for (bytes, code, messages) in [
        (headless, "header-missing", 1),
        (other, "header-differs", 1),
        (two, "two-headers", 2),
        (newer, "newer-transcript", 1),
    ] {
        let sandbox = Sandbox::in_memory();
        let there = one(&sandbox, &bytes);

        let report = import(&sandbox, there.root(), 0);

        assert!(has(&report, code), "{code}");
        let mine = ("main".to_owned(), "agent:main:main".to_owned(), messages);
        assert_eq!(State::of(sandbox.root()).sessions(), [mine]);
    }
}

#[test]
fn what_nobody_points_to_is_left_where_it_is_newer_than_this_release_or_no_transcript() {
    let sandbox = Sandbox::in_memory();
    let there = home(sandbox.home().join("there"));
    transcript(
        &there,
        "main",
        "newer.jsonl",
        &lines(&[header("newer", 9), said("a", None, "user", "hi")]),
    );
    transcript(
        &there,
        "main",
        "trace.jsonl",
        b"{\"traceSchema\":\"openclaw-trajectory\",\"type\":\"x\"}\n",
    );
    transcript(&there, "main", "empty.jsonl", b"");
    transcript(
        &there,
        "main",
        "only-header.jsonl",
        &lines(&[header("only-header", 3)]),
    );

    let report = import(&sandbox, there.root(), 1);

    let status = |name: &str| source(&report, name)["status"].as_str().unwrap().to_owned();
    assert_eq!(["newer.jsonl", "trace.jsonl"].map(status), ["left", "left"]);
    assert_eq!(
        ["empty.jsonl", "only-header.jsonl"].map(status),
        ["imported", "imported"]
    );
}

#[test]
fn c32_what_was_reset_or_deleted_is_history_and_never_alive() {
    let sandbox = Sandbox::in_memory();
    let there = one(&sandbox, &talk("one", &["now"]));
    for name in [
        "old.jsonl.reset.2026-01-01T10-00-00.000Z",
        "gone.jsonl.deleted.2026-01-02T10-00-00.000Z",
        "one.jsonl.bak.2026-01-03T10-00-00.000Z",
    ] {
        let id = name.split('.').next().unwrap();
        transcript(&there, "main", name, &talk(id, &["a perihelion long ago"]));
    }
    transcript(
        &there,
        "main",
        "one.checkpoint.5b.jsonl",
        &talk("one", &["a copy"]),
    );
    transcript(
        &there,
        "main",
        "gone.jsonl.deleted.2026-01-02T10-00-00.000Z.00.zst",
        b"packed",
    );

    let report = import(&sandbox, there.root(), 0);

    let store = State::of(sandbox.root()).agent("main");
    let stand = "SELECT session_key, archived_at_ms FROM sessions WHERE archived_at_ms IS NOT NULL ORDER BY 2";
    let stand = sqlite::rows(&store, stand);
    let keys: Vec<&str> = stand
        .iter()
        .map(|row| row[0].rsplit_once(':').unwrap().0)
        .collect();
    assert_eq!(
        keys,
        ["agent:main:reset", "agent:main:deleted", "agent:main:bak"]
    );
    sandbox
        .zeroclaw(&["sessions", "search", "perihelion"])
        .exits(0)
        .says("gone");
    let others = report["others"].as_array().unwrap();
    let told = |surface: &str| {
        others
            .iter()
            .any(|other| other["surface"] == surface && other["reason"].is_string())
    };
    assert!(
        told("compaction copies") && told("packed transcripts"),
        "{others:#?}"
    );
}

#[test]
fn c30_a_giant_line_comes_in_whole() {
    let sandbox = Sandbox::in_memory();
    let image = "A".repeat(12 * 1024 * 1024);
    let mut big = said("a", None, "user", "look");
    big["message"]["content"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "image", "data": image, "mimeType": "image/png"}));
    let there = one(&sandbox, &lines(&[header("one", 3), big]));

    import(&sandbox, there.root(), 0);

    let store = State::of(sandbox.root()).agent("main");
    let size = sqlite::number(
        &store,
        "SELECT max(length(event_json)) FROM transcript_events",
    );
    assert!(size > 12 * 1024 * 1024, "{size}");
}
