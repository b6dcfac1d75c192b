//! Homes of OpenClaw: copied from with all that is in them, and left byte for byte as they are.

mod databases;
mod homes;
mod index;
mod sample;
mod transcripts;
mod work;

use std::path::Path;

use serde_json::Value;

use super::state::State;
use crate::support::sandbox::Sandbox;
use crate::support::tree::{assert_same_tree, tree_hash};

/// Imports a home, and once more: it is left alone, the report balances, and the second time nothing is changed.
fn import(sandbox: &Sandbox, home: &Path, code: i32) -> Value {
    let before = tree_hash(home);
    let from = [
        "doctor",
        "--fix",
        "--json",
        "--from",
        home.to_str().unwrap(),
    ];
    let report = sandbox.zeroclaw(&from).exits(code).json();
    assert_same_tree(&before, &tree_hash(home));
    for source in report["sources"].as_array().unwrap() {
        for (kind, count) in source["counts"].as_object().unwrap() {
            let of = |name: &str| count[name].as_u64().unwrap();
            let all = of("imported") + of("present") + of("merged") + of("refused");
            assert_eq!(of("records"), all, "{kind} of {}", source["path"]);
        }
    }
    let state = State::of(sandbox.root());
    assert!(state.complaints().is_empty(), "{:?}", state.complaints());
    let tree = sandbox.tree();
    let again = sandbox.zeroclaw(&from);
    // What was refused was told once; what could not be read is told again.
    assert!(
        [Some(0), Some(code)].contains(&again.code()),
        "{}",
        again.told()
    );
    assert_eq!(again.json()["changed"], false, "{}", again.told());
    sandbox.is_unchanged_since(&tree);
    assert_same_tree(&before, &tree_hash(home));
    report
}

/// Codes of what a report says.
fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect()
}

fn has(report: &Value, code: &str) -> bool {
    codes(report).contains(&code)
}
