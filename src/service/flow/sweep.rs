//! Putting right what dead drivers left, and what nobody approved.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Flows;
use super::change::{self, Expect, NewFlowEvent};
use super::gate::{self, Overdue};
use crate::db::WriteTx;
use crate::model::{FlowStatus, PageLimit};
use crate::service::ServiceError;
use crate::service::append::named;
use crate::service::claim::is_void;
use crate::service::error::InDb;
use crate::store::global::flow;
use crate::store::global::flow_claim::{self, FlowClaimRow};

/// Runs of one page.
const PAGE: u32 = 200;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSweep {
    /// Runs whose driver is gone: they can be taken up again.
    pub interrupted: u64,
    /// Approvals that take too long: those who may approve were told again.
    pub escalated: u64,
    /// Runs that were cancelled because nobody approved.
    pub cancelled: u64,
    /// Runs that go on although nobody approved, because the configuration says so.
    pub approved: u64,
}

impl Flows {
    /// Interrupts runs whose driver is proven gone, and does what the configuration says with approvals that take too long.
    ///
    /// Called at start, when it restores what a killed process left, and every now and then. What waits for a person goes
    /// on waiting, what has ended stays so. Safe at any time, by any process.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn sweep(&self) -> Result<FlowSweep, ServiceError> {
        let mut sweep = FlowSweep {
            interrupted: self.end_void_claims().await?,
            ..FlowSweep::default()
        };
        sweep.interrupted += self.interrupt_driverless().await?;
        let mut after = String::new();
        while let Some(found) = self
            .page_of(FlowStatus::WaitingApproval, &mut after)
            .await?
        {
            for flow_id in found {
                match self.time_out(flow_id).await? {
                    Overdue::No => {}
                    Overdue::Escalated => sweep.escalated += 1,
                    Overdue::Cancelled => sweep.cancelled += 1,
                    Overdue::Approved => sweep.approved += 1,
                }
            }
        }
        Ok(sweep)
    }

    async fn end_void_claims(&self) -> Result<u64, ServiceError> {
        let mut conn = self.control.db.read().await?;
        let claims = flow_claim::list(&mut conn).await.in_db(&self.control.db)?;
        drop(conn);
        let mut ended = 0;
        for claim in claims {
            if is_void(&claim.owner_json) {
                let now_ms = self.now_ms();
                let done = self
                    .control
                    .db
                    .write(move |tx| Box::pin(async move { let_go(tx, &claim, now_ms).await }));
                let done = done.await;
                ended +=
                    u64::from(done.map_err(|error: ServiceError| named(error, &self.control.db))?);
            }
        }
        Ok(ended)
    }

    /// A run that says it is under way and that nobody drives: only a foreign hand leaves such a one.
    async fn interrupt_driverless(&self) -> Result<u64, ServiceError> {
        let mut interrupted = 0;
        let mut after = String::new();
        while let Some(found) = self.page_of(FlowStatus::Running, &mut after).await? {
            let now_ms = self.now_ms();
            let done = self.control.db.write(move |tx| {
                Box::pin(async move {
                    let mut count = 0;
                    for flow_id in found {
                        if flow_claim::get(tx, &flow_id).await?.is_none() {
                            count += u64::from(interrupt(tx, &flow_id, now_ms).await?);
                        }
                    }
                    Ok(count)
                })
            });
            let done = done.await;
            interrupted += done.map_err(|error: ServiceError| named(error, &self.control.db))?;
        }
        Ok(interrupted)
    }

    async fn time_out(&self, flow_id: String) -> Result<Overdue, ServiceError> {
        let control = Arc::clone(&self.control);
        let done = self
            .control
            .db
            .write(move |tx| Box::pin(async move { gate::time_out(tx, &flow_id, &control).await }));
        done.await.map_err(|error| named(error, &self.control.db))
    }

    /// The next runs that stand so; `None` behind the last.
    async fn page_of(
        &self,
        status: FlowStatus,
        after: &mut String,
    ) -> Result<Option<Vec<String>>, ServiceError> {
        let mut conn = self.control.db.read().await?;
        let limit = PageLimit::from(PAGE);
        let found = flow_claim::runs_that(&mut conn, status, None, after, limit)
            .await
            .in_db(&self.control.db)?;
        let Some(last) = found.last() else {
            return Ok(None);
        };
        after.clone_from(last);
        Ok(Some(found))
    }
}

/// Ends a claim whose holder is gone, and interrupts its run; says whether it was still there.
pub(super) async fn let_go(
    tx: &mut WriteTx<'_>,
    claim: &FlowClaimRow,
    now_ms: i64,
) -> Result<bool, ServiceError> {
    if !flow_claim::delete(tx, &claim.flow_id, &claim.token).await? {
        return Ok(false);
    }
    interrupt(tx, &claim.flow_id, now_ms).await?;
    Ok(true)
}

async fn interrupt(tx: &mut WriteTx<'_>, flow_id: &str, now_ms: i64) -> Result<bool, ServiceError> {
    let found = flow::get_runs(tx, &[flow_id]).await?.pop();
    let Some(run) = found.filter(|run| run.status == FlowStatus::Running) else {
        return Ok(false);
    };
    let events = vec![NewFlowEvent::new("driver_lost")];
    let expect = Expect::Revision(run.revision);
    change::apply(tx, flow_id, expect, events, now_ms, |run| {
        run.status = FlowStatus::Interrupted;
    })
    .await?;
    Ok(true)
}
