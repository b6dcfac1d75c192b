//! The log of what a runtime did: listing it, and letting old events go.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{DiagnosticEvent, Page, PageLimit};
use crate::store::global::diagnostic::{self, DiagnosticFilter};

/// A day, milliseconds.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Events that go in one transaction.
const PART: u32 = 1_000;

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

    /// Deletes events older than `[state.logs]` says, a part at a time; gives how many.
    ///
    /// Nothing goes where even the newest would: then nobody has logged for so long, or the clock has jumped.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn prune_logs(&self) -> Result<u64, ServiceError> {
        let Some(days) = self.config().logs.max_age_days else {
            return Ok(0);
        };
        let before_ms = self.clock().now_ms() - i64::from(days) * DAY_MS;
        let mut conn = self.global().read().await?;
        let newest = diagnostic::newest(&mut conn).await.in_db(self.global())?;
        drop(conn);
        if newest.is_none_or(|newest| newest < before_ms) {
            return Ok(0);
        }
        let mut gone = 0;
        loop {
            let part: Result<u64, ServiceError> = self
                .global()
                .write(move |tx| {
                    Box::pin(async move { Ok(diagnostic::prune(tx, before_ms, PART).await?) })
                })
                .await;
            match part? {
                0 => return Ok(gone),
                part => gone += part,
            }
        }
    }
}
