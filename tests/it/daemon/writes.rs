//! What clients and commands change through a daemon.

use serde_json::{Value, json};

use super::host::{Host, fresh};
use crate::support::sandbox::Sandbox;

/// A root with an agent and a daemon.
fn served() -> (Sandbox, Host) {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let host = Host::start(&sandbox);
    (sandbox, host)
}

fn message(text: &str) -> Value {
    json!({"event_type": "message", "role": "user", "text": text})
}

#[test]
fn a_client_appends_once_however_often_it_asks() {
    let (sandbox, host) = served();
    let mut caller = host.caller();
    let append = json!({
        "agent": "atlas",
        "session": {"key": "telegram:1"},
        "events": [message("about a heron"), message("about an otter")],
        "idempotency_key": "first",
    });

    let first = caller.call("sessions.append", append.clone()).unwrap();
    let again = caller.call("sessions.append", append).unwrap();

    assert_eq!(first["is_new_session"], true);
    assert_eq!(again["is_repeat"], true);
    assert_eq!(again["events"], first["events"]);
    let elsewhere = json!({
        "agent": "atlas",
        "session": {"key": "telegram:1"},
        "events": [message("too late")],
        "expected_parent": {"event": first["events"][0]["event_id"]},
    });
    let refused = caller.call("sessions.append", elsewhere).unwrap_err();
    assert_eq!(refused["data"]["kind"], "refused", "{refused}");
    let shown = sandbox.zeroclaw(&["sessions", "show", "telegram:1", "--json"]);
    assert_eq!(shown.exits(0).json()["session"]["message_count"], 2);
    host.stop();
}

#[test]
fn a_client_makes_patches_and_takes_away() {
    let (_sandbox, host) = served();
    let mut caller = host.caller();
    let made = json!({
        "agent": "atlas",
        "session": {"key": "desk"},
        "header": {"display_name": "Desk"},
    });

    let session = caller.call("sessions.create", made.clone()).unwrap();
    let taken = caller.call("sessions.create", made).unwrap_err();
    let patched = caller
        .call(
            "sessions.patch",
            json!({
                "session": "desk",
                "patch": {"display_name": null, "is_pinned": true},
                "expected_revision": session["revision"],
            }),
        )
        .unwrap();
    let stale = caller
        .call(
            "sessions.patch",
            json!({
                "session": "desk",
                "patch": {"display_name": "Late"},
                "expected_revision": session["revision"],
            }),
        )
        .unwrap();

    assert_eq!(taken["data"]["kind"], "refused", "{taken}");
    assert_eq!(patched["applied"]["display_name"], Value::Null, "{patched}");
    assert_ne!(patched["applied"]["pinned_at_ms"], Value::Null, "{patched}");
    assert_eq!(
        stale["conflict"]["fields"][0]["field"], "display_name",
        "{stale}"
    );
    host.stop();
}

#[test]
fn a_client_keeps_files_of_text_and_of_bytes() {
    let (_sandbox, host) = served();
    let mut caller = host.caller();
    let at = |path: &str| json!({"agent": "atlas", "namespace": "notes", "path": path});
    let with = |path: &str, more: Value| {
        let mut params = at(path);
        params.as_object_mut().unwrap().extend(
            more.as_object()
                .unwrap()
                .iter()
                .map(|(key, value)| (key.clone(), value.clone())),
        );
        params
    };

    let text = with("/a.md", json!({"content": {"text": "heron"}}));
    caller.call("vfs.write", text).unwrap();
    let more = with("/a.md", json!({"content": {"text": "s"}}));
    let grown = caller.call("vfs.append", more).unwrap();
    let bytes = with("/b/c", json!({"content": {"base64": "AP8="}}));
    caller.call("vfs.write", bytes).unwrap();
    let wrong = with("/d", json!({"content": {"base64": "AP8"}}));
    let refused = caller.call("vfs.write", wrong).unwrap_err();
    caller
        .call("vfs.rename", with("/b/c", json!({"to": "/e"})))
        .unwrap();

    assert_eq!(grown["size_bytes"], 6);
    assert_eq!(refused["data"]["kind"], "usage", "{refused}");
    let read = caller.call("vfs.read", at("/a.md")).unwrap();
    assert_eq!(read["content"], json!({"text": "herons"}));
    let read = caller
        .call("vfs.read", with("/e", json!({"offset": 1, "length": 9})))
        .unwrap();
    assert_eq!(
        read,
        json!({"offset": 1, "length": 1, "content": {"base64": "/w=="}})
    );
    caller.call("vfs.remove", at("/e")).unwrap();
    let gone = caller.call("vfs.read", at("/e")).unwrap_err();
    assert_eq!(gone["data"]["kind"], "not_found", "{gone}");
    host.stop();
}

#[test]
fn commands_that_change_an_agents_state_go_through_the_daemon() {
    let (sandbox, host) = served();
    let run = |args: &[&str]| sandbox.zeroclaw(args).exits(0);
    let append = json!({
        "agent": "atlas",
        "session": {"key": "desk"},
        "events": [message("about a heron")],
    });
    host.caller().call("sessions.append", append).unwrap();

    run(&["sessions", "rename", "desk", "Desk"]);
    run(&["sessions", "pin", "desk"]);
    run(&["sessions", "archive", "desk"]);
    run(&["sessions", "archive", "desk", "--undo"]);
    run(&["sessions", "fork", "desk", "--key", "copy"]);
    run(&["sessions", "export", "copy", "--output", "copy.jsonl"]);
    run(&["sessions", "delete", "copy", "--yes"]);
    run(&["sessions", "import", "copy.jsonl"]);
    run(&["sessions", "reset", "copy"]);
    run(&["sessions", "prune", "--max-sessions", "1", "--yes"]);
    run(&["memory", "store", "--agent", "atlas", "bird", "a heron"]);
    run(&["memory", "show", "--agent", "atlas", "bird"]).says("a heron");
    run(&["memory", "forget", "--agent", "atlas", "bird", "--yes"]);
    std::fs::write(sandbox.home().join("small"), "heron").unwrap();
    let vfs = |verb: &'static str| ["vfs", verb, "--agent", "atlas", "--namespace", "notes"];
    run(&[&vfs("put")[..], &["small", "/small"]].concat());
    run(&[&vfs("rm")[..], &["/small"]].concat());

    let listed = run(&["sessions", "list", "--archived", "--json"]).json();
    let items = listed["items"].as_array().unwrap();
    let keys: Vec<_> = items
        .iter()
        .map(|session| &session["session_key"])
        .collect();
    // What was put behind the key of the copy, and what is pinned; the copy itself was one too many.
    assert_eq!(keys, ["copy", "desk"], "{listed}");
    sandbox
        .zeroclaw(&["devices", "revoke", "none"])
        .exits(9)
        .complains("none");
    host.stop();
}

#[test]
fn a_file_too_large_for_one_request_goes_to_a_daemon_in_parts() {
    let (sandbox, host) = served();
    let bytes: Vec<u8> = (0..20 * 1024 * 1024_u32)
        .map(|at| (at % 251) as u8)
        .collect();
    std::fs::write(sandbox.home().join("large"), &bytes).unwrap();
    let vfs = |verb: &'static str, path: &'static str| {
        let agent = ["--agent", "atlas", "--namespace", "notes"];
        [&["vfs", verb][..], &agent, &[path]].concat()
    };

    let put = [&vfs("put", "large")[..], &["/large"]].concat();
    let stored = sandbox
        .zeroclaw(&[&put[..], &["--json"]].concat())
        .exits(0)
        .json();

    assert_eq!(stored["size_bytes"], bytes.len());
    assert_eq!(stored["path"], "large");
    let export = [&vfs("export", "/large")[..], &["out"]].concat();
    sandbox.zeroclaw(&export).exits(0);
    let read = std::fs::read(sandbox.home().join("out/large")).unwrap();
    assert!(read == bytes);
    // No part of it stays.
    let listed = sandbox.zeroclaw(&vfs("ls", "/")).exits(0);
    assert!(!listed.stdout.contains(".part"), "{}", listed.stdout);
    host.stop();
}
