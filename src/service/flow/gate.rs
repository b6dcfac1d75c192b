//! Approvals: given or refused by somebody, and closed for as long as nobody does.
//!
//! When an approval takes too long, the configuration says what happens: those who may approve are told again (the
//! default), the run is cancelled, or it goes on as if approved. The last one wants its own word in the file. Only a wait
//! that began under this release has a deadline: one that an import brought in stays closed until somebody decides.

use serde::Deserialize;
use serde_json::json;

use super::Flows;
use super::change::{self, Expect, NewFlowEvent};
use crate::config::ApprovalTimeout;
use crate::db::WriteTx;
use crate::fs::process;
use crate::model::{FlowRun, FlowStatus};
use crate::service::ServiceError;
use crate::service::append::{check_name, named};
use crate::service::control::Control;
use crate::store::global::{flow, flow_claim};

/// A run stops for an approval.
const REQUESTED: &str = "gate_requested";
/// Those who may approve are told again.
const ESCALATED: &str = "gate_escalated";
/// Nobody approved in time.
const TIMED_OUT: &str = "gate_timed_out";
/// Somebody decided.
const RESOLVED: &str = "gate_resolved";
/// Who decides where the configuration does.
const SYSTEM: &str = "system";

/// What a run waits for.
const WAITING: &[FlowStatus] = &[FlowStatus::WaitingApproval, FlowStatus::Paused];

/// What became of an approval that nobody gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// It is not: there is time, or no deadline.
    No,
    Escalated,
    Cancelled,
    Approved,
}

/// When an approval is overdue, as its event says it.
#[derive(Deserialize)]
struct Deadline {
    /// By the time of day.
    deadline_at_ms: Option<i64>,
    /// By the time since boot, which nobody sets; counts only within that boot.
    deadline_uptime_ms: Option<i64>,
    boot_id: Option<String>,
}

impl Deadline {
    fn from_now(control: &Control) -> Self {
        let timeout = control.config.sop.approval_timeout;
        let after = |now_ms: i64| {
            let timeout_ms = i64::try_from(timeout?.as_millis()).unwrap_or(i64::MAX);
            Some(now_ms.saturating_add(timeout_ms))
        };
        Self {
            deadline_at_ms: after(control.clock.now_ms()),
            deadline_uptime_ms: after(control.clock.uptime_ms()),
            boot_id: process::own().boot_id,
        }
    }

    /// Whether it has passed; never, where there is none.
    fn is_past(&self, control: &Control) -> bool {
        let is_same_boot = self.boot_id.is_some() && self.boot_id == process::own().boot_id;
        match self.deadline_uptime_ms.filter(|_| is_same_boot) {
            Some(deadline) => deadline <= control.clock.uptime_ms(),
            None => self
                .deadline_at_ms
                .is_some_and(|deadline| deadline <= control.clock.now_ms()),
        }
    }

    /// As an event holds it, with the step that waits.
    fn payload(&self, step: Option<i64>) -> serde_json::Value {
        json!({
            "step": step,
            "deadline_at_ms": self.deadline_at_ms,
            "deadline_uptime_ms": self.deadline_uptime_ms,
            "boot_id": self.boot_id,
        })
    }
}

/// What is recorded where a run stops for an approval.
pub(super) fn requested(control: &Control, step: Option<i64>, reason: &str) -> NewFlowEvent {
    NewFlowEvent::new(REQUESTED)
        .because(Some(reason))
        .with(&Deadline::from_now(control).payload(step))
}

impl Flows {
    /// Approves what a run waits for, or lets a paused one go on: it waits for a driver then.
    ///
    /// * `actor`: who decides.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for a run that waits for nobody, [`ServiceError::NotFound`].
    pub async fn approve(&self, flow_id: &str, actor: &str) -> Result<FlowRun, ServiceError> {
        self.resolve(flow_id, actor, None, true).await
    }

    /// Refuses what a run waits for: it is cancelled.
    ///
    /// # Errors
    ///
    /// As [`approve`](Self::approve).
    pub async fn deny(
        &self,
        flow_id: &str,
        actor: &str,
        reason: Option<&str>,
    ) -> Result<FlowRun, ServiceError> {
        self.resolve(flow_id, actor, reason, false).await
    }

    async fn resolve(
        &self,
        flow_id: &str,
        actor: &str,
        reason: Option<&str>,
        is_approved: bool,
    ) -> Result<FlowRun, ServiceError> {
        check_name("actor", actor)?;
        let now_ms = self.now_ms();
        let flow_id = flow_id.to_owned();
        let decision = if is_approved { "approve" } else { "deny" };
        let event = NewFlowEvent::new(RESOLVED)
            .by(actor)
            .because(reason)
            .with(&json!({ "decision": decision }));
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let expect = Expect::Status(WAITING);
                let edit = |run: &mut FlowRun| go_on_or_end(run, is_approved, now_ms);
                change::apply(tx, &flow_id, expect, vec![event], now_ms, edit).await
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }
}

fn go_on_or_end(run: &mut FlowRun, is_approved: bool, now_ms: i64) {
    run.waiting_since_ms = None;
    run.status_detail = None;
    if is_approved {
        run.status = FlowStatus::Pending;
    } else {
        run.status = FlowStatus::Cancelled;
        run.ended_at_ms = Some(now_ms);
    }
}

/// Does with a waiting run what the configuration says, if nobody approved in time.
pub(super) async fn time_out(
    tx: &mut WriteTx<'_>,
    flow_id: &str,
    control: &Control,
) -> Result<Overdue, ServiceError> {
    let now_ms = control.clock.now_ms();
    let found = flow::get_runs(tx, &[flow_id]).await?.pop();
    let Some(run) = found.filter(|run| run.status == FlowStatus::WaitingApproval) else {
        return Ok(Overdue::No);
    };
    let last = flow_claim::last_event(tx, flow_id, [REQUESTED, ESCALATED]).await?;
    let deadline = last.and_then(|(_, payload)| serde_json::from_str::<Deadline>(&payload).ok());
    if deadline.is_none_or(|deadline| !deadline.is_past(control)) {
        return Ok(Overdue::No);
    }
    let expect = Expect::Revision(run.revision);
    let timed_out = || NewFlowEvent::new(TIMED_OUT).by(SYSTEM);
    match control.config.sop.approval_timeout_action {
        ApprovalTimeout::Escalate => {
            let event = NewFlowEvent::new(ESCALATED)
                .by(SYSTEM)
                .with(&Deadline::from_now(control).payload(run.current_step));
            change::apply(tx, flow_id, expect, vec![event], now_ms, |_| ()).await?;
            Ok(Overdue::Escalated)
        }
        ApprovalTimeout::Cancel => {
            let edit = |run: &mut FlowRun| go_on_or_end(run, false, now_ms);
            change::apply(tx, flow_id, expect, vec![timed_out()], now_ms, edit).await?;
            Ok(Overdue::Cancelled)
        }
        ApprovalTimeout::AutoApprove => {
            let resolved = NewFlowEvent::new(RESOLVED)
                .by(SYSTEM)
                .with(&json!({ "decision": "approve" }));
            let events = vec![timed_out(), resolved];
            let edit = |run: &mut FlowRun| go_on_or_end(run, true, now_ms);
            change::apply(tx, flow_id, expect, events, now_ms, edit).await?;
            Ok(Overdue::Approved)
        }
    }
}
