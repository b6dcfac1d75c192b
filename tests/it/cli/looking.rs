//! Commands that only look leave no trace.

use std::path::Path;

use crate::support::inhabited;
use crate::support::recipe::legacy_fixtures;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, Journal, block_on, sidecar};

/// Every command that looks, with arguments that find something in an inhabited root.
pub(crate) fn commands() -> Vec<Vec<&'static str>> {
    let plain: &[&[&str]] = &[
        &["status"],
        &["agents", "list"],
        &["agents", "show", "atlas"],
        &["sessions", "list", "--archived"],
        &["sessions", "show", "session-1"],
        &["sessions", "show", "large", "--all"],
        &["sessions", "search", "lantern"],
        &["sessions", "acp"],
        &["sessions", "artifacts", "session-1"],
        &["sessions", "run-artifacts", "--agent", "atlas"],
        &["sessions", "trajectory", "session-1"],
        &["sessions", "parent-stream", "session-1"],
        &["db", "cache", "list", "--agent", "atlas"],
        &["db", "cache", "clear", "--dry-run"],
        &["memory", "prune", "--dry-run"],
        &["memory", "list", "--with-expired"],
        &["cron", "list"],
        &["cron", "runs"],
        &["tasks", "list"],
        &["tasks", "show", "work-1"],
        &["tasks", "output", "work-1"],
        &["tasks", "goals"],
        &["tasks", "settlements"],
        &["tasks", "wait", "work-1"],
        &["tasks", "cancel", "work-1", "--dry-run"],
        &["devices", "list"],
        &["devices", "requests"],
        &["channels", "requests"],
        &["channels", "allowed"],
        &["costs"],
        &["costs", "--by", "model", "--from", "2026-01-01"],
        &["logs"],
        &["logs", "--level", "warn"],
        &["flows", "list"],
        &["flows", "show", "flow-1"],
        &["flows", "proposals"],
        &["flows", "claims"],
        &["commitments", "list"],
        &["commitments", "show", "commitment-1"],
        &["plugins", "list"],
        &["plugins", "show", "telegram"],
        &[
            "plugins",
            "show",
            "telegram",
            "--namespace",
            "sticker-cache",
            "--values",
        ],
        &["plugins", "show", "telegram", "--blobs", "--values"],
        &["plugins", "clear", "telegram", "--dry-run"],
        &["plugins", "bindings"],
        &["plugins", "installed"],
        &["delivery", "list"],
        &["delivery", "show", "message-1"],
        &["knowledge", "list"],
        &["knowledge", "show", "node-1"],
        &["audit", "list"],
        &["memory", "list", "--superseded"],
        &["memory", "search", "tide"],
        &["memory", "show", "--agent", "atlas", "harbour"],
        &["vfs", "ls", "--agent", "atlas", "--recursive"],
        &["vfs", "ls", "--agent", "atlas", "--trees"],
        &["vfs", "cat", "--agent", "atlas", "log/tide.md"],
        &["vfs", "search", "--agent", "atlas", "tide"],
        &["memory", "indexed"],
        &["db", "check"],
        &["db", "query", "SELECT * FROM v_agents"],
        &[
            "db",
            "query",
            "--agent",
            "atlas",
            "SELECT * FROM v_sessions",
        ],
        &["backup", "list"],
        &["backup", "list", "--archives"],
        &["doctor", "history"],
        &["doctor", "history", "20260105T101500Z-aaaa"],
    ];
    let as_json = plain.iter().map(|args| [*args, &["--json"][..]].concat());
    plain
        .iter()
        .map(|args| args.to_vec())
        .chain(as_json)
        .collect()
}

#[test]
fn c28_looking_changes_nothing() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let before = home.tree();

    for args in commands() {
        let ran = home.zeroclaw(&args).exits(0);
        assert!(!ran.stdout.is_empty(), "{args:?}");
    }

    home.is_unchanged_since(&before);
}

#[test]
fn c28_looking_at_a_fresh_root_changes_nothing() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    let before = home.tree();

    for args in [
        &["status"][..],
        &["agents", "list"],
        &["sessions", "list"],
        &["sessions", "search", "lantern"],
        &["cron", "list"],
        &["cron", "runs"],
        &["tasks", "list"],
        &["tasks", "goals"],
        &["devices", "list"],
        &["costs"],
        &["logs"],
        &["flows", "list"],
        &["flows", "proposals"],
        &["flows", "claims"],
        &["delivery", "list"],
        &["commitments", "list"],
        &["plugins", "list"],
        &["plugins", "bindings"],
        &["plugins", "installed"],
        &["knowledge", "list"],
        &["audit", "list"],
        &["memory", "list"],
        &["memory", "search", "tide"],
        &["db", "check"],
        &["backup", "list"],
        &["doctor", "history"],
    ] {
        home.zeroclaw(args).exits(0);
    }

    home.is_unchanged_since(&before);
}

#[test]
fn c28_a_log_left_by_a_killed_writer_is_read_and_left_alone() {
    let home = Sandbox::new();
    inhabited::build(&home.root());
    let db = home.root().join("state/state.sqlite");
    // What a writer killed before its checkpoint leaves: a log, and no index of it.
    let wal = sidecar(&db, "-wal");
    block_on(async {
        let mut connection = sqlite::open(&db, Journal::Wal).await;
        sqlite::run(
            &mut connection,
            "UPDATE cron_jobs SET name = 'from the log'",
        )
        .await;
        let (main, log) = (std::fs::read(&db).unwrap(), std::fs::read(&wal).unwrap());
        sqlx::Connection::close(connection).await.unwrap();
        std::fs::write(&db, main).unwrap();
        std::fs::write(&wal, log).unwrap();
    });
    let before = home.tree();

    home.zeroclaw(&["cron", "list"])
        .exits(0)
        .says("from the log");
    for args in commands() {
        home.zeroclaw(&args).exits(0);
    }

    home.is_unchanged_since(&before);
}

#[cfg(unix)]
#[test]
fn a_root_that_cannot_be_written_can_be_looked_at() {
    use std::os::unix::fs::PermissionsExt;

    let home = Sandbox::new();
    inhabited::build(&home.root());
    let folders: Vec<_> = walkdir::WalkDir::new(home.root())
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_dir())
        .map(walkdir::DirEntry::into_path)
        .collect();
    let set = |mode| {
        for folder in &folders {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(folder, mode).unwrap();
        }
    };

    set(0o500);
    let ran: Vec<_> = commands()
        .into_iter()
        .map(|args| home.zeroclaw(&args))
        .collect();
    set(0o700);

    for ran in ran {
        ran.exits(0);
    }
}

/// A root as an earlier release left it: its control plane and one agent, of the schemas of that number.
fn of_version(version: &str) -> Sandbox {
    let home = Sandbox::in_memory();
    let dumps = legacy_fixtures().join(format!("../../db/{version}"));
    let private = |folder: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::create_dir_all(folder).unwrap();
        std::fs::set_permissions(folder, mode).unwrap();
    };
    for (dump, store) in [
        ("global", "state/state.sqlite"),
        ("agent", "agents/atlas/agent/agent.sqlite"),
    ] {
        let Ok(text) = std::fs::read_to_string(dumps.join(format!("{dump}.sql"))) else {
            continue;
        };
        let path = home.root().join(store);
        private(path.parent().unwrap());
        block_on(async {
            let mut conn = sqlite::open(&path, Journal::Rollback).await;
            sqlite::run(&mut conn, &text).await;
            if dump == "global" {
                let others = "DELETE FROM agent_databases WHERE agent_id <> 'atlas'";
                sqlite::run(&mut conn, others).await;
            }
        });
    }
    home
}

#[test]
fn c28_what_an_older_schema_lacks_is_told_with_the_command_that_migrates() {
    for version in ["v0001", "v0004", "v0008", "v0010"] {
        let home = of_version(version);
        let before = home.tree();
        let (mut answered, mut refused) = (0, 0);
        for args in commands().iter().filter(|args| !args.contains(&"--json")) {
            let ran = home.zeroclaw(args);
            match ran.code() {
                Some(7) => {
                    refused += 1;
                    ran.complains("has schema version")
                        .complains("doctor --fix");
                }
                // Findings, or nothing of that name: what these roots hold is not what the commands ask for.
                Some(0 | 1 | 9) => answered += 1,
                _ => panic!("{version}: {}", ran.told()),
            }
        }
        assert!(
            answered > 5 && refused > 5,
            "{version}: {answered}, {refused}"
        );
        home.is_unchanged_but_for_indexes_since(&before);

        home.zeroclaw(&["doctor", "--fix"]).exits(0);
        for args in commands() {
            let ran = home.zeroclaw(&args);
            assert!(
                matches!(ran.code(), Some(0 | 1 | 9)),
                "{version}: {}",
                ran.told()
            );
        }
    }
}
