//! What is kept beside transcripts: artifacts, steps of runtimes, streams of children, caches.

use std::time::Duration;

use zeroclaw::model::{
    Append, AppendEvent, CacheValue, ErrorKind, FsMode, NewRunArtifact, NewToolArtifact, PageLimit,
    SessionTarget, ToolArtifactKind, WorkerSpec,
};
use zeroclaw::service::{Clock, Service, ServiceError, Worker};

use super::{agent, folder, with_agents};
use crate::support::rng::Rng;
use crate::support::sqlite::{self, block_on};

const NOW_MS: i64 = 1_767_608_100_000;

fn output(path: &str, bytes: &[u8]) -> NewRunArtifact {
    NewRunArtifact {
        run_id: "run-1".to_owned(),
        path: path.to_owned(),
        kind: "text".to_owned(),
        metadata_json: "{}".to_owned(),
        bytes: bytes.to_vec(),
    }
}

fn payload(id: &str, bytes: &[u8]) -> NewToolArtifact {
    NewToolArtifact {
        run_id: "run-1".to_owned(),
        artifact_id: id.to_owned(),
        session_id: None,
        kind: ToolArtifactKind::Result,
        metadata_json: "{\"tool\":\"shell\"}".to_owned(),
        bytes: bytes.to_vec(),
    }
}

/// A session of `atlas` to hang things on.
async fn session(service: &Service) -> String {
    let said = Append::new(
        SessionTarget::Id("session-1".to_owned()),
        vec![AppendEvent::message("user", "hello")],
    );
    service.append(&agent("atlas"), said).await.unwrap();
    "session-1".to_owned()
}

#[test]
fn artifacts_come_back_as_they_were_put_whole_streamed_and_by_a_worker() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::fixed(NOW_MS), &[&atlas]).await;
        let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();

        let first = service
            .put_run_artifact(&atlas, output("out/large", &large))
            .await
            .unwrap();
        let again = service
            .put_run_artifact(&atlas, output("out/large", &large))
            .await
            .unwrap();
        assert_eq!(first, again, "the same bytes give what is there");
        let other = service
            .put_run_artifact(&atlas, output("out/large", b"other"))
            .await
            .unwrap_err();
        assert!(matches!(other, ServiceError::Conflict { .. }), "{other}");
        let mut bad = output("bad", b"");
        bad.metadata_json = "{".to_owned();
        let refused = service.put_run_artifact(&atlas, bad).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);

        let mut poured = Vec::new();
        let about = service
            .copy_run_artifact(&atlas, "run-1", "out/large", &mut poured)
            .await
            .unwrap();
        assert_eq!((poured == large, about), (true, first));

        let worker = Worker::open(
            WorkerSpec {
                agent_id: atlas.clone(),
                run_id: "run-1".to_owned(),
                fs_mode: FsMode::VfsOnly,
                root: dir.path().to_owned(),
            },
            Clock::fixed(NOW_MS),
        )
        .await
        .unwrap();
        worker
            .put_artifact("out/small", "text", "[]", b"small".to_vec())
            .await
            .unwrap();
        assert_eq!(worker.artifact("out/small").await.unwrap().blob, b"small");
        worker.close().await;

        for place in 0..5 {
            let (id, bytes) = (format!("a{place}"), [place; 3]);
            let kept = service
                .put_tool_artifact(&atlas, payload(&id, &bytes))
                .await
                .unwrap();
            assert_eq!(kept.size_bytes, 3);
        }
        let mut paged = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = service
                .list_tool_artifacts(&atlas, "run-1", after.as_deref(), PageLimit::from(2))
                .await
                .unwrap();
            paged.extend(page.items.into_iter().map(|one| one.artifact_id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(paged, ["a0", "a1", "a2", "a3", "a4"]);

        let page = service
            .list_run_artifacts(&atlas, None, None, PageLimit::from(1))
            .await
            .unwrap();
        assert_eq!(page.items[0].about.path, "out/large");
        let next = page.next.unwrap();
        let page = service
            .list_run_artifacts(&atlas, Some("run-1"), Some(&next), PageLimit::from(1))
            .await
            .unwrap();
        assert_eq!(page.items[0].about.path, "out/small");
        assert_eq!(page.next, None);
        service.close().await;
    });
}

#[test]
fn an_artifact_with_a_flipped_byte_is_an_error_that_names_it_and_not_one_byte_leaves() {
    let dir = folder();
    let atlas = agent("atlas");
    block_on(async {
        let service = with_agents(dir.path(), Clock::fixed(NOW_MS), &[&atlas]).await;
        service
            .put_run_artifact(&atlas, output("result.txt", b"abc"))
            .await
            .unwrap();
        service
            .put_tool_artifact(&atlas, payload("call-1", b"abc"))
            .await
            .unwrap();
        service.close().await;
    });
    let database = dir.path().join("agents/atlas/agent/agent.sqlite");
    sqlite::change(
        &database,
        "UPDATE run_artifacts SET blob = x'616264'; UPDATE tool_artifacts SET blob = x'616264'",
    );

    block_on(async {
        let service = super::open(dir.path(), Clock::fixed(NOW_MS)).await;
        let mut sink = Vec::new();
        let run = service
            .copy_run_artifact(&atlas, "run-1", "result.txt", &mut sink)
            .await
            .unwrap_err();
        let tool = service
            .copy_tool_artifact(&atlas, "run-1", "call-1", &mut sink)
            .await
            .unwrap_err();
        assert_eq!(run.kind(), ErrorKind::Damaged);
        assert_eq!(tool.kind(), ErrorKind::Damaged);
        assert!(run.to_string().contains("result.txt"), "{run}");
        assert!(tool.to_string().contains("call-1"), "{tool}");
        assert_eq!(sink, b"");
        service.close().await;
    });
}

#[test]
fn steps_and_streams_are_numbered_paged_and_go_with_their_session() {
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let service = with_agents(dir.path(), Clock::fixed(NOW_MS), &[&atlas]).await;
        let id = session(&service).await;
        let events = |from: i64, to: i64| (from..=to).map(|n| format!("{{\"n\":{n}}}")).collect();

        let span = service
            .append_trajectory(&atlas, &id, Some("r1"), events(1, 3))
            .await
            .unwrap()
            .unwrap();
        assert_eq!((span.first_seq, span.last_seq), (1, 3));
        service
            .append_trajectory(&atlas, &id, None, events(4, 5))
            .await
            .unwrap();
        let refused = service
            .append_trajectory(&atlas, &id, None, vec!["{}".to_owned(), "{".to_owned()])
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage);

        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let page = service
                .list_trajectory(
                    Some(&atlas),
                    &id,
                    None,
                    after.as_deref(),
                    PageLimit::from(2),
                )
                .await
                .unwrap();
            seen.extend(page.items.into_iter().map(|event| event.seq));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        let of_run = service
            .list_trajectory(None, &id, Some("r1"), None, PageLimit::default())
            .await
            .unwrap();
        assert_eq!(of_run.items.len(), 3);

        for run in ["r1", "r2"] {
            let span = service
                .append_parent_stream(&atlas, &id, run, events(1, 2))
                .await
                .unwrap()
                .unwrap();
            assert_eq!((span.first_seq, span.last_seq), (1, 2));
        }
        let page = service
            .list_parent_stream(None, &id, None, None, PageLimit::from(3))
            .await
            .unwrap();
        let next = page.next.clone().unwrap();
        assert_eq!(
            (page.items[2].run_id.as_str(), page.items[2].seq),
            ("r2", 1)
        );
        let page = service
            .list_parent_stream(None, &id, None, Some(&next), PageLimit::from(3))
            .await
            .unwrap();
        assert_eq!((page.items.len(), page.items[0].seq), (1, 2));
        service.close().await;
    });
    let database = dir.path().join("agents/atlas/agent/agent.sqlite");
    sqlite::change(&database, "PRAGMA foreign_keys = ON; DELETE FROM sessions");
    for table in ["trajectory_runtime_events", "acp_parent_stream_events"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(sqlite::number(&database, &sql), 0, "{table}");
    }
}

#[test]
fn a_cache_says_what_a_naive_one_says_whatever_is_done_to_it() {
    const SEED: u64 = 0x0cac_4e00;
    let dir = folder();
    block_on(async {
        let atlas = agent("atlas");
        let mut rng = Rng::new(SEED);
        let mut model =
            std::collections::BTreeMap::<(String, String), (String, Option<i64>)>::new();
        let mut now_ms = NOW_MS;
        with_agents(dir.path(), Clock::fixed(now_ms), &[&atlas])
            .await
            .close()
            .await;
        for _ in 0..12 {
            let service = super::open(dir.path(), Clock::fixed(now_ms)).await;
            for _ in 0..25 {
                let scope = format!("s{}", rng.below(3));
                let key = format!("k{}", rng.below(4));
                match rng.below(8) {
                    0 => {
                        service.delete_cache(&atlas, &scope, &key).await.unwrap();
                        model.remove(&(scope, key));
                    }
                    1 => {
                        let gone = service.expire_cache(&atlas).await.unwrap();
                        let before = model.len();
                        model.retain(|_, (_, until)| until.is_none_or(|until| until > now_ms));
                        assert_eq!(gone as usize, before - model.len(), "seed {SEED:#x}");
                    }
                    2 => {
                        let cleared = service
                            .clear_cache(Some(&atlas), Some(&scope), false)
                            .await
                            .unwrap();
                        let before = model.len();
                        model.retain(|(of, _), _| *of != scope);
                        assert_eq!(cleared[0].entries as usize, before - model.len());
                    }
                    _ => {
                        let ttl = (rng.below(2) == 0).then(|| rng.below(2_000));
                        let value = format!("{}", rng.below(1_000));
                        let put = CacheValue {
                            value_json: Some(value.clone()),
                            blob: None,
                        };
                        service
                            .put_cache(&atlas, &scope, &key, put, ttl.map(Duration::from_millis))
                            .await
                            .unwrap();
                        model.insert((scope, key), (value, ttl.map(|ttl| now_ms + ttl as i64)));
                    }
                }
            }
            let living = |until: &Option<i64>| until.is_none_or(|until| until > now_ms);
            let expected: Vec<_> = model
                .iter()
                .filter(|(_, (_, until))| living(until))
                .map(|((scope, key), _)| (scope.clone(), key.clone()))
                .collect();
            let (mut listed, mut after) = (Vec::new(), None::<String>);
            loop {
                let page = service
                    .list_cache(&atlas, None, after.as_deref(), PageLimit::from(2))
                    .await
                    .unwrap();
                listed.extend(page.items.into_iter().map(|entry| (entry.scope, entry.key)));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(listed, expected, "seed {SEED:#x}");
            for ((scope, key), (value, until)) in &model {
                let got = service.get_cache(&atlas, scope, key).await.unwrap();
                let got = got.and_then(|got| got.value_json);
                assert_eq!(got, living(until).then(|| value.clone()), "seed {SEED:#x}");
            }
            service.close().await;
            now_ms += 700;
        }
    });
}
