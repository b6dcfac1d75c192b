//! The log of what a runtime did: listing.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{DiagnosticEvent, Page, PageLimit};
use crate::store::global::diagnostic::{self, DiagnosticFilter};

impl Service {
    pub(super) async fn list_diagnostics(
        &self,
        filter: &DiagnosticFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<DiagnosticEvent>, ServiceError> {
        let mut conn = self.global().read().await?;
        diagnostic::list(&mut conn, filter, before, limit)
            .await
            .in_db(self.global())
    }
}
