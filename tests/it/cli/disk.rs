//! `db stats` and `db compact`: where the disk went, and how to get it back.

use serde_json::Value;

use crate::daemon::host::Host;
use crate::support::dump::{Skip, logical_dump};
use crate::support::inhabited;
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite::{self, Journal, block_on, check_index, is_sound};

fn inhabited() -> Sandbox {
    let home = Sandbox::in_memory();
    inhabited::build(&home.root());
    home
}

const ATLAS: &str = "agents/atlas/agent/agent.sqlite";

fn tier<'a>(value: &'a Value, name: &str) -> &'a Value {
    let tiers = value["tiers"].as_array().unwrap();
    tiers.iter().find(|tier| tier["tier"] == name).unwrap()
}

/// The large session is gone, its pages are not.
fn with_gaps(home: &Sandbox) {
    let delete = ["sessions", "delete", "large", "--yes"];
    home.zeroclaw(&delete).exits(0);
}

#[test]
fn db_stats_says_where_the_disk_went_and_leaves_no_trace() {
    let home = inhabited();
    with_gaps(&home);
    std::fs::create_dir_all(home.root().join("agents/atlas/workspace")).unwrap();
    std::fs::write(
        home.root().join("agents/atlas/workspace/notes.md"),
        [b'x'; 5_000],
    )
    .unwrap();
    let old = home.root().join("state/migrated/20260105T101500Z-aaaa");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::write(old.join("old.bin"), [0; 7_000]).unwrap();
    let before = home.tree();

    let ran = home.zeroclaw(&["db", "stats", "--json"]).exits(0);
    super::json::is_documented(&["db", "stats"], &ran.json());
    let stats = ran.json();

    let atlas = tier(&stats, "agent atlas");
    let file = std::fs::metadata(home.root().join(ATLAS)).unwrap().len();
    assert_eq!(atlas["file_bytes"], file);
    assert_eq!(atlas["workspace_bytes"], 5_000);
    assert!(atlas["free_bytes"].as_u64().unwrap() > 1_000_000, "{atlas}");
    // Every page that is not free is some table's.
    let tables = atlas["tables"].as_array().unwrap();
    let held: u64 = tables
        .iter()
        .map(|table| table["bytes"].as_u64().unwrap())
        .sum();
    let overhead = file - held - atlas["free_bytes"].as_u64().unwrap();
    assert!(overhead <= 2 * 8_192, "{overhead} of {file}");
    let folders = stats["folders"].as_array().unwrap();
    let migrated = folders
        .iter()
        .find(|folder| folder["path"] == "state/migrated");
    assert_eq!(migrated.unwrap()["bytes"], 7_000);
    // A deleted session leaves a copy for a while, which is told too.
    assert!(
        folders
            .iter()
            .any(|folder| folder["path"] == "state/deleted")
    );
    let kinds = stats["kinds"].as_array().unwrap();
    assert!(kinds.iter().any(|kind| kind["kind"] == "search indexes"));
    assert!(stats["total_bytes"].as_u64().unwrap() > file);
    home.zeroclaw(&["db", "stats"])
        .exits(0)
        .says("old files of imports")
        .says("transcript_events")
        .complains("db compact");
    home.zeroclaw(&["db", "stats", "--agent", "atlas", "--all"])
        .exits(0)
        .says("cache_entries");
    home.zeroclaw(&["db", "stats", "--agent", "nobody"])
        .exits(9);
    home.is_unchanged_since(&before);
}

#[test]
fn db_compact_gives_the_room_back_and_proves_that_nothing_is_lost() {
    let home = inhabited();
    with_gaps(&home);
    let store = home.root().join(ATLAS);
    let (before, dump) = (home.tree(), logical_dump(&store, Skip::NOTHING));
    let size = std::fs::metadata(&store).unwrap().len();

    let expected = home
        .zeroclaw(&["db", "compact", "--dry-run", "--json"])
        .exits(0)
        .json();
    home.is_unchanged_since(&before);
    let ran = home.zeroclaw(&["db", "compact", "--json"]).exits(0);
    super::json::is_documented(&["db", "compact"], &ran.json());
    let done = ran.json();

    let smaller = std::fs::metadata(&store).unwrap().len();
    assert!(smaller + 1_000_000 < size, "{size} to {smaller}");
    assert_eq!(tier(&done, "agent atlas")["after_bytes"], smaller);
    assert!(done["freed_bytes"].as_u64().unwrap() >= size - smaller);
    let hoped = expected["freed_bytes"].as_u64().unwrap();
    assert!(hoped > 1_000_000 && hoped <= done["freed_bytes"].as_u64().unwrap() + 65_536);
    assert_eq!(logical_dump(&store, Skip::NOTHING), dump);
    assert!(is_sound(&store));
    for index in zeroclaw::db::FULL_TEXT_INDEXES {
        check_index(&store, index).unwrap();
    }
    home.zeroclaw(&["sessions", "search", "lantern"])
        .exits(0)
        .says("lantern");
    home.zeroclaw(&["db", "compact"])
        .exits(0)
        .says("freed: 0 B");
}

#[test]
fn db_compact_without_room_changes_nothing_and_says_how_much_it_needs() {
    let home = inhabited();
    with_gaps(&home);
    let before = home.tree();
    let bytes = std::fs::read(home.root().join(ATLAS)).unwrap();
    let refused = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("ZEROCLAW_FREE_BYTES", "1000");
        Ran::of(command).exits(8).says("and there are 1000");
    };

    refused(&["db", "compact", "--dry-run"]);
    home.is_unchanged_since(&before);
    refused(&["db", "compact"]);

    assert_eq!(std::fs::read(home.root().join(ATLAS)).unwrap(), bytes);
}

#[test]
fn db_compact_leaves_a_damaged_database_as_it_is_and_does_the_others() {
    let home = inhabited();
    let store = home.root().join(ATLAS);
    block_on(async {
        let mut conn = sqlite::open(&store, Journal::Wal).await;
        // A row of a session that is not there.
        let orphan = "PRAGMA foreign_keys = OFF;
            INSERT INTO transcript_events (event_no, session_no, seq, event_type, created_at_ms, text)
            VALUES (999999, 999, 1, 'message', 1, '')";
        sqlite::run(&mut conn, orphan).await;
        sqlx::Connection::close(conn).await.unwrap();
    });
    let before = logical_dump(&store, Skip::NOTHING);

    let done = home.zeroclaw(&["db", "compact", "--json"]).exits(6).json();

    assert_eq!(tier(&done, "agent atlas")["refused"], "damaged");
    assert_eq!(tier(&done, "global")["refused"], Value::Null);
    assert_eq!(logical_dump(&store, Skip::NOTHING), before);
}

#[test]
fn db_compact_is_refused_beside_a_daemon_which_is_named() {
    let home = crate::daemon::host::fresh();
    let host = Host::start(&home);

    home.zeroclaw(&["db", "compact"])
        .exits(4)
        .complains("daemon");
    home.zeroclaw(&["db", "compact", "--dry-run"]).exits(0);
    home.zeroclaw(&["db", "stats"]).exits(0);

    host.stop();
}
