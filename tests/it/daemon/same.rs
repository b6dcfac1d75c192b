//! Commands beside a daemon answer as they do alone.

use serde_json::json;

use super::host::Host;
use crate::cli::looking;
use crate::support::inhabited;
use crate::support::sandbox::Sandbox;

/// What differs by its nature: who writes, and how large the log is.
fn settled(text: &str) -> String {
    let mut lines: Vec<_> = text
        .lines()
        .filter(|line| !line.contains("writer") && !line.contains("wal"))
        .map(str::to_owned)
        .collect();
    if let [line] = &mut lines[..]
        && let Ok(mut value) = serde_json::from_str::<serde_json::Value>(line)
    {
        settle(&mut value);
        *line = value.to_string();
    }
    lines.join("\n")
}

fn settle(value: &mut serde_json::Value) {
    if let Some(object) = value.as_object_mut() {
        object.retain(|key, _| !["writer", "wal_bytes"].contains(&key.as_str()));
        object.values_mut().for_each(settle);
    } else if let Some(list) = value.as_array_mut() {
        list.iter_mut().for_each(settle);
    }
}

#[test]
fn every_command_that_looks_says_the_same_beside_a_daemon() {
    let sandbox = Sandbox::in_memory();
    inhabited::build(&sandbox.root());
    let run = |args: &Vec<&'static str>| {
        let ran = sandbox.zeroclaw(args);
        (ran.code(), settled(&ran.stdout), ran.stderr.clone())
    };
    let commands = looking::commands();
    // A daemon ends and expires what is due, here messages of long ago: once before, so that both sides see the same.
    let first = Host::start(&sandbox);
    crate::support::process::wait_until("what is due is swept", || {
        let told = sandbox.zeroclaw(&["delivery", "list", "--json"]).exits(0);
        !told.stdout.contains("pending")
    });
    first.stop();
    let alone: Vec<_> = commands.iter().map(run).collect();
    let host = Host::start(&sandbox);

    for (args, alone) in commands.iter().zip(alone) {
        if args.contains(&"status") {
            let ran = sandbox.zeroclaw(args).exits(0);
            ran.says(&format!("daemon (pid {})", host.pid()));
            continue;
        }
        // In its table the size of the log widens a column; as JSON all else is compared.
        if args[..] == ["db", "check"] {
            continue;
        }
        assert_eq!(run(args), alone, "{args:?}");
    }
    host.stop();
}

#[test]
fn a_failure_beside_a_daemon_has_the_same_words_and_code() {
    let sandbox = Sandbox::in_memory();
    inhabited::build(&sandbox.root());
    let commands: [&[&str]; 3] = [
        &["agents", "show", "nobody"],
        &["sessions", "show", "nothing", "--json"],
        &["agents", "create", "atlas"],
    ];
    let run = |args: &&[&str]| {
        let ran = sandbox.zeroclaw(args);
        (ran.code(), ran.stdout.clone(), ran.stderr.clone())
    };
    let alone: Vec<_> = commands.iter().map(run).collect();
    let host = Host::start(&sandbox);

    let beside: Vec<_> = commands.iter().map(run).collect();

    assert_eq!(beside, alone);
    host.stop();
}

#[test]
fn a_command_that_writes_goes_through_the_daemon() {
    let sandbox = super::host::fresh();
    let host = Host::start(&sandbox);

    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);

    let agents = host.caller().call("agents.list", json!({})).unwrap();
    assert_eq!(agents[0]["agent_id"], "atlas");
    // The lock is the daemon's: whatever goes through here was done by it.
    for command in [
        &["tasks", "sweep"][..],
        &["memory", "reindex"],
        &["memory", "prune", "--yes"],
        &["db", "cache", "clear", "--yes"],
        &["delivery", "retry", "--all", "--yes"],
    ] {
        sandbox.zeroclaw(command).exits(0);
    }
    for command in [
        &["delivery", "confirm", "none"][..],
        &["delivery", "drop", "none", "--yes"],
        &["flows", "approve", "none"],
        &["flows", "deny", "none"],
        &["commitments", "dismiss", "none"],
        &["plugins", "clear", "none", "--yes"],
    ] {
        sandbox.zeroclaw(command).exits(9).complains("none");
    }
    host.stop();
}

#[test]
fn what_is_over_is_ended_by_a_daemon() {
    let sandbox = super::host::fresh();
    let global = sandbox.root().join("state/state.sqlite");
    crate::support::sqlite::change(
        &global,
        "INSERT INTO commitments (id, agent_id, session_key, channel, kind, sensitivity, source, status, reason,
             suggested_text, dedupe_key, confidence, due_earliest_ms, due_latest_ms, due_timezone, created_at_ms,
             updated_at_ms)
         VALUES ('over', 'atlas', 's', 'c', 'open_loop', 'routine', 'agent', 'pending', 'r', 't', 'd', 1, 1, 2, 'UTC', 1, 1);
         INSERT INTO flow_runs (flow_id, controller_id, status, started_at_ms, updated_at_ms, state_json)
         VALUES ('left', 'watering', 'running', 1, 1, '{}');",
    );
    let host = Host::start(&sandbox);

    for (what, end) in [
        (["commitments", "show", "over"], "expired"),
        (["flows", "show", "left"], "interrupted"),
    ] {
        crate::support::process::wait_until(end, || {
            sandbox.zeroclaw(&what).exits(0).stdout.contains(end)
        });
    }

    host.stop();
}
