//! Backups as use cases: they record each run and ask `backup` to do the work.

use super::{Service, ServiceError};
use crate::model::{BackupRun, PageLimit};
use crate::store::global::backup;

impl Service {
    pub(super) async fn list_backups(
        &self,
        limit: PageLimit,
    ) -> Result<Vec<BackupRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        Ok(backup::list(&mut conn, limit).await?)
    }
}
