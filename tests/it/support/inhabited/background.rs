//! Background work: a delegate with a goal, whose end was decided and is not settled.

use zeroclaw::model::{GoalTask, TaskOwnerKind, TaskRun, TaskSettlement};
use zeroclaw::store::global::{goal, settlement, task};

use super::HOSTILE;

/// Adds it, made from any task.
pub(super) async fn fill(tx: &mut zeroclaw::db::WriteTx<'_>, any: TaskRun) {
    let work = TaskRun {
        task_id: "work-1".to_owned(),
        owner_kind: TaskOwnerKind::Delegate,
        agent_id: None,
        source_id: None,
        output: Some("fourteen lanterns".to_owned()),
        ..any
    };
    task::insert_new(tx, &[work]).await.unwrap();
    let goal = GoalTask {
        task_id: "work-1".to_owned(),
        objective: HOSTILE.to_owned(),
        effective_token_limit: None,
        effective_cost_limit_usd: Some(0.5),
        pause_reason: Some("needs_user_input".to_owned()),
        pause_description: None,
        blockers_json: "[]".to_owned(),
        detail_json: None,
    };
    assert!(goal::insert_new(tx, &goal).await.unwrap());
    let settlement = TaskSettlement {
        task_id: "work-1".to_owned(),
        owner_pid: 4711,
        owner_start_identity: None,
        owner_boot_id: "boot-1".to_owned(),
        desired_status: "needs_review".to_owned(),
        artifact_path: "/old/work-1.json".to_owned(),
        artifact_ref: None,
        artifact_sha256: "00".repeat(32),
        terminal_error: None,
        created_at_ms: None,
        detail_json: None,
    };
    assert!(settlement::insert_new(tx, &settlement).await.unwrap());
}
