//! Filling a database without a log: where its bytes go, what a kill leaves, what somebody who looks sees.

use std::path::{Path, PathBuf};

use sqlx::Connection;
use zeroclaw::db::{Access, Db, DbErrorKind, OpenError};
use zeroclaw::fs::sidecars;
use zeroclaw::model::Tier;
use zeroclaw::store::global::lease;

use super::{control_plane, keys, look_at, put, row, write_access};
use crate::support::sqlite::{Journal, block_on, open, run, sidecar};
use crate::support::tree::{assert_same_tree, tree_hash};

async fn filled(path: &Path) -> Db {
    let access = Access::Load(write_access(path.parent().unwrap()));
    Db::open(path, &Tier::Global, access).await.unwrap()
}

/// Whether the file's header asks for a write-ahead log.
fn asks_for_log(path: &Path) -> bool {
    std::fs::read(path).unwrap()[18..20] == [2, 2]
}

/// A database with the rows `a` and `b`, changed and unfinished by a killed writer that had a rollback journal.
fn left_by_a_killed_load(dir: &Path) -> PathBuf {
    let source = tempfile::tempdir().unwrap();
    let path = dir.join("state.sqlite");
    block_on(async {
        let db = control_plane(source.path()).await;
        put(&db, row("a")).await.unwrap();
        put(&db, row("b")).await.unwrap();
        let live = db.path().to_owned();
        db.close().await;
        let mut writer = open(&live, Journal::Rollback).await;
        // A cache of one page: what follows must reach the file before its commit.
        run(
            &mut writer,
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;
             DELETE FROM state_leases;
             CREATE TABLE half (a); INSERT INTO half VALUES (zeroblob(100000))",
        )
        .await;
        for (from, to) in [
            (live.clone(), path.clone()),
            (sidecar(&live, "-journal"), sidecar(&path, "-journal")),
        ] {
            std::fs::copy(from, to).unwrap();
        }
        run(&mut writer, "ROLLBACK").await;
        writer.close().await.unwrap();
    });
    // Without its journal the file is not what was committed: the recipe does what it says.
    let torn = tempfile::tempdir().unwrap();
    let alone = torn.path().join("state.sqlite");
    std::fs::copy(&path, &alone).unwrap();
    let seen = block_on(async {
        let look = Access::Look { is_at_rest: true };
        match Db::open(&alone, &Tier::Global, look).await {
            Ok(db) => {
                let rows = lease::list(&mut db.read().await.unwrap()).await;
                rows.map_or(0, |rows| rows.len())
            }
            Err(_) => 0,
        }
    });
    assert_ne!(seen, 2, "the journal holds nothing");
    path
}

#[test]
fn it_has_no_log_until_it_closes_and_one_after_that() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        let path = db.path().to_owned();
        db.close().await;
        assert!(asks_for_log(&path));

        let db = filled(&path).await;
        put(&db, row("a")).await.unwrap();
        let mut tx = db.begin_bulk().await.unwrap();
        lease::replace(&mut tx.tx(), &row("b")).await.unwrap();
        tx.commit().await.unwrap();

        assert_eq!(keys(&db).await, ["a", "b"]);
        assert!(!asks_for_log(&path));
        for sidecar in sidecars(&path) {
            assert!(!sidecar.exists(), "{}", sidecar.display());
        }
        db.close().await;
        assert!(asks_for_log(&path));
        let db = control_plane(dir.path()).await;
        assert_eq!(keys(&db).await, ["a", "b"]);
        db.close().await;
    });
}

#[test]
fn one_that_was_not_closed_gets_its_log_from_the_next_writer() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        let path = db.path().to_owned();
        db.close().await;
        let mut killed = open(&path, Journal::Rollback).await;
        run(&mut killed, "DELETE FROM state_leases").await;
        killed.close().await.unwrap();
        assert!(!asks_for_log(&path));

        let db = control_plane(dir.path()).await;
        put(&db, row("a")).await.unwrap();
        db.close().await;

        assert!(asks_for_log(&path));
    });
}

#[test]
fn a_look_at_what_a_kill_left_sees_what_was_committed_and_changes_nothing() {
    for is_at_rest in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = left_by_a_killed_load(dir.path());
        let before = tree_hash(dir.path());

        let seen = block_on(async {
            let db = look_at(&path, is_at_rest).await;
            let seen = keys(&db).await;
            db.close().await;
            seen
        });

        assert_eq!(seen, ["a", "b"]);
        assert_same_tree(&before, &tree_hash(dir.path()));
    }
}

#[test]
fn opening_what_a_kill_left_takes_the_unfinished_transaction_back() {
    for is_filled_again in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = left_by_a_killed_load(dir.path());
        block_on(async {
            let db = match is_filled_again {
                true => filled(&path).await,
                false => control_plane(dir.path()).await,
            };

            assert_eq!(keys(&db).await, ["a", "b"]);
            put(&db, row("c")).await.unwrap();
            assert_eq!(keys(&db).await, ["a", "b", "c"]);
            db.close().await;
        });
        assert!(asks_for_log(&path));
        assert!(!sidecar(&path, "-journal").exists());
    }
}

#[test]
fn a_look_beside_it_sees_whole_transactions_or_hears_that_it_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        let path = db.path().to_owned();
        put(&db, row("a")).await.unwrap();
        db.close().await;
        let db = filled(&path).await;

        // It writes, and nothing of that is in the file yet.
        let mut tx = db.begin_bulk().await.unwrap();
        lease::replace(&mut tx.tx(), &row("b")).await.unwrap();
        let look = look_at(&path, false).await;
        assert_eq!(keys(&look).await, ["a"]);
        look.close().await;
        tx.commit().await.unwrap();
        db.close().await;

        // It writes, and half of it is in the file.
        let mut writer = open(&path, Journal::Rollback).await;
        run(
            &mut writer,
            "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;
             DELETE FROM state_leases;
             CREATE TABLE half (a); INSERT INTO half VALUES (zeroblob(100000))",
        )
        .await;
        let look = Access::Look { is_at_rest: false };
        let refused = Db::open(&path, &Tier::Global, look).await.unwrap_err();
        assert!(
            matches!(&refused, OpenError::Db(error) if error.kind() == DbErrorKind::Busy),
            "{refused:?}"
        );
        run(&mut writer, "ROLLBACK").await;
        writer.close().await.unwrap();
    });
}
