//! Driving a run: one driver at a time, and no more runs at once than the caps allow.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::change::{self, Expect, FlowStep, NewFlowEvent, conflict};
use super::sweep::let_go;
use super::{Flows, gate, no_such};
use crate::db::WriteTx;
use crate::model::{FlowRun, FlowStatus, PageLimit};
use crate::service::ServiceError;
use crate::service::append::{check_name, invalid, named};
use crate::service::claim::{HeldClaim, is_void};
use crate::service::control::Control;
use crate::service::error::InDb;
use crate::store::global::flow;
use crate::store::global::flow_claim::{self, FlowClaimRow};

/// Runs of one page that are looked at for one that is free.
const LOOKED_AT: u32 = 100;

/// What came of asking for a run.
#[derive(Debug)]
pub enum FlowClaimed {
    /// It is the caller's.
    Claimed(Box<FlowClaim>),
    /// Somebody drives it.
    Held {
        /// Who, in their own words.
        owner: String,
    },
    /// So many runs of its procedure are driven that there is no room for one more.
    ProcedureFull,
    /// So many runs are driven that there is no room for one more.
    AllFull,
    /// It is not one to be driven: ended, or waiting for a person.
    NotWaiting {
        /// Where it stands.
        status: FlowStatus,
    },
}

/// Who drives a run, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowClaimInfo {
    /// The run.
    pub flow_id: String,
    /// Name of the procedure.
    pub controller_id: String,
    /// Who, in their own words.
    pub owner: String,
    /// Since when.
    pub claimed_at_ms: i64,
    /// Whether the driver is proven gone: the next sweep ends the claim.
    pub is_void: bool,
}

/// A run that the caller drives, and nobody else.
///
/// Dropped without one of its ends, as by a panic or an aborted task, the run is found by the next sweep and interrupted.
#[derive(Debug)]
pub struct FlowClaim {
    run: FlowRun,
    held: HeldClaim,
    control: Arc<Control>,
}

impl Flows {
    /// Takes a run to drive it, if it waits for a driver and the caps leave room. A driver that is proven gone holds
    /// nothing.
    ///
    /// * `owner`: who it is, for people.
    /// * `per_procedure`: how many runs of this procedure may be driven at once; over all, the configuration says.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such run.
    pub async fn claim(
        &self,
        flow_id: &str,
        owner: &str,
        per_procedure: u32,
    ) -> Result<FlowClaimed, ServiceError> {
        check_name("owner", owner)?;
        let now_ms = self.now_ms();
        let (flow_id, owner) = (flow_id.to_owned(), owner.to_owned());
        let total = self.control.config.sop.max_concurrent_total;
        let control = Arc::clone(&self.control);
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let taken = take(tx, &flow_id, &owner, (per_procedure, total), now_ms).await?;
                Ok(match taken {
                    Taken::Run(run, held) => FlowClaimed::Claimed(Box::new(FlowClaim {
                        run: *run,
                        held,
                        control,
                    })),
                    Taken::Not(why) => why,
                })
            })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }

    /// Takes the next run of a procedure that waits for a driver; `None` where none does or there is no room.
    ///
    /// # Errors
    ///
    /// As [`claim`](Self::claim).
    pub async fn claim_next(
        &self,
        procedure: &str,
        owner: &str,
        per_procedure: u32,
    ) -> Result<Option<FlowClaim>, ServiceError> {
        let mut after = String::new();
        loop {
            let mut conn = self.control.db.read().await?;
            let limit = PageLimit::from(LOOKED_AT);
            let status = FlowStatus::Pending;
            let found = flow_claim::runs_that(&mut conn, status, Some(procedure), &after, limit)
                .await
                .in_db(&self.control.db)?;
            drop(conn);
            let Some(last) = found.last() else {
                return Ok(None);
            };
            after.clone_from(last);
            for flow_id in &found {
                match self.claim(flow_id, owner, per_procedure).await? {
                    FlowClaimed::Claimed(claim) => return Ok(Some(*claim)),
                    FlowClaimed::ProcedureFull | FlowClaimed::AllFull => return Ok(None),
                    FlowClaimed::Held { .. } | FlowClaimed::NotWaiting { .. } => {}
                }
            }
        }
    }

    /// Who drives runs now, oldest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn claims(&self) -> Result<Vec<FlowClaimInfo>, ServiceError> {
        let mut conn = self.control.db.read().await?;
        let claims = flow_claim::list(&mut conn).await.in_db(&self.control.db)?;
        let info = claims.into_iter().map(|claim| FlowClaimInfo {
            is_void: is_void(&claim.owner_json),
            flow_id: claim.flow_id,
            controller_id: claim.controller_id,
            owner: claim.owner,
            claimed_at_ms: claim.claimed_at_ms,
        });
        Ok(info.collect())
    }
}

enum Taken {
    Run(Box<FlowRun>, HeldClaim),
    Not(FlowClaimed),
}

async fn take(
    tx: &mut WriteTx<'_>,
    flow_id: &str,
    owner: &str,
    (per_procedure, total): (u32, u32),
    now_ms: i64,
) -> Result<Taken, ServiceError> {
    let claims = flow_claim::list(tx).await?;
    let (void, living): (Vec<_>, Vec<_>) = claims
        .into_iter()
        .partition(|claim| is_void(&claim.owner_json));
    if let Some(held) = living.iter().find(|claim| claim.flow_id == flow_id) {
        let owner = held.owner.clone();
        return Ok(Taken::Not(FlowClaimed::Held { owner }));
    }
    if let Some(left) = void.iter().find(|claim| claim.flow_id == flow_id) {
        let_go(tx, left, now_ms).await?;
    }
    let found = flow::get_runs(tx, &[flow_id]).await?.pop();
    let run = found.ok_or_else(|| no_such(flow_id))?;
    if !matches!(run.status, FlowStatus::Pending | FlowStatus::Interrupted) {
        let status = run.status;
        return Ok(Taken::Not(FlowClaimed::NotWaiting { status }));
    }
    if living.len() >= total as usize {
        return Ok(Taken::Not(FlowClaimed::AllFull));
    }
    let of_it = living
        .iter()
        .filter(|claim| claim.controller_id == run.controller_id);
    if of_it.count() >= per_procedure as usize {
        return Ok(Taken::Not(FlowClaimed::ProcedureFull));
    }
    let held = HeldClaim::new();
    let row = FlowClaimRow {
        flow_id: flow_id.to_owned(),
        controller_id: run.controller_id.clone(),
        owner: owner.to_owned(),
        token: held.token().to_owned(),
        owner_json: held.owner_json(),
        claimed_at_ms: now_ms,
    };
    if !flow_claim::insert(tx, &row).await? {
        let free = "driven by nobody".to_owned();
        return Err(conflict(flow_id, free, "driven".to_owned()));
    }
    let events = vec![NewFlowEvent::new("claimed").by(owner)];
    let expect = Expect::Revision(run.revision);
    let run = change::apply(tx, flow_id, expect, events, now_ms, |run| {
        run.status = FlowStatus::Running;
        run.status_detail = None;
        run.started_at_ms.get_or_insert(now_ms);
    });
    Ok(Taken::Run(Box::new(run.await?), held))
}

impl FlowClaim {
    /// The run as this driver last saw it.
    #[must_use]
    pub fn run(&self) -> &FlowRun {
        &self.run
    }

    /// Goes on, from a revision that the caller has seen.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the run is at another revision or this claim was lost; nothing is changed then.
    pub async fn advance(
        &mut self,
        from_revision: i64,
        step: FlowStep,
    ) -> Result<&FlowRun, ServiceError> {
        change::check(&step)?;
        let run = self
            .change(from_revision, step, FlowStatus::Running, "advanced")
            .await?;
        self.run = run;
        Ok(&self.run)
    }

    /// Stops until a person approves; the run is nobody's then.
    ///
    /// * `reason`: what is to be approved.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub async fn wait_for_approval(
        self,
        reason: &str,
        mut step: FlowStep,
    ) -> Result<FlowRun, ServiceError> {
        change::check(&step)?;
        step.events.push(gate::requested(
            &self.control,
            self.run.current_step,
            reason,
        ));
        let revision = self.run.revision;
        self.change(revision, step, FlowStatus::WaitingApproval, "")
            .await
    }

    /// Stops until a person lets it go on; the run is nobody's then.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub async fn pause(self, reason: &str, mut step: FlowStep) -> Result<FlowRun, ServiceError> {
        change::check(&step)?;
        step.events
            .push(NewFlowEvent::new("paused").because(Some(reason)));
        let revision = self.run.revision;
        self.change(revision, step, FlowStatus::Paused, "").await
    }

    /// Gives the run back: it waits for a driver again.
    ///
    /// # Errors
    ///
    /// As [`advance`](Self::advance).
    pub async fn give_back(self) -> Result<FlowRun, ServiceError> {
        let revision = self.run.revision;
        let step = FlowStep::default();
        self.change(revision, step, FlowStatus::Pending, "given_back")
            .await
    }

    /// Ends the run.
    ///
    /// * `status`: `completed`, `failed` or `cancelled`.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a status that is no end, else as [`advance`](Self::advance).
    pub async fn finish(
        self,
        status: FlowStatus,
        reason: Option<&str>,
        mut step: FlowStep,
    ) -> Result<FlowRun, ServiceError> {
        if !status.is_end() {
            return Err(invalid("status", "is no end of a run"));
        }
        change::check(&step)?;
        step.events
            .push(NewFlowEvent::new(status.as_str()).because(reason));
        let revision = self.run.revision;
        self.change(revision, step, status, "").await
    }

    /// Changes the run under this claim, which ends with it unless the run goes on.
    async fn change(
        &self,
        revision: i64,
        mut step: FlowStep,
        status: FlowStatus,
        unless_told: &str,
    ) -> Result<FlowRun, ServiceError> {
        if step.events.is_empty() {
            step.events.push(NewFlowEvent::new(unless_told));
        }
        let now_ms = self.control.clock.now_ms();
        let (flow_id, token) = (self.run.flow_id.clone(), self.held.token().to_owned());
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let claim = flow_claim::get(tx, &flow_id).await?;
                if claim.is_none_or(|claim| claim.token != token) {
                    let ours = "driven by the caller".to_owned();
                    let found = "driven by nobody or another one".to_owned();
                    return Err(conflict(&flow_id, ours, found));
                }
                if status != FlowStatus::Running {
                    flow_claim::delete(tx, &flow_id, &token).await?;
                }
                let expect = Expect::Revision(revision);
                change::apply(tx, &flow_id, expect, step.events, now_ms, |run| {
                    run.status = status;
                    run.current_step = step.current_step.or(run.current_step);
                    run.state_json = step.state_json.or(run.state_json.take());
                    run.waiting_since_ms =
                        Some(now_ms).filter(|_| status == FlowStatus::WaitingApproval);
                    run.ended_at_ms = Some(now_ms).filter(|_| status.is_end());
                })
                .await
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }
}
