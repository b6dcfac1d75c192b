//! The commands for background work, on the compiled program.

use zeroclaw::model::{AgentStatus, TaskStatus};
use zeroclaw::service::{Clock, Importer};

use super::{agent, created, service};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{block_on, change};

/// A root with a task that waits and one whose worker is gone.
fn with_tasks() -> (Sandbox, String, String) {
    let home = Sandbox::new();
    let ids = block_on(async {
        let importer = Importer::new(service(&home.root(), Clock::system()).await);
        let atlas = agent("atlas");
        let made = importer.ensure_agent(&atlas, AgentStatus::Active, None);
        made.await.unwrap();
        importer.close().await;
        let service = service(&home.root(), Clock::system()).await;
        let (waits, runs) = (created(&service, "{}").await, created(&service, "{}").await);
        let handle = service.claim_task(&runs.task_id).await.unwrap().unwrap();
        std::mem::forget(handle);
        service.close().await;
        (waits.task_id, runs.task_id)
    });
    let dead = "UPDATE task_runs SET execution_owner_start_identity = '1' WHERE status = 'running'";
    change(&home.root().join("state/state.sqlite"), dead);
    (home, ids.0, ids.1)
}

#[test]
fn cancel_wants_consent_and_wait_tells_the_end() {
    let (home, waits, _) = with_tasks();

    let dry = home.zeroclaw(&["tasks", "cancel", &waits, "--dry-run", "--json"]);
    assert!(dry.exits(0).json()["outcome"].is_null());
    home.zeroclaw(&["tasks", "cancel", &waits])
        .exits(10)
        .complains("--yes");
    home.zeroclaw(&["tasks", "wait", &waits, "--timeout", "1s"])
        .exits(4)
        .complains("has not ended");
    let done = home.zeroclaw(&["tasks", "cancel", &waits, "--yes", "--json"]);
    assert_eq!(done.exits(0).json()["outcome"], "cancelled");
    let ended = home.zeroclaw(&["tasks", "wait", &waits, "--json"]);
    assert_eq!(
        ended.exits(0).json()["status"],
        TaskStatus::Cancelled.as_str()
    );
    let again = home.zeroclaw(&["tasks", "cancel", &waits, "--yes", "--json"]);
    assert_eq!(again.exits(0).json()["outcome"], "already_ended");
    home.zeroclaw(&["tasks", "cancel", "nothing", "--yes"])
        .exits(9);
}

#[test]
fn sweep_names_what_it_settled_and_then_finds_nothing() {
    let (home, _, runs) = with_tasks();

    let swept = home.zeroclaw(&["tasks", "sweep", "--json"]).exits(0).json();
    assert_eq!(swept["ended"][0]["task_id"], runs.as_str());
    assert_eq!(swept["ended"][0]["status"], "lost");
    home.zeroclaw(&["tasks", "sweep"])
        .exits(0)
        .complains("no task was left");
    home.zeroclaw(&["tasks", "show", &runs])
        .exits(0)
        .says("is gone");
}

#[test]
fn a_fresh_root_has_no_tasks_and_no_leases() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);

    home.zeroclaw(&["tasks", "sweep"]).exits(0);
    home.zeroclaw(&["tasks", "leases"])
        .exits(0)
        .complains("nobody holds");
    let none = home.zeroclaw(&["tasks", "leases", "--json"]).exits(0);
    assert_eq!(none.json(), serde_json::json!([]));
    home.zeroclaw(&["tasks", "wait", "nothing"]).exits(9);
}
