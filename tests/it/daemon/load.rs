//! The end of a daemon in the middle of work: what was acknowledged is there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::host::{Host, fresh};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

const CLIENTS: usize = 4;

/// What became of what was asked for.
#[derive(Default)]
struct Heard {
    done: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// Says things over several connections, each in a session of its own or, every other, in one they share, until the daemon
/// is gone, and ends it meanwhile.
fn under_load(host: &mut Host, round: usize, end: impl FnOnce(&mut Host)) -> Heard {
    let heard = Mutex::new(Heard::default());
    let callers: Vec<_> = (0..CLIENTS).map(|_| host.caller()).collect();
    std::thread::scope(|scope| {
        for (client, mut caller) in callers.into_iter().enumerate() {
            let heard = &heard;
            scope.spawn(move || {
                for number in 0.. {
                    let name = format!("{round}-{client}-{number:06}");
                    let session = match number % 2 {
                        0 => format!("of {client}"),
                        _ => "shared".to_owned(),
                    };
                    let message = json!({"event_type": "message", "role": "user", "text": name});
                    let append = json!({
                        "agent": "atlas",
                        "session": {"key": session},
                        "events": [message],
                        "idempotency_key": name,
                    });
                    let answer = caller.try_call("sessions.append", append);
                    let mut heard = heard.lock().unwrap();
                    match answer {
                        Some(Ok(_)) => heard.done.insert(name),
                        Some(Err(error)) => {
                            assert_eq!(error["data"]["kind"], "busy", "{error}");
                            heard.refused.insert(name)
                        }
                        None => {
                            heard.unknown.insert(name);
                            return;
                        }
                    };
                }
            });
        }
        std::thread::sleep(Duration::from_millis(400));
        end(host);
    });
    heard.into_inner().unwrap()
}

/// What was said; each client's words in their order.
#[track_caller]
fn said(sandbox: &Sandbox) -> BTreeSet<String> {
    let store = sandbox.root().join("agents/atlas/agent/agent.sqlite");
    let rows = sqlite::rows(
        &store,
        "SELECT session_no, text FROM transcript_events ORDER BY session_no, seq",
    );
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for row in rows {
        let [session, text] = &row[..] else {
            panic!("{row:?}")
        };
        let text = text.trim_matches('\'').to_owned();
        let (client, number) = text.rsplit_once('-').unwrap();
        let before = last.insert(format!("{session} {client}"), number.to_owned());
        assert!(
            before.is_none_or(|before| *before < *number),
            "{text} is out of order"
        );
        assert!(all.insert(text.clone()), "{text} is there twice");
    }
    all
}

fn served() -> (Sandbox, Host) {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let host = Host::start(&sandbox);
    (sandbox, host)
}

#[track_caller]
fn agree(sandbox: &Sandbox, heard: &Heard) {
    let there = said(sandbox);
    assert!(!heard.done.is_empty());
    let lost: Vec<_> = heard.done.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and not there: {lost:?}");
    let both: Vec<_> = heard.refused.intersection(&there).collect();
    assert!(both.is_empty(), "refused and there: {both:?}");
    sandbox.zeroclaw(&["db", "check"]).exits(0);
}

#[test]
fn a_daemon_told_to_stop_finishes_what_runs_and_refuses_the_rest() {
    let (sandbox, mut host) = served();

    let heard = under_load(&mut host, 0, |host| {
        let since = Instant::now();
        host.signal("-TERM");
        assert_eq!(host.wait().code(), Some(0));
        assert!(since.elapsed() < Duration::from_secs(11));
    });

    agree(&sandbox, &heard);
    // It answered everything it had read: a connection that was closed had nothing under way.
    let there = said(&sandbox);
    assert!(heard.unknown.is_disjoint(&there), "done and not told");
}

#[test]
fn a_killed_daemon_has_lost_nothing_that_it_acknowledged() {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    for round in 0..3 {
        let mut host = Host::start(&sandbox);

        let heard = under_load(&mut host, round, Host::kill);

        agree(&sandbox, &heard);
        Host::start(&sandbox).stop();
        agree(&sandbox, &heard);
    }
}
