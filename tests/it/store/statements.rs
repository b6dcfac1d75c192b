//! Every statement of the store runs against the schema as it is, and what was written reads back.
//!
//! The rows are those of the dump of the newest schema, so that every enum and every optional column occurs.

use std::path::{Path, PathBuf};

use zeroclaw::db::{Access, Db, Durability, Release, WriteAccess, known_version};
use zeroclaw::model::{
    AcpState, AgentId, BackupStatus, Conversation, ConversationKind, CostGrouping, DiagnosticLevel,
    KindCount, MigrationStatus, PageLimit, SessionStatus, SourceReceipt, SourceStatus, Tier,
};
use zeroclaw::store::agent::{
    artifact, conversation, memory, memory_index, receipt, search, session, tool_artifact,
    transcript,
};
use zeroclaw::store::global::{
    acp, agent, backup, continuation, cost, cron, delivery, diagnostic, goal, lease, migration,
    settlement, task,
};

use super::{atlas, event_of};
use crate::schema::upgrade::replay;
use crate::support::sqlite::block_on;

fn all() -> PageLimit {
    PageLimit::from(1_000)
}

/// The dump of the newest schema of a tier, open for writing.
pub(super) async fn filled(dir: &Path, tier: Tier) -> Db {
    let path: PathBuf = replay(dir, tier.role(), known_version(&tier), "");
    let access = WriteAccess {
        durability: Durability::Normal,
        release: Release {
            app_version: "0.0.0-test",
            now_ms: 0,
        },
        migrate_lock: dir.join("migrate.lock"),
    };
    Db::open(&path, &tier, Access::Write(access)).await.unwrap()
}

#[test]
fn of_agents_and_leases() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let agents = agent::list(&mut tx).await.unwrap();
        let names: Vec<_> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
        assert_eq!(names, ["atlas", "birch", "cinder"]);
        for mut record in agents {
            record.size_bytes = Some(7);
            record.status_reason = Some("because".to_owned());
            agent::upsert(&mut tx, &record).await.unwrap();
            let stored = agent::get(&mut tx, &record.agent_id).await.unwrap();
            assert_eq!(stored, Some(record));
        }
        let nobody = AgentId::new("nobody").unwrap();
        assert_eq!(agent::get(&mut tx, &nobody).await.unwrap(), None);

        let leases = lease::list(&mut tx).await.unwrap();
        assert_eq!(leases.len(), 3);
        for mut row in leases {
            row.owner = "me".to_owned();
            lease::replace(&mut tx, &row).await.unwrap();
            assert!(lease::list(&mut tx).await.unwrap().contains(&row));
            let (scope, key) = (row.scope.as_str(), row.lease_key.as_str());
            assert!(!lease::release(&mut tx, scope, key, "you").await.unwrap());
            assert!(lease::release(&mut tx, scope, key, "me").await.unwrap());
        }
    });
}

#[test]
fn of_runs_and_receipts() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let runs = migration::list_runs(&mut tx, all()).await.unwrap();
        let ids: Vec<_> = runs.iter().map(|run| run.id.as_str()).collect();
        assert_eq!(ids, ["run-2", "run-1"]);
        let cut_off = migration::unfinished_run(&mut tx).await.unwrap();
        assert_eq!(cut_off.as_ref(), Some(&runs[0]));
        for mut run in runs {
            run.status = MigrationStatus::Warning;
            migration::update_run(&mut tx, &run).await.unwrap();
            assert_eq!(
                migration::get_run(&mut tx, &run.id).await.unwrap(),
                Some(run.clone())
            );
            run.id.push_str("-copy");
            migration::insert_run(&mut tx, &run).await.unwrap();
            assert_eq!(
                migration::get_run(&mut tx, &run.id).await.unwrap(),
                Some(run)
            );
        }
        assert_eq!(migration::unfinished_run(&mut tx).await.unwrap(), None);

        let sources = migration::list_sources(&mut tx, "run-1").await.unwrap();
        let mut total = KindCount::default();
        for source in &sources {
            total.add(&source.total);
        }
        assert_eq!(migration::total_of(&mut tx, "run-1").await.unwrap(), total);
        let is_unmoved = |source: &&SourceReceipt| match source.status {
            SourceStatus::Verified => true,
            SourceStatus::Discarded => !source.removed_source,
            _ => false,
        };
        let unmoved: Vec<_> = sources.iter().filter(is_unmoved).cloned().collect();
        assert_eq!(
            migration::list_unmoved(&mut tx, "run-1").await.unwrap(),
            unmoved
        );
        assert_eq!(sources.len(), 2);
        assert_eq!(migration::source_states(&mut tx).await.unwrap().len(), 3);
        for mut source in sources {
            assert!(source.total.balances());
            source.retired_path = Some("elsewhere".to_owned());
            migration::upsert_source(&mut tx, &source).await.unwrap();
            let stored = migration::get_source(&mut tx, &source.source_key)
                .await
                .unwrap();
            assert_eq!(stored.as_ref(), Some(&source));
            // A record that is in no column would be one lost in silence.
            source.total.records += 1;
            assert!(migration::upsert_source(&mut tx, &source).await.is_err());
        }
    });
}

#[test]
fn of_backups() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let runs = backup::list(&mut tx, all()).await.unwrap();
        assert_eq!(runs.len(), 3);
        let good = backup::latest_good(&mut tx, i64::MAX).await.unwrap();
        let good = good.unwrap();
        assert_eq!(good.id, "b1");
        let before = good.created_at_ms - 1;
        assert_eq!(backup::latest_good(&mut tx, before).await.unwrap(), None);
        let mut run = runs[0].clone();
        run.id = "new".to_owned();
        run.created_at_ms = i64::MAX;
        run.status = BackupStatus::Running;
        backup::insert(&mut tx, &run).await.unwrap();
        assert_eq!(
            backup::list(&mut tx, 1.into()).await.unwrap(),
            [run.clone()]
        );
        let none = backup::interrupt_running(&mut tx, 5, |_| false).await;
        assert_eq!(none.unwrap(), 0);
        let one = backup::interrupt_running(&mut tx, 5, |found| found.id == "new").await;
        assert_eq!(one.unwrap(), 1);
        run.status = BackupStatus::Completed;
        backup::finish(&mut tx, &run).await.unwrap();
        assert_eq!(
            backup::list(&mut tx, 1.into()).await.unwrap(),
            [run.clone()]
        );
        backup::forget(&mut tx, "new").await.unwrap();
        assert_eq!(backup::list(&mut tx, all()).await.unwrap(), runs);

        // The list is bounded: the oldest go.
        for number in 0..backup::MAX_RUNS {
            run.id = format!("more {number}");
            run.created_at_ms = 2_000_000_000_000 + number;
            backup::insert(&mut tx, &run).await.unwrap();
        }
        let kept = backup::list(&mut tx, all()).await.unwrap();
        assert_eq!(i64::try_from(kept.len()).unwrap(), backup::MAX_RUNS);
        assert!(kept.iter().all(|run| run.id.starts_with("more")));
    });
}

#[test]
fn of_what_tasks_have_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let mut told = delivery::get_many(&mut tx, &["t9"]).await.unwrap();
        told[0].is_delivered = true;
        delivery::upsert(&mut tx, &told[0]).await.unwrap();
        assert_eq!(delivery::get_many(&mut tx, &["t9"]).await.unwrap(), told);

        let first = goal::list(&mut tx, None, 1.into()).await.unwrap();
        let rest = goal::list(&mut tx, first.next.as_deref(), all())
            .await
            .unwrap();
        assert_eq!((first.items.len(), rest.items.len()), (1, 1));
        for mut row in first.items.into_iter().chain(rest.items) {
            assert!(
                !goal::insert_new(&mut tx, &row).await.unwrap(),
                "it is there"
            );
            row.task_id = if row.task_id == "t3" { "t1" } else { "t2" }.to_owned();
            assert!(goal::insert_new(&mut tx, &row).await.unwrap());
            let found = goal::get_many(&mut tx, &[&row.task_id]).await.unwrap();
            assert_eq!(found, [row]);
        }
        for mut row in continuation::list(&mut tx, None, all())
            .await
            .unwrap()
            .items
        {
            assert!(!continuation::insert_new(&mut tx, &row).await.unwrap());
            row.task_id = if row.task_id == "t3" { "t1" } else { "t2" }.to_owned();
            assert!(continuation::insert_new(&mut tx, &row).await.unwrap());
            let found = continuation::get_many(&mut tx, &[&row.task_id])
                .await
                .unwrap();
            assert_eq!(found, [row]);
        }
        for mut row in settlement::list(&mut tx, None, all()).await.unwrap().items {
            assert!(!settlement::insert_new(&mut tx, &row).await.unwrap());
            row.task_id = if row.task_id == "t4" { "t1" } else { "t2" }.to_owned();
            assert!(settlement::insert_new(&mut tx, &row).await.unwrap());
            let found = settlement::get_many(&mut tx, &[&row.task_id])
                .await
                .unwrap();
            assert_eq!(found, [row]);
        }

        let begin = task::find(&mut tx, "t1", all()).await.unwrap();
        let ids: Vec<_> = begin.iter().map(|task| task.task_id.as_str()).collect();
        assert_eq!(ids, ["t1", "t10"]);
        let started = task::children(&mut tx, "t3", all()).await.unwrap();
        assert_eq!(started.len(), 2);
        let mut changed = started[0].clone();
        changed.error = Some("changed".to_owned());
        changed.origin.depth += 1;
        assert!(task::update(&mut tx, &changed).await.unwrap());
        assert_eq!(
            task::get_many(&mut tx, &[&changed.task_id]).await.unwrap(),
            [changed]
        );
    });
}

#[test]
fn of_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Agent(atlas())).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let listed = artifact::list(&mut tx, "t9").await.unwrap();
        assert_eq!(listed.len(), 2);
        for about in listed {
            let found = artifact::get(&mut tx, "t9", &about.path).await.unwrap();
            let mut found = found.unwrap();
            assert_eq!(found.about, about);
            assert!(!artifact::insert_new(&mut tx, &found).await.unwrap());
            found.about.run_id = "copy".to_owned();
            assert!(artifact::insert_new(&mut tx, &found).await.unwrap());
            let copy = artifact::get(&mut tx, "copy", &about.path).await.unwrap();
            assert_eq!(copy, Some(found));
        }
        assert_eq!(artifact::get(&mut tx, "t9", "no").await.unwrap(), None);
    });
}

#[test]
fn of_tasks_and_jobs() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let filter = task::TaskFilter::default();
        let tasks = task::list(&mut tx, &filter, None, all())
            .await
            .unwrap()
            .items;
        assert_eq!(tasks.len(), 10);
        assert_eq!(task::count(&mut tx).await.unwrap(), 10);
        // Those that never started have no time; a page may end among them.
        let (mut paged, mut before) = (Vec::new(), None::<String>);
        loop {
            let page = task::list(&mut tx, &filter, before.as_deref(), 1.into())
                .await
                .unwrap();
            paged.extend(page.items);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(paged, tasks, "one by one");
        assert_eq!(task::insert_new(&mut tx, &tasks).await.unwrap(), 0);
        let mut copy = tasks[0].clone();
        copy.task_id = "copy".to_owned();
        assert_eq!(task::insert_new(&mut tx, &[copy.clone()]).await.unwrap(), 1);
        assert_eq!(
            task::get_many(&mut tx, &["copy", "nothing"]).await.unwrap(),
            [copy]
        );
        let filter = task::TaskFilter {
            owner_kind: Some(tasks[0].owner_kind),
            source_id: Some("job-1".to_owned()),
            agent_id: Some(atlas()),
            status: Some(tasks[0].status),
            without_kind: None,
            ..task::TaskFilter::default()
        };
        let runs = task::list(&mut tx, &filter, None, all())
            .await
            .unwrap()
            .items;
        assert!(
            runs.iter()
                .all(|run| run.source_id.as_deref() == Some("job-1"))
        );

        let jobs = cron::list(&mut tx, None).await.unwrap();
        assert_eq!(jobs.len(), 8);
        assert_eq!(cron::list(&mut tx, Some(&atlas())).await.unwrap().len(), 4);
        for mut job in jobs {
            assert!(
                !cron::insert_new(&mut tx, &job).await.unwrap(),
                "it is there"
            );
            job.job_id.push_str("-copy");
            assert!(cron::insert_new(&mut tx, &job).await.unwrap());
            let stored = cron::get(&mut tx, &job.store_key, &job.job_id)
                .await
                .unwrap();
            assert_eq!(stored, Some(job));
        }
    });
}

#[test]
fn of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let filter = diagnostic::DiagnosticFilter::default();
        let events = diagnostic::list(&mut tx, &filter, None, all())
            .await
            .unwrap()
            .items;
        assert_eq!(events.len(), 5);
        let (mut paged, mut before) = (Vec::new(), None::<String>);
        loop {
            let page = diagnostic::list(&mut tx, &filter, before.as_deref(), 1.into())
                .await
                .unwrap();
            paged.extend(page.items);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(paged, events, "one by one");
        assert_eq!(diagnostic::insert_new(&mut tx, &events).await.unwrap(), 0);
        let mut copy = events[0].clone();
        copy.event_key = "copy".to_owned();
        assert_eq!(
            diagnostic::insert_new(&mut tx, &[copy.clone()])
                .await
                .unwrap(),
            1
        );
        let scope = copy.scope.clone();
        assert_eq!(
            diagnostic::get_many(&mut tx, &scope, &["copy", "nothing"])
                .await
                .unwrap(),
            [copy]
        );
        let filter = diagnostic::DiagnosticFilter {
            level: Some(DiagnosticLevel::Info),
            agent_id: Some(atlas()),
            category: Some("channel".to_owned()),
            since_ms: Some(0),
            contains: Some("привет".to_owned()),
        };
        let own = diagnostic::list(&mut tx, &filter, None, all()).await;
        assert_eq!(own.unwrap().items.len(), 1);
    });
}

#[test]
fn of_costs() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let filter = cost::CostFilter::default();
        let costs = cost::list(&mut tx, &filter, None, all())
            .await
            .unwrap()
            .items;
        assert_eq!(costs.len(), 4);
        let (mut paged, mut before) = (Vec::new(), None::<String>);
        loop {
            let page = cost::list(&mut tx, &filter, before.as_deref(), 1.into())
                .await
                .unwrap();
            paged.extend(page.items);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(paged, costs, "one by one");
        assert_eq!(cost::insert_new(&mut tx, &costs).await.unwrap(), 0);
        let mut copy = costs[0].clone();
        copy.cost_id = "copy".to_owned();
        copy.total_tokens = i64::MAX;
        assert_eq!(cost::insert_new(&mut tx, &[copy.clone()]).await.unwrap(), 1);
        assert_eq!(
            cost::get_many(&mut tx, &["copy", "nothing"]).await.unwrap(),
            [copy]
        );
        // Sums beyond what a whole number holds are no failure.
        let total = cost::total(&mut tx, &filter).await.unwrap();
        assert_eq!((total.calls, total.unpriced_calls), (5, 2));
        for by in [CostGrouping::Agent, CostGrouping::Model, CostGrouping::Day] {
            let groups = cost::groups(&mut tx, &filter, by).await.unwrap();
            assert_eq!(groups.iter().map(|group| group.sums.calls).sum::<i64>(), 5);
        }
        let days = cost::groups(&mut tx, &filter, CostGrouping::Day)
            .await
            .unwrap();
        let last = days.last().unwrap().group.as_deref();
        assert_eq!(last, Some("1969-12-31"));
        let filter = cost::CostFilter {
            agent_id: Some(atlas()),
            from_ms: Some(0),
            to_ms: Some(i64::MAX),
        };
        let own = cost::list(&mut tx, &filter, None, all()).await.unwrap();
        assert_eq!(own.items.len(), 1);
    });
}

#[test]
fn of_sessions_and_conversations() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Agent(atlas())).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let filter = session::SessionFilter {
            with_archived: true,
            ..Default::default()
        };
        let sessions = session::list(&mut tx, &atlas(), &filter, None, all())
            .await
            .unwrap()
            .items;
        assert_eq!(sessions.len(), 3);
        assert_eq!(session::count(&mut tx).await.unwrap(), (3, 3));
        let narrow = session::SessionFilter {
            channel: Some("telegram".to_owned()),
            chat_type: sessions[0].chat_type,
            status: Some(SessionStatus::Idle),
            text: Some("ПРИЛИВ".to_owned().to_lowercase()),
            with_archived: false,
            since_ms: Some(0),
            until_ms: Some(i64::MAX),
            ownerless: ["s1".to_owned()].into(),
        };
        let found = session::list(&mut tx, &atlas(), &narrow, None, all())
            .await
            .unwrap()
            .items;
        assert_eq!(found.len(), 1);
        for record in &sessions {
            let stored = session::get(&mut tx, &atlas(), &record.session_id)
                .await
                .unwrap();
            assert_eq!(stored.as_ref(), Some(record));
        }
        let live = session::routed(&mut tx, "telegram:main:42").await.unwrap();
        assert_eq!(live.as_deref(), Some("s2"));
        session::set_route(&mut tx, "telegram:main:42", "s3", 1)
            .await
            .unwrap();
        session::upsert_entry(&mut tx, "telegram:main:42", "s3", "{}", 1)
            .await
            .unwrap();
        let live = session::routed(&mut tx, "telegram:main:42").await.unwrap();
        assert_eq!(live.as_deref(), Some("s3"));

        // The tuple decides, not the id that comes with it.
        let mut partner = Conversation {
            conversation_id: "other id".to_owned(),
            channel: "telegram".to_owned(),
            account_id: "main".to_owned(),
            kind: ConversationKind::Direct,
            peer_id: "42".to_owned(),
            thread_id: None,
            created_at_ms: 0,
            updated_at_ms: 0,
        };
        assert_eq!(conversation::ensure(&mut tx, &partner).await.unwrap(), "c1");
        partner.thread_id = Some("a thread".to_owned());
        assert_eq!(
            conversation::ensure(&mut tx, &partner).await.unwrap(),
            "other id"
        );
        assert_eq!(conversation::count(&mut tx).await.unwrap(), 3);
        conversation::link_primary(&mut tx, "s3", "other id", 1, 2)
            .await
            .unwrap();
        conversation::link_primary(&mut tx, "s3", "c1", 1, 2)
            .await
            .unwrap();
        let linked = session::get(&mut tx, &atlas(), "s3")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(linked.primary_conversation_id.as_deref(), Some("other id"));
    });
}

#[test]
fn of_acp_sessions_and_artifacts() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();
        let every = acp::AcpFilter::default();
        let first = acp::list(&mut tx, &every, None, PageLimit::from(1)).await;
        let first = first.unwrap();
        let rest = acp::list(&mut tx, &every, first.next.as_deref(), all()).await;
        assert_eq!((first.items.len(), rest.unwrap().items.len()), (1, 2));
        let narrow = acp::AcpFilter {
            agent_id: Some(atlas()),
            state: Some(AcpState::Open),
        };
        let mut open = acp::list(&mut tx, &narrow, None, all())
            .await
            .unwrap()
            .items;
        assert_eq!(open.len(), 1);
        open[0].state = AcpState::Ended;
        open[0].ended_at_ms = Some(9);
        acp::update(&mut tx, &open[0]).await.unwrap();
        let stored = acp::of_ids(&mut tx, &["s1", "nothing"]).await.unwrap();
        assert_eq!(stored.len(), 2);
        assert!(stored.contains(&open[0]));
        open[0].session_id = "new".to_owned();
        acp::insert(&mut tx, &open).await.unwrap();
        assert_eq!(acp::of_ids(&mut tx, &["new"]).await.unwrap(), open);
        drop(bulk);

        let db = filled(dir.path(), Tier::Agent(atlas())).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();
        let listed = tool_artifact::of_session(&mut tx, "s1").await.unwrap();
        assert_eq!(listed.len(), 2);
        let mut whole = tool_artifact::get(&mut tx, "s1", "a1")
            .await
            .unwrap()
            .unwrap();
        assert_eq!(whole.blob, b"{}");
        whole.artifact_id = "copy".to_owned();
        tool_artifact::insert(&mut tx, std::slice::from_ref(&whole))
            .await
            .unwrap();
        let stored = tool_artifact::of_ids(&mut tx, &[("s1", "copy"), ("s1", "nothing")]).await;
        assert_eq!(stored.unwrap(), [whole]);
        session::end(&mut tx, "s2", SessionStatus::Killed, 7)
            .await
            .unwrap();
        let ended = session::get(&mut tx, &atlas(), "s2").await.unwrap();
        assert_eq!(ended.unwrap().archived_at_ms, Some(7));
        let live = session::routed(&mut tx, "telegram:main:42").await.unwrap();
        assert_eq!(live, None);
    });
}

#[test]
fn of_indexed_files() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Agent(atlas())).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let path = "agents/atlas/workspace/MEMORY.md";
        let mut file = memory_index::get(&mut tx, path).await.unwrap().unwrap();
        assert_eq!(file.entries.len(), 3);
        assert_eq!(memory_index::get(&mut tx, "nothing").await.unwrap(), None);
        for (text, hits) in [("", 3), ("pump", 2), ("ЛЕЙКА", 1), ("nothing", 0)] {
            let found = memory_index::find(&mut tx, &atlas(), text, all()).await;
            assert_eq!(found.unwrap().len(), hits, "{text}");
        }
        file.entries.remove(0);
        file.hash = "0".repeat(64);
        memory_index::replace(&mut tx, &file).await.unwrap();
        let stored = memory_index::get(&mut tx, path).await.unwrap();
        assert_eq!(stored.as_ref(), Some(&file));
        for text in ["shed", "pump"] {
            let found = memory_index::find(&mut tx, &atlas(), text, all()).await;
            assert_eq!(found.unwrap().len(), usize::from(text == "pump"), "{text}");
        }
        memory_index::rebuild(&mut tx).await.unwrap();
    });
}

#[test]
fn of_transcripts() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Agent(atlas())).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let mut tail = session::tail(&mut tx, "s2").await.unwrap().unwrap();
        assert_eq!((tail.session_no, tail.last_seq), (2, 5));
        let last = transcript::last_event_id(&mut tx, 2).await.unwrap();
        assert_eq!(last.as_deref(), Some("e4"));
        let event = event_of("e5", "tide");
        tail.last_seq += 1;
        let placed = transcript::PlacedEvent {
            session_no: 2,
            seq: tail.last_seq,
            event: &event,
        };
        transcript::insert(&mut tx, &[placed]).await.unwrap();
        assert!(
            transcript::insert(&mut tx, &[placed]).await.is_err(),
            "a place is given once"
        );
        session::grow(&mut tx, tail, 1, 1, 99).await.unwrap();
        assert_eq!(search::index_slice(&mut tx).await.unwrap(), 1);
        let stored = transcript::get_many(&mut tx, 2, &["e5", "nothing"])
            .await
            .unwrap();
        assert_eq!(stored[0].text, "tide");

        let words = |role: &str, text: &str| format!("{role}: {text}");
        let said =
            ["user: Прилив в шесть, 潮は六時", "user: tide", "user: more"].map(str::to_owned);
        for (count, expected) in [
            (1, transcript::Relation::Contained),
            (2, transcript::Relation::Continues { there: 2 }),
            (3, transcript::Relation::Continues { there: 2 }),
        ] {
            let relation = transcript::compare(&mut tx, 2, &said[..count], words)
                .await
                .unwrap();
            assert_eq!(relation, expected, "{count}");
        }
        let relation = transcript::compare(&mut tx, 2, &said[1..], words)
            .await
            .unwrap();
        assert_eq!(relation, transcript::Relation::Differs);
    });
}

#[test]
fn of_memories_and_receipts() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Agent(atlas())).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        assert_eq!(memory::count(&mut tx).await.unwrap(), 4);
        let ids = ["m1", "m2", "m3", "m4"];
        let mut memories = memory::get_many(&mut tx, &ids).await.unwrap();
        assert_eq!(memories.len(), 4);
        for record in &mut memories {
            record.memory_id.push_str("-copy");
            record.key.push_str("-copy");
        }
        memory::insert(&mut tx, &memories.iter().collect::<Vec<_>>())
            .await
            .unwrap();
        let copies: Vec<_> = memories
            .iter()
            .map(|record| record.memory_id.as_str())
            .collect();
        let mut stored = memory::get_many(&mut tx, &copies).await.unwrap();
        stored.sort_by(|a, b| a.memory_id.cmp(&b.memory_id));
        memories.sort_by(|a, b| a.memory_id.cmp(&b.memory_id));
        assert_eq!(stored, memories);
        assert_eq!(memory::pending(&mut tx).await.unwrap(), 4);
        memory::rebuild(&mut tx).await.unwrap();
        assert_eq!(memory::pending(&mut tx).await.unwrap(), 0);

        let mut share = receipt::get(&mut tx, "k1").await.unwrap().unwrap();
        assert_eq!(share.counts["messages"].imported, 4);
        share.run_id = "run-9".to_owned();
        receipt::upsert(&mut tx, &share).await.unwrap();
        assert_eq!(receipt::get(&mut tx, "k1").await.unwrap(), Some(share));
        assert_eq!(receipt::get(&mut tx, "nothing").await.unwrap(), None);
    });
}
