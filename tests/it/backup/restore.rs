//! The way back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sqlx::Connection;
use zeroclaw::fs::sidecars;
use zeroclaw::model::{AgentId, BackupKind, BackupStatus, ErrorKind};
use zeroclaw::service::Service;
use zeroclaw::service::backup::{self, CreateOptions, PlanAction, RestoreOptions};

use super::home::{Home, add_memories, add_task, clock, dumps, open, runs};
use crate::support::sqlite::{self, Journal};
use crate::support::tree::{assert_same_tree, tree_hash};

fn to(archive: &Path, target: &Path) -> RestoreOptions {
    RestoreOptions {
        archive: archive.to_owned(),
        key: None,
        target: target.to_owned(),
        agent: None,
        dry_run: false,
        yes: true,
    }
}

#[tokio::test]
async fn a_restored_root_says_the_same_and_is_private() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let two = home.path("two");

    let report = home.restore(&archive, &two).await.unwrap();

    assert!(report.written && report.previous.is_none());
    assert!(
        report
            .plan
            .iter()
            .all(|step| step.action == PlanAction::Create)
    );
    assert_eq!(dumps(&home.root()), dumps(&two));
    assert_eq!(fs::read(two.join("config.toml")).unwrap(), b"# settings\n");
    assert_eq!(fs::read(two.join(".secret_key")).unwrap(), b"k3y\n");
    for entry in walkdir::WalkDir::new(&two).min_depth(1) {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let expected = if entry.file_type().is_dir() {
            0o700
        } else {
            0o600
        };
        assert_eq!(mode, expected, "{}", entry.path().display());
    }
    let runs = runs(&two).await;
    assert_eq!(runs[0].status, BackupStatus::Completed);
    assert!(runs.iter().any(|run| run.kind == BackupKind::Restore));
    assert!(runs.iter().any(|run| run.kind == BackupKind::Create));
    assert!(runs.iter().all(|run| run.status == BackupStatus::Completed));
}

#[tokio::test]
async fn leases_do_not_come_back() {
    let home = Home::with_two_agents().await;
    let importer = open(&home.root()).await;
    importer.show_owner("somebody").await.unwrap();
    let archive = home.archive().await;
    importer.close().await;

    home.restore(&archive, &home.path("two")).await.unwrap();

    let count = |root: &Path| {
        let global = root.join("state/state.sqlite");
        sqlite::number(&global, "SELECT count(*) FROM state_leases")
    };
    assert_eq!(count(&home.root()), 1);
    assert_eq!(count(&home.path("two")), 0);
}

#[tokio::test]
async fn what_was_there_is_set_aside_with_its_logs_and_can_be_had_back() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let root = home.root();
    let importer = open(&root).await;
    let id = AgentId::new("ceto").unwrap();
    let active = zeroclaw::model::AgentStatus::Active;
    importer.ensure_agent(&id, active, None).await.unwrap();
    add_memories(&importer, "ceto", 1).await;
    add_task(&importer, "second").await;
    importer.close().await;
    let wanted = unpacked_dumps(&home, &archive).await;
    let newer = dumps(&root);
    // A crashed writer: its last row is only in the log.
    crash_with_a_row_in_the_log(&home);
    fs::remove_file(root.join("config.toml")).unwrap();

    let report = home.restore(&archive, &root).await.unwrap();

    assert_eq!(dumps(&root), wanted);
    for sidecar in sidecars(&home.global()) {
        assert!(!sidecar.exists(), "{}", sidecar.display());
    }
    let action = |path: &str| {
        report
            .plan
            .iter()
            .find(|it| it.path == path)
            .unwrap()
            .action
    };
    assert_eq!(action("state/state.sqlite"), PlanAction::Replace);
    assert_eq!(action("config.toml"), PlanAction::Create);
    assert_eq!(
        action("agents/ceto/agent/agent.sqlite"),
        PlanAction::SetAside
    );
    let aside = report.previous.unwrap();
    assert!(aside.starts_with(root.join("state/restored")));
    let old = dumps(&aside);
    assert_eq!(old.len(), 4);
    assert_eq!(
        old["agents/ceto/agent/agent.sqlite"],
        newer["agents/ceto/agent/agent.sqlite"]
    );
    assert!(old["state/state.sqlite"].contains("\"in the log\""));
    let service = Service::open(&root, clock(), zeroclaw::service::HolderKind::Cli).await;
    service.unwrap().close().await;
}

async fn unpacked_dumps(home: &Home, archive: &Path) -> std::collections::BTreeMap<String, String> {
    let place = home.path("unpacked");
    home.restore(archive, &place).await.unwrap();
    dumps(&place)
}

/// Leaves a main file and a log as a killed process does.
fn crash_with_a_row_in_the_log(home: &Home) {
    let [wal, _, _] = sidecars(&home.global());
    let (main, log) = sqlite::block_on(async {
        let mut held = sqlite::open(&home.global(), Journal::Wal).await;
        let row = "INSERT INTO task_runs (task_id, owner_kind, status, created_at_ms)
                   VALUES ('in the log', 'task', 'succeeded', 1)";
        sqlite::run(&mut held, row).await;
        let bytes = (fs::read(home.global()).unwrap(), fs::read(&wal).unwrap());
        held.close().await.unwrap();
        bytes
    });
    fs::write(home.global(), main).unwrap();
    fs::write(&wal, log).unwrap();
}

#[tokio::test]
async fn one_agent_comes_back_alone() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let root = home.root();
    let importer = open(&root).await;
    add_task(&importer, "second").await;
    importer.close().await;
    let mut agent = sqlite::open(&home.agent("atlas"), Journal::Wal).await;
    sqlite::run(&mut agent, "DELETE FROM memories").await;
    agent.close().await.unwrap();
    let mut before = dumps(&root);
    before.remove("agents/atlas/agent/agent.sqlite");
    let one = |target: &Path| RestoreOptions {
        agent: Some(AgentId::new("atlas").unwrap()),
        ..to(&archive, target)
    };

    let report = backup::restore(clock(), one(&root)).await.unwrap();
    let nowhere = backup::restore(clock(), one(&home.path("none")))
        .await
        .unwrap_err();
    let unknown = RestoreOptions {
        agent: Some(AgentId::new("zeno").unwrap()),
        ..to(&archive, &root)
    };
    let unknown = backup::restore(clock(), unknown).await.unwrap_err();

    assert_eq!(report.plan.len(), 1);
    let memories = "SELECT count(*) FROM memories";
    assert_eq!(sqlite::number(&home.agent("atlas"), memories), 3);
    let mut after = dumps(&root);
    after.remove("agents/atlas/agent/agent.sqlite");
    let rows = |dump: &str| {
        dump.lines()
            .filter(|line| !line.contains("last_seen"))
            .count()
    };
    assert_eq!(
        rows(&before["state/state.sqlite"]),
        rows(&after["state/state.sqlite"])
    );
    assert_eq!(nowhere.kind(), ErrorKind::NotInitialised);
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert!(!home.path("none").exists());
    let runs = runs(&root).await;
    assert!(runs.iter().any(|run| run.kind == BackupKind::Restore));
}

#[tokio::test]
async fn nothing_is_written_without_consent_or_in_a_dry_run() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let root = home.root();
    let before = tree_hash(&root);

    let no_yes = RestoreOptions {
        yes: false,
        ..to(&archive, &root)
    };
    let refused = backup::restore(clock(), no_yes).await.unwrap_err();
    let dry = |target: &Path| RestoreOptions {
        dry_run: true,
        yes: false,
        ..to(&archive, target)
    };
    let here = backup::restore(clock(), dry(&root)).await.unwrap();
    let there = backup::restore(clock(), dry(&home.path("two")))
        .await
        .unwrap();

    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.hint().unwrap().contains("--yes"));
    assert!(!here.written && here.plan.iter().all(|it| it.action == PlanAction::Replace));
    assert!(!there.written && !home.path("two").exists());
    assert_same_tree(&before, &tree_hash(&root));
}

#[tokio::test]
async fn a_root_that_somebody_holds_is_refused_and_he_is_named() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let importer = open(&home.root()).await;

    let written = home.restore(&archive, &home.root()).await.unwrap_err();
    let dry = RestoreOptions {
        dry_run: true,
        ..to(&archive, &home.root())
    };
    let dry = backup::restore(clock(), dry).await.unwrap_err();
    importer.close().await;

    for refused in [written, dry] {
        assert_eq!(refused.kind(), ErrorKind::Busy);
        assert!(refused.to_string().contains("cli (pid"), "{refused}");
    }
}

#[tokio::test]
async fn a_damaged_archive_leaves_no_trace() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let mut bytes = fs::read(&archive).unwrap();
    bytes.truncate(bytes.len() - 1024);
    let bad = home.path("bad.tar.gz");
    fs::write(&bad, bytes).unwrap();
    let before = tree_hash(&home.root());

    let over = home.restore(&bad, &home.root()).await.unwrap_err();
    let fresh = home.restore(&bad, &home.path("two")).await.unwrap_err();

    assert_eq!(over.kind(), ErrorKind::Damaged);
    assert_eq!(fresh.kind(), ErrorKind::Damaged);
    assert_same_tree(&before, &tree_hash(&home.root()));
    assert!(!home.path("two").exists());
}

#[tokio::test]
async fn a_link_in_the_target_is_not_followed() {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let (two, outside) = (home.path("two"), home.path("outside"));
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir(&two).unwrap();
    std::os::unix::fs::symlink(&outside, two.join("agents")).unwrap();

    let refused = home.restore(&archive, &two).await.unwrap_err();

    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!two.join("state").exists());
}

#[tokio::test]
async fn c53_the_root_may_be_a_mount_point_and_everything_on_filesystems_of_their_own() {
    let home = Home::with_two_agents().await;
    let (root, two) = (home.path("mounted"), home.path("mounted two"));
    let mounts: Vec<Mount> = [&root, &two]
        .into_iter()
        .filter_map(|at| Mount::at(at))
        .collect();
    if mounts.len() < 2 {
        println!("c53 skipped: a tmpfs cannot be mounted here");
        return;
    }
    home.fill(&root, &["atlas"]).await;
    let out = home.path("out");
    fs::create_dir_all(&out).unwrap();
    let options = CreateOptions {
        output: Some(out),
        ..CreateOptions::default()
    };

    let archive = backup::create(&root, clock(), options)
        .await
        .unwrap()
        .archive;
    home.restore(&archive, &two).await.unwrap();
    home.restore(&archive, &root).await.unwrap();

    assert_eq!(dumps(&root), dumps(&two));

    // And on a medium that cannot be written.
    assert!(mount(&["-o", "remount,ro", root.to_str().unwrap()]));
    let options = CreateOptions {
        output: Some(home.path("out")),
        ..CreateOptions::default()
    };
    let report = backup::create(&root, clock(), options).await.unwrap();
    let refused = backup::create(&root, clock(), CreateOptions::default())
        .await
        .unwrap_err();
    assert!(
        report.warnings[0].contains("not recorded"),
        "{:?}",
        report.warnings
    );
    assert_eq!(refused.kind(), ErrorKind::NoSpace);
    let read_only = home.restore(&archive, &root).await.unwrap_err();
    assert_eq!(read_only.kind(), ErrorKind::NoSpace);
}

/// A tmpfs that is unmounted at the end.
struct Mount(std::path::PathBuf);

impl Mount {
    fn at(path: &Path) -> Option<Self> {
        fs::create_dir(path).unwrap();
        mount(&[
            "-t",
            "tmpfs",
            "-o",
            "mode=700,size=64m",
            "tmpfs",
            path.to_str().unwrap(),
        ])
        .then(|| Self(path.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn mount(arguments: &[&str]) -> bool {
    let run = Command::new("mount").args(arguments).output();
    run.is_ok_and(|run| run.status.success())
}
