//! `--json` is a contract: what is printed is what `docs/cli-json.md` names.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::inhabited;
use crate::support::sandbox::Sandbox;

/// Names of all fields, at any depth, but for those of `rows`: they are names of tables.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                if name != "rows" {
                    names(value, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

/// Fails if a field is printed that the page about JSON does not name.
#[track_caller]
pub(crate) fn is_documented(args: &[&str], value: &Value) {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cli-json.md");
    let documented = std::fs::read_to_string(page).unwrap();
    let mut printed = BTreeSet::new();
    names(value, &mut printed);
    printed.retain(|name| !documented.contains(&format!("`{name}`")));
    assert!(printed.is_empty(), "{args:?} prints {printed:?}");
}

#[test]
fn every_field_that_is_printed_is_documented() {
    let home = Sandbox::new();
    inhabited::build(&home.root());

    let looking = super::looking::commands();
    for args in looking.iter().filter(|args| args.contains(&"--json")) {
        is_documented(args, &home.zeroclaw(args).exits(0).json());
    }
}

#[test]
#[should_panic(expected = "made_up_field")]
fn a_field_that_is_not_documented_is_found() {
    is_documented(&[], &json!({ "items": [{ "made_up_field": 1 }] }));
}

#[test]
fn empty_answers_are_empty_values() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);

    for (args, expected) in [
        (&["agents", "list"][..], json!([])),
        (&["sessions", "list"], json!({ "items": [], "next": null })),
        (
            &["sessions", "search", "x"],
            json!({ "hits": [], "incomplete": [], "unreadable": [] }),
        ),
        (&["cron", "list"], json!([])),
        (&["cron", "runs"], json!({ "items": [], "next": null })),
        (&["tasks", "list"], json!({ "items": [], "next": null })),
        (&["tasks", "goals"], json!({ "items": [], "next": null })),
        (
            &["tasks", "settlements"],
            json!({ "items": [], "next": null }),
        ),
        (&["logs"], json!({ "items": [], "next": null })),
        (&["memory", "list"], json!({ "items": [], "next": null })),
        (&["devices", "list"], json!([])),
        (&["flows", "list"], json!({ "items": [], "next": null })),
        (
            &["flows", "proposals"],
            json!({ "items": [], "next": null }),
        ),
        (&["flows", "claims"], json!([])),
        (&["delivery", "list"], json!({ "items": [], "next": null })),
        (
            &["commitments", "list"],
            json!({ "items": [], "next": null }),
        ),
        (&["plugins", "list"], json!([])),
        (&["plugins", "bindings"], json!([])),
        (&["plugins", "installed"], json!([])),
        (&["knowledge", "list"], json!({ "items": [], "next": null })),
        (&["audit", "list"], json!({ "items": [], "next": null })),
        (&["backup", "list"], json!([])),
        (&["doctor", "history"], json!([])),
    ] {
        let ran = home.zeroclaw(&[args, &["--json"]].concat()).exits(0);
        assert_eq!(ran.json(), expected, "{args:?}");
        ran.complains_of_nothing();
    }
}

#[test]
fn a_failure_is_one_object_on_stderr() {
    let home = Sandbox::new();

    let missing = home.zeroclaw(&["status", "--json"]).exits(3).says_nothing();
    let error = &missing.json_error()["error"];
    assert_eq!(error["kind"], "not_initialised");
    assert_eq!(error["exit_code"], 3);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("no state in ")
    );
    assert!(error["hint"].as_str().unwrap().contains("zeroclaw init"));

    let usage = home
        .zeroclaw(&["--json", "frobnicate"])
        .exits(2)
        .says_nothing();
    assert_eq!(usage.json_error()["error"]["kind"], "usage");
}

#[test]
fn init_says_whether_it_made_the_root() {
    let home = Sandbox::new();
    let root = home.root().to_str().unwrap().to_owned();

    let first = home.zeroclaw(&["init", "--json"]).exits(0).json();
    let second = home.zeroclaw(&["init", "--json"]).exits(0).json();

    assert_eq!(first, json!({ "root": root, "created": true }));
    assert_eq!(second, json!({ "root": root, "created": false }));
}

#[test]
fn pages_carry_their_cursor() {
    let home = Sandbox::new();
    inhabited::build(&home.root());

    let first = home
        .zeroclaw(&["cron", "runs", "--limit", "3", "--json"])
        .exits(0);
    let cursor = first.json()["next"].as_str().unwrap().to_owned();
    let second = home
        .zeroclaw(&[
            "cron", "runs", "--limit", "3", "--json", "--before", &cursor,
        ])
        .exits(0)
        .json();

    assert_eq!(first.json()["items"].as_array().unwrap().len(), 3);
    assert_eq!(second["items"].as_array().unwrap().len(), 2);
    assert_eq!(second["next"], Value::Null);
    first.complains_of_nothing();
}

#[test]
fn sizes_and_times_are_exact() {
    let home = Sandbox::new();
    inhabited::build(&home.root());

    let backup = &home.zeroclaw(&["backup", "list", "--json"]).exits(0).json()[0];

    assert_eq!(backup["archive_bytes"], 4_096);
    assert_eq!(backup["created_at_ms"], inhabited::START_MS);
    home.zeroclaw(&["backup", "list"])
        .says("4.0 KiB")
        .says("2026-01-05T10:15:00Z");
}
