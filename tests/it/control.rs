//! The control plane: who lives, who holds what, how background work ends, and how messages leave.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;

use tempfile::TempDir;
use zeroclaw::model::{AgentId, AgentStatus, NewTask, TaskOwnerKind, TaskRun};
use zeroclaw::service::{Clock, HolderKind, Importer, Service};

mod commands;
mod commitments;
mod delivery;
mod flows;
mod goal;
mod lease;
mod model;
mod plugins;
mod settle;
mod task;
mod worker;

const NOW: i64 = 1_788_000_000_000;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn agent(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

/// The service of a root, made where there is none.
async fn service(root: &Path, clock: Clock) -> Service {
    let made = Service::init(root, clock, HolderKind::Cli).await;
    made.unwrap().0
}

/// The same with an agent `atlas`.
async fn with_atlas(root: &Path, clock: Clock) -> Service {
    let importer = Importer::new(service(root, clock.clone()).await);
    let atlas = agent("atlas");
    let made = importer.ensure_agent(&atlas, AgentStatus::Active, None);
    made.await.unwrap();
    importer.close().await;
    service(root, clock).await
}

/// A task for `atlas`, which `birch` asks for.
fn new_task() -> NewTask {
    NewTask {
        agent_id: Some(agent("atlas")),
        originator_route: Some("birch".to_owned()),
        ..NewTask::new(TaskOwnerKind::Task)
    }
}

async fn created(service: &Service, detail: &str) -> TaskRun {
    let new = NewTask {
        detail_json: Some(detail.to_owned()),
        ..new_task()
    };
    service.tasks().create(new).await.unwrap()
}

/// Reads what a process says until a line ends so.
#[track_caller]
fn says(child: &mut Child, end: &str) {
    let out = child.stdout.as_mut().unwrap();
    let said = BufReader::with_capacity(1, out)
        .lines()
        .map_while(Result::ok)
        .any(|line| line.contains(end));
    assert!(said, "it never said {end:?}");
}
