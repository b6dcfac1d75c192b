//! Goals: why they wait, where they go on, and what they may still cost.

use zeroclaw::model::{AgentId, TaskEnd, TaskStatus, UsageCost};
use zeroclaw::service::{Clock, ErrorKind, GoalPause, NewGoal, Request, Response, Service};

use super::{NOW, agent, folder, new_task, with_atlas};
use crate::support::sqlite::block_on;

fn goal() -> NewGoal {
    NewGoal {
        objective: "chart the harbour".to_owned(),
        token_limit: Some(1_000),
        cost_limit_usd: Some(0.5),
        context_json: Some(r#"{"channel":"cli"}"#.to_owned()),
    }
}

fn cost(id: &str, goal: &str, tokens: i64, usd: f64) -> UsageCost {
    UsageCost {
        cost_id: id.to_owned(),
        agent_id: AgentId::new("atlas").ok(),
        model: "a-model".to_owned(),
        input_tokens: tokens,
        output_tokens: 0,
        cached_input_tokens: 0,
        total_tokens: tokens,
        cost_usd: usd,
        cost_usd_text: None,
        has_price: true,
        recorded_at_ms: NOW,
        recorded_at_text: None,
        process_id: None,
        goal_task_id: Some(goal.to_owned()),
        detail_json: None,
    }
}

async fn shown(service: &Service, task: &str) -> zeroclaw::service::TaskOverview {
    let request = Request::TasksShow {
        task: task.to_owned(),
    };
    match service.dispatch(request).await.unwrap() {
        Response::Task(shown) => *shown,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_goal_waits_with_a_reason_and_goes_on_where_it_was_told() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let tasks = service.tasks();
        let task = tasks.create_goal(new_task(), goal()).await.unwrap();
        let id = &task.task_id;
        let beside = tasks.create_goal(new_task(), goal()).await;
        assert_eq!(
            beside.unwrap_err().kind(),
            ErrorKind::Refused,
            "two at once"
        );

        let handle = service.claim_task(id).await.unwrap().unwrap();
        let pause = GoalPause {
            reason: "needs_user_input".to_owned(),
            description: Some("which harbour?".to_owned()),
            blockers_json: r#"[{"kind":"needs_user_input","message":"which?"}]"#.to_owned(),
        };
        handle.pause_goal(pause).await.unwrap();
        let waits = shown(&service, id).await;
        assert_eq!(waits.task.status, TaskStatus::Waiting);
        let why = waits.goal.unwrap().pause_reason;
        assert_eq!(why.as_deref(), Some("needs_user_input"));
        // Waiting has no owner, so nobody loses it.
        assert!(service.sweep_tasks().await.unwrap().ended.is_empty());

        let stranger = tasks.as_agent(&agent("dune")).resume_goal(id).await;
        assert_eq!(stranger.unwrap_err().kind(), ErrorKind::NotFound);
        let place = tasks.resume_goal(id).await.unwrap();
        assert_eq!(place.as_deref(), Some(r#"{"channel":"cli"}"#));
        let ready = shown(&service, id).await;
        assert_eq!(ready.task.status, TaskStatus::Pending);
        assert_eq!(ready.goal.as_ref().unwrap().pause_reason, None);
        assert_eq!(ready.goal.unwrap().blockers_json, "[]");
        assert_eq!(ready.continuation, None);

        let mut handle = service.claim_task(id).await.unwrap().unwrap();
        handle.settle(TaskEnd::succeeded(None)).await.unwrap();
        // Its end makes room for the next.
        tasks.create_goal(new_task(), goal()).await.unwrap();
        service.close().await;
    });
}

#[test]
fn what_is_left_follows_from_the_ledger_of_costs() {
    let dir = folder();
    block_on(async {
        let service = with_atlas(dir.path(), Clock::fixed(NOW)).await;
        let tasks = service.tasks();
        let id = tasks.create_goal(new_task(), goal()).await.unwrap().task_id;

        assert!(
            service
                .record_cost(cost("c1", &id, 400, 0.125))
                .await
                .unwrap()
        );
        assert!(
            !service
                .record_cost(cost("c1", &id, 400, 0.125))
                .await
                .unwrap()
        );
        assert!(
            service
                .record_cost(cost("c2", "another", 400, 0.125))
                .await
                .unwrap()
        );
        let left = tasks.goal_budget(&id).await.unwrap();
        assert_eq!((left.tokens_left, left.usd_left), (Some(600), Some(0.375)));
        assert!(!left.is_exhausted());

        service
            .record_cost(cost("c3", &id, 900, 0.25))
            .await
            .unwrap();
        let left = tasks.goal_budget(&id).await.unwrap();
        assert_eq!((left.tokens_left, left.used.calls), (Some(0), 2));
        assert!(left.is_exhausted());
        let wrong = service.record_cost(cost("c4", &id, 1, f64::NAN)).await;
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Usage);
        service.close().await;
    });
}
