//! How ends are published, and what a crash at any step of it leaves.

use std::path::Path;
use std::time::Duration;

use zeroclaw::model::{AgentId, TaskEnd, TaskOwnerKind, TaskRun, TaskStatus};
use zeroclaw::service::{Clock, Request, Response, Service, SweepReport, TaskWorker};

use super::{NOW, agent, created, folder, with_atlas};
use crate::support::process::{part, played_on};
use crate::support::sqlite::{block_on, change, number};

const LONG: Duration = Duration::from_secs(20);
const OUTPUT: &str = "what it found 🦀";

fn atlas() -> AgentId {
    agent("atlas")
}

/// Claims a task and settles it, or is killed on the way.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_one_that_settles() {
    let Some(root) = played_on() else { return };
    let worker = TaskWorker::open(&root, &atlas(), Clock::system())
        .await
        .unwrap();
    let claimed = worker.claim_next(TaskOwnerKind::Task).await.unwrap();
    let end = TaskEnd::succeeded(Some(OUTPUT.to_owned()));
    claimed.unwrap().settle(end).await.unwrap();
    worker.close().await;
}

/// Recovers what is left, or is killed on the way.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_one_that_recovers() {
    let Some(root) = played_on() else { return };
    let worker = TaskWorker::open(&root, &atlas(), Clock::system())
        .await
        .unwrap();
    worker.close().await;
}

/// Plays a part that is killed at a point.
fn killed_at(name: &str, root: &Path, point: &str) {
    let mut command = part(&format!("control::settle::{name}"), root);
    let ended = command.env("ZEROCLAW_FAULT", point).output().unwrap();
    assert_eq!(ended.status.code(), None, "{point}: {ended:?}");
}

/// A root whose one task was killed at a point of its settlement.
fn killed_in_settlement(root: &Path, point: &str) -> TaskRun {
    let task = block_on(async {
        let service = with_atlas(root, Clock::system()).await;
        let task = created(&service, "{}").await;
        service.close().await;
        task
    });
    killed_at("the_one_that_settles", root, point);
    task
}

fn agent_db(root: &Path) -> std::path::PathBuf {
    root.join("agents/atlas/agent/agent.sqlite")
}

/// Sweeps, twice: the second time there is nothing left to do.
async fn swept(root: &Path, task: &TaskRun) -> (SweepReport, TaskRun) {
    let service = with_atlas(root, Clock::system()).await;
    let report = service.sweep_tasks().await.unwrap();
    let again = service.sweep_tasks().await.unwrap();
    assert_eq!(again, SweepReport::default());
    let ended = service.tasks().get(&task.task_id).await.unwrap();
    if ended.status == TaskStatus::Succeeded {
        let reference = format!("artifact:{}", task.task_id);
        assert_eq!(ended.output, Some(reference));
        let request = Request::TasksOutput {
            task: task.task_id.clone(),
            path: None,
        };
        let Response::TaskOutput(output) = service.dispatch(request).await.unwrap() else {
            panic!("another answer");
        };
        assert_eq!(output.text.as_deref(), Some(OUTPUT));
    } else {
        assert_eq!(ended.output, None);
    }
    service.close().await;
    (report, ended)
}

#[test]
fn killed_at_any_step_a_settlement_ends_as_the_table_says() {
    for (point, expected, why) in [
        ("settle.begin", TaskStatus::Lost, "gone"),
        ("settle.intent", TaskStatus::Failed, "missing"),
        ("settle.output", TaskStatus::Succeeded, ""),
        ("settle.end", TaskStatus::Succeeded, ""),
    ] {
        let dir = folder();
        let task = killed_in_settlement(dir.path(), point);

        let (_, ended) = block_on(swept(dir.path(), &task));

        assert_eq!(ended.status, expected, "{point}");
        let error = ended.error.unwrap_or_default();
        assert!(
            error.contains(why) && error.is_empty() == why.is_empty(),
            "{point}: {error}"
        );
        let global = dir.path().join("state/state.sqlite");
        assert_eq!(number(&global, "SELECT count(*) FROM task_settlements"), 0);
    }
}

#[test]
fn killed_in_recovery_it_is_recovered_by_the_next() {
    for point in ["recover.proven", "recover.applied"] {
        let dir = folder();
        let task = killed_in_settlement(dir.path(), "settle.output");
        killed_at("the_one_that_recovers", dir.path(), point);

        let (_, ended) = block_on(swept(dir.path(), &task));

        assert_eq!(ended.status, TaskStatus::Succeeded, "{point}");
    }
}

#[test]
fn an_output_with_other_bytes_is_a_failure_and_never_a_success() {
    for damage in [
        "UPDATE run_artifacts SET blob = zeroblob(size_bytes)",
        "UPDATE run_artifacts SET blob = CAST(blob || x'20' AS BLOB), size_bytes = size_bytes + 1",
        "DELETE FROM run_artifacts",
    ] {
        let dir = folder();
        let task = killed_in_settlement(dir.path(), "settle.output");
        change(&agent_db(dir.path()), damage);

        let (report, ended) = block_on(swept(dir.path(), &task));

        assert_eq!(ended.status, TaskStatus::Failed, "{damage}");
        assert!(ended.error.unwrap().contains("not proven"));
        assert_eq!(report.recovered.len(), 1);
    }
}

#[test]
fn an_intent_of_another_owner_or_of_a_task_that_ended_is_dropped() {
    for (change_it, expected) in [
        (
            "UPDATE task_runs SET execution_owner_start_identity = '7'",
            TaskStatus::Lost,
        ),
        (
            "UPDATE task_runs SET status = 'cancelled'",
            TaskStatus::Cancelled,
        ),
    ] {
        let dir = folder();
        let task = killed_in_settlement(dir.path(), "settle.output");
        change(&dir.path().join("state/state.sqlite"), change_it);

        let (report, ended) = block_on(swept(dir.path(), &task));

        assert_eq!(report.dropped, [task.task_id]);
        assert_eq!(ended.status, expected);
    }
}

#[test]
fn an_intent_of_an_owner_that_lives_or_of_another_release_is_left() {
    let own = zeroclaw::fs::process::own();
    let alive = format!(
        "UPDATE task_settlements SET owner_pid = {}, owner_start_identity = '{}', owner_boot_id = '{}'",
        own.pid,
        own.start_ticks.unwrap(),
        own.boot_id.unwrap()
    );
    for change_it in [
        alive.as_str(),
        "UPDATE task_settlements SET desired_status = 'exalted'",
    ] {
        let dir = folder();
        let task = killed_in_settlement(dir.path(), "settle.output");
        change(&dir.path().join("state/state.sqlite"), change_it);

        block_on(async {
            let service = with_atlas(dir.path(), Clock::system()).await;
            let report = service.sweep_tasks().await.unwrap();
            assert_eq!(
                report.left,
                std::slice::from_ref(&task.task_id),
                "{change_it}"
            );
            let found = service.tasks().get(&task.task_id).await.unwrap();
            assert_eq!(
                found.status,
                TaskStatus::Running,
                "lost before it was recovered"
            );
            service.close().await;
        });
    }
}

async fn wait_for(service: &Service, task: &TaskRun) -> TaskRun {
    let ended = service.tasks().wait(&task.task_id, LONG).await.unwrap();
    ended.expect("the supervisor did nothing")
}

#[test]
fn a_panicked_or_aborted_worker_has_exactly_its_own_task_settled() {
    let dir = folder();
    block_on(async {
        let service = std::sync::Arc::new(with_atlas(dir.path(), Clock::fixed(NOW)).await);
        let (panics, aborted) = (created(&service, "{}").await, created(&service, "{}").await);
        let other = created(&service, "{}").await;
        let others = service.claim_task(&other.task_id).await.unwrap().unwrap();

        let (held, id) = (service.clone(), panics.task_id.clone());
        let panicking = tokio::spawn(async move {
            let _task = held.claim_task(&id).await.unwrap().unwrap();
            panic!("planted: the worker panics");
        });
        let (held, id) = (service.clone(), aborted.task_id.clone());
        let (tell, told) = tokio::sync::oneshot::channel();
        let aborting = tokio::spawn(async move {
            let task = held.claim_task(&id).await.unwrap().unwrap();
            tell.send(()).unwrap();
            std::future::pending::<()>().await;
            drop(task);
        });
        told.await.unwrap();
        aborting.abort();
        assert!(panicking.await.is_err());

        for task in [&panics, &aborted] {
            let ended = wait_for(&service, task).await;
            assert_eq!(ended.status, TaskStatus::Failed);
            assert!(ended.error.unwrap().contains("without an end"));
        }
        assert!(!others.beat().await.unwrap(), "another one's was touched");
        others.give_back().await.unwrap();
    });
}

#[test]
fn a_worker_dropped_between_output_and_end_has_succeeded() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let task = created(&service, "{}").await;
        let mut handle = service.claim_task(&task.task_id).await.unwrap().unwrap();
        // The last step fails: the row may not be changed for a moment.
        let global = service.layout().global_db();
        change(
            &global,
            "CREATE TRIGGER planted BEFORE UPDATE OF status ON task_runs BEGIN SELECT RAISE(FAIL, 'planted'); END",
        );
        let end = TaskEnd::succeeded(Some(OUTPUT.to_owned()));
        assert!(handle.settle(end).await.is_err());
        change(&global, "DROP TRIGGER planted");

        drop(handle);

        assert_eq!(
            wait_for(&service, &task).await.status,
            TaskStatus::Succeeded
        );
        service.close().await;
    });
}
