//! Looking leaves no trace, and sees what is committed.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{control_plane, keys, look_at, put, row};
use crate::support::sqlite::{block_on, sidecar};
use crate::support::tree::{TreeEntry, assert_same_tree, tree_hash};

/// A database with the row `a` folded in and, where `pending`, the row `b` only in its log.
///
/// Copied while its writer lives, as a killed writer leaves it; `kept` are the sidecars that are there.
fn left_behind(dir: &Path, pending: bool, kept: &[&str]) -> PathBuf {
    let source = tempfile::tempdir().unwrap();
    let path = dir.join("state.sqlite");
    block_on(async {
        let db = control_plane(source.path()).await;
        put(&db, row("a")).await.unwrap();
        db.close().await;
        let db = control_plane(source.path()).await;
        if pending {
            put(&db, row("b")).await.unwrap();
        }
        std::fs::copy(db.path(), &path).unwrap();
        for suffix in kept {
            std::fs::copy(sidecar(db.path(), suffix), sidecar(&path, suffix)).unwrap();
        }
        db.close().await;
    });
    path
}

/// What a look sees, and that it left everything as it was.
#[track_caller]
fn look(path: &Path, is_at_rest: bool) -> Vec<String> {
    let folder = path.parent().unwrap();
    let before = tree_hash(folder);
    let seen = block_on(async {
        let db = look_at(path, is_at_rest).await;
        let seen = keys(&db).await;
        db.close().await;
        seen
    });
    // A log's index is no state: SQLite makes a killed writer's anew in place.
    let without_index = |tree: Vec<TreeEntry>| -> Vec<TreeEntry> {
        tree.into_iter()
            .filter(|entry| !entry.path.ends_with(b"-shm"))
            .collect()
    };
    assert_same_tree(&without_index(before), &without_index(tree_hash(folder)));
    seen
}

#[test]
fn a_database_at_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = left_behind(dir.path(), false, &[]);

    assert_eq!(look(&path, true), ["a"]);
}

#[test]
fn a_log_with_its_index_that_a_killed_writer_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = left_behind(dir.path(), true, &["-wal", "-shm"]);

    assert_eq!(look(&path, true), ["a", "b"]);
}

#[test]
fn a_log_without_its_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = left_behind(dir.path(), true, &["-wal"]);

    assert_eq!(look(&path, true), ["a", "b"]);
    assert_eq!(look(&path, false), ["a", "b"]);
}

#[test]
fn an_empty_log_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = left_behind(dir.path(), false, &[]);
    std::fs::write(sidecar(&path, "-wal"), "").unwrap();

    assert_eq!(look(&path, true), ["a"]);
}

#[test]
fn beside_a_living_writer_of_this_file_a_look_sees_its_commits() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let writer = control_plane(dir.path()).await;
        let db = look_at(writer.path(), false).await;
        assert_eq!(keys(&db).await, Vec::<String>::new());

        put(&writer, row("a")).await.unwrap();

        assert_eq!(keys(&db).await, ["a"]);
        db.close().await;
        writer.close().await;
    });
}

#[test]
fn beside_a_living_writer_that_has_not_yet_begun_with_this_file_a_look_sees_its_commits_too() {
    // Taken for a file nobody writes, it was read past its locks, and a page once read stayed as it was.
    let dir = tempfile::tempdir().unwrap();
    let path = left_behind(dir.path(), false, &[]);
    block_on(async {
        let db = look_at(&path, false).await;
        assert_eq!(keys(&db).await, ["a"]);

        let writer = control_plane(dir.path()).await;
        put(&writer, row("b")).await.unwrap();
        writer.close().await;

        assert_eq!(keys(&db).await, ["a", "b"]);
        db.close().await;
    });
}

/// A folder mounted read-only while this lives: a superuser writes through any mode bits.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn mount(dir: &Path) -> Result<Self, String> {
        for options in ["bind", "remount,bind,ro"] {
            let mut mount = Command::new("mount");
            mount.args(["-o", options]).arg(dir).arg(dir);
            let output = mount.output().map_err(|error| error.to_string())?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned());
            }
        }
        Ok(Self(dir.to_owned()))
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn on_a_read_only_disk() {
    for (pending, kept) in [
        (false, &[][..]),
        (true, &["-wal"][..]),
        (true, &["-wal", "-shm"][..]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = left_behind(dir.path(), pending, kept);
        let _mount = match ReadOnly::mount(dir.path()) {
            Ok(mount) => mount,
            Err(reason) => return println!("skipped, nothing can be mounted here: {reason}"),
        };
        assert!(
            std::fs::write(dir.path().join("x"), "").is_err(),
            "it is read-only"
        );

        let expected: &[&str] = if pending { &["a", "b"] } else { &["a"] };
        for is_at_rest in [true, false] {
            assert_eq!(look(&path, is_at_rest), expected, "{kept:?} {is_at_rest}");
        }
    }
}
