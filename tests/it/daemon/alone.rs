//! What a daemon does and tells by itself.

use std::time::Duration;

use serde_json::{Value, json};

use super::host::{Caller, Host, fresh};
use crate::support::process::wait_until;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite;

fn configure(sandbox: &Sandbox, text: &str) {
    let text = format!("schema_version = 3\n{text}");
    std::fs::write(sandbox.root().join("config.toml"), text).unwrap();
}

/// The next events of these kinds that a subscriber is told.
fn told(caller: &mut Caller, kind: &str) -> Value {
    loop {
        let at = caller
            .told
            .iter()
            .position(|message| message["params"]["event"]["kind"] == kind);
        if let Some(at) = at {
            return caller.told.remove(at)["params"]["event"].take();
        }
        let message = caller.next().expect("an event");
        caller.told.push(message);
    }
}

#[test]
fn what_becomes_of_work_is_told_whoever_does_it() {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let host = Host::start(&sandbox);
    let mut caller = host.caller();
    caller.call("events.subscribe", json!({})).unwrap();
    let mut of_another = host.caller();
    let only = json!({"agent": "birch"});
    of_another.call("events.subscribe", only).unwrap();
    // The first look has to be over, or what comes before it is nobody's news.
    std::thread::sleep(Duration::from_millis(600));

    let add = [
        "cron", "add", "--agent", "atlas", "--every", "1h", "--shell", "true", "--json",
    ];
    let job = sandbox.zeroclaw(&add).exits(0).json();
    let id = job["job_id"].as_str().unwrap();
    sandbox.zeroclaw(&["cron", "run", id]).exits(0);

    let run = loop {
        let run = told(&mut caller, "cron.run");
        assert_eq!(run["job_id"], id, "{run}");
        if run["status"] != "running" && run["status"] != "pending" {
            break run;
        }
    };
    assert_eq!(run["status"], "succeeded", "{run}");
    // Another process writes the queue and a task.
    sqlite::change(
        &sandbox.root().join("state/state.sqlite"),
        "INSERT INTO task_runs (task_id, owner_kind, agent_id, status, created_at_ms, started_at_ms, ended_at_ms)
         VALUES ('t1', 'delegate', 'atlas', 'failed', 1, 1, 2);
         INSERT INTO delivery_queue_entries (id, status, channel, target, entry_json, max_retries, next_attempt_at_ms,
             expires_at_ms, enqueued_at_ms, updated_at_ms, agent_id)
         VALUES ('m1', 'pending', 'telegram', '42', '{}', 3, 9999999999999, 9999999999999, 1, 1, 'atlas');",
    );
    let task = told(&mut caller, "task.changed");
    assert_eq!(
        task,
        json!({"kind": "task.changed", "agent_id": "atlas", "task_id": "t1", "owner_kind": "delegate", "status": "failed"})
    );
    assert_eq!(told(&mut caller, "delivery.changed")["status"], "pending");
    sandbox
        .zeroclaw(&["delivery", "drop", "m1", "--yes"])
        .exits(0);
    assert_eq!(told(&mut caller, "delivery.changed")["status"], "dead");
    let heard = of_another.call("health", json!({})).unwrap();
    assert_eq!(heard["status"], "ok");
    assert_eq!(of_another.told, Vec::<Value>::new());
    host.stop();
}

#[test]
fn c59_a_backup_that_is_due_is_made_and_old_ones_go_by_the_rules() {
    let sandbox = fresh();
    let folder = sandbox.home().join("archives");
    std::fs::create_dir(&folder).unwrap();
    for _ in 0..2 {
        let create = ["backup", "create", "--output", "archives"];
        sandbox.zeroclaw(&create).exits(0);
    }
    // Every second, so that one is due however soon it is looked.
    configure(
        &sandbox,
        &format!(
            "[state.backup]\nschedule = \"* * * * * *\"\nkeep_last = 1\nfolder = \"{}\"\n",
            folder.display()
        ),
    );
    let host = Host::start(&sandbox);

    let archives = || std::fs::read_dir(&folder).unwrap().count();
    let runs = || {
        let listed = sandbox
            .zeroclaw(&["backup", "list", "--json"])
            .exits(0)
            .json();
        let good = listed.as_array().unwrap().iter();
        good.filter(|run| run["status"] == "completed").count()
    };
    wait_until("a third backup is there and two are gone", || {
        runs() == 3 && archives() == 1
    });
    sandbox.zeroclaw(&["status"]).exits(0);
    host.stop();
}

#[test]
fn c59_a_backup_that_cannot_be_made_is_told_in_health() {
    let sandbox = fresh();
    for (text, reason) in [
        ("schedule = \"soon\"", "soon"),
        (
            "schedule = \"@daily\"\nfolder = \"/nowhere/at/all\"",
            "/nowhere/at/all",
        ),
    ] {
        configure(&sandbox, &format!("[state.backup]\n{text}\n"));
        let host = Host::start(&sandbox);
        let mut caller = host.caller();
        let mut problems = String::new();
        wait_until("health names it", || {
            let health = caller.call("health", json!({})).unwrap();
            problems = health["problems"].to_string();
            problems.contains("no scheduled backup")
        });
        assert!(problems.contains(reason), "{problems}");
        host.stop();
    }
}

#[test]
fn an_ephemeral_daemon_ends_with_its_last_client() {
    let sandbox = fresh();
    let start = || {
        let mut command = sandbox.command(&["daemon", "--ephemeral"]);
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let mut child = start();
    let socket = sandbox.root().join("state/daemon.sock");
    let mut first = None;
    wait_until("it serves", || {
        first = Caller::try_connect(&socket);
        first.is_some()
    });
    let mut first = first.unwrap();
    first.call("initialize", json!({"protocol": 1})).unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(child.try_wait().unwrap(), None, "a client is there");

    drop(first);

    wait_until("it ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn c67_log_events_go_after_their_days_and_only_then() {
    let sandbox = fresh();
    let global = sandbox.root().join("state/state.sqlite");
    let event = |key: &str, at_ms: i64| {
        format!(
            "INSERT INTO diagnostic_events (scope, event_key, sequence, created_at_ms, level, payload_json)
             VALUES ('runtime', '{key}', 1, {at_ms}, 'info', '{{}}');"
        )
    };
    let now_ms = zeroclaw::service::Clock::system().now_ms();
    let day_ms = 24 * 60 * 60 * 1_000;
    sqlite::change(
        &global,
        &(event("old", now_ms - 31 * day_ms) + &event("new", now_ms)),
    );
    let prune = |days: &str| {
        configure(&sandbox, &format!("[state.logs]\nmax_age_days = {days}\n"));
        sqlite::block_on(async {
            let clock = zeroclaw::service::Clock::system();
            let kind = zeroclaw::service::HolderKind::Cli;
            let service = zeroclaw::service::Service::open(&sandbox.root(), clock, kind)
                .await
                .unwrap();
            let gone = service.prune_logs().await.unwrap();
            service.close().await;
            gone
        })
    };

    assert_eq!(prune("0"), 0);
    assert_eq!(prune("\"garbage\""), 0);
    assert_eq!(prune("30"), 1);
    assert_eq!(prune("30"), 0);
    // Where even the newest would go, the clock may have jumped.
    sqlite::change(
        &global,
        &format!(
            "UPDATE diagnostic_events SET created_at_ms = {}",
            now_ms - 31 * day_ms
        ),
    );
    assert_eq!(prune("30"), 0);
}
