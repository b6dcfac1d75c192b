//! C43: another process holds the write lock.

use std::time::{Duration, Instant};

use zeroclaw::db::DbErrorKind;
use zeroclaw::store::StoreError;

use super::{control_plane, keys, put, row};
use crate::support::process::{part, played_on, wait_until};
use crate::support::sqlite::{Journal, block_on, open, run};

/// Holds the write lock of a database until a file beside it says to let go.
#[test]
#[ignore = "run by the tests beside it, in a process of its own"]
fn holder() {
    let Some(path) = played_on() else {
        return;
    };
    block_on(async {
        let mut conn = open(&path, Journal::Wal).await;
        run(
            &mut conn,
            "BEGIN IMMEDIATE; UPDATE schema_meta SET app_version = app_version",
        )
        .await;
        std::fs::write(path.with_extension("held"), "").unwrap();
        wait_until("to let go", || path.with_extension("let-go").exists());
        run(&mut conn, "COMMIT").await;
    });
}

#[test]
fn c43_a_write_waits_for_another_process_and_then_goes_through() {
    const HELD: Duration = Duration::from_secs(1);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        let mut other = part("db::busy::holder", db.path()).spawn().unwrap();
        wait_until("the lock to be held", || {
            db.path().with_extension("held").exists()
        });

        let since = Instant::now();
        let let_go = async {
            tokio::time::sleep(HELD).await;
            std::fs::write(db.path().with_extension("let-go"), "").unwrap();
        };
        // A read does not wait, and does not keep the write from going through.
        let reader = db.read().await.unwrap();
        let (first, second, ()) = tokio::join!(put(&db, row("a")), put(&db, row("b")), let_go);
        drop(reader);

        first.unwrap();
        second.unwrap();
        assert!(since.elapsed() >= HELD, "it waited");
        assert_eq!(keys(&db).await, ["a", "b"]);
        assert!(other.wait().unwrap().success());
    });
}

#[test]
fn c43_beyond_the_wait_the_error_is_busy_and_names_the_database() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        let mut other = part("db::busy::holder", db.path()).spawn().unwrap();
        wait_until("the lock to be held", || {
            db.path().with_extension("held").exists()
        });

        let since = Instant::now();
        let refused = put(&db, row("a")).await.unwrap_err();
        let waited = since.elapsed();
        std::fs::write(db.path().with_extension("let-go"), "").unwrap();
        other.wait().unwrap();

        assert!(
            matches!(&refused, StoreError::Db(error) if error.kind() == DbErrorKind::Busy),
            "{refused:?}"
        );
        assert!(
            refused.to_string().contains(db.path().to_str().unwrap()),
            "{refused}"
        );
        assert!(waited >= Duration::from_secs(4), "{waited:?}");
        assert!(waited < Duration::from_secs(10), "{waited:?}");
        put(&db, row("b")).await.unwrap();
        assert_eq!(keys(&db).await, ["b"], "nothing of the refused one remains");
    });
}

#[test]
fn c43_a_reader_keeps_its_view_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = control_plane(dir.path()).await;
        put(&db, row("a")).await.unwrap();
        let count = "SELECT count(*) FROM state_leases";
        let mut reader = db.read().await.unwrap();
        let mut view = sqlx::Connection::begin(&mut *reader).await.unwrap();
        let before: i64 = sqlx::query_scalar(count)
            .fetch_one(&mut *view)
            .await
            .unwrap();

        put(&db, row("b")).await.unwrap();

        let after: i64 = sqlx::query_scalar(count)
            .fetch_one(&mut *view)
            .await
            .unwrap();
        assert_eq!((before, after), (1, 1));
        drop(view);
        drop(reader);
        assert_eq!(keys(&db).await, ["a", "b"]);
    });
}
