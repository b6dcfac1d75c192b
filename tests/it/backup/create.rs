//! Making archives.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::Connection;
use zeroclaw::model::{BackupKind, BackupStatus, ErrorKind};
use zeroclaw::service::Service;
use zeroclaw::service::backup::{self, CreateOptions};

use super::home::{Home, add_task, clock, dumps, open, runs, unpack};
use crate::support::sqlite::{self, Journal};
use crate::support::tree::{assert_same_tree, tree_hash};

/// One more row for an agent's database, with which no index must agree.
fn conversation(peer: &str) -> String {
    format!(
        "INSERT INTO conversations (conversation_id, channel, account_id, kind, peer_id, created_at_ms, updated_at_ms)
         VALUES ('{peer}', 'c', 'a', 'direct', '{peer}', 1, 1)"
    )
}

#[tokio::test]
async fn c45_a_row_that_is_only_in_the_log_travels_and_a_later_one_does_not() {
    let home = Home::with_two_agents().await;
    let importer = open(&home.root()).await;
    add_task(&importer, "before").await;
    importer.close().await;
    let mut held = sqlite::open(&home.global(), Journal::Wal).await;
    let witness = "INSERT INTO task_runs (task_id, owner_kind, status, created_at_ms) VALUES";
    sqlite::run(
        &mut held,
        &format!("{witness} ('witness', 'task', 'succeeded', 1)"),
    )
    .await;
    let mut agent = sqlite::open(&home.agent("atlas"), Journal::Wal).await;
    sqlite::run(&mut agent, &conversation("witness")).await;
    assert!(
        fs::metadata(sqlite::sidecar(&home.global(), "-wal"))
            .unwrap()
            .len()
            > 0
    );

    let archive = home.archive().await;
    sqlite::run(
        &mut held,
        &format!("{witness} ('later', 'task', 'succeeded', 1)"),
    )
    .await;
    home.restore(&archive, &home.path("two")).await.unwrap();

    let names: Vec<String> = unpack(&archive).into_iter().map(|it| it.0).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.ends_with("-wal") || name.ends_with("-shm"))
    );
    let global = &dumps(&home.path("two"))["state/state.sqlite"];
    assert!(global.contains("\"witness\"") && global.contains("\"before\""));
    assert!(!global.contains("\"later\""));
    let witnesses = "SELECT count(*) FROM conversations WHERE peer_id = 'witness'";
    let restored = home.path("two/agents/atlas/agent/agent.sqlite");
    assert_eq!(sqlite::number(&restored, witnesses), 1);
    held.close().await.unwrap();
    agent.close().await.unwrap();
}

#[tokio::test]
async fn c55_nothing_is_ever_readable_by_others() {
    let home = Home::with_two_agents().await;
    let out = home.path("out");
    fs::create_dir(&out).unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).unwrap();
    let (root, two) = (home.root(), home.path("two"));
    let places = [root.clone(), out.clone(), two.clone()];
    let done = Arc::new(AtomicBool::new(false));
    let watch = {
        let done = Arc::clone(&done);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            let mut looks = 0;
            while !done.load(Ordering::SeqCst) || looks == 0 {
                looks += 1;
                open.extend(places.iter().flat_map(|place| open_to_others(place)));
            }
            open
        })
    };

    for _ in 0..3 {
        let archive = home.archive().await;
        home.restore(&archive, &two).await.unwrap();
    }

    done.store(true, Ordering::SeqCst);
    let open = watch.join().unwrap();
    assert_eq!(open, Vec::<String>::new());
}

#[test]
fn c55_the_watch_sees_what_is_readable_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("open");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();

    assert_eq!(open_to_others(folder.path()).len(), 1);
}

/// What below `place` has group or other bits. Links have all, and mean nothing by it.
fn open_to_others(place: &Path) -> Vec<String> {
    let entries = walkdir::WalkDir::new(place)
        .min_depth(1)
        .into_iter()
        .flatten();
    let modes = entries.filter_map(|entry| {
        let mode = entry.metadata().ok()?.permissions().mode() & 0o077;
        (mode != 0).then(|| format!("{} {mode:o}", entry.path().display()))
    });
    modes.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c57_a_writer_goes_on_and_the_archive_is_one_instant() {
    let home = Home::with_two_agents().await;
    let (global, agent) = (home.global(), home.agent("atlas"));
    let done = Arc::new(AtomicBool::new(false));
    // A row goes into the control plane first, then into the agent: at every instant the first is the same or one ahead.
    let writer = {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            let mut one = sqlite::open(&global, Journal::Wal).await;
            let mut two = sqlite::open(&agent, Journal::Wal).await;
            let (mut slowest, mut number) = (Duration::ZERO, 0);
            while !done.load(Ordering::SeqCst) {
                number += 1;
                let begun = Instant::now();
                let lease = format!(
                    "INSERT INTO state_leases (scope, lease_key, owner, created_at_ms, updated_at_ms)
                     VALUES ('c57', 'k{number}', 'o', 1, 1)"
                );
                sqlite::run(&mut one, &lease).await;
                sqlite::run(&mut two, &conversation(&format!("peer {number}"))).await;
                slowest = slowest.max(begun.elapsed());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            one.close().await.unwrap();
            two.close().await.unwrap();
            (slowest, number)
        })
    };

    let mut counts = Vec::new();
    for _ in 0..5 {
        let report = home.create(CreateOptions::default()).await.unwrap();
        let rows = |part: &str, table: &str| {
            let member = report.members.iter().find(|it| it.path.contains(part));
            member.unwrap().rows.as_ref().unwrap()[table]
        };
        counts.push((
            rows("state.sqlite", "state_leases"),
            rows("atlas", "conversations"),
        ));
    }

    done.store(true, Ordering::SeqCst);
    let (slowest, written) = writer.await.unwrap();
    assert!(written > 5);
    for (global, agent) in counts {
        assert!(
            global == agent || global == agent + 1,
            "{global} and {agent}"
        );
    }
    assert!(slowest < Duration::from_secs(4), "{slowest:?}");
}

#[tokio::test]
async fn c58_an_archive_goes_where_it_is_told_and_never_over_anything() {
    let home = Home::with_two_agents().await;
    let taken = home.path("taken.tar.gz");
    fs::write(&taken, "precious").unwrap();
    let to = |path: &Path| CreateOptions {
        output: Some(path.to_owned()),
        ..CreateOptions::default()
    };

    let over = home.create(to(&taken)).await.unwrap_err();
    let nowhere = home
        .create(to(&home.path("no/such/file.tar.gz")))
        .await
        .unwrap_err();
    let no_folder = home.create(to(&home.path("no/"))).await.unwrap_err();
    let device = home.create(to(Path::new("/dev/full"))).await.unwrap_err();
    let odd = home.create(to(&home.path("- odd name"))).await.unwrap();
    let inside = backup::create(&home.root(), clock(), CreateOptions::default())
        .await
        .unwrap();
    let again = backup::create(&home.root(), clock(), CreateOptions::default())
        .await
        .unwrap();

    assert_eq!(over.kind(), ErrorKind::Refused);
    assert_eq!(fs::read(&taken).unwrap(), b"precious");
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    assert_eq!(no_folder.kind(), ErrorKind::NotFound);
    assert_eq!(device.kind(), ErrorKind::Refused);
    assert_eq!(odd.archive, home.path("- odd name"));
    assert_ne!(inside.archive, again.archive);
    assert!(again.left_out.iter().any(|left| left.path == "backups"));
    let leftovers = walkdir::WalkDir::new(home.path("")).into_iter().flatten();
    let leftovers = leftovers.filter(|it| it.file_name().to_string_lossy().ends_with(".partial"));
    assert_eq!(leftovers.count(), 0);
}

#[tokio::test]
async fn c59_every_run_is_recorded_and_a_dead_one_shows_as_interrupted() {
    let home = Home::with_two_agents().await;
    let mut held = sqlite::open(&home.global(), Journal::Wal).await;
    let dead =
        "INSERT INTO backup_runs (id, kind, created_at_ms, archive_path, status, manifest_json)
                VALUES ('dead', 'create', 1, '', 'running', '{}')";
    sqlite::run(&mut held, dead).await;
    held.close().await.unwrap();

    let archive = home.archive().await;
    let taken = CreateOptions {
        output: Some(archive.clone()),
        ..CreateOptions::default()
    };
    home.create(taken).await.unwrap_err();
    let root = home.root();
    backup::verify(&archive, clock(), Some(&root), false, None)
        .await
        .unwrap();
    let bad = home.path("bad.tar.gz");
    fs::write(&bad, "no archive").unwrap();
    backup::verify(&bad, clock(), Some(&root), false, None)
        .await
        .unwrap_err();

    let runs = runs(&root).await;
    let count = |kind, status| {
        let these = runs
            .iter()
            .filter(|run| run.kind == kind && run.status == status);
        these.count()
    };
    assert_eq!(count(BackupKind::Create, BackupStatus::Completed), 1);
    assert_eq!(count(BackupKind::Create, BackupStatus::Failed), 1);
    assert_eq!(count(BackupKind::Create, BackupStatus::Interrupted), 1);
    assert_eq!(count(BackupKind::Verify, BackupStatus::Completed), 1);
    assert_eq!(count(BackupKind::Verify, BackupStatus::Failed), 1);
    let failed = runs.iter().find(|run| run.status == BackupStatus::Failed);
    assert!(failed.unwrap().error.is_some());
}

#[tokio::test]
async fn c60_a_newer_schema_is_refused_and_named_and_nothing_moves() {
    let home = Home::with_two_agents().await;
    let mut agent = sqlite::open(&home.agent("borea"), Journal::Wal).await;
    sqlite::run(&mut agent, "PRAGMA user_version = 99").await;
    agent.close().await.unwrap();
    let before = tree_hash(&home.root());

    let refused = home.create(CreateOptions::default()).await.unwrap_err();

    assert_eq!(refused.kind(), ErrorKind::NewerSchema);
    assert!(refused.to_string().contains("borea"), "{refused}");
    // The failed run is recorded in the control plane; everything else is as it was.
    let own = |tree: Vec<crate::support::tree::TreeEntry>| {
        let tree = tree.into_iter();
        tree.filter(|it| !it.path.starts_with(b"state/"))
            .collect::<Vec<_>>()
    };
    assert_same_tree(&own(before), &own(tree_hash(&home.root())));
    assert_eq!(fs::read_dir(home.path("out")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let home = Home::with_two_agents().await;
    let before = tree_hash(&home.root());

    let options = CreateOptions {
        dry_run: true,
        ..CreateOptions::default()
    };
    let report = backup::create(&home.root(), clock(), options)
        .await
        .unwrap();

    assert!(report.dry_run && report.archive.starts_with(home.root().join("backups")));
    assert_eq!(report.members.len(), 5);
    assert_same_tree(&before, &tree_hash(&home.root()));
}

#[tokio::test]
async fn a_root_that_is_none_and_an_agent_without_database_are_named() {
    let home = Home::with_two_agents().await;
    fs::remove_file(home.agent("atlas")).unwrap();

    let missing = home.create(CreateOptions::default()).await.unwrap_err();
    let nothing = backup::create(&home.path("none"), clock(), CreateOptions::default()).await;

    assert_eq!(missing.kind(), ErrorKind::Damaged);
    assert!(missing.to_string().contains("atlas"));
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::NotInitialised);
    assert!(!home.path("none").exists());
}

#[tokio::test]
async fn a_backup_works_beside_a_service_that_holds_the_root() {
    let home = Home::with_two_agents().await;
    let importer = open(&home.root()).await;

    let report = home.create(CreateOptions::default()).await.unwrap();

    assert_eq!(report.warnings, Vec::<String>::new());
    add_task(&importer, "after").await;
    importer.close().await;
    let service = Service::look(&home.root(), clock()).await.unwrap();
    service.close().await;
    assert_eq!(runs(&home.root()).await[0].status, BackupStatus::Completed);
}
