//! A worker of background tasks, as a process of its own.
//!
//! `cargo run --example worker -- ROOT AGENT` takes the tasks of kind `task` that wait for the agent, one after the other,
//! and ends when there are none. Somebody may hold the root meanwhile: the worker has connections of its own. What a task
//! is to do stands in its `detail_json`; here that is `{"steps": 3, "step_ms": 100}`.
//!
//! Killed at any moment it leaves nothing undecided: the next sweep, of whoever holds the root or of another worker, finds
//! its process gone and settles its task by what is there.

#![allow(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroclaw::model::{AgentId, TaskEnd, TaskOwnerKind, TaskStatus};
use zeroclaw::service::{Clock, TaskHandle, TaskWorker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(root), Some(agent)) = (args.next(), args.next()) else {
        return Err("usage: worker ROOT AGENT".into());
    };
    let agent = AgentId::new(agent.to_string_lossy())?;
    work(&PathBuf::from(root), &agent).await
}

/// Works until nothing waits.
pub(crate) async fn work(root: &Path, agent: &AgentId) -> Result<(), Box<dyn Error>> {
    let worker = TaskWorker::open(root, agent, Clock::system()).await?;
    while let Some(mut task) = worker.claim_next(TaskOwnerKind::Task).await? {
        let id = task.claim().task_id.clone();
        println!("claimed {id}");
        let end = one_task(&task).await?;
        task.settle(end).await?;
        println!("settled {id}");
    }
    worker.close().await;
    Ok(())
}

/// Does the steps of a task, beats after each, and stops when asked to.
async fn one_task(task: &TaskHandle) -> Result<TaskEnd, Box<dyn Error>> {
    let detail = task.task().await?.detail_json.unwrap_or_default();
    let detail: serde_json::Value = serde_json::from_str(&detail).unwrap_or_default();
    let steps = detail["steps"].as_u64().unwrap_or(1);
    let pause = Duration::from_millis(detail["step_ms"].as_u64().unwrap_or(10));
    for step in 1..=steps {
        tokio::time::sleep(pause).await;
        task.progress(&format!("step {step} of {steps}")).await?;
        if task.beat().await? {
            return Ok(TaskEnd::of(TaskStatus::Cancelled, "stopped when asked to"));
        }
    }
    Ok(TaskEnd::succeeded(Some(format!("{steps} steps"))))
}
