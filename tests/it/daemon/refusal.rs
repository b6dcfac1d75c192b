//! What keeps a daemon from starting, each with its own exit code, and what does not.

use serde_json::json;

use super::host::{Host, fresh};
use crate::support::inhabited;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::block_on;

async fn execute(path: &std::path::Path, sql: &'static str) {
    use sqlx::Connection as _;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut conn = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    sqlx::query(sql).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

#[test]
fn a_root_that_is_not_there_is_not_made() {
    let sandbox = Sandbox::new();
    let before = sandbox.tree();

    sandbox
        .zeroclaw(&["daemon"])
        .exits(3)
        .complains("zeroclaw init");

    sandbox.is_unchanged_since(&before);
}

#[test]
fn c60_a_newer_control_plane_is_refused_untouched() {
    let sandbox = fresh();
    let path = sandbox.root().join("state/state.sqlite");
    block_on(execute(&path, "PRAGMA user_version = 9999"));
    let before = std::fs::read(&path).unwrap();

    sandbox.zeroclaw(&["daemon"]).exits(5).complains("9999");

    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_control_plane_has_its_own_code() {
    let sandbox = fresh();
    let path = sandbox.root().join("state/state.sqlite");
    std::fs::write(&path, "this was a database once, and is none any more").unwrap();

    sandbox
        .zeroclaw(&["daemon"])
        .exits(6)
        .complains("state.sqlite");
}

#[test]
fn c60_one_newer_agent_does_not_stop_the_others() {
    let sandbox = Sandbox::in_memory();
    inhabited::build(&sandbox.root());
    let path = sandbox.root().join("agents/brook/agent/agent.sqlite");
    block_on(execute(&path, "PRAGMA user_version = 9999"));

    let host = Host::start(&sandbox);

    let mut caller = host.caller();
    let atlas = caller
        .call("agents.show", json!({"agent": "atlas"}))
        .unwrap();
    assert_eq!(atlas["agent_id"], "atlas");
    let brook = caller
        .call("agents.show", json!({"agent": "brook"}))
        .unwrap_err();
    assert_eq!(
        (&brook["code"], &brook["data"]["kind"]),
        (&json!(-32_005), &json!("newer_schema"))
    );
    host.stop();
}

#[test]
fn c26_state_that_waits_is_named_and_what_is_left_over_is_not_in_the_way() {
    let sandbox = Sandbox::in_memory();
    crate::support::legacy::build_sample(sandbox.root());

    let refused = sandbox.zeroclaw(&["daemon"]).exits(7);
    refused.complains("zeroclaw doctor --fix");
    let kept = sandbox.root().join("kept.db");
    let old = sandbox.root().join("data/sessions/sessions.db");
    std::fs::copy(&old, &kept).unwrap();
    let fixed = sandbox.zeroclaw(&["doctor", "--fix"]);
    assert!(matches!(fixed.code(), Some(0 | 1)), "{}", fixed.told());

    Host::start(&sandbox).stop();

    // It comes back, as from a copy of yesterday: told of in one line, and not read.
    std::fs::create_dir_all(old.parent().unwrap()).unwrap();
    std::fs::rename(&kept, &old).unwrap();
    Host::start(&sandbox).stop();
    let log = std::fs::read_to_string(sandbox.home().join("daemon.log")).unwrap();
    assert_eq!(log.matches("still there").count(), 1, "{log}");
}

#[test]
fn beside_a_daemon_an_agent_is_retired_through_it_and_not_renamed_or_deleted() {
    let sandbox = fresh();
    sandbox.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    let host = Host::start(&sandbox);
    let pid = format!("kill {}", host.pid());

    for args in [
        &["agents", "rename", "atlas", "birch"][..],
        &["agents", "rename", "atlas", "birch", "--dry-run"],
        &["agents", "delete", "atlas", "--dry-run"],
        &["agents", "delete", "atlas", "--yes"],
    ] {
        sandbox.zeroclaw(args).exits(4).complains(&pid);
    }
    sandbox.zeroclaw(&["agents", "retire", "atlas"]).exits(0);
    let mut caller = host.caller();
    let atlas = caller.call("agents.show", json!({"agent": "atlas"}));
    assert_eq!(atlas.unwrap()["status"], "retired");
    sandbox.zeroclaw(&["agents", "activate", "atlas"]).exits(0);

    host.stop();
}

/// Every folder and file of a tree but those that a daemon has business with.
#[cfg(target_os = "linux")]
fn old_places(root: &std::path::Path) -> Vec<std::path::PathBuf> {
    let ours = ["state", "agents", "backups", "config.toml", ".secret_key"];
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        if !ours.iter().any(|own| entry.file_name() == *own) {
            found.push(entry.path());
            if entry.file_type().unwrap().is_dir() {
                found.extend(old_places(&entry.path()));
            }
        }
    }
    found
}

#[test]
#[cfg(target_os = "linux")]
fn c29_a_daemon_that_serves_opens_no_old_file() {
    use rustix::fs::inotify;

    let sandbox = Sandbox::in_memory();
    crate::support::legacy::build_sample(sandbox.root());
    let old = sandbox.root().join("data/sessions/sessions.db");
    let kept = std::fs::read(&old).unwrap();
    let fixed = sandbox.zeroclaw(&["doctor", "--fix"]);
    assert!(matches!(fixed.code(), Some(0 | 1)), "{}", fixed.told());
    std::fs::create_dir_all(old.parent().unwrap()).unwrap();
    std::fs::write(&old, kept).unwrap();
    let host = Host::start(&sandbox);
    // The one look of a start is over; from here on the kernel tells of every file that is opened there.
    let ear =
        inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
    let places = old_places(&sandbox.root());
    assert!(places.contains(&old));
    for place in &places {
        inotify::add_watch(&ear, place, inotify::WatchFlags::OPEN).unwrap();
    }
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4_096];
    let mut is_told = || {
        let mut events = inotify::Reader::new(&ear, &mut buffer);
        events.next().is_ok()
    };

    let mut caller = host.caller();
    for number in 0..10 {
        let message = json!({"event_type": "message", "role": "user", "text": "heron"});
        let session = json!({"key": format!("new {number}")});
        let append = json!({"agent": "atlas", "session": session, "events": [message]});
        caller.call("sessions.append", append).unwrap();
        let show = json!({"session": format!("new {number}")});
        caller.call("sessions.show", show).unwrap();
    }
    for number in 0..3 {
        let name = format!("job {number}");
        let add = [
            "cron", "add", "--agent", "atlas", "--name", &name, "--every", "1h", "--shell", "true",
        ];
        sandbox.zeroclaw(&add).exits(0);
        sandbox.zeroclaw(&["cron", "run", &name]).exits(0);
    }
    caller
        .call("sessions.search", json!({"text": "heron"}))
        .unwrap();
    caller.call("status", json!({})).unwrap();

    assert!(!is_told(), "an old file or folder was opened");
    // It would have been heard of.
    let _ = std::fs::File::open(&old).unwrap();
    assert!(is_told());
    host.stop();
    let log = std::fs::read_to_string(sandbox.home().join("daemon.log")).unwrap();
    assert_eq!(log.matches("still there").count(), 1, "{log}");
}
