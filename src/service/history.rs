//! What doctor did here.

use serde::{Deserialize, Serialize};

use super::{Service, ServiceError};
use crate::model::{MigrationRun, PageLimit, SourceReceipt};
use crate::store::global::migration;

/// One import run and its receipts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunHistory {
    /// The run.
    pub run: MigrationRun,
    /// Its receipts, by path.
    pub sources: Vec<SourceReceipt>,
}

impl Service {
    pub(super) async fn list_runs(
        &self,
        limit: PageLimit,
    ) -> Result<Vec<MigrationRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        Ok(migration::list_runs(&mut conn, limit).await?)
    }

    pub(super) async fn run_history(&self, id: &str) -> Result<RunHistory, ServiceError> {
        let mut conn = self.global().read().await?;
        let run = migration::get_run(&mut conn, id).await?;
        let run = run.ok_or_else(|| ServiceError::NotFound {
            what: "run",
            name: id.to_owned(),
        })?;
        let sources = migration::list_sources(&mut conn, id).await?;
        Ok(RunHistory { run, sources })
    }
}
