//! The end of a daemon in the middle of work: what was acknowledged is there.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::host::{Host, fresh};
use crate::support::sandbox::Sandbox;

const CLIENTS: usize = 4;

/// What became of what was asked for.
#[derive(Default)]
struct Heard {
    done: BTreeSet<String>,
    refused: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// Makes agents over several connections until the daemon is gone, and ends it meanwhile.
fn under_load(host: &mut Host, round: usize, end: impl FnOnce(&mut Host)) -> Heard {
    let heard = Mutex::new(Heard::default());
    let callers: Vec<_> = (0..CLIENTS).map(|_| host.caller()).collect();
    std::thread::scope(|scope| {
        for (client, mut caller) in callers.into_iter().enumerate() {
            let heard = &heard;
            scope.spawn(move || {
                for number in 0.. {
                    let name = format!("a{round}-{client}-{number}");
                    let answer = caller.try_call("agents.create", json!({"agent": name}));
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

fn agents(sandbox: &Sandbox) -> BTreeSet<String> {
    let list = sandbox
        .zeroclaw(&["agents", "list", "--json"])
        .exits(0)
        .json();
    let name = |agent: &Value| agent["agent_id"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

#[track_caller]
fn agree(sandbox: &Sandbox, heard: &Heard) {
    let there = agents(sandbox);
    assert!(!heard.done.is_empty());
    let lost: Vec<_> = heard.done.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and not there: {lost:?}");
    let both: Vec<_> = heard.refused.intersection(&there).collect();
    assert!(both.is_empty(), "refused and there: {both:?}");
    sandbox.zeroclaw(&["db", "check"]).exits(0);
}

#[test]
fn a_daemon_told_to_stop_finishes_what_runs_and_refuses_the_rest() {
    let sandbox = fresh();
    let mut host = Host::start(&sandbox);

    let heard = under_load(&mut host, 0, |host| {
        let since = Instant::now();
        host.signal("-TERM");
        assert_eq!(host.wait().code(), Some(0));
        assert!(since.elapsed() < Duration::from_secs(11));
    });

    agree(&sandbox, &heard);
    // It answered everything it had read: a connection that was closed had nothing under way.
    let there = agents(&sandbox);
    assert!(heard.unknown.is_disjoint(&there), "done and not told");
}

#[test]
fn a_killed_daemon_has_lost_nothing_that_it_acknowledged() {
    let sandbox = fresh();
    for round in 0..3 {
        let mut host = Host::start(&sandbox);

        let heard = under_load(&mut host, round, Host::kill);

        agree(&sandbox, &heard);
        Host::start(&sandbox).stop();
        agree(&sandbox, &heard);
    }
}
