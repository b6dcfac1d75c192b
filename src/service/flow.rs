//! Runs of procedures and what they propose.
//!
//! A run is a row with a revision. Whoever drives it holds a claim and changes it by compare-and-set, each change with
//! what happened in the same transaction. Runs that wait for a person are nobody's and take no place.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::append::{check_name, named, new_id};
use super::control::Control;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::model::{FlowEvent, FlowProposal, FlowRun, FlowStatus, MAX_PAGE, Page, PageLimit};
use crate::store::global::flow;

pub use change::{FlowStep, NewFlowEvent};
pub use claim::{FlowClaim, FlowClaimInfo, FlowClaimed};
pub use proposal::NewProposal;
pub use sweep::FlowSweep;

mod change;
mod claim;
mod gate;
mod proposal;
mod sweep;

/// A run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFlowRun {
    /// Its identity; made where the caller has none.
    pub flow_id: Option<String>,
    /// Name of the procedure.
    pub controller_id: String,
    /// What sets it off.
    pub trigger_source: Option<String>,
    /// How many steps it has.
    pub total_steps: Option<i64>,
    /// Its state at the beginning, JSON text.
    pub state_json: String,
}

/// The runs of all procedures, for whoever drives them or decides.
///
/// Clones share one connection. Any number of processes may have one each.
#[derive(Clone, Debug)]
pub struct Flows {
    control: Arc<Control>,
}

impl Flows {
    /// Opens the runs of a root beside whoever holds that, as a process does that only works.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is no state or it cannot be opened.
    pub async fn open(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        Ok(Self {
            control: Arc::new(Control::open(root, clock).await?),
        })
    }

    /// Closes its connection, where it has one of its own and this is the last clone.
    pub async fn close(self) {
        self.control.close().await;
    }

    fn now_ms(&self) -> i64 {
        self.control.clock.now_ms()
    }

    /// Makes a run, which waits for a driver.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when there is one of that id, [`ServiceError::Invalid`] for what no row could hold.
    pub async fn create(&self, new: NewFlowRun) -> Result<FlowRun, ServiceError> {
        check_name("procedure", &new.controller_id)?;
        change::check_json("state", &new.state_json)?;
        let flow_id = new.flow_id.unwrap_or_else(new_id);
        check_name("run", &flow_id)?;
        let now_ms = self.now_ms();
        let run = FlowRun {
            flow_id,
            controller_id: new.controller_id,
            revision: 0,
            status: FlowStatus::Pending,
            status_detail: None,
            trigger_source: new.trigger_source,
            current_step: None,
            total_steps: new.total_steps,
            started_at_ms: None,
            waiting_since_ms: None,
            updated_at_ms: now_ms,
            ended_at_ms: None,
            state_json: Some(new.state_json),
            detail_json: None,
        };
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                if !flow::get_runs(tx, &[&run.flow_id]).await?.is_empty() {
                    let missing = "not there".to_owned();
                    return Err(change::conflict(&run.flow_id, missing, "there".to_owned()));
                }
                flow::upsert_run(tx, &run).await?;
                let events = vec![NewFlowEvent::new("created")];
                change::record(tx, &run.flow_id, events, now_ms).await?;
                Ok(run)
            })
        });
        done.await.map_err(|error| named(error, &self.control.db))
    }
}

fn no_such(flow_id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "run of a procedure",
        name: flow_id.to_owned(),
    }
}

/// A run, what happened in it, and what it proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowOverview {
    /// The run, with its whole state.
    pub run: FlowRun,
    /// Its first events, in order: at most [`MAX_PAGE`].
    pub events: Vec<FlowEvent>,
    /// Its newest proposals: at most [`MAX_PAGE`].
    pub proposals: Vec<FlowProposal>,
}

impl Service {
    /// The runs of all procedures.
    #[must_use]
    pub fn flows(&self) -> Flows {
        Flows {
            control: Arc::new(Control::of(self)),
        }
    }

    pub(super) async fn list_flows(
        &self,
        status: Option<FlowStatus>,
        controller: Option<&str>,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<FlowRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        flow::list_runs(&mut conn, status, controller, before, limit)
            .await
            .in_db(self.global())
    }

    pub(super) async fn show_flow(&self, flow_id: &str) -> Result<FlowOverview, ServiceError> {
        let all = PageLimit::from(MAX_PAGE);
        let mut conn = self.global().read().await?;
        let runs = flow::get_runs(&mut conn, &[flow_id])
            .await
            .in_db(self.global())?;
        let run = runs.into_iter().next().ok_or_else(|| no_such(flow_id))?;
        Ok(FlowOverview {
            run,
            events: flow::events_of(&mut conn, flow_id, all)
                .await
                .in_db(self.global())?,
            proposals: flow::list_proposals(&mut conn, Some(flow_id), None, all)
                .await
                .in_db(self.global())?
                .items,
        })
    }

    pub(super) async fn list_proposals(
        &self,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<FlowProposal>, ServiceError> {
        let mut conn = self.global().read().await?;
        flow::list_proposals(&mut conn, None, before, limit)
            .await
            .in_db(self.global())
    }
}
