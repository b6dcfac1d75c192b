//! Runs of procedures and what they propose.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{FlowEvent, FlowProposal, FlowRun, FlowStatus, MAX_PAGE, Page, PageLimit};
use crate::store::global::flow;

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
        let run = runs.into_iter().next().ok_or(ServiceError::NotFound {
            what: "run of a procedure",
            name: flow_id.to_owned(),
        })?;
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
