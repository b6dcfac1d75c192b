//! A kill at any moment of a restore leaves all old or all new, once the next command has run; a kill of a backup
//! leaves nothing that stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use zeroclaw::model::{AgentId, BackupStatus};
use zeroclaw::service::Service;
use zeroclaw::service::backup::{self, CreateOptions, RestoreOptions};

use super::home::{Home, add_memories, add_task, clock, dumps, open, runs};

const ARCHIVE: &str = "ZEROCLAW_TEST_ARCHIVE";
const ROOT: &str = "ZEROCLAW_TEST_ROOT";
const AGENT: &str = "ZEROCLAW_TEST_AGENT";

/// Every point of a restore, and whether it ends all new.
const POINTS: [(&str, bool); 14] = [
    ("restore.staging", false),
    ("restore.unpacked", false),
    ("restore.staged", false),
    ("restore.journalled", true),
    ("restore.aside", true),
    ("restore.aside:2", true),
    ("restore.aside:3", true),
    ("restore.swap", true),
    ("restore.swap:2", true),
    ("restore.swap:3", true),
    ("restore.swap:4", true),
    ("restore.swap:5", true),
    ("restore.swapped", true),
    ("restore.cleared", true),
];

/// Runs in a process of its own, which the variables below send to its end.
#[tokio::test]
async fn child_that_is_killed() {
    let (Some(archive), Some(root)) = (std::env::var_os(ARCHIVE), std::env::var_os(ROOT)) else {
        return;
    };
    let (archive, root) = (PathBuf::from(archive), PathBuf::from(root));
    if archive.is_dir() {
        let options = CreateOptions {
            output: Some(archive),
            ..CreateOptions::default()
        };
        backup::create(&root, clock(), options).await.unwrap();
        return;
    }
    let options = RestoreOptions {
        archive,
        key: None,
        target: root,
        agent: std::env::var(AGENT)
            .ok()
            .map(|id| AgentId::new(id).unwrap()),
        dry_run: false,
        yes: true,
    };
    backup::restore(clock(), options).await.unwrap();
}

/// Sends a child to its end at `point`.
fn kill_at(point: &str, archive: &Path, root: &Path, agent: Option<&str>) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([
            "--exact",
            "backup::kill::child_that_is_killed",
            "--nocapture",
        ])
        .env(ARCHIVE, archive)
        .env(ROOT, root)
        .env("ZEROCLAW_FAULT", point);
    if let Some(agent) = agent {
        child.env(AGENT, agent);
    }
    let run = child.output().unwrap();
    assert!(
        !run.status.success(),
        "{point} was never reached: {}",
        String::from_utf8_lossy(&run.stdout)
    );
}

/// A root that has gone on since its archive was made.
async fn gone_on() -> (Home, PathBuf) {
    let home = Home::with_two_agents().await;
    let archive = home.archive().await;
    let importer = open(&home.root()).await;
    let id = AgentId::new("ceto").unwrap();
    let active = zeroclaw::model::AgentStatus::Active;
    importer.ensure_agent(&id, active, None).await.unwrap();
    add_memories(&importer, "ceto", 2).await;
    add_task(&importer, "second").await;
    importer.close().await;
    fs::write(home.root().join("config.toml"), "# later settings\n").unwrap();
    (home, archive)
}

#[tokio::test]
async fn a_killed_restore_ends_all_old_or_all_new() {
    let (home, archive) = gone_on().await;
    let old = dumps(&home.root());
    home.restore(&archive, &home.path("new")).await.unwrap();
    let new = dumps(&home.path("new"));
    assert_ne!(old, new);

    for (number, (point, is_new)) in POINTS.into_iter().enumerate() {
        let root = home.path(&format!("root {number}"));
        copy_tree(&home.root(), &root);

        kill_at(point, &archive, &root, None);
        let service = Service::look(&root, clock()).await.unwrap();
        service.close().await;

        assert_eq!(
            dumps(&root),
            if is_new { new.clone() } else { old.clone() },
            "{point}"
        );
        let config = fs::read_to_string(root.join("config.toml")).unwrap();
        assert_eq!(config == "# settings\n", is_new, "{point}");
        let left = fs::read_dir(root.join("state")).unwrap();
        let left = left.map(|it| it.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = left
            .filter(|name| name.contains("restore.") || name.starts_with(".restore"))
            .collect();
        assert_eq!(left, Vec::<String>::new(), "{point}");
        if is_new {
            let aside = fs::read_dir(root.join("state/restored"))
                .unwrap()
                .next()
                .unwrap();
            assert_eq!(dumps(&aside.unwrap().path()), old, "{point}");
        }
    }
}

#[tokio::test]
async fn a_killed_restore_of_one_agent_registers_it_in_the_end() {
    let (home, _) = gone_on().await;
    let archive = home.archive().await;
    // The target has never heard of this agent.
    let target = home.path("target");
    home.fill(&target, &["atlas"]).await;

    for (number, point) in [
        "restore.journalled",
        "restore.swap",
        "restore.swapped",
        "restore.registered",
    ]
    .into_iter()
    .enumerate()
    {
        let root = home.path(&format!("root {number}"));
        copy_tree(&target, &root);

        kill_at(point, &archive, &root, Some("ceto"));
        let service = Service::open(&root, clock(), zeroclaw::service::HolderKind::Cli).await;
        let importer = zeroclaw::service::Importer::new(service.unwrap());
        let agents = importer.agents().await.unwrap();
        importer.close().await;

        assert!(
            agents.iter().any(|it| it.agent_id.as_str() == "ceto"),
            "{point}"
        );
        let path = "agents/ceto/agent/agent.sqlite";
        assert_eq!(dumps(&root)[path], dumps(&home.root())[path], "{point}");
        assert_eq!(runs(&root).await.len(), 1, "{point}");
    }
}

#[tokio::test]
async fn a_killed_recovery_is_taken_up_by_the_next() {
    let (home, archive) = gone_on().await;
    home.restore(&archive, &home.path("new")).await.unwrap();
    let new = dumps(&home.path("new"));
    let root = home.root();

    kill_at("restore.aside", &archive, &root, None);
    // This child only gets as far as finishing what the first one left.
    kill_at("restore.swap:2", &archive, &root, None);
    kill_at("restore.swapped", &archive, &root, None);
    let service = Service::look(&root, clock()).await.unwrap();
    service.close().await;

    assert_eq!(dumps(&root), new);
}

#[tokio::test]
async fn a_killed_backup_leaves_nothing_that_stays_and_shows_as_interrupted() {
    let home = Home::with_two_agents().await;
    let out = home.path("out");
    fs::create_dir(&out).unwrap();

    for point in ["backup.captured", "backup.packed"] {
        kill_at(point, &out, &home.root(), None);
        let names: Vec<_> = fs::read_dir(&out)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }
    home.archive().await;

    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    let runs = runs(&home.root()).await;
    let interrupted = runs
        .iter()
        .filter(|run| run.status == BackupStatus::Interrupted);
    assert_eq!(interrupted.count(), 2);
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir(&target).unwrap();
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
