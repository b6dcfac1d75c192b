//! What goes into an archive, and what is left out.

use std::fs;

use sqlx::Connection;
use zeroclaw::model::BackupStatus;
use zeroclaw::service::backup::{self, CreateOptions, MemberKind, Role};

use super::home::{Home, open, runs, unpack, verify};
use crate::support::recipe::sha256_hex;
use crate::support::sqlite::{self, Journal};

#[tokio::test]
async fn an_archive_holds_both_tiers_the_configuration_and_the_key_manifest_first() {
    let home = Home::with_two_agents().await;

    let report = home.create(CreateOptions::default()).await.unwrap();

    assert!(report.verified && report.has_secrets);
    assert_eq!(report.warnings, Vec::<String>::new());
    let names: Vec<String> = unpack(&report.archive).into_iter().map(|it| it.0).collect();
    assert_eq!(
        names,
        [
            "manifest.json",
            "manifest.sha256",
            "state/state.sqlite",
            "agents/atlas/agent/agent.sqlite",
            "agents/borea/agent/agent.sqlite",
            ".secret_key",
            "config.toml",
        ]
    );
    let name = report.archive.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("zeroclaw-backup-20261130T120000Z-"),
        "{name}"
    );
    assert!(name.ends_with(".tar.gz"));
    let atlas = report.members.iter().find(|it| it.path.contains("atlas"));
    assert_eq!(atlas.unwrap().rows.as_ref().unwrap()["memories"], 3);
    verify(&report.archive).await.unwrap();
}

#[tokio::test]
async fn a_manifest_names_nothing_of_its_machine() {
    let home = Home::with_two_agents().await;

    let manifest = unpack(&home.archive().await).swap_remove(0).1;

    let manifest = String::from_utf8(manifest).unwrap();
    assert!(
        !manifest.contains(home.path("").to_str().unwrap()),
        "{manifest}"
    );
}

#[tokio::test]
async fn databases_of_other_programs_are_known_by_header_and_not_changed() {
    let home = Home::with_two_agents().await;
    let store = home.root().join("plugins/store.weird");
    fs::create_dir_all(store.parent().unwrap()).unwrap();
    let mut other = sqlite::open(&store, Journal::Rollback).await;
    sqlite::run(
        &mut other,
        "CREATE TABLE t (a); INSERT INTO t VALUES (1), (2)",
    )
    .await;
    other.close().await.unwrap();
    let logged = home.root().join("logged.db");
    let pair = sqlite::pair(
        "CREATE TABLE t (a)",
        &["INSERT INTO t VALUES (1)"],
        &["INSERT INTO t VALUES (2)"],
    );
    fs::write(&logged, &pair.main).unwrap();
    fs::write(sqlite::sidecar(&logged, "-wal"), &pair.wal).unwrap();
    let broken = home.root().join("broken.db");
    fs::write(
        &broken,
        [b"SQLite format 3\0".as_slice(), &[7; 500]].concat(),
    )
    .unwrap();
    fs::write(home.root().join("notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", home.root().join("link")).unwrap();
    fs::hard_link(home.global(), home.root().join("twin.sqlite")).unwrap();
    let workspace = home.root().join("agents/atlas/workspace/a.txt");
    fs::create_dir_all(workspace.parent().unwrap()).unwrap();
    fs::write(&workspace, "draft").unwrap();
    let before = sha256_hex(&fs::read(&store).unwrap());

    let report = home.create(CreateOptions::default()).await.unwrap();
    let with_workspace = CreateOptions {
        include_workspace: true,
        ..CreateOptions::default()
    };
    let wide = home.create(with_workspace).await.unwrap();

    assert_eq!(sha256_hex(&fs::read(&store).unwrap()), before);
    assert_eq!(fs::read_dir(store.parent().unwrap()).unwrap().count(), 1);
    let rows = |path: &str| {
        let member = report.members.iter().find(|it| it.path == path).unwrap();
        assert_eq!(
            (member.kind, member.role),
            (MemberKind::Database, Some(Role::Foreign))
        );
        member.rows.as_ref().unwrap()["t"]
    };
    assert_eq!(rows("plugins/store.weird"), 2);
    assert_eq!(rows("logged.db"), 2);
    let left: Vec<&str> = report
        .left_out
        .iter()
        .map(|left| left.path.as_str())
        .collect();
    let expected = ["agents/atlas/workspace", "broken.db", "link", "twin.sqlite"];
    assert_eq!(left, expected);
    // What nobody knows may be somebody's only copy.
    let notes = report.members.iter().find(|it| it.path == "notes.txt");
    assert_eq!(notes.unwrap().kind, MemberKind::File);
    assert!(
        wide.members
            .iter()
            .any(|it| it.path == "agents/atlas/workspace/a.txt")
    );
    verify(&report.archive).await.unwrap();
}

#[tokio::test]
async fn the_doctors_archive_takes_old_files_along_readable_or_not() {
    let home = Home::with_two_agents().await;
    let root = home.root();
    let pair = sqlite::pair(
        "CREATE TABLE t (a)",
        &["INSERT INTO t VALUES (1)"],
        &["INSERT INTO t VALUES (2)"],
    );
    fs::write(root.join("old.db"), &pair.main).unwrap();
    fs::write(root.join("old.db-wal"), &pair.wal).unwrap();
    fs::write(root.join("torn.db"), &pair.main[..700]).unwrap();
    fs::write(root.join("torn.db-wal"), "half a log").unwrap();
    fs::write(root.join("old.log"), "line\n").unwrap();
    let service = open(&root).await;

    let extra = ["old.db", "torn.db", "old.log"].map(Into::into).to_vec();
    let options = CreateOptions {
        output: Some(home.path("pre.tar.gz")),
        ..CreateOptions::default()
    };
    let report = backup::create_with(service.service(), options, extra, true)
        .await
        .unwrap();
    service.close().await;

    let members = unpack(&report.archive);
    let bytes = |name: &str| &members.iter().find(|it| it.0 == name).unwrap().1;
    assert_eq!(bytes("old.log"), b"line\n");
    assert_eq!(bytes("torn.db"), &pair.main[..700]);
    assert_eq!(bytes("torn.db-wal"), b"half a log");
    let old = report
        .members
        .iter()
        .find(|it| it.path == "old.db")
        .unwrap();
    assert_eq!(old.rows.as_ref().unwrap()["t"], 2);
    assert!(!members.iter().any(|it| it.0 == "old.db-wal"));
    verify(&report.archive).await.unwrap();
    assert_eq!(runs(&root).await[0].status, BackupStatus::Completed);
}

#[tokio::test]
async fn the_doctors_archive_leaves_nothing_beside_a_database_at_rest() {
    let home = Home::with_two_agents().await;
    let root = home.root();
    let pair = sqlite::pair(
        "CREATE TABLE t (a)",
        &["INSERT INTO t VALUES (1)"],
        &["INSERT INTO t VALUES (2)"],
    );
    fs::write(root.join("quiet.db"), &pair.main).unwrap();
    let service = open(&root).await;

    let options = CreateOptions {
        output: Some(home.path("pre.tar.gz")),
        ..CreateOptions::default()
    };
    let report =
        backup::create_with(service.service(), options, vec!["quiet.db".into()], true).await;
    let report = report.unwrap();
    service.close().await;

    let listed = report.members.iter().find(|it| it.path == "quiet.db");
    assert_eq!(listed.unwrap().rows.as_ref().unwrap()["t"], 1);
    verify(&report.archive).await.unwrap();
    // It asks for a write-ahead log: whoever opens it plainly makes one.
    for sidecar in zeroclaw::fs::sidecars(&root.join("quiet.db")) {
        assert!(!sidecar.exists(), "{}", sidecar.display());
    }
}

#[tokio::test]
async fn keys_stay_out_when_they_are_to() {
    let home = Home::with_two_agents().await;
    let options = CreateOptions {
        with_secrets: false,
        ..CreateOptions::default()
    };

    let report = home.create(options).await.unwrap();

    assert!(!report.has_secrets);
    assert!(
        report
            .left_out
            .iter()
            .any(|left| left.path == ".secret_key")
    );
    assert!(
        !unpack(&report.archive)
            .iter()
            .any(|it| it.0 == ".secret_key")
    );
    assert!(!report.warnings.is_empty());
}
