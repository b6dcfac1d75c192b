//! Sessions of ACP clients: listing.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AcpSession, Page, PageLimit};
use crate::store::global::acp::{self, AcpFilter};

impl Service {
    pub(super) async fn list_acp(
        &self,
        filter: &AcpFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<AcpSession>, ServiceError> {
        let mut conn = self.global().read().await?;
        acp::list(&mut conn, filter, before, limit)
            .await
            .in_db(self.global())
    }
}
