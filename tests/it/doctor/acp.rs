//! Sessions of editors: every shape of their store, what was said and done in order, and ended ones that stay so.

use serde_json::{Value, json};

use super::state::{State, source};
use crate::support::legacy::LegacyInstall;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal};

const STORE: &str = "data/sessions/acp-sessions.db";
const CONFIG: &str =
    "schema_version = 3\n[agents.atlas]\nenabled = true\n[agents.birch]\nenabled = true\n";
const ONE: &str = "11111111-0000-4000-8000-000000000001";

fn install(home: &Sandbox) -> LegacyInstall {
    let install = LegacyInstall::new(home.root());
    install.config(CONFIG);
    install
}

/// A session of `atlas` with `more` columns, a question and an answer.
fn talk(more: &str, values: &str) -> String {
    format!(
        "INSERT INTO acp_sessions (id, session_uuid, agent_alias, workspace_dir, token_count, created_at, last_activity{more})
         VALUES (1, '{ONE}', 'atlas', '/srv/gone', 7, '2026-05-01T08:00:00+00:00', '2026-05-01T08:02:00+00:00'{values});
         INSERT INTO acp_messages (id, session_id, role, content, reasoning_content, created_at) VALUES
             (1, 1, 'user', 'the question', NULL, '2026-05-01T08:01:00+00:00'),
             (2, 1, 'assistant', 'the answer', 'because', '2026-05-01T08:02:00+00:00');"
    )
}

fn fix(home: &Sandbox, code: i32) -> Value {
    home.zeroclaw(&["doctor", "--fix", "--json"])
        .exits(code)
        .json()
}

fn events(home: &Sandbox, session: &str) -> Vec<Value> {
    let shown = home
        .zeroclaw(&["sessions", "show", session, "--all", "--json"])
        .exits(0)
        .json();
    shown["events"].as_array().unwrap().clone()
}

fn types(events: &[Value]) -> Vec<&str> {
    let words = events.iter().map(|event| &event["event_type"]);
    words.map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn every_shape_with_agents_gives_the_same_session() {
    for (ddl, more, values) in [
        ("acp_v0_8_0_beta_2.sql", "", ""),
        ("acp_v0_8_3.sql", ", killed_at, plan_json", ", NULL, '[]'"),
    ] {
        let home = Sandbox::in_memory();
        install(&home).sqlite(STORE, ddl, &[&talk(more, values)]);

        let report = fix(&home, 0);

        let counts = &source(&report, STORE).unwrap()["counts"];
        assert_eq!(counts["sessions"]["imported"], 1, "{ddl}");
        assert_eq!(counts["messages"]["imported"], 2, "{ddl}");
        let events = events(&home, ONE);
        assert_eq!(events[1]["text"], "the answer");
        assert_eq!(
            events[1]["event_json"],
            json!({"reasoning_content": "because"}).to_string()
        );
        assert_eq!(events[1]["parent_id"], events[0]["event_id"]);
        let acp = home
            .zeroclaw(&["sessions", "acp", "--json"])
            .exits(0)
            .json();
        let row = &acp["items"][0];
        assert_eq!(
            (&row["cwd"], &row["token_count"], &row["state"]),
            (&json!("/srv/gone"), &json!(7), &json!("open"))
        );
    }
}

#[test]
fn columns_that_came_by_alter_stand_last_and_are_read_by_name() {
    let home = Sandbox::in_memory();
    let install = install(&home);
    install.sqlite(STORE, "acp_v0_8_0_beta_2.sql", &[&talk("", "")]);
    install.alter(
        STORE,
        Journal::Wal,
        "ALTER TABLE acp_sessions ADD COLUMN killed_at TEXT; ALTER TABLE acp_sessions ADD COLUMN plan_json TEXT;
         ALTER TABLE acp_sessions ADD COLUMN of_a_later_release TEXT;
         UPDATE acp_sessions SET killed_at = '2026-05-01T09:00:00+00:00', of_a_later_release = 'kept',
             plan_json = '[{\"content\":\"sow\",\"status\":\"in_progress\",\"priority\":\"low\",\"activeForm\":\"sowing\"}]';",
    );

    fix(&home, 0);

    let atlas = State::of(home.root()).agent("atlas");
    let entry = &sqlite::rows(&atlas, "SELECT entry_json FROM session_entries")[0][0];
    let entry: Value = serde_json::from_str(entry).unwrap();
    assert_eq!(entry["plan"][0]["activeForm"], "sowing");
    assert_eq!(entry["of_a_later_release"], "kept");
    let session = &sqlite::rows(
        &atlas,
        "SELECT status, archived_at_ms, (SELECT count(*) FROM session_routes) FROM sessions",
    )[0];
    assert_eq!(session, &["killed", "1777626000000", "0"]);
}

#[test]
fn what_tools_and_clients_did_stands_between_the_messages() {
    let home = Sandbox::in_memory();
    let large = "x".repeat(200_000);
    install(&home).sqlite(
        STORE,
        "acp_v0_8_3.sql",
        &[
            &talk("", ""),
            &format!(
                "INSERT INTO acp_messages VALUES (3, 1, 'assistant', 'done', NULL, '2026-05-01T08:05:00+00:00');
                 INSERT INTO acp_tool_calls VALUES
                     (1, 2, 'c1', 'shell', 'in', '{{\"command\":\"ls\"}}', NULL, '2026-05-01T08:02:10+00:00'),
                     (2, 2, 'c1', 'shell', 'out', 'start {large} ende', 'unknown', '2026-05-01T08:02:20+00:00'),
                     (3, 2, 'c2', 'unknown', 'out', 'no call of mine', 'unknown', '2026-05-01T08:02:30+00:00');
                 INSERT INTO acp_session_events VALUES
                     (1, 1, 'start', 'success', '{{\"client\":\"zed\"}}', '2026-05-01T08:00:30+00:00'),
                     (2, 1, 'complete', 'unknown', NULL, '2026-05-01T08:06:00+00:00');"
            ),
        ],
    );

    let report = fix(&home, 0);

    let counts = &source(&report, STORE).unwrap()["counts"];
    assert_eq!(
        (
            &counts["messages"]["imported"],
            &counts["events"]["imported"]
        ),
        (&json!(3), &json!(5))
    );
    assert_eq!(counts["tool artifacts"]["imported"], 1);
    let events = events(&home, ONE);
    assert_eq!(
        types(&events),
        [
            "session_event",
            "message",
            "message",
            "tool_call",
            "tool_result",
            "tool_result",
            "message",
            "session_event"
        ]
    );
    let more: Value = serde_json::from_str(events[4]["event_json"].as_str().unwrap()).unwrap();
    let artifact = more["artifact"]["artifact_id"].as_str().unwrap();
    let shown = home
        .zeroclaw(&["sessions", "artifact", ONE, artifact])
        .exits(0);
    assert_eq!(shown.stdout, format!("start {large} ende"));
    assert!(events[4]["text"].as_str().unwrap().len() < 5_000);
    home.zeroclaw(&["sessions", "artifacts", ONE])
        .says("200011");
    home.zeroclaw(&["sessions", "show", ONE])
        .says("tool_call shell");
    home.zeroclaw(&["sessions", "search", "start"])
        .exits(0)
        .says(ONE);
}

#[test]
fn the_first_beta_names_no_agent_and_has_whole_messages() {
    let home = Sandbox::in_memory();
    install(&home).sqlite(
        STORE,
        "acp_v0_8_0_beta_1.sql",
        &[&format!(
            r#"INSERT INTO acp_sessions VALUES ('{ONE}', '/srv/gone', '2026-05-01T08:00:00+00:00', '2026-05-01T08:02:00+00:00'),
                   ('bare', '', 'never', 'never');
               INSERT INTO acp_messages VALUES
                   (1, '{ONE}', '{{"type":"Chat","data":{{"role":"user","content":"ask"}}}}', '2026-05-01T08:01:00+00:00'),
                   (2, '{ONE}', '{{"type":"AssistantToolCalls","data":{{"text":null,"tool_calls":[{{"id":"c1","name":"shell","arguments":"{{}}"}}],"reasoning_content":"why"}}}}', '2026-05-01T08:01:30+00:00'),
                   (3, '{ONE}', '{{"type":"ToolResults","data":[{{"tool_call_id":"c1","content":"r1"}},{{"tool_call_id":"c2","content":"r2"}}]}}', '2026-05-01T08:01:40+00:00'),
                   (4, '{ONE}', '{{"type":"Unheard","data":1}}', '2026-05-01T08:01:50+00:00'),
                   (5, 'nobody', '{{}}', '2026-05-01T08:01:50+00:00');"#
        )],
    );

    let report = fix(&home, 1);

    let refused = source(&report, STORE).unwrap()["refused"].to_string();
    assert!(
        refused.contains("row 4") && refused.contains("row 5"),
        "{refused}"
    );
    let events = events(&home, ONE);
    assert_eq!(
        types(&events),
        [
            "message",
            "message",
            "tool_call",
            "tool_result",
            "tool_result"
        ]
    );
    assert_eq!(events[1]["role"], "assistant");
    let sessions = State::of(home.root()).sessions();
    assert_eq!(sessions[0].0, "atlas", "by the fallback rule");
    assert_eq!(sessions.len(), 2);
    assert_eq!(fix(&home, 0)["changed"], false);
}

#[test]
fn rows_that_cannot_be_taken_are_named_with_what_hangs_on_them() {
    let home = Sandbox::in_memory();
    install(&home).sqlite(
        STORE,
        "acp_v0_8_3.sql",
        &[
            &talk("", ""),
            "INSERT INTO acp_sessions (id, session_uuid, agent_alias, workspace_dir, created_at, last_activity)
                 VALUES (2, 'odd', 'Not A Name', '', '', '');
             INSERT INTO acp_messages VALUES (3, 1, 'user', X'ff00', NULL, ''), (4, 2, 'user', 'lost', NULL, ''), (5, 99, 'user', 'stray', NULL, '');
             INSERT INTO acp_tool_calls VALUES (1, 4, 'c', 'shell', 'in', '{}', NULL, ''), (2, 77, 'c', 'shell', 'in', '{}', NULL, ''),
                 (3, 2, 'c', 'shell', 'out', CAST(X'61ff' AS TEXT), NULL, '');
             INSERT INTO acp_session_events VALUES (1, 55, 'start', 'success', NULL, ''), (2, 2, 'start', 'success', NULL, '');",
        ],
    );

    let report = fix(&home, 1);

    let of = source(&report, STORE).unwrap();
    let refused = of["refused"].to_string();
    for place in [
        "acp_sessions, row 2",
        "acp_messages, row 3",
        "acp_messages, row 4",
        "acp_messages, row 5",
        "acp_tool_calls, row 1",
        "acp_tool_calls, row 2",
        "acp_tool_calls, row 3",
        "acp_session_events, row 1",
        "acp_session_events, row 2",
    ] {
        assert!(refused.contains(place), "{place}: {refused}");
    }
    assert_eq!(report["total"]["refused"], 9);
    assert_eq!(of["counts"]["messages"]["imported"], 2);
    assert_eq!(of["counts"]["sessions"]["imported"], 1);
}

#[test]
fn c07_an_older_store_that_comes_back_brings_what_is_new_and_wakes_nothing() {
    let home = Sandbox::in_memory();
    let install = install(&home);
    install.sqlite(STORE, "acp_v0_8_3.sql", &[&talk("", "")]);
    fix(&home, 0);
    install.sqlite(
        STORE,
        "acp_v0_8_3.sql",
        &[
            &talk(", killed_at", ", '2026-05-01T09:00:00+00:00'"),
            "INSERT INTO acp_messages VALUES (3, 1, 'user', 'one more', NULL, '2026-05-01T08:59:00+00:00');
             UPDATE acp_sessions SET token_count = 9, last_activity = '2026-05-01T09:00:00+00:00';",
        ],
    );
    let report = fix(&home, 0);
    let counts = &source(&report, STORE).unwrap()["counts"];
    assert_eq!(
        (
            &counts["messages"]["present"],
            &counts["messages"]["imported"]
        ),
        (&json!(2), &json!(1))
    );
    // The first state once more: what has ended stays so.
    install.sqlite(STORE, "acp_v0_8_3.sql", &[&talk("", "")]);
    fix(&home, 0);

    let row = home
        .zeroclaw(&["sessions", "acp", "--json"])
        .exits(0)
        .json()["items"][0]
        .clone();
    assert_eq!(
        (&row["state"], &row["token_count"]),
        (&json!("ended"), &json!(9))
    );
    let atlas = State::of(home.root()).agent("atlas");
    let session = &sqlite::rows(&atlas, "SELECT status, message_count FROM sessions")[0];
    assert_eq!(session, &["killed", "3"]);
    assert_eq!(
        sqlite::number(&atlas, "SELECT count(*) FROM session_routes"),
        0
    );
}

#[test]
fn a_store_in_the_old_layout_and_one_in_the_new_are_both_taken() {
    let home = Sandbox::in_memory();
    let install = install(&home);
    install.sqlite(
        "workspace/sessions/acp-sessions.db",
        "acp_v0_8_0_beta_2.sql",
        &[&talk("", "").replace(ONE, "22222222-0000-4000-8000-000000000002")],
    );
    install.sqlite_with_wal(STORE, "acp_v0_8_3.sql", &[], &[&talk("", "")]);

    fix(&home, 0);

    assert_eq!(State::of(home.root()).sessions().len(), 2);
    assert_eq!(fix(&home, 0)["changed"], false);
}
