//! How runs change: by compare-and-set of their revision, with what happened in the same transaction.

use serde::{Deserialize, Serialize};

use super::no_such;
use crate::db::WriteTx;
use crate::model::{FlowEvent, FlowRun, FlowStatus};
use crate::service::ServiceError;
use crate::service::append::{check_name, invalid, new_id};
use crate::store::global::{flow, flow_claim};

/// Largest state of a run or payload of an event, bytes.
const MAX_JSON_BYTES: usize = 16 * 1024 * 1024;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewFlowEvent {
    /// What, in its writer's word.
    pub kind: String,
    /// Who did it.
    pub actor: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// All of it, JSON text.
    pub payload_json: String,
}

impl NewFlowEvent {
    /// Something without a person, a reason or more to say.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            actor: None,
            reason: None,
            payload_json: "{}".to_owned(),
        }
    }

    pub(super) fn by(mut self, actor: &str) -> Self {
        self.actor = Some(actor.to_owned());
        self
    }

    pub(super) fn because(mut self, reason: Option<&str>) -> Self {
        self.reason = reason.map(str::to_owned);
        self
    }

    pub(super) fn with(mut self, payload: &serde_json::Value) -> Self {
        self.payload_json = payload.to_string();
        self
    }
}

/// How a run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowStep {
    /// The step it is at now; `None` where it stays.
    pub current_step: Option<i64>,
    /// Its whole state, JSON text; `None` where it stays.
    pub state_json: Option<String>,
    /// What happened, in order; without any, the change itself is recorded.
    pub events: Vec<NewFlowEvent>,
}

/// How a run must stand for a change.
pub(super) enum Expect {
    /// At this revision.
    Revision(i64),
    /// In one of these states.
    Status(&'static [FlowStatus]),
}

/// Changes a run and records what happened.
pub(super) async fn apply(
    tx: &mut WriteTx<'_>,
    flow_id: &str,
    expect: Expect,
    events: Vec<NewFlowEvent>,
    now_ms: i64,
    edit: impl FnOnce(&mut FlowRun) + Send,
) -> Result<FlowRun, ServiceError> {
    let found = flow::get_runs(tx, &[flow_id]).await?.pop();
    let mut run = found.ok_or_else(|| no_such(flow_id))?;
    match expect {
        Expect::Revision(revision) if run.revision != revision => {
            let found = format!("at revision {}", run.revision);
            return Err(conflict(flow_id, format!("at revision {revision}"), found));
        }
        Expect::Status(status) if !status.contains(&run.status) => {
            let expected: Vec<_> = status.iter().map(|status| status.as_str()).collect();
            let found = run.status.to_string();
            return Err(conflict(flow_id, expected.join(" or "), found));
        }
        Expect::Revision(_) | Expect::Status(_) => {}
    }
    let revision = run.revision;
    edit(&mut run);
    run.updated_at_ms = now_ms;
    if !flow_claim::change_run(tx, &run, revision).await? {
        let expected = format!("at revision {revision}");
        return Err(conflict(flow_id, expected, "at another one".to_owned()));
    }
    run.revision += 1;
    record(tx, flow_id, events, now_ms).await?;
    Ok(run)
}

/// Appends what happened.
pub(super) async fn record(
    tx: &mut WriteTx<'_>,
    flow_id: &str,
    events: Vec<NewFlowEvent>,
    now_ms: i64,
) -> Result<(), ServiceError> {
    let mut seq = flow_claim::next_seq(tx, flow_id).await?;
    let mut rows = Vec::with_capacity(events.len());
    for event in events {
        rows.push(FlowEvent {
            event_id: new_id(),
            flow_id: flow_id.to_owned(),
            seq,
            at_ms: Some(now_ms),
            kind: event.kind,
            actor: event.actor,
            reason: event.reason,
            payload_json: event.payload_json,
            detail_json: None,
        });
        seq += 1;
    }
    flow::insert_events(tx, &rows).await?;
    Ok(())
}

/// Refuses what no row could hold or nobody could read.
pub(super) fn check(step: &FlowStep) -> Result<(), ServiceError> {
    if let Some(state) = &step.state_json {
        check_json("state", state)?;
    }
    for event in &step.events {
        check_name("event", &event.kind)?;
        check_json("payload", &event.payload_json)?;
    }
    Ok(())
}

pub(super) fn check_json(what: &'static str, json: &str) -> Result<(), ServiceError> {
    if json.len() > MAX_JSON_BYTES {
        return Err(invalid(what, "is larger than 16 MiB"));
    }
    match serde_json::from_str::<&serde_json::value::RawValue>(json) {
        Ok(_) => Ok(()),
        Err(_) => Err(invalid(what, "is no JSON")),
    }
}

pub(super) fn conflict(flow_id: &str, expected: String, found: String) -> ServiceError {
    ServiceError::Conflict {
        what: "run",
        name: flow_id.to_owned(),
        expected,
        found,
    }
}
