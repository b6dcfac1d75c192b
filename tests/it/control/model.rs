//! Tasks against a naive model: whatever is done in whatever order, each stands where the model says.

use proptest::prelude::*;
use zeroclaw::model::{CancelOutcome, TaskEnd, TaskStatus};
use zeroclaw::service::{Clock, Service, TaskHandle};

use super::{NOW, created, folder, with_atlas};
use crate::support::sqlite::{block_on, change};

const TASKS: usize = 3;

#[derive(Clone, Debug)]
enum Step {
    Claim(usize),
    /// With the claim of that place among all there ever were, old ones too.
    Beat(usize),
    Settle(usize, TaskStatus),
    GiveBack(usize),
    Pause(usize),
    Resume(usize),
    Cancel(usize),
    /// The owner of a task dies, and somebody sweeps.
    Dies(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let task = 0..TASKS;
    let claim = 0..8_usize;
    let end = prop_oneof![
        Just(TaskStatus::Succeeded),
        Just(TaskStatus::Failed),
        Just(TaskStatus::Cancelled)
    ];
    prop_oneof![
        4 => task.clone().prop_map(Step::Claim),
        2 => claim.clone().prop_map(Step::Beat),
        3 => (claim.clone(), end).prop_map(|(claim, end)| Step::Settle(claim, end)),
        2 => claim.clone().prop_map(Step::GiveBack),
        1 => claim.prop_map(Step::Pause),
        1 => task.clone().prop_map(Step::Resume),
        1 => task.clone().prop_map(Step::Cancel),
        1 => task.prop_map(Step::Dies),
    ]
}

/// What the model knows of a task.
#[derive(Clone, Copy, Debug)]
struct Stands {
    status: TaskStatus,
    claims: i64,
}

/// All claims there were: the task, its number, and the handle, which is gone once it was let go.
type Claims = Vec<(usize, i64, Option<TaskHandle>)>;

async fn play(service: &Service, ids: &[String], steps: &[Step]) {
    let mut model = [Stands {
        status: TaskStatus::Pending,
        claims: 0,
    }; TASKS];
    let mut claims: Claims = Vec::new();
    for step in steps {
        one(service, ids, step, &mut model, &mut claims).await;
        for (stands, id) in model.iter().zip(ids) {
            let found = service.tasks().get(id).await.unwrap();
            let seen = (found.status, found.origin.fencing_token);
            assert_eq!(
                seen,
                (stands.status, stands.claims),
                "after {step:?} of {steps:?}"
            );
            assert_eq!(found.ended_at_ms.is_some(), stands.status.is_end());
        }
    }
    // What is dropped would be settled; here nobody waits for that.
    claims.into_iter().for_each(std::mem::forget);
}

async fn one(
    service: &Service,
    ids: &[String],
    step: &Step,
    model: &mut [Stands; TASKS],
    claims: &mut Claims,
) {
    let count = claims.len();
    let at = |claim: usize| (count > 0).then(|| claim % count);
    match *step {
        Step::Claim(task) => {
            let got = service.claim_task(&ids[task]).await.unwrap();
            let stands = &mut model[task];
            assert_eq!(got.is_some(), stands.status == TaskStatus::Pending);
            if let Some(handle) = got {
                *stands = Stands {
                    status: TaskStatus::Running,
                    claims: stands.claims + 1,
                };
                claims.push((task, stands.claims, Some(handle)));
            }
        }
        Step::Resume(task) => {
            let is_resumed = service.tasks().resume(&ids[task]).await.unwrap();
            assert_eq!(is_resumed, model[task].status == TaskStatus::Waiting);
            if is_resumed {
                model[task].status = TaskStatus::Pending;
            }
        }
        Step::Cancel(task) => {
            let outcome = service.tasks().cancel(&ids[task]).await.unwrap();
            let expected = match model[task].status {
                TaskStatus::Running => CancelOutcome::Requested,
                status if status.is_end() => CancelOutcome::AlreadyEnded,
                _ => CancelOutcome::Cancelled,
            };
            assert_eq!(outcome, expected);
            if outcome == CancelOutcome::Cancelled {
                model[task].status = TaskStatus::Cancelled;
            }
        }
        Step::Dies(task) => {
            let sql = format!(
                "UPDATE task_runs SET execution_owner_start_identity = '1' WHERE task_id = '{}' AND status = 'running'",
                ids[task]
            );
            change(&service.layout().global_db(), &sql);
            service.sweep_tasks().await.unwrap();
            if model[task].status == TaskStatus::Running {
                model[task].status = TaskStatus::Lost;
            }
        }
        Step::Beat(claim) | Step::Settle(claim, _) | Step::GiveBack(claim) | Step::Pause(claim) => {
            let Some(at) = at(claim) else { return };
            let (task, number, handle) = &mut claims[at];
            let Some(mut held) = handle.take() else {
                return;
            };
            let stands = &mut model[*task];
            let holds = stands.status == TaskStatus::Running && stands.claims == *number;
            let (done, becomes) = match *step {
                Step::Settle(_, status) => {
                    let end = TaskEnd {
                        error: None,
                        ..TaskEnd::of(status, "")
                    };
                    let done = held.settle(end).await.is_ok();
                    *handle = Some(held);
                    (done, status)
                }
                Step::GiveBack(_) => (held.give_back().await.is_ok(), TaskStatus::Pending),
                Step::Pause(_) => (held.pause().await.is_ok(), TaskStatus::Waiting),
                _ => {
                    let done = held.beat().await.is_ok();
                    *handle = Some(held);
                    (done, TaskStatus::Running)
                }
            };
            assert_eq!(done, holds, "{step:?}");
            if done {
                stands.status = becomes;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tasks_go_where_a_naive_model_goes(steps in proptest::collection::vec(step(), 1..40)) {
        let dir = folder();
        block_on(async {
            let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
            let mut ids = Vec::new();
            for _ in 0..TASKS {
                ids.push(created(&service, "{}").await.task_id);
            }
            play(&service, &ids, &steps).await;
            service.close().await;
        });
    }
}
