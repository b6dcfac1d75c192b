//! Scheduled jobs and their runs.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::Connection;
use crate::model::{AgentId, CronJob, Page, PageLimit, TaskOwnerKind, TaskRun};
use crate::store::global::task::TaskFilter;
use crate::store::global::{cron, task};

/// Jobs of the same name or beginning that an error names.
const MAX_CANDIDATES: usize = 5;

/// The job of an id, else the one of a name, else the one whose id begins so.
pub(super) async fn find_job(
    conn: &mut Connection,
    reference: &str,
) -> Result<CronJob, ServiceError> {
    let jobs = cron::list(conn, None).await?;
    let fits: [&dyn Fn(&CronJob) -> bool; 3] = [
        &|job| job.job_id == reference,
        &|job| job.name == reference,
        &|job| !reference.is_empty() && job.job_id.starts_with(reference),
    ];
    for fits in fits {
        let mut found: Vec<&CronJob> = jobs.iter().filter(|job| fits(job)).collect();
        match found.len() {
            0 => {}
            1 => return Ok(found.remove(0).clone()),
            _ => {
                found.truncate(MAX_CANDIDATES);
                return Err(ServiceError::Ambiguous {
                    what: "jobs",
                    name: reference.to_owned(),
                    candidates: found.into_iter().map(|job| job.job_id.clone()).collect(),
                });
            }
        }
    }
    Err(ServiceError::NotFound {
        what: "job",
        name: reference.to_owned(),
    })
}

impl Service {
    pub(super) async fn show_cron(&self, reference: &str) -> Result<CronJob, ServiceError> {
        let mut conn = self.global().read().await?;
        find_job(&mut conn, reference).await
    }

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
