//! One agent moves: to another root, to another name, whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use zeroclaw::backup::BackupError;
use zeroclaw::model::{AgentId, AgentRecord, AgentStatus, BackupKind, ErrorKind};
use zeroclaw::service::ServiceError;
use zeroclaw::service::agent_move::{
    self, ExportOptions, ExportReport, ImportOptions, ImportReport, MoveError,
};
use zeroclaw::service::backup::{self, MemberKind, RestoreOptions, Scope};

use super::coverage::full_root;
use super::home::{Home, clock, damage_of, open, pack_agreeing, runs, unpack, verify};
use crate::schema::upgrade::replay;
use crate::support::dump::{Skip, logical_dump};
use crate::support::sqlite::{self, check_index};
use crate::support::tree::{assert_same_tree, tree_hash};

mod killed;

fn id(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn database(root: &Path, agent: &str) -> PathBuf {
    root.join(format!("agents/{agent}/agent/agent.sqlite"))
}

fn dump(root: &Path, agent: &str) -> String {
    logical_dump(&database(root, agent), Skip::NOTHING)
}

/// Exports an agent of the root at `root` into a folder beside it.
async fn export_from(home: &Home, root: &Path, agent: &str, with_workspace: bool) -> ExportReport {
    let out = home.path("out");
    fs::create_dir_all(&out).unwrap();
    let options = ExportOptions {
        seal: None,
        agent: id(agent),
        output: Some(out),
        include_workspace: with_workspace,
    };
    agent_move::export(root, clock(), options).await.unwrap()
}

async fn export(home: &Home, agent: &str) -> PathBuf {
    let report = export_from(home, &home.root(), agent, false).await;
    report.archive.archive
}

/// A request to take in what an archive holds.
fn wanted(archive: &Path, target: &Path) -> ImportOptions {
    ImportOptions {
        key: None,
        archive: archive.to_owned(),
        target: target.to_owned(),
        agent: None,
        name: None,
        whole: None,
        dry_run: false,
        yes: true,
    }
}

async fn import(options: ImportOptions) -> Result<ImportReport, ServiceError> {
    agent_move::import(clock(), options).await
}

/// A root of its own that knows nobody but `other`.
async fn other_root(home: &Home) -> PathBuf {
    let root = home.path("other");
    home.fill(&root, &["other"]).await;
    root
}

async fn registered(root: &Path, agent: &str) -> Option<AgentRecord> {
    let importer = open(root).await;
    let agents = importer.agents().await.unwrap();
    importer.close().await;
    agents.into_iter().find(|it| it.agent_id == id(agent))
}

#[tokio::test]
async fn c48_a_row_of_every_table_of_an_agent_moves_to_another_root() {
    let home = full_root().await;
    let other = other_root(&home).await;
    let others = dump(&other, "other");

    let archive = export(&home, "atlas").await;
    let report = import(wanted(&archive, &other)).await.unwrap();

    assert!(report.written);
    assert_eq!(dump(&other, "atlas"), dump(&home.root(), "atlas"));
    assert_eq!(dump(&other, "other"), others);
    for index in zeroclaw::db::FULL_TEXT_INDEXES {
        check_index(&database(&other, "atlas"), index).unwrap();
    }
    let beside = fs::read_dir(other.join("agents/atlas/agent")).unwrap();
    assert_eq!(beside.count(), 1, "a log was left beside the database");
    let record = registered(&other, "atlas").await.unwrap();
    assert_eq!(Some(&record), report.agent.as_ref());
    assert_eq!(record.status, AgentStatus::Active);
    assert_eq!(runs(&other).await[0].kind, BackupKind::Restore);
}

#[tokio::test]
async fn a_new_name_is_the_only_difference_also_beside_the_old_one() {
    let home = full_root().await;
    let archive = export(&home, "atlas").await;

    let mut options = wanted(&archive, &home.root());
    options.name = Some(id("twin"));
    import(options).await.unwrap();

    let renamed = dump(&home.root(), "twin");
    assert!(renamed.contains("agent_id = text \"twin\""));
    // Nothing else in the tier names its agent.
    let back = renamed.replace("agent_id = text \"twin\"", "agent_id = text \"atlas\"");
    assert_eq!(back, dump(&home.root(), "atlas"));
    // Both open for writing under their own names.
    let importer = open(&home.root()).await;
    for name in ["atlas", "twin"] {
        let active = AgentStatus::Active;
        importer
            .ensure_agent(&id(name), active, None)
            .await
            .unwrap();
    }
    importer.close().await;
    home.archive().await;
}

#[tokio::test]
async fn an_agent_can_be_picked_out_of_a_backup_of_the_whole_root() {
    let home = Home::with_two_agents().await;
    let importer = open(&home.root()).await;
    let retired = AgentStatus::Retired;
    importer
        .ensure_agent(&id("borea"), retired, Some("moved out"))
        .await
        .unwrap();
    importer.close().await;
    let archive = home.archive().await;
    let other = other_root(&home).await;

    let unsaid = import(wanted(&archive, &other)).await.unwrap_err();
    let mut options = wanted(&archive, &other);
    options.agent = Some(id("nobody"));
    let missing = import(options.clone()).await.unwrap_err();
    options.agent = Some(id("borea"));
    let report = import(options).await.unwrap();

    assert_eq!(unsaid.kind(), ErrorKind::Usage);
    assert!(unsaid.hint().unwrap().contains("atlas, borea"), "{unsaid}");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert_eq!(dump(&other, "borea"), dump(&home.root(), "borea"));
    let record = registered(&other, "borea").await.unwrap();
    assert_eq!(record.status, AgentStatus::Retired);
    assert_eq!(record.status_reason.as_deref(), Some("moved out"));
    assert!(report.notes.iter().any(|note| note.contains("is retired")));
    assert!(registered(&other, "atlas").await.is_none());
    let state: Vec<_> = fs::read_dir(other.join("state"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("restore"))
        .collect();
    assert_eq!(state, Vec::<String>::new());
}

#[tokio::test]
async fn the_workspace_moves_when_asked_and_what_else_lies_there_stays() {
    let home = Home::with_two_agents().await;
    let folder = home.root().join("agents/atlas");
    for (path, text) in [
        ("workspace/notes/a.txt", "draft"),
        ("workspace/b", ""),
        ("stray.txt", "not mine"),
    ] {
        fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        fs::write(folder.join(path), text).unwrap();
    }
    let mut own = sqlite::open(&folder.join("workspace/own.db"), sqlite::Journal::Wal).await;
    sqlite::run(&mut own, "CREATE TABLE t (a); INSERT INTO t VALUES (1)").await;
    let other = other_root(&home).await;

    let narrow = export_from(&home, &home.root(), "atlas", false).await;
    let wide = export_from(&home, &home.root(), "atlas", true).await;
    let mut options = wanted(&wide.archive.archive, &other);
    options.name = Some(id("twin"));
    import(options).await.unwrap();

    let left = |report: &ExportReport| -> Vec<String> {
        let left = report.archive.left_out.iter();
        left.map(|left| left.path.clone()).collect()
    };
    assert_eq!(narrow.archive.members.len(), 1);
    assert!(left(&narrow).contains(&"agents/atlas/workspace".to_owned()));
    assert_eq!(left(&wide), ["agents/atlas/stray.txt"]);
    let moved = other.join("agents/twin");
    assert_eq!(
        fs::read_to_string(moved.join("workspace/notes/a.txt")).unwrap(),
        "draft"
    );
    assert!(moved.join("workspace/b").exists());
    assert_eq!(
        sqlite::number(&moved.join("workspace/own.db"), "SELECT count(*) FROM t"),
        1
    );
    assert!(!moved.join("stray.txt").exists());
    for entry in tree_hash(&moved) {
        assert_eq!(entry.mode & 0o077, 0, "{entry:?}");
    }
    drop(own);
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_and_nothing_changes() {
    let home = Home::with_two_agents().await;
    let archive = export(&home, "atlas").await;
    let other = other_root(&home).await;
    // What is left of an agent that nobody registered.
    fs::create_dir_all(other.join("agents/left/agent")).unwrap();
    fs::write(database(&other, "left"), "somebody's").unwrap();
    fs::create_dir_all(other.join("agents/busy/workspace")).unwrap();
    fs::write(other.join("agents/busy/workspace/a"), "mine").unwrap();
    let before = tree_hash(&other.join("agents"));

    for (name, dry_run) in [("other", false), ("other", true), ("left", false)] {
        let mut options = wanted(&archive, &other);
        options.name = Some(id(name));
        (options.dry_run, options.yes) = (dry_run, !dry_run);
        let refused = import(options).await.unwrap_err();
        assert!(matches!(
            refused,
            ServiceError::Move(MoveError::Taken { .. })
        ));
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(refused.hint().unwrap().contains("--as"));
    }
    let workspace = home.root().join("agents/atlas/workspace");
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("b"), "theirs").unwrap();
    let wide = export_from(&home, &home.root(), "atlas", true).await;
    let mut options = wanted(&wide.archive.archive, &other);
    options.name = Some(id("busy"));
    let merged = import(options).await.unwrap_err();

    assert_eq!(merged.kind(), ErrorKind::Refused);
    assert_same_tree(&before, &tree_hash(&other.join("agents")));
    assert!(registered(&other, "busy").await.is_none());
}

#[tokio::test]
async fn an_export_is_proved_like_a_backup_and_is_none() {
    let home = full_root().await;
    let before = runs(&home.root()).await.len();
    let report = export_from(&home, &home.root(), "atlas", false).await;
    let archive = &report.archive.archive;

    assert_eq!(verify(archive).await.unwrap().scope, Scope::Agent);
    let deep = backup::verify(archive, clock(), None, true, None)
        .await
        .unwrap();
    assert_eq!(deep.members.len(), 1);
    let told = report.notes.join("\n");
    assert!(told.contains("jobs (1) and tasks (1) of atlas"), "{told}");
    let restored = backup::restore(
        clock(),
        RestoreOptions {
            key: None,
            archive: archive.clone(),
            target: home.path("nowhere"),
            agent: None,
            dry_run: false,
            yes: true,
        },
    );
    let refused = restored.await.unwrap_err();
    assert!(matches!(
        refused,
        ServiceError::Backup(BackupError::OneAgent { .. })
    ));
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.hint().unwrap().contains("agents import"));
    assert!(!home.path("nowhere").exists());
    assert_eq!(runs(&home.root()).await.len(), before);
    let name = archive.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("zeroclaw-agent-atlas-"), "{name}");
}

#[tokio::test]
async fn an_older_schema_is_migrated_and_a_newer_one_refused() {
    let home = Home::with_two_agents().await;
    let known = {
        let tier = zeroclaw::model::Tier::Agent(id("atlas"));
        zeroclaw::db::known_version(&tier)
    };
    let old = replay(&home.path(""), "agent", known - 1, "");
    fs::copy(&old, home.agent("atlas")).unwrap();
    let other = other_root(&home).await;

    let archive = export(&home, "atlas").await;
    import(wanted(&archive, &other)).await.unwrap();

    let version =
        |path: &Path| sqlite::number(path, "SELECT user_version FROM pragma_user_version");
    assert_eq!(version(&home.agent("atlas")), known - 1);
    assert_eq!(version(&database(&other, "atlas")), known);
    let record = registered(&other, "atlas").await.unwrap();
    assert_eq!(record.schema_version, known);

    let mut members = unpack(&archive);
    let newer = home.path("newer.tar.gz");
    pack_agreeing(&newer, &mut members, |manifest| {
        manifest["members"][0]["schema_version"] = (known + 1).into();
    });
    let mut options = wanted(&newer, &other);
    options.name = Some(id("twin"));
    let refused = import(options).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NewerSchema);
}

#[tokio::test]
async fn an_archive_that_claims_to_be_one_agents_may_hold_nothing_else() {
    let home = Home::with_two_agents().await;
    let good = unpack(&export(&home, "atlas").await);
    let whole = unpack(&home.archive().await);
    let bad = home.path("bad.tar.gz");

    // A whole archive under a false flag.
    let row = serde_json::from_slice::<serde_json::Value>(&good[0].1).unwrap()["agent"].clone();
    pack_agreeing(&bad, &mut whole.clone(), |manifest| {
        manifest["scope"] = "agent".into();
        manifest["agent"] = row.clone();
    });
    assert_eq!(damage_of(&bad).await.0, "state/state.sqlite");

    for (edit, member) in [
        (json!({ "agent": null }), "manifest.json"),
        (json!({ "scope": "root" }), "manifest.json"),
        (json!({ "scope": "galaxy" }), "manifest.json"),
    ] {
        pack_agreeing(&bad, &mut good.clone(), |manifest| {
            for (name, value) in edit.as_object().unwrap() {
                manifest[name] = value.clone();
            }
        });
        assert_eq!(damage_of(&bad).await.0, member, "{edit}");
    }
    for (agent, member) in [
        ("borea", "agents/atlas/agent/agent.sqlite"),
        ("../x", "manifest.json"),
    ] {
        pack_agreeing(&bad, &mut good.clone(), |manifest| {
            manifest["agent"]["agent_id"] = agent.into();
        });
        assert_eq!(damage_of(&bad).await.0, member, "{agent}");
    }
    // No database at all.
    let mut empty = good[..2].to_vec();
    pack_agreeing(&bad, &mut empty, |manifest| {
        manifest["members"] = json!([]);
    });
    assert_eq!(damage_of(&bad).await.0, "agents/atlas/agent/agent.sqlite");
    // A file that is to land outside of the workspace.
    let mut members = good.clone();
    members.push(("agents/atlas/agent/x".to_owned(), b"x".to_vec()));
    pack_agreeing(&bad, &mut members, |manifest| {
        let mut entry =
            json!({ "kind": "file", "archive_path": "agents/atlas/agent/x", "mode": 384 });
        entry["bytes"] = 1.into();
        entry["sha256"] = crate::support::recipe::sha256_hex(b"x").into();
        manifest["members"].as_array_mut().unwrap().push(entry);
    });
    assert_eq!(damage_of(&bad).await.0, "agents/atlas/agent/x");
    // Where the row says its database lies is not believed: it goes where every agent's does.
    pack_agreeing(&bad, &mut good.clone(), |manifest| {
        manifest["agent"]["path"] = "../../elsewhere.sqlite".into();
    });
    let other = other_root(&home).await;
    let report = import(wanted(&bad, &other)).await.unwrap();
    assert_eq!(
        report.agent.unwrap().path,
        "agents/atlas/agent/agent.sqlite"
    );
    let kinds: Vec<MemberKind> = verify(&bad)
        .await
        .unwrap()
        .members
        .iter()
        .map(|it| it.kind)
        .collect();
    assert_eq!(kinds, [MemberKind::Database]);
}
