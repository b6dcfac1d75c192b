//! Scheduled jobs while a daemon serves.

use super::host::Host;
use crate::support::process::wait_until;
use crate::support::sandbox::Sandbox;

/// A root with an agent and a job that is due at once.
fn due(command: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.zeroclaw(&["init"]).exits(0);
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let job = [
        "cron", "add", "--agent", "atlas", "--name", "j", "--every", "1s",
    ];
    sandbox
        .zeroclaw(&[&job[..], &["--shell", command]].concat())
        .exits(0);
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    sandbox
}

fn runs(sandbox: &Sandbox) -> Vec<serde_json::Value> {
    let runs = sandbox
        .zeroclaw(&["cron", "runs", "--json"])
        .exits(0)
        .json();
    runs["items"].as_array().unwrap().clone()
}

#[test]
fn what_is_due_runs_while_a_daemon_serves() {
    let sandbox = due("echo ran >> witness");
    let witness = sandbox.root().join("agents/atlas/workspace/witness");
    let host = Host::start(&sandbox);

    wait_until("the job ran", || witness.exists());
    wait_until("its end is recorded", || {
        runs(&sandbox)
            .iter()
            .any(|run| run["status"] == "succeeded")
    });

    host.stop();
    let lines = std::fs::read_to_string(&witness).unwrap().lines().count();
    let ended = runs(&sandbox);
    let good = ended
        .iter()
        .filter(|run| run["status"] == "succeeded")
        .count();
    assert_eq!(lines, good, "{ended:?}");
}

#[test]
fn what_runs_when_a_daemon_drains_is_ended_and_recorded() {
    let sandbox = due("touch began; sleep 60");
    let began = sandbox.root().join("agents/atlas/workspace/began");
    let host = Host::start(&sandbox);
    wait_until("the job runs", || began.exists());
    let since = std::time::Instant::now();

    host.stop();

    assert!(since.elapsed().as_secs() < 20, "{:?}", since.elapsed());
    let ended = runs(&sandbox);
    assert!(
        ended.iter().all(|run| run["status"] == "cancelled") && !ended.is_empty(),
        "{ended:?}"
    );
}
