//! What can be proved about the databases of a root.

use std::os::unix::fs::PermissionsExt;

use super::{Service, ServiceError};
use crate::db::{
    DbError, DbErrorKind, FULL_TEXT_INDEXES, SnapshotSource, check_connection, check_full_text,
    check_relations, open_snapshot,
};
use crate::fs::{FsError, sidecars};
use crate::model::{AgentId, CheckOutcome, Tier, TierCheck};

impl Service {
    /// Checks every tier, or one agent's.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when a check itself cannot run; what a check finds is an outcome.
    pub async fn check(&self, agent: Option<&AgentId>) -> Result<Vec<TierCheck>, ServiceError> {
        let mut checks = Vec::new();
        if agent.is_none() {
            checks.push(self.check_tier(&Tier::Global).await?);
        }
        for record in self.agents_or(agent).await? {
            checks.push(self.check_tier(&Tier::Agent(record.agent_id)).await?);
        }
        Ok(checks)
    }

    /// Checks one tier; a database that cannot be opened is an outcome, not an error.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when a check itself cannot run.
    pub async fn check_tier(&self, tier: &Tier) -> Result<TierCheck, ServiceError> {
        let path = match tier {
            Tier::Global => self.layout().global_db(),
            Tier::Agent(id) => self.layout().agent_db(id.as_str()),
        };
        let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let [wal, _, _] = sidecars(&path);
        let mut check = TierCheck {
            tier: tier.to_string(),
            path: path
                .strip_prefix(self.root())
                .unwrap_or(&path)
                .display()
                .to_string(),
            schema_version: None,
            size_bytes: size(&path),
            wal_bytes: size(&wal),
            integrity: CheckOutcome::Ok,
            foreign_keys: CheckOutcome::Ok,
            full_text: CheckOutcome::Ok,
            identity: CheckOutcome::Ok,
        };
        let opened = match tier {
            Tier::Global => Ok(self.global().clone()),
            Tier::Agent(id) => self.agent(id).await,
        };
        let db = match opened {
            Ok(db) => db,
            Err(error) => {
                check.identity = CheckOutcome::Failed {
                    lines: vec![error.to_string()],
                };
                return Ok(check);
            }
        };
        check.schema_version = Some(db.version());
        let mut conn = db.read().await?;
        check.integrity = outcome(check_connection(&mut conn).await)?;
        check.foreign_keys = outcome(check_relations(&mut conn).await)?;
        drop(conn);
        if matches!(tier, Tier::Agent(_)) && check.integrity.is_ok() {
            check.full_text = self.check_index(&path, tier).await?;
        }
        Ok(check)
    }

    /// FTS5's own check is an insert, so it runs on a private snapshot: a look leaves no trace.
    async fn check_index(
        &self,
        path: &std::path::Path,
        tier: &Tier,
    ) -> Result<CheckOutcome, ServiceError> {
        let folder = tempfile::Builder::new()
            .prefix("zeroclaw-check-")
            .permissions(PermissionsExt::from_mode(0o700))
            .tempdir();
        let folder = folder.map_err(FsError::at(
            "making a folder for the check",
            &std::env::temp_dir(),
        ))?;
        let copy = folder.path().join("check.sqlite");
        let source = SnapshotSource::open(path, false).await?;
        let (run, gate) = source.start(&copy).await?;
        gate.release().await?;
        run.finish().await?;
        let mut conn = open_snapshot(&copy, tier).await?;
        outcome(check_full_text(&mut conn, &FULL_TEXT_INDEXES).await)
    }
}

fn outcome(result: Result<CheckOutcome, DbError>) -> Result<CheckOutcome, ServiceError> {
    match result {
        // Damage deep enough to stop the check is what the check was for.
        Err(error) if error.kind() == DbErrorKind::Corrupt => Ok(CheckOutcome::Failed {
            lines: vec![error.to_string()],
        }),
        other => Ok(other?),
    }
}
