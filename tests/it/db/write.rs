//! One writer for all callers of a process.

use std::sync::Arc;
use std::time::Duration;

use zeroclaw::db::{Db, DbErrorKind};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::lease::{self, Lease};

use super::{control_plane, keys, put, row};
use crate::support::rng::Rng;
use crate::support::sqlite::{block_on, number, sidecar};
use crate::support::tree::{assert_same_tree, tree_hash};

/// Bytes of a page, of the log's header and of a frame's header; see SQLite's file format.
const PAGE: usize = 8192;
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// Commits that the log of a database holds: frames that give the size of the database after them.
fn commits(db: &Db) -> usize {
    let log = std::fs::read(sidecar(db.path(), "-wal")).unwrap();
    let frames = log[LOG_HEADER.min(log.len())..].chunks_exact(FRAME_HEADER + PAGE);
    frames.filter(|frame| frame[4..8] != [0; 4]).count()
}

#[test]
fn callers_that_wait_at_the_same_time_share_commits() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = Arc::new(control_plane(dir.path()).await);
        put(&db, row("alone")).await.unwrap();
        assert_eq!(commits(&db), 1, "one caller alone has its own commit");

        let callers: Vec<_> = (0..64)
            .map(|number| {
                let db = Arc::clone(&db);
                tokio::spawn(async move { put(&db, row(format!("{number:02}"))).await })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap().unwrap();
        }

        assert_eq!(keys(&db).await.len(), 65);
        assert!(commits(&db) <= 9, "{} commits for 64 callers", commits(&db));
    });
}

/// A use case that writes a row and then fails in this way.
async fn fail_after(db: &Db, key: &'static str, how: fn() -> StoreError) -> Result<(), StoreError> {
    db.write(move |tx| {
        Box::pin(async move {
            lease::replace(tx, &row(key)).await?;
            Err(how())
        })
    })
    .await
}

fn refused() -> StoreError {
    StoreError::Cursor {
        text: "planted".to_owned(),
    }
}

fn panicked() -> StoreError {
    panic!("planted: a use case panics")
}

#[test]
fn a_use_case_that_fails_or_panics_takes_nothing_of_its_neighbours_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;

        let (before, failed, between, panicked, after) = tokio::join!(
            put(&db, row("a")),
            fail_after(&db, "b", refused),
            put(&db, row("c")),
            fail_after(&db, "d", panicked),
            put(&db, row("e")),
        );

        for good in [before, between, after] {
            good.unwrap();
        }
        assert!(matches!(failed, Err(StoreError::Cursor { .. })));
        assert!(matches!(panicked, Err(StoreError::Db(_))));
        assert_eq!(keys(&db).await, ["a", "c", "e"]);
        assert_eq!(commits(&db), 1, "they were neighbours");
        put(&db, row("f")).await.unwrap();
    });
}

#[test]
fn a_use_case_that_fails_alone_leaves_nothing_and_no_open_transaction() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;

        let failed = fail_after(&db, "a", refused).await;
        assert!(
            matches!(failed, Err(StoreError::Cursor { .. })),
            "its own reason"
        );
        assert!(fail_after(&db, "b", panicked).await.is_err());
        put(&db, row("c")).await.unwrap();

        assert_eq!(keys(&db).await, ["c"]);
        assert_eq!(commits(&db), 1);
    });
}

#[test]
fn a_caller_that_goes_away_leaves_a_whole_write_or_none() {
    const SEED: u64 = 20_261_130;
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = Arc::new(control_plane(dir.path()).await);
        let mut stored = Vec::new();
        for number in 0..200 {
            let writer = Arc::clone(&db);
            let caller = tokio::spawn(async move { put_pair(&writer, number).await });
            tokio::time::sleep(Duration::from_micros(rng.below(1_500))).await;
            caller.abort();
            if caller.await.is_ok() {
                stored.push(number);
            }
        }
        // Behind all that queued.
        put(&db, row("last")).await.unwrap();

        let keys = keys(&db).await;
        assert!(
            !stored.is_empty() && stored.len() < 200,
            "{} stored",
            stored.len()
        );
        for number in 0..200 {
            let [first, second] =
                ["first", "second"].map(|half| keys.contains(&format!("{number:03} {half}")));
            assert_eq!(first, second, "half of {number}");
            assert!(
                first || !stored.contains(&number),
                "{number} was acknowledged"
            );
        }
    });
}

async fn put_pair(db: &Db, number: u32) {
    let pair: [Lease; 2] = ["first", "second"].map(|half| row(format!("{number:03} {half}")));
    db.write(move |tx| {
        Box::pin(async move {
            lease::replace(tx, &pair[0]).await?;
            tokio::task::yield_now().await;
            lease::replace(tx, &pair[1]).await
        })
    })
    .await
    .unwrap();
}

/// Sets how many pages the writer's connection may grow the database to.
async fn set_page_limit(db: &Db, sql: &'static str) {
    db.write(move |tx| {
        Box::pin(async move {
            sqlx::query(sql).execute(&mut **tx).await.unwrap();
            Ok::<_, StoreError>(())
        })
    })
    .await
    .unwrap();
}

fn is_full(result: &Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::Db(error)) if error.kind() == DbErrorKind::Full)
}

#[test]
fn a_full_disk_is_told_as_such_to_all_it_touches_and_the_writer_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        let mut large = row("large");
        large.payload_json = Some("x".repeat(40 * PAGE));
        put(&db, row("before")).await.unwrap();
        // Below its present size counts as its present size.
        set_page_limit(&db, "PRAGMA max_page_count = 1").await;

        let (first, full, last) = tokio::join!(
            put(&db, row("a")),
            put(&db, large.clone()),
            put(&db, row("z"))
        );
        assert!(is_full(&full), "{full:?}");
        // SQLite takes the whole transaction back: a neighbour is stored, or told why it is not.
        for (neighbour, key) in [(first, "a"), (last, "z")] {
            let is_stored = keys(&db).await.contains(&key.to_owned());
            assert_eq!(neighbour.is_ok(), is_stored, "{key}: {neighbour:?}");
            assert!(is_stored || is_full(&neighbour), "{key}: {neighbour:?}");
        }
        assert!(
            keys(&db).await.contains(&"before".to_owned()),
            "reading goes on"
        );

        set_page_limit(&db, "PRAGMA max_page_count = 1000000").await;
        put(&db, large).await.unwrap();
        assert!(keys(&db).await.contains(&"large".to_owned()));
        db.close().await;
    });
}

#[test]
fn a_long_transaction_that_is_dropped_leaves_nothing_and_one_that_commits_leaves_all() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;

        let mut bulk = db.begin_bulk().await.unwrap();
        lease::replace(&mut bulk.tx(), &row("dropped"))
            .await
            .unwrap();
        drop(bulk);
        put(&db, row("after the drop")).await.unwrap();
        let mut bulk = db.begin_bulk().await.unwrap();
        lease::replace(&mut bulk.tx(), &row("kept")).await.unwrap();
        assert_eq!(keys(&db).await, ["after the drop"], "not before its commit");
        bulk.commit().await.unwrap();

        assert_eq!(keys(&db).await, ["after the drop", "kept"]);
    });
}

#[test]
fn opening_for_writing_writes_nothing() {
    // Every connection for writing set the vacuum mode anew: a commit and a sync at each open, and a
    // file that differed after a run that had nothing to do.
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        control_plane(dir.path()).await.close().await;
        let before = tree_hash(dir.path());

        let db = control_plane(dir.path()).await;
        assert_eq!(keys(&db).await, Vec::<String>::new());
        drop(db.begin_bulk().await.unwrap());
        assert_eq!(commits(&db), 0);
        db.close().await;

        assert_same_tree(&before, &tree_hash(dir.path()));
    });
}

#[test]
fn a_new_database_has_the_layout_it_was_measured_with() {
    let dir = tempfile::tempdir().unwrap();
    let db = block_on(control_plane(dir.path()));
    let path = db.path().to_owned();
    block_on(db.close());

    assert_eq!(number(&path, "PRAGMA page_size"), 8192);
    assert_eq!(number(&path, "PRAGMA auto_vacuum"), 2, "incremental");
}

#[test]
fn closing_finishes_what_has_queued_and_folds_the_log_in() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = Arc::new(control_plane(dir.path()).await);
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let db = Arc::clone(&db);
                tokio::spawn(async move { put(&db, row(number.to_string())).await })
            })
            .collect();
        for caller in waiting {
            caller.await.unwrap().unwrap();
        }
        let path = db.path().to_owned();
        Arc::into_inner(db).unwrap().close().await;

        assert!(!sidecar(&path, "-wal").exists() && !sidecar(&path, "-shm").exists());
        let db = control_plane(dir.path()).await;
        assert_eq!(keys(&db).await.len(), 20);
    });
}
