//! Costs, and a log.

use zeroclaw::db::WriteTx;
use zeroclaw::model::{DiagnosticEvent, DiagnosticLevel, UsageCost};
use zeroclaw::store::global::{cost, diagnostic};

use super::{HOSTILE, START_MS, agent};

pub(super) async fn fill(tx: &mut WriteTx<'_>) {
    let costs: Vec<_> = (1..=5).map(cost_of_call).collect();
    cost::insert_new(tx, &costs).await.unwrap();
    let events: Vec<_> = (1..=5).map(log_event).collect();
    diagnostic::insert_new(tx, &events).await.unwrap();
}

/// Two an hour from [`START_MS`] on, by turns of `atlas` and of nobody; the third has no price.
fn cost_of_call(number: i64) -> UsageCost {
    UsageCost {
        cost_id: format!("cost-{number}"),
        agent_id: (number % 2 == 1).then(|| agent("atlas")),
        model: HOSTILE.to_owned(),
        input_tokens: 100 * number,
        output_tokens: 10,
        cached_input_tokens: 0,
        total_tokens: 100 * number + 10,
        cost_usd: if number == 3 { 0.0 } else { 0.25 },
        cost_usd_text: None,
        has_price: number != 3,
        recorded_at_ms: START_MS + number * 30 * 60_000,
        recorded_at_text: None,
        process_id: None,
        goal_task_id: None,
        detail_json: None,
    }
}

/// One of each level, the gravest last.
fn log_event(number: i64) -> DiagnosticEvent {
    let level = DiagnosticLevel::ALL[usize::try_from(number - 1).unwrap()];
    DiagnosticEvent {
        scope: "runtime".to_owned(),
        event_key: format!("event-{number}"),
        created_at_ms: START_MS + number,
        sequence: number,
        level,
        category: Some("tool".to_owned()),
        action: Some(HOSTILE.to_owned()),
        outcome: None,
        agent_id: Some(agent("atlas")),
        payload_json: serde_json::json!({ "message": HOSTILE }).to_string(),
    }
}
