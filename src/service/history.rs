//! What doctor did here.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use std::collections::BTreeMap;

use crate::model::{MigrationRun, PageLimit, SourceReceipt, SourceState};
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
        migration::list_runs(&mut conn, limit)
            .await
            .in_db(self.global())
    }

    pub(super) async fn run_history(&self, id: &str) -> Result<RunHistory, ServiceError> {
        let mut conn = self.global().read().await?;
        let run = migration::get_run(&mut conn, id)
            .await
            .in_db(self.global())?;
        let run = run.ok_or_else(|| ServiceError::NotFound {
            what: "run",
            name: id.to_owned(),
        })?;
        let sources = migration::list_sources(&mut conn, id)
            .await
            .in_db(self.global())?;
        Ok(RunHistory { run, sources })
    }

    /// What every receipt says at a glance, by source key.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn receipt_states(&self) -> Result<BTreeMap<String, SourceState>, ServiceError> {
        let mut conn = self.global().read().await?;
        Ok(migration::source_states(&mut conn)
            .await
            .in_db(self.global())?
            .into_iter()
            .collect())
    }

    /// The import run that was cut off, if one was.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn unfinished_run(&self) -> Result<Option<MigrationRun>, ServiceError> {
        let mut conn = self.global().read().await?;
        migration::unfinished_run(&mut conn)
            .await
            .in_db(self.global())
    }

    /// Receipts that one run last spoke of, by path.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn receipts_of(&self, run_id: &str) -> Result<Vec<SourceReceipt>, ServiceError> {
        let mut conn = self.global().read().await?;
        migration::list_sources(&mut conn, run_id)
            .await
            .in_db(self.global())
    }
}
