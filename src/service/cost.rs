//! What calls of models cost: listing and adding up.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{CostGroup, CostGrouping, CostSums, Page, PageLimit, UsageCost};
use crate::store::global::cost::{self, CostFilter};

/// Costs, newest first, and the sum of all that fit, not of this page alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostPage {
    /// A page of calls.
    #[serde(flatten)]
    pub page: Page<UsageCost>,
    /// The sum of all.
    pub total: CostSums,
}

/// Costs added up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostReport {
    /// What by.
    pub by: CostGrouping,
    /// Days newest first, the others dearest first.
    pub groups: Vec<CostGroup>,
    /// The sum of all.
    pub total: CostSums,
}

impl Service {
    pub(super) async fn list_costs(
        &self,
        filter: &CostFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<CostPage, ServiceError> {
        let db = self.global();
        let mut conn = db.read().await?;
        Ok(CostPage {
            page: cost::list(&mut conn, filter, before, limit)
                .await
                .in_db(db)?,
            total: cost::total(&mut conn, filter).await.in_db(db)?,
        })
    }

    pub(super) async fn add_up_costs(
        &self,
        filter: &CostFilter,
        by: CostGrouping,
    ) -> Result<CostReport, ServiceError> {
        let db = self.global();
        let mut conn = db.read().await?;
        Ok(CostReport {
            by,
            groups: cost::groups(&mut conn, filter, by).await.in_db(db)?,
            total: cost::total(&mut conn, filter).await.in_db(db)?,
        })
    }
}
