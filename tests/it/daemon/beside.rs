//! Everything else goes on while a daemon stores what is said.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::host::{Host, fresh};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

/// Messages a second.
const PACE: u32 = 50;

/// Rounds here; the whole of it, 200 over 2 minutes, with `ZEROCLAW_TEST_LONG` set.
fn rounds() -> usize {
    match std::env::var_os("ZEROCLAW_TEST_LONG") {
        Some(_) => 200,
        None => 3,
    }
}

fn count(sandbox: &Sandbox) -> usize {
    let store = sandbox.root().join("agents/atlas/agent/agent.sqlite");
    let rows = sqlite::rows(&store, "SELECT count(*) FROM transcript_events");
    rows[0][0].parse().unwrap()
}

/// Says something at a steady pace until told to stop; gives how often it was acknowledged.
fn say(host: &Host, stop: &AtomicBool, said: &AtomicUsize) {
    let mut caller = host.caller();
    let since = Instant::now();
    for number in 0_u32.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let message =
            json!({"event_type": "message", "role": "user", "text": format!("word {number}")});
        let session = json!({"key": format!("s{}", number % 10)});
        let append = json!({"agent": "atlas", "session": session, "events": [message]});
        caller.call("sessions.append", append).unwrap();
        said.fetch_add(1, Ordering::Relaxed);
        let due = Duration::from_secs(1) * (number + 1) / PACE;
        std::thread::sleep(due.saturating_sub(since.elapsed()));
    }
}

#[test]
fn c41_health_commands_beside_a_daemon_that_stores_cost_nothing() {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let host = Host::start(&sandbox);
    let (stop, said) = (AtomicBool::new(false), AtomicUsize::new(0));

    std::thread::scope(|scope| {
        scope.spawn(|| say(&host, &stop, &said));
        for round in 0..rounds() {
            // A warning may be told: what is asked for is an answer and no damage.
            let looked = sandbox.zeroclaw(&["doctor"]);
            assert!(matches!(looked.code(), Some(0 | 1)), "{}", looked.told());
            sandbox.zeroclaw(&["status"]).exits(0);
            sandbox.zeroclaw(&["sessions", "list"]).exits(0);
            let made = sandbox
                .zeroclaw(&["backup", "create", "--json"])
                .exits(0)
                .json();
            let archive = PathBuf::from(made["archive"].as_str().unwrap());
            sandbox
                .zeroclaw(&[&"backup".into(), &"verify".into(), &archive])
                .exits(0);
            if round == 0 {
                // What must have the root for itself is refused and says who has it.
                let pid = host.pid().to_string();
                let restore: [&PathBuf; 4] = [
                    &"backup".into(),
                    &"restore".into(),
                    &archive,
                    &"--yes".into(),
                ];
                sandbox.zeroclaw(&restore).exits(4).complains(&pid);
                let undo = sandbox.zeroclaw(&["doctor", "--fix"]);
                assert!(matches!(undo.code(), Some(0 | 1 | 4)), "{}", undo.told());
            }
            std::fs::remove_file(archive).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });

    assert!(said.load(Ordering::Relaxed) > 0);
    assert_eq!(count(&sandbox), said.load(Ordering::Relaxed));
    sandbox.zeroclaw(&["db", "check"]).exits(0);
    host.stop();
    assert_eq!(count(&sandbox), said.load(Ordering::Relaxed));
    sandbox.zeroclaw(&["db", "check"]).exits(0);
}

#[test]
fn c43_messages_and_jobs_wait_for_another_process_that_holds_the_database() {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let add = [
        "cron", "add", "--agent", "atlas", "--every", "1s", "--shell", "true", "--name", "j",
    ];
    sandbox.zeroclaw(&add).exits(0);
    let host = Host::start(&sandbox);
    let (stop, said) = (AtomicBool::new(false), AtomicUsize::new(0));
    let rounds = rounds().min(20);

    std::thread::scope(|scope| {
        scope.spawn(|| say(&host, &stop, &said));
        for _ in 0..rounds {
            for path in ["agents/atlas/agent/agent.sqlite", "state/state.sqlite"] {
                sqlite::hold(&sandbox.root().join(path), Duration::from_millis(1_500));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });

    assert_eq!(count(&sandbox), said.load(Ordering::Relaxed));
    let runs = sandbox
        .zeroclaw(&["cron", "runs", "--json"])
        .exits(0)
        .json();
    let runs = runs["items"].as_array().unwrap().clone();
    assert!(
        runs.iter().any(|run| run["status"] == "succeeded"),
        "{runs:?}"
    );
    assert!(runs.iter().all(|run| run["status"] != "failed"), "{runs:?}");
    host.stop();
}
