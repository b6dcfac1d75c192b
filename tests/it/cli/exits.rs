//! Every failure ends with its own code, says what is wrong on stderr, and nothing on stdout.

use std::path::Path;

use zeroclaw::service::{Clock, HolderKind, Service};

use crate::support::inhabited;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal, block_on};

/// Stamps a schema version on a database, as a newer release would.
fn make_newer(db: &Path) -> i64 {
    block_on(async {
        let mut connection = sqlite::open(db, Journal::Wal).await;
        let known: i64 = sqlx::query_scalar("PRAGMA user_version")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        sqlite::run(
            &mut connection,
            &format!("PRAGMA user_version = {}", known + 1),
        )
        .await;
        sqlx::Connection::close(connection).await.unwrap();
        known
    })
}

#[test]
fn init_makes_a_root_once_and_is_content_the_second_time() {
    let home = Sandbox::new();

    home.zeroclaw(&["init"]).exits(0).says("created ");
    let after_first = home.tree();
    home.zeroclaw(&["init"]).exits(0).says("already there: ");

    let names = |tree: &[crate::support::tree::TreeEntry]| -> Vec<Vec<u8>> {
        tree.iter().map(|entry| entry.path.clone()).collect()
    };
    assert_eq!(names(&after_first), names(&home.tree()));
}

#[cfg(unix)]
#[test]
fn init_makes_everything_private() {
    let home = Sandbox::new();

    home.zeroclaw(&["init"]).exits(0);

    for entry in crate::support::tree::tree_hash(&home.root()) {
        assert_eq!(entry.mode & 0o077, 0, "{entry:?}");
    }
}

#[test]
fn a_wrong_command_line_exits_2() {
    let home = Sandbox::new();

    for args in [
        &["frobnicate"][..],
        &["status", "--frobnicate"],
        &["agents", "show", "../main"],
        &["sessions", "list", "--limit", "0"],
        &["sessions", "list", "--status", "asleep"],
        &["sessions", "search"],
        &["--config-dir", "", "status"],
        &[],
    ] {
        home.zeroclaw(args).exits(2).says_nothing();
    }
    let mut command = home.command(&["status"]);
    command.env("ZEROCLAW_LOG", "=[nonsense");
    crate::support::sandbox::Ran::of(command)
        .exits(2)
        .says_nothing()
        .complains("ZEROCLAW_LOG");
}

#[test]
fn a_missing_root_exits_3_and_stays_missing() {
    let home = Sandbox::new();
    let before = home.tree();

    for args in super::looking::commands() {
        home.zeroclaw(&args)
            .exits(3)
            .says_nothing()
            .complains("no state in ")
            .complains("zeroclaw init");
    }

    home.is_unchanged_since(&before);
}

#[test]
fn a_root_held_by_a_writer_exits_4_and_names_it_but_can_be_looked_at() {
    let home = Sandbox::new();
    let (service, _) = block_on(Service::init(
        &home.root(),
        Clock::system(),
        HolderKind::Doctor,
    ))
    .unwrap();

    home.zeroclaw(&["init"])
        .exits(4)
        .says_nothing()
        .complains(&format!("doctor (pid {}", std::process::id()))
        .complains("hint: ");
    home.zeroclaw(&["status"])
        .exits(0)
        .says(&format!("doctor (pid {})", std::process::id()));

    drop(service);
}

#[test]
fn c60_a_newer_control_plane_exits_5_untouched_and_names_the_ways_out() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let db = home.root().join("state/state.sqlite");
    let known = make_newer(&db);
    let before = home.tree();

    for args in [&["status"][..], &["sessions", "list"], &["cron", "list"]] {
        home.zeroclaw(args)
            .exits(5)
            .says_nothing()
            .complains(db.to_str().unwrap())
            .complains(&format!("schema version {}", known + 1))
            .complains(&format!("knows {known}"))
            .complains("update zeroclaw");
    }
    home.is_unchanged_since(&before);

    home.zeroclaw(&["init"]).exits(5).says_nothing();
    let lock_only = |tree: Vec<crate::support::tree::TreeEntry>| -> Vec<_> {
        tree.into_iter()
            .filter(|entry| !entry.path.ends_with(b"daemon.lock"))
            .collect()
    };
    assert_eq!(lock_only(before), lock_only(home.tree()));
}

#[test]
fn c60_one_newer_agent_exits_5_where_it_is_meant_and_leaves_the_others_working() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    make_newer(&home.root().join("agents/brook/agent/agent.sqlite"));
    let before = home.tree();

    home.zeroclaw(&["agents", "show", "brook"])
        .exits(5)
        .says_nothing();
    home.zeroclaw(&["status"])
        .exits(5)
        .says("atlas")
        .complains("agent brook: ");
    home.zeroclaw(&["sessions", "list"])
        .exits(0)
        .says("session-1")
        .complains("brook");
    home.zeroclaw(&["sessions", "search", "lantern"])
        .exits(1)
        .says("session-1")
        .complains("agent brook was not searched");

    home.is_unchanged_since(&before);
}

#[test]
fn a_damaged_database_exits_6() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let db = home.root().join("agents/atlas/agent/agent.sqlite");
    let mut bytes = std::fs::read(&db).unwrap();
    // The first page stays, so that the file still opens; what it leads to does not.
    let end = bytes.len();
    bytes[8_192..end].fill(0xa5);
    std::fs::write(&db, bytes).unwrap();
    let before = home.tree();

    home.zeroclaw(&["db", "check"]).exits(6).says("FAILED");
    home.zeroclaw(&["db", "check", "--agent", "brook"])
        .exits(0)
        .says("ok");
    home.zeroclaw(&["agents", "show", "atlas"])
        .exits(6)
        .says_nothing()
        .complains("agent.sqlite");

    home.is_unchanged_since(&before);
}

#[test]
fn a_name_nobody_has_exits_9() {
    let home = Sandbox::new();
    inhabited::build(&home.root());

    for args in [
        &["agents", "show", "nobody"][..],
        &["sessions", "list", "--agent", "nobody"],
        &["sessions", "show", "no-such-session"],
        &["sessions", "search", "x", "--agent", "nobody"],
        &["memory", "list", "--agent", "nobody"],
        &["db", "check", "--agent", "nobody"],
        &["doctor", "history", "no-such-run"],
        &["man", "frobnicate"],
    ] {
        home.zeroclaw(args).exits(9).says_nothing().complains("no ");
    }
}

#[test]
fn a_full_disk_behind_stdout_exits_8() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    let mut command = home.command(&["status"]);
    command
        .stdout(std::fs::File::create("/dev/full").unwrap())
        .stderr(std::process::Stdio::piped());

    let output = command.spawn().unwrap().wait_with_output().unwrap();

    assert_eq!(output.status.code(), Some(8));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write to stdout"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    for args in [
        &["sessions", "show", "large", "--all"][..],
        &["sessions", "show", "large", "--all", "--json"],
        &["memory", "list"],
    ] {
        let mut command = home.command(args);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();

        drop(child.stdout.take());

        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), told.as_ref()), (Some(0), ""));
    }
}
