//! What was done to memories.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, AuditEvent, Page, PageLimit};
use crate::store::global::audit;

impl Service {
    pub(super) async fn list_audit(
        &self,
        agent: Option<&AgentId>,
        operation: Option<&str>,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<AuditEvent>, ServiceError> {
        let mut conn = self.global().read().await?;
        audit::list(&mut conn, agent, operation, before, limit)
            .await
            .in_db(self.global())
    }
}
