//! Tasks: claims, ends that never overwrite each other, who may ask, and what silence means.

use std::time::{Duration, Instant};

use zeroclaw::model::{
    CancelOutcome, NewTask, PageLimit, TaskEnd, TaskOwnerKind, TaskRun, TaskStatus,
};
use zeroclaw::service::{Clock, ErrorKind, Service, SweptTask};
use zeroclaw::store::global::task::TaskFilter;

use super::{NOW, agent, created, folder, new_task, service, with_atlas};
use crate::support::sqlite::{block_on, change};

const DAY_MS: i64 = 86_400_000;

async fn status(service: &Service, task: &TaskRun) -> TaskStatus {
    service.tasks().get(&task.task_id).await.unwrap().status
}

#[test]
fn an_end_is_never_overwritten_and_an_old_claim_is_refused() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let task = created(&service, "{}").await;
        let id = &task.task_id;

        let mut first = service.claim_task(id).await.unwrap().unwrap();
        assert!(service.claim_task(id).await.unwrap().is_none(), "twice");
        // It is taken from the first one behind its back, and given to another.
        change(
            &service.layout().global_db(),
            "UPDATE task_runs SET status = 'pending'",
        );
        let mut second = service.claim_task(id).await.unwrap().unwrap();
        assert!(second.claim().fencing_token > first.claim().fencing_token);

        let late = first.settle(TaskEnd::succeeded(None)).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Refused, "{late}");
        assert!(first.beat().await.is_err() && first.progress("still here").await.is_err());
        second
            .settle(TaskEnd::of(TaskStatus::Failed, "no"))
            .await
            .unwrap();
        assert!(second.settle(TaskEnd::succeeded(None)).await.is_err());
        assert_eq!(status(&service, &task).await, TaskStatus::Failed);
        assert_eq!(
            service.tasks().cancel(id).await.unwrap(),
            CancelOutcome::AlreadyEnded
        );
        drop(first);
        service.close().await;
    });
}

#[test]
fn a_task_can_be_asked_to_stop_and_one_that_waits_ends_at_once() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let (waits, runs) = (created(&service, "{}").await, created(&service, "{}").await);
        let handle = service.claim_task(&runs.task_id).await.unwrap().unwrap();
        assert!(!handle.beat().await.unwrap());

        let tasks = service.tasks();
        let outcome = tasks.cancel(&waits.task_id).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Cancelled);
        let outcome = tasks.cancel(&runs.task_id).await.unwrap();
        assert_eq!(outcome, CancelOutcome::Requested);

        assert_eq!(status(&service, &waits).await, TaskStatus::Cancelled);
        assert!(handle.beat().await.unwrap(), "it was not told");
        let seen = tasks.get(&runs.task_id).await.unwrap();
        assert_eq!(seen.origin.cancel_state.as_str(), "acknowledged");
        drop(handle);
        let ended = tasks.wait(&runs.task_id, Duration::from_secs(20)).await;
        assert_eq!(ended.unwrap().unwrap().status, TaskStatus::Cancelled);
        service.close().await;
    });
}

#[test]
fn who_asked_and_their_callers_may_know_and_nobody_else() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let tasks = service.tasks();
        let parent = tasks
            .create(NewTask {
                caller_chain: Some(vec!["cinder".to_owned()]),
                principal_id: Some("dune".to_owned()),
                ..new_task()
            })
            .await
            .unwrap();
        let child = tasks
            .create(NewTask {
                parent_task_id: Some(parent.task_id.clone()),
                originator_route: Some("atlas".to_owned()),
                ..NewTask::new(TaskOwnerKind::Delegate)
            })
            .await
            .unwrap();
        assert_eq!(child.origin.depth, 1);
        let chain = child.origin.caller_chain.clone().unwrap();
        assert_eq!(chain, ["birch", "cinder"]);

        for (alias, sees) in [("birch", 2), ("cinder", 2), ("atlas", 1), ("dune", 0)] {
            let theirs = tasks.as_agent(&agent(alias));
            let listed = theirs
                .list(&TaskFilter::default(), None, PageLimit::default())
                .await
                .unwrap();
            assert_eq!(listed.items.len(), sees, "{alias}");
            let may_see_child = sees > 0;
            assert_eq!(theirs.get(&child.task_id).await.is_ok(), may_see_child);
            if !may_see_child {
                let refused = [
                    theirs.cancel(&child.task_id).await.err(),
                    theirs.wait(&child.task_id, Duration::ZERO).await.err(),
                    theirs.resume(&child.task_id).await.err(),
                ];
                for refused in refused {
                    assert_eq!(refused.unwrap().kind(), ErrorKind::NotFound, "{alias}");
                }
            }
        }
        let orphan = tasks
            .create(NewTask {
                parent_task_id: Some("nobody".to_owned()),
                ..new_task()
            })
            .await;
        assert_eq!(orphan.unwrap_err().kind(), ErrorKind::NotFound);
        service.close().await;
    });
}

#[test]
fn the_same_key_of_the_same_producer_is_the_same_task() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let keyed = |asker: &str| NewTask {
            idempotency_key: Some("k".to_owned()),
            originator_route: Some(asker.to_owned()),
            ..new_task()
        };
        let tasks = service.tasks();

        let first = tasks.create(keyed("birch")).await.unwrap();
        let again = tasks.create(keyed("birch")).await.unwrap();
        let other = tasks.create(keyed("cinder")).await.unwrap();

        assert_eq!(first.task_id, again.task_id);
        assert_ne!(first.task_id, other.task_id);
        service.close().await;
    });
}

#[test]
fn what_a_worker_says_is_kept_within_bounds() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let task = created(&service, "{}").await;
        let handle = service.claim_task(&task.task_id).await.unwrap().unwrap();
        for number in 0..70 {
            handle.progress(&format!("step {number}")).await.unwrap();
        }
        handle.progress(&"ж".repeat(2_000)).await.unwrap();

        let said = handle.task().await.unwrap().origin.progress;

        assert_eq!(said.len(), 64);
        assert_eq!(said[0].text, "step 7");
        assert_eq!(said[63].text, "ж".repeat(512));
        handle.give_back().await.unwrap();
        assert_eq!(status(&service, &task).await, TaskStatus::Pending);
        service.close().await;
    });
}

#[test]
fn c64_silence_is_measured_by_time_that_passes_and_only_of_who_beats() {
    let dir = folder();
    block_on(async {
        let clock = Clock::fixed(NOW);
        let service = with_atlas(dir.path(), clock.clone()).await;
        let beating = NewTask {
            heartbeat_timeout_ms: Some(60_000),
            ..new_task()
        };
        let beating = service.tasks().create(beating).await.unwrap();
        let quiet = created(&service, "{}").await;
        let beats = service.claim_task(&beating.task_id).await.unwrap().unwrap();
        let says_nothing = service.claim_task(&quiet.task_id).await.unwrap().unwrap();

        for jump in [DAY_MS, -DAY_MS] {
            clock.set(NOW + jump);
            assert!(service.sweep_tasks().await.unwrap().ended.is_empty());
        }
        clock.advance(59_000);
        beats.beat().await.unwrap();
        clock.advance(59_000);
        assert!(service.sweep_tasks().await.unwrap().ended.is_empty());
        clock.advance(2_000);
        let report = service.sweep_tasks().await.unwrap();

        let timed_out = SweptTask {
            task_id: beating.task_id.clone(),
            status: TaskStatus::TimedOut,
        };
        assert_eq!(report.ended, [timed_out]);
        assert!(beats.beat().await.is_err());
        assert!(!says_nothing.beat().await.unwrap());
        says_nothing.give_back().await.unwrap();
        service.close().await;
    });
}

#[test]
fn c64_a_wait_for_a_task_ends_on_time_though_the_clock_is_set() {
    let dir = folder();
    block_on(async {
        let clock = Clock::fixed(NOW);
        let service = with_atlas(dir.path(), clock.clone()).await;
        let task = created(&service, "{}").await;
        let tasks = service.tasks();
        let since = Instant::now();

        let wait = tasks.wait(&task.task_id, Duration::from_millis(300));
        let (waited, ()) = tokio::join!(wait, async {
            clock.set(NOW - DAY_MS);
            tokio::time::sleep(Duration::from_millis(50)).await;
            clock.set(NOW + DAY_MS);
        });

        assert_eq!(waited.unwrap(), None);
        let took = since.elapsed();
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(20));
        service.close().await;
    });
}

#[test]
fn a_task_of_a_reused_process_id_is_lost_and_one_of_nobody_is_left() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let mut handles = Vec::new();
        let mut ids = Vec::new();
        for _ in 0..3 {
            let task = created(&service, "{}").await;
            handles.push(service.claim_task(&task.task_id).await.unwrap().unwrap());
            ids.push(task.task_id);
        }
        let owner =
            |id: &str, set: &str| format!("UPDATE task_runs SET {set} WHERE task_id = '{id}';");
        let script = [
            owner(&ids[0], "execution_owner_start_identity = '1'"),
            owner(&ids[1], "execution_owner_boot_id = 'the boot before'"),
            // Nothing tells whether it is the same process.
            owner(&ids[2], "execution_owner_start_identity = NULL"),
        ];
        change(&service.layout().global_db(), &script.concat());

        let report = service.sweep_tasks().await.unwrap();

        let mut ended: Vec<_> = report.ended.iter().map(|task| &task.task_id).collect();
        ended.sort();
        assert_eq!(ended, [&ids[0], &ids[1]]);
        assert!(
            report
                .ended
                .iter()
                .all(|task| task.status == TaskStatus::Lost)
        );
        service.close().await;
    });
}

#[test]
fn a_wait_for_nothing_says_so() {
    let dir = folder();
    block_on(async {
        let service = service(dir.path(), Clock::fixed(NOW)).await;
        let nothing = service.tasks().wait("nothing", Duration::ZERO).await;
        assert_eq!(nothing.unwrap_err().kind(), ErrorKind::NotFound);
        service.close().await;
    });
}
