//! Workers in processes of their own: stopped ones keep their tasks, dead ones lose them.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use zeroclaw::model::{CancelOutcome, TaskStatus};
use zeroclaw::service::{Clock, SweptTask};

use super::{agent, created, folder, says, with_atlas};
use crate::support::process::{part, played_on};
use crate::support::sqlite::block_on;

#[allow(dead_code, reason = "its `main` is for who runs it by hand")]
#[path = "../../../examples/worker.rs"]
mod example;

const LONG: Duration = Duration::from_secs(60);

/// The example, as a process.
#[tokio::test]
#[ignore = "a part of another test"]
async fn the_worker() {
    let Some(root) = played_on() else { return };
    example::work(&root, &agent("atlas")).await.unwrap();
}

fn worker(root: &Path) -> Child {
    part("control::worker::the_worker", root).spawn().unwrap()
}

#[test]
fn two_workers_beside_the_holder_of_the_root_do_each_task_once() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::system()).await;
        let mut tasks = Vec::new();
        for _ in 0..20 {
            tasks.push(created(&service, r#"{"steps": 2, "step_ms": 1}"#).await);
        }

        let workers = [worker(dir.path()), worker(dir.path())];
        let mut claimed = 0;
        for worker in workers {
            let ended = worker.wait_with_output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            let said = String::from_utf8(ended.stdout).unwrap();
            claimed += said.matches("claimed ").count();
        }

        assert_eq!(claimed, tasks.len(), "one was claimed twice");
        for task in &tasks {
            let done = service.tasks().get(&task.task_id).await.unwrap();
            assert_eq!(done.status, TaskStatus::Succeeded);
            assert_eq!(done.origin.progress.len(), 2);
            assert_eq!(done.origin.fencing_token, 1);
        }
        service.close().await;
    });
}

#[test]
fn a_stopped_worker_keeps_its_task_and_a_killed_one_loses_it_within_five_seconds() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::system()).await;
        let task = created(&service, r#"{"steps": 1000, "step_ms": 20}"#).await;
        let mut child = worker(dir.path());
        says(&mut child, "claimed");
        kill_process(Pid::from_child(&child), Signal::STOP).unwrap();

        let until = Instant::now() + Duration::from_secs(6);
        while Instant::now() < until {
            let report = service.sweep_tasks().await.unwrap();
            assert!(
                report.ended.is_empty(),
                "a living one was taken for gone: {report:?}"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        // Nobody collects it: a zombie is gone too.
        child.kill().unwrap();
        let since = Instant::now();
        let ended = loop {
            let report = service.sweep_tasks().await.unwrap();
            if !report.ended.is_empty() {
                break report.ended;
            }
            assert!(since.elapsed() < Duration::from_secs(5), "still not lost");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };

        let lost = SweptTask {
            task_id: task.task_id.clone(),
            status: TaskStatus::Lost,
        };
        assert_eq!(ended, [lost]);
        child.wait().unwrap();
        service.close().await;
    });
}

#[test]
fn a_worker_settles_what_one_before_it_left() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::system()).await;
        let first = created(&service, r#"{"steps": 1000, "step_ms": 20}"#).await;
        let mut child = worker(dir.path());
        says(&mut child, "claimed");
        child.kill().unwrap();
        child.wait().unwrap();
        let second = created(&service, "{}").await;

        let next = worker(dir.path()).wait_with_output().unwrap();

        assert!(next.status.success(), "{next:?}");
        let status = async |id: &str| service.tasks().get(id).await.unwrap().status;
        assert_eq!(status(&first.task_id).await, TaskStatus::Lost);
        assert_eq!(status(&second.task_id).await, TaskStatus::Succeeded);
        service.close().await;
    });
}

#[test]
fn a_worker_elsewhere_stops_when_asked_to() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::system()).await;
        let task = created(&service, r#"{"steps": 1000, "step_ms": 20}"#).await;
        let mut child = worker(dir.path());
        says(&mut child, "claimed");

        let outcome = service.tasks().cancel(&task.task_id).await.unwrap();
        let ended = service.tasks().wait(&task.task_id, LONG).await.unwrap();

        assert_eq!(outcome, CancelOutcome::Requested);
        let ended = ended.expect("it goes on");
        assert_eq!(ended.status, TaskStatus::Cancelled);
        assert!(child.wait().unwrap().success());
        service.close().await;
    });
}
