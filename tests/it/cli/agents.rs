//! `zeroclaw agents create`.

use super::json::is_documented;
use crate::support::sandbox::Sandbox;

#[test]
fn an_agent_is_made_in_a_fresh_root_and_can_be_used_at_once() {
    let home = Sandbox::new();
    home.zeroclaw(&["agents", "create", "atlas"]).exits(3);
    home.zeroclaw(&["init"]).exits(0);

    let args = ["agents", "create", "atlas", "--json"];
    let made = home.zeroclaw(&args).exits(0).json();

    is_documented(&args[..2], &made);
    assert_eq!(made["agent_id"], "atlas");
    assert_eq!(made["status"], "active");
    home.zeroclaw(&["memory", "store", "--agent", "atlas", "harbour", "tide"])
        .exits(0);
    home.zeroclaw(&["agents", "show", "atlas"]).exits(0);
    home.zeroclaw(&["db", "check"]).exits(0);
}

#[test]
fn a_name_that_is_taken_or_strange_is_refused_and_touches_nothing() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    home.zeroclaw(&["memory", "store", "--agent", "atlas", "harbour", "tide"])
        .exits(0);
    let before = home.tree();

    home.zeroclaw(&["agents", "create", "atlas"])
        .exits(10)
        .complains("is there already")
        .complains("agents list");
    for strange in [
        "агент✨",
        "../main",
        "MAIN",
        "",
        "-x",
        "a/b",
        ".",
        "atlas@20260105T101500Z",
        &"x".repeat(65),
    ] {
        home.zeroclaw(&["agents", "create", "--", strange]).exits(2);
    }

    assert_eq!(home.tree(), before);
}

#[test]
fn what_is_left_of_an_agent_is_no_free_name() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    home.zeroclaw(&["agents", "create", "birch"]).exits(0);
    home.zeroclaw(&["memory", "store", "--agent", "atlas", "harbour", "tide"])
        .exits(0);
    let forgotten = rusqlite::Connection::open(home.root().join("state/state.sqlite")).unwrap();
    let gone = forgotten
        .execute("DELETE FROM agent_databases", [])
        .unwrap();
    drop(forgotten);

    assert_eq!(gone, 2);
    home.zeroclaw(&["agents", "create", "atlas"])
        .exits(10)
        .complains("is there already");
    // Nothing is in it: what a kill in the making of an agent leaves.
    home.zeroclaw(&["agents", "create", "birch"]).exits(0);
}
