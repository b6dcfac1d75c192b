//! A root that does not hold still while it is backed up.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::inhabited;
use crate::support::sqlite::{self, Journal, block_on};
use crate::support::stranger::Stranger;

const RUNS: usize = 10;
/// The log stops growing here: the disk is not ours.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// Makes and removes files of all kinds until told to stop; says how often.
fn disturb(root: &Path, stop: &AtomicBool) -> usize {
    let workspace = root.join("agents/atlas/workspace");
    let mut log = fs::File::create(workspace.join("growing.log")).unwrap();
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        let number = rounds % 7;
        let passing = [
            workspace.join(format!("tmp-{number}")),
            workspace.join(format!("deep-{number}/a/b")),
            root.join(format!("passing-{number}.lock")),
            root.join(format!("passing-{number}.db-shm")),
            root.join("state").join(format!("passing-{number}-shm")),
        ];
        for path in &passing {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "here and gone").unwrap();
        }
        let socket = workspace.join("passing.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let store = workspace.join("passing.db");
        block_on(async {
            let mut conn = sqlite::open(&store, Journal::Wal).await;
            sqlite::run(&mut conn, "CREATE TABLE t (a); INSERT INTO t VALUES (1)").await;
            sqlx::Connection::close(conn).await.unwrap();
        });
        if log.metadata().unwrap().len() < MAX_LOG_BYTES {
            log.write_all(&[b'x'; 64 << 10]).unwrap();
        }
        drop(listener);
        for path in passing.iter().chain([&socket, &store]) {
            fs::remove_file(path).unwrap();
        }
        fs::remove_dir_all(workspace.join(format!("deep-{number}"))).unwrap();
        rounds += 1;
    }
    rounds
}

fn staging_left(home: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(home)
        .into_iter()
        .filter_map(Result::ok);
    entries
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.contains(".partial") || path.contains(".zeroclaw-tmp-"))
        .collect()
}

#[test]
fn c49_files_that_come_and_go_never_break_a_backup() {
    let here = Stranger::new();
    let root = here.home().join(".zeroclaw");
    inhabited::build(&root);
    let workspace = root.join("agents/atlas/workspace");
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("kept.txt"), "always there").unwrap();
    symlink("nowhere", workspace.join("dangling")).unwrap();
    let closed = workspace.join("closed.txt");
    fs::write(&closed, "not yours").unwrap();
    here.own(&root);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let stop = AtomicBool::new(false);

    std::thread::scope(|scope| {
        let noise = scope.spawn(|| disturb(&root, &stop));
        for _ in 0..RUNS {
            let args = ["backup", "create", "--include-workspace", "--json"];
            let made = here.zeroclaw(&args);
            if made.code() != Some(0) {
                stop.store(true, Ordering::Relaxed);
            }
            let report = made.exits(0).json();
            let has = |path: &str| {
                let members = report["members"].as_array().unwrap();
                members.iter().any(|member| member["path"] == path)
            };
            assert!(has("agents/atlas/workspace/kept.txt"));
            assert!(has("agents/atlas/workspace/growing.log"));
            assert!(has("agents/brook/agent/agent.sqlite"));
            for name in ["dangling", "closed.txt"] {
                let path = format!("agents/atlas/workspace/{name}");
                let left = report["left_out"].as_array().unwrap();
                assert!(left.iter().any(|left| left["path"] == *path), "{report}");
            }
            let archive = report["archive"].as_str().unwrap();
            here.zeroclaw(&["backup", "verify", archive]).exits(0);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(noise.join().unwrap() > RUNS);
    });

    assert_eq!(staging_left(here.home()), Vec::<String>::new());
}

#[test]
fn c49_a_needed_file_that_cannot_be_read_stops_a_backup_and_is_named() {
    let here = Stranger::new();
    let root = here.home().join(".zeroclaw");
    inhabited::build(&root);
    let key = root.join(".secret_key");
    fs::write(&key, "key").unwrap();
    here.own(&root);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o000)).unwrap();

    let failed = here.zeroclaw(&["backup", "create"]);

    assert_ne!(failed.code(), Some(0), "{}", failed.told());
    failed.says_nothing().complains(".secret_key");
    assert_eq!(staging_left(here.home()), Vec::<String>::new());
    let made = fs::read_dir(root.join("backups")).map_or(0, Iterator::count);
    assert_eq!(made, 0);
}
