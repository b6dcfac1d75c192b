//! C60: what this release must not touch is refused, and stays as it was.

use std::path::Path;

use zeroclaw::clock::Clock;
use zeroclaw::db::{Access, Db, OpenError, known_version};
use zeroclaw::fs::{HolderKind, Layout};
use zeroclaw::model::{AgentId, AgentStatus, ErrorKind, Page, PageLimit, SessionRecord, Tier};
use zeroclaw::service::{Importer, Request, Response, Service};

use super::upgrade::replay;
use super::{open_for_writing, tiers};
use crate::support::sqlite::{Journal, block_on, number, open, run};
use crate::support::tree::{assert_same_tree, tree_hash};

/// Both ways to look, and to write: each must refuse the file at `path`, and change nothing beside it.
#[track_caller]
fn refused_either_way(path: &Path, tier: &Tier, is_expected: impl Fn(&OpenError) -> bool) {
    let folder = path.parent().unwrap();
    let before = tree_hash(folder);

    for is_at_rest in [true, false] {
        let look = Access::Look { is_at_rest };
        let opened = block_on(async { Db::open(path, tier, look).await.map(drop) });
        assert!(opened.as_ref().is_err_and(&is_expected), "{opened:?}");
    }
    assert_same_tree(&before, &tree_hash(folder));

    let opened = block_on(async { open_for_writing(path, tier).await.map(drop) });
    assert!(opened.as_ref().is_err_and(&is_expected), "{opened:?}");
    assert_same_tree(&before, &tree_hash(folder));
}

#[test]
fn c60_a_newer_schema_is_refused_and_left_as_it_is() {
    for (name, tier) in tiers() {
        let dir = tempfile::tempdir().unwrap();
        let known = known_version(&tier);
        let path = replay(
            dir.path(),
            name,
            known,
            &format!(
                "PRAGMA user_version = {}; UPDATE schema_meta SET app_version = '9.9.9'",
                known + 1
            ),
        );

        refused_either_way(&path, &tier, |error| {
            let text = error.to_string();
            matches!(error, OpenError::TooNew { found, known: ours, writer: Some(release), .. }
                if *found == known + 1 && *ours == known && release == "9.9.9")
                && text.contains(path.to_str().unwrap())
                && error.hint().is_some()
        });
    }
}

#[test]
fn c60_a_newer_schema_whose_own_records_changed_is_still_called_newer() {
    // A later release may rename or drop what this one reads to tell whose file it is.
    let dir = tempfile::tempdir().unwrap();
    let path = replay(
        dir.path(),
        "global",
        known_version(&Tier::Global),
        "PRAGMA user_version = 99; ALTER TABLE schema_meta RENAME TO schema_facts",
    );

    refused_either_way(&path, &Tier::Global, |error| {
        matches!(
            error,
            OpenError::TooNew {
                found: 99,
                writer: None,
                ..
            }
        )
    });
}

#[test]
fn a_file_of_another_tier_or_agent_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [global, agent] = ["global", "agent"].map(|name| replay(dir.path(), name, 4, ""));
    let stranger = Tier::Agent(AgentId::new("birch").unwrap());
    let owner = Tier::Agent(AgentId::new("atlas").unwrap());
    let is_wrong = |error: &OpenError| matches!(error, OpenError::WrongFile { .. });

    refused_either_way(&global, &owner, is_wrong);
    refused_either_way(&agent, &Tier::Global, is_wrong);
    refused_either_way(&agent, &stranger, is_wrong);
}

#[test]
fn a_foreign_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for journal in [Journal::Rollback, Journal::Wal] {
        let path = dir.path().join(format!("{journal:?}.sqlite"));
        block_on(async {
            let mut conn = open(&path, journal).await;
            run(&mut conn, "CREATE TABLE notes (a); PRAGMA user_version = 3").await;
            sqlx::Connection::close(conn).await.unwrap();
        });

        refused_either_way(&path, &Tier::Global, |error| {
            matches!(error, OpenError::WrongFile { .. })
        });
    }
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.sqlite");
    std::fs::write(&path, "dear diary, ".repeat(1000)).unwrap();

    refused_either_way(&path, &Tier::Global, |error| match error {
        OpenError::Db(error) => error.kind() == zeroclaw::db::DbErrorKind::Corrupt,
        _ => false,
    });
}

#[test]
fn an_empty_file_is_no_database_to_open() {
    // It would come up as an agent without memory, and nobody would be told.
    let dir = tempfile::tempdir().unwrap();
    for (name, tier) in tiers() {
        let path = dir.path().join(name);
        std::fs::write(&path, "").unwrap();

        refused_either_way(&path, &tier, |error| {
            matches!(error, OpenError::Empty { .. })
        });
    }
}

/// A root with the agents of these names, at rest.
fn root_with(dir: &Path, agents: &[&str]) -> Layout {
    block_on(async {
        let (service, _) = Service::init(dir, Clock::fixed(1_796_000_000_000), HolderKind::Cli)
            .await
            .unwrap();
        let importer = Importer::new(service);
        for name in agents {
            let id = AgentId::new(*name).unwrap();
            importer
                .ensure_agent(&id, AgentStatus::Active, None)
                .await
                .unwrap();
        }
        importer.close().await;
    });
    Layout::new(dir.to_owned())
}

fn list_of(agent: Option<&str>) -> Request {
    Request::SessionsList {
        agent: agent.map(|name| AgentId::new(name).unwrap()),
        channel: None,
        chat_type: None,
        status: None,
        text: None,
        with_archived: false,
        since_ms: None,
        until_ms: None,
        before: None,
        limit: PageLimit::default(),
    }
}

#[test]
fn c60_one_newer_agent_does_not_stop_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let layout = root_with(dir.path(), &["atlas", "birch"]);
    block_on(async {
        let mut conn = open(&layout.agent_db("birch"), Journal::Wal).await;
        run(&mut conn, "PRAGMA user_version = 99").await;
        sqlx::Connection::close(conn).await.unwrap();
    });
    let birch = layout.agent_dir("birch");
    let (before, birch_before) = (tree_hash(dir.path()), tree_hash(&birch));

    let clock = Clock::fixed(1_796_000_000_000);
    block_on(async {
        let service = Service::look(dir.path(), clock.clone()).await.unwrap();
        answers_for_atlas_only(&service).await;
        service.close().await;
    });
    assert_same_tree(&before, &tree_hash(dir.path()));

    block_on(async {
        let service = Service::open(dir.path(), clock, HolderKind::Cli)
            .await
            .unwrap();
        answers_for_atlas_only(&service).await;
        service.close().await;
    });
    assert_same_tree(&birch_before, &tree_hash(&birch));
}

async fn answers_for_atlas_only(service: &Service) {
    for agent in [Some("atlas"), None] {
        let answer = service.dispatch(list_of(agent)).await.unwrap();
        assert!(
            matches!(
                answer,
                Response::Sessions(Page::<SessionRecord> { next: None, .. })
            ),
            "{agent:?}"
        );
    }
    let refused = service.dispatch(list_of(Some("birch"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NewerSchema, "{refused}");
}

#[test]
fn c60_a_newer_control_plane_keeps_the_whole_root_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let layout = root_with(dir.path(), &["atlas"]);
    block_on(async {
        let mut conn = open(&layout.global_db(), Journal::Wal).await;
        run(&mut conn, "PRAGMA user_version = 99").await;
        sqlx::Connection::close(conn).await.unwrap();
    });
    let before = tree_hash(dir.path());

    block_on(async {
        let clock = Clock::fixed(1_796_000_000_000);
        let refused = Service::look(dir.path(), clock.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NewerSchema, "{refused}");
        let refused = Service::open(dir.path(), clock, HolderKind::Cli)
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NewerSchema, "{refused}");
    });

    assert_same_tree(&before, &tree_hash(dir.path()));
}

#[test]
fn a_root_whose_making_was_cut_off_is_not_initialised_and_can_be_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path().to_owned());
    std::fs::create_dir(layout.state_dir()).unwrap();
    std::fs::write(layout.global_db(), "").unwrap();
    let clock = Clock::fixed(1_796_000_000_000);

    block_on(async {
        let look = Service::look(dir.path(), clock.clone()).await.map(drop);
        let write = Service::open(dir.path(), clock.clone(), HolderKind::Cli)
            .await
            .map(drop);
        for refused in [look, write] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotInitialised);
        }
        let (service, is_new) = Service::init(dir.path(), clock, HolderKind::Cli)
            .await
            .unwrap();
        assert!(is_new);
        service.close().await;
    });

    assert_eq!(
        number(&layout.global_db(), "PRAGMA user_version"),
        known_version(&Tier::Global)
    );
}
