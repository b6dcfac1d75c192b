//! Scheduled jobs and their runs.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, CronJob, Page, PageLimit, TaskOwnerKind, TaskRun};
use crate::store::global::task::TaskFilter;
use crate::store::global::{cron, task};

impl Service {
    pub(super) async fn list_cron(
        &self,
        agent: Option<&AgentId>,
    ) -> Result<Vec<CronJob>, ServiceError> {
        let mut conn = self.global().read().await?;
        cron::list(&mut conn, agent).await.in_db(self.global())
    }

    pub(super) async fn list_cron_runs(
        &self,
        job: Option<String>,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<TaskRun>, ServiceError> {
        let filter = TaskFilter {
            owner_kind: Some(TaskOwnerKind::Cron),
            source_id: job,
            ..TaskFilter::default()
        };
        let mut conn = self.global().read().await?;
        task::list(&mut conn, &filter, before, limit)
            .await
            .in_db(self.global())
    }
}
