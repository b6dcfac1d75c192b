//! One root, one owner.

use std::process::{Output, Stdio};

use serde_json::json;

use super::host::{Host, fresh};
use crate::support::sandbox::{Ran, Sandbox};

/// Starts another daemon, which must leave at once and name the one that serves.
#[track_caller]
fn is_refused(sandbox: &Sandbox, host: &Host) {
    let second = sandbox.zeroclaw(&["daemon"]).exits(4);
    let pid = host.pid().to_string();
    second.complains(&format!("kill {pid}"));
    // The first is as it was.
    assert_eq!(
        host.caller().call("health", json!({})).unwrap()["pid"],
        host.pid()
    );
}

#[test]
fn c39_a_second_daemon_ends_at_once_and_takes_nothing_from_the_first() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);

    is_refused(&sandbox, &host);

    host.stop();
    assert!(!sandbox.root().join("state/daemon.sock").exists());
    Host::start(&sandbox).stop();
}

#[test]
fn c39_it_ends_at_once_as_well_when_somebody_deleted_lock_and_socket() {
    let sandbox = fresh();
    let host = Host::start(&sandbox);

    std::fs::remove_file(sandbox.root().join("state/daemon.lock")).unwrap();
    is_refused(&sandbox, &host);

    std::fs::remove_file(sandbox.root().join("state/daemon.lock")).ok();
    std::fs::remove_file(host.socket()).unwrap();
    sandbox.zeroclaw(&["daemon"]).exits(4);
    // It listens again on a socket of that name by itself.
    host.wait_ready();
    is_refused(&sandbox, &host);
    host.stop();
}

#[test]
fn a_socket_and_a_lock_of_a_killed_daemon_keep_nobody_out() {
    let sandbox = fresh();
    let mut host = Host::start(&sandbox);
    host.kill();
    assert!(host.socket().exists());

    let next = Host::start(&sandbox);

    assert_eq!(
        next.caller().call("health", json!({})).unwrap()["pid"],
        next.pid()
    );
    next.stop();
}

#[test]
fn two_roots_cannot_have_one_socket() {
    let (one, two) = (fresh(), fresh());
    let place = one.home().join("shared.sock");
    let start = |sandbox: &Sandbox| {
        let mut command = sandbox.command(&["daemon"]);
        command.env("ZEROCLAW_SOCKET", &place);
        command
    };
    let mut first = start(&one).stderr(Stdio::null()).spawn().unwrap();
    crate::support::process::wait_until("the socket is there", || place.exists());

    let refused = Ran::of(start(&two)).exits(4);

    refused.complains("shared.sock");
    assert!(place.exists());
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn the_socket_is_private_and_so_is_everything_beside_it() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = fresh();
    let host = Host::start(&sandbox);

    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(host.socket()) & 0o777, 0o600);
    assert_eq!(
        mode(&sandbox.root().join("state/daemon.lock")) & 0o777,
        0o600
    );
    host.stop();
}

#[test]
fn of_six_daemons_and_commands_at_once_one_daemon_owns_the_root_and_the_others_name_it() {
    let rounds = if std::env::var_os("ZEROCLAW_TEST_LONG").is_some() {
        20
    } else {
        4
    };
    let sandbox = fresh();
    for round in 0..rounds {
        let mut daemons: Vec<_> = (0..6).map(|_| Host::begin(&sandbox)).collect();
        let commands: Vec<_> = (0..3)
            .map(|number| {
                let name = format!("agent-{round}-{number}");
                let mut command = sandbox.command(&["agents", "create", &name]);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        let ended: Vec<Output> = commands
            .into_iter()
            .map(|command| command.wait_with_output().unwrap())
            .collect();
        daemons[0].wait_ready();
        // Those that lost have left; one is there.
        let since = std::time::Instant::now();
        while daemons.iter_mut().filter_map(Host::ended).count() < 5 {
            assert!(since.elapsed() < super::host::PATIENCE);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let codes: Vec<_> = daemons.iter_mut().filter_map(Host::ended).collect();
        assert_eq!(codes, [4; 5], "round {round}");

        let owner = daemons.iter_mut().position(|host| host.ended().is_none());
        let owner = daemons.swap_remove(owner.unwrap());
        let mut caller = owner.caller();
        let agents = caller.call("agents.list", json!({})).unwrap();
        for (number, output) in ended.iter().enumerate() {
            // Done, by itself or by the daemon, or refused because the root was busy; then it is not there.
            let name = format!("agent-{round}-{number}");
            let is_there = agents
                .as_array()
                .unwrap()
                .iter()
                .any(|agent| agent["agent_id"] == name.as_str());
            let told = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => assert!(is_there, "round {round}: {name}"),
                Some(4) => assert!(
                    !is_there || told.contains("may have been done"),
                    "round {round}: {told}"
                ),
                other => panic!("round {round}: {other:?}: {told}"),
            }
        }
        owner.stop();
    }
    let log = std::fs::read_to_string(sandbox.home().join("daemon.log")).unwrap();
    assert_eq!(log.matches("error: ").count(), 5 * rounds, "{log}");
    assert_eq!(
        log.matches("hint: stop the daemon first").count(),
        5 * rounds,
        "{log}"
    );
}
