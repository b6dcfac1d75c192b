//! How a root is, at a glance and at little cost.

use serde::{Deserialize, Serialize};

use super::backup::freshness::LastBackup;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::{OpenError, known_version};
use crate::fs::sidecars;
use crate::model::{AgentStatus, BackupFreshness, BackupRun, MigrationRun, PageLimit, Tier};
use crate::store::agent::{memory, search, session};
use crate::store::global::{cron, migration, task};

/// One tier at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierStatus {
    /// `global` or `agent <id>`.
    pub tier: String,
    /// Path relative to the root.
    pub path: String,
    /// Active or retired; `None` for the control plane.
    pub status: Option<AgentStatus>,
    /// Its schema version; `None` when it cannot be opened.
    pub schema_version: Option<i64>,
    /// The newest this release knows.
    pub known_schema_version: i64,
    /// Size of the main file, bytes.
    pub size_bytes: u64,
    /// Size of the write-ahead log, bytes.
    pub wal_bytes: u64,
    /// Sessions, for an agent.
    pub sessions: Option<i64>,
    /// Messages, for an agent.
    pub messages: Option<i64>,
    /// Memories, for an agent.
    pub memories: Option<i64>,
    /// Events the full-text index still lacks, for an agent.
    pub unindexed: Option<i64>,
    /// Why it cannot be opened; `None` when it can.
    pub error: Option<String>,
}

/// How a root is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The root folder.
    pub root: String,
    /// Release of this program.
    pub app_version: String,
    /// What acknowledged means here: `full` or `normal`.
    pub durability: String,
    /// Who writes it now; `None` when nobody does.
    pub writer: Option<String>,
    /// Control plane first, then agents.
    pub tiers: Vec<TierStatus>,
    /// Scheduled jobs.
    pub cron_jobs: usize,
    /// Those that run.
    pub cron_enabled: usize,
    /// Rows of the task ledger.
    pub tasks: i64,
    /// Newest good backup that is not known to be gone.
    pub last_backup: Option<BackupRun>,
    /// How old that is; `None` where the schema is too old to tell.
    pub backup_freshness: Option<BackupFreshness>,
    /// Its age; `None` when there is none.
    pub backup_age_ms: Option<i64>,
    /// Newest import run.
    pub last_import: Option<MigrationRun>,
    /// What the configuration could not be read for.
    pub config_warnings: Vec<String>,
    /// What a person should see to.
    pub warnings: Vec<String>,
}

/// What the control plane's own tables say.
#[derive(Default)]
struct ControlStatus {
    cron_jobs: usize,
    cron_enabled: usize,
    tasks: i64,
    backup: Option<LastBackup>,
    last_import: Option<MigrationRun>,
}

impl Service {
    /// How the root is.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the control plane cannot be read; an agent that cannot is named in the answer.
    pub async fn status(&self) -> Result<StatusReport, ServiceError> {
        let mut tiers = vec![self.global_status()];
        for agent in self.agents().await? {
            let mut status = self.agent_status(&agent.agent_id).await;
            status.status = Some(agent.status);
            tiers.push(status);
        }
        let is_current = self.global().version() >= known_version(&Tier::Global);
        let control = if is_current {
            self.control_status().await?
        } else {
            // An older control plane may lack the tables: it is told as older, and not asked.
            ControlStatus::default()
        };
        let durability = match self.config().durability {
            crate::config::Durability::Full => "full",
            crate::config::Durability::Normal => "normal",
        };
        let elsewhere = self.writer_elsewhere().map(|text| {
            text.map_or_else(
                || "another process".to_owned(),
                |text| format!("{} (pid {})", text.kind, text.pid),
            )
        });
        // Whoever asks the daemon hears what a look beside it would tell.
        let own = || format!("daemon (pid {})", std::process::id());
        let writer = elsewhere.or_else(|| self.is_daemon().then(own));
        Ok(StatusReport {
            root: self.root().display().to_string(),
            app_version: env!("CARGO_PKG_VERSION").to_owned(),
            durability: durability.to_owned(),
            writer,
            tiers,
            cron_jobs: control.cron_jobs,
            cron_enabled: control.cron_enabled,
            tasks: control.tasks,
            backup_freshness: control.backup.as_ref().map(LastBackup::freshness),
            backup_age_ms: control.backup.as_ref().and_then(LastBackup::age_ms),
            warnings: control
                .backup
                .iter()
                .filter_map(LastBackup::warning)
                .collect(),
            last_backup: control.backup.and_then(|backup| backup.run),
            last_import: control.last_import,
            config_warnings: self.config().warnings.clone(),
        })
    }

    async fn control_status(&self) -> Result<ControlStatus, ServiceError> {
        let db = self.global();
        let mut conn = db.read().await?;
        let jobs = cron::list(&mut conn, None).await.in_db(db)?;
        let runs = migration::list_runs(&mut conn, PageLimit::from(1)).await;
        Ok(ControlStatus {
            cron_jobs: jobs.len(),
            cron_enabled: jobs.iter().filter(|job| job.enabled).count(),
            tasks: task::count(&mut conn).await.in_db(db)?,
            backup: Some(LastBackup::find(&mut conn, self.layout(), self.clock().now_ms()).await?),
            last_import: runs.in_db(db)?.into_iter().next(),
        })
    }

    fn empty_status(&self, tier: &Tier, path: &std::path::Path) -> TierStatus {
        let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        let [wal, _, _] = sidecars(path);
        TierStatus {
            tier: tier.to_string(),
            path: path
                .strip_prefix(self.root())
                .unwrap_or(path)
                .display()
                .to_string(),
            status: None,
            schema_version: None,
            known_schema_version: known_version(tier),
            size_bytes: size(path),
            wal_bytes: size(&wal),
            sessions: None,
            messages: None,
            memories: None,
            unindexed: None,
            error: None,
        }
    }

    fn global_status(&self) -> TierStatus {
        let mut status = self.empty_status(&Tier::Global, self.global().path());
        status.schema_version = Some(self.global().version());
        status
    }

    async fn agent_status(&self, id: &crate::model::AgentId) -> TierStatus {
        let mut status = self.empty_status(
            &Tier::Agent(id.clone()),
            &self.layout().agent_db(id.as_str()),
        );
        if let Err(error) = self.fill_agent_status(id, &mut status).await {
            if let ServiceError::Open(OpenError::TooNew { found, .. }) = &error {
                status.schema_version = Some(*found);
            }
            status.error = Some(error.to_string());
        }
        status
    }

    async fn fill_agent_status(
        &self,
        id: &crate::model::AgentId,
        status: &mut TierStatus,
    ) -> Result<(), ServiceError> {
        let db = self.agent(id).await?;
        status.schema_version = Some(db.version());
        let mut conn = db.read().await?;
        let (sessions, messages) = session::count(&mut conn).await.in_db(&db)?;
        status.sessions = Some(sessions);
        status.messages = Some(messages);
        status.memories = Some(memory::count(&mut conn).await.in_db(&db)?);
        status.unindexed = Some(
            search::pending(&mut conn).await.in_db(&db)?
                + memory::pending(&mut conn).await.in_db(&db)?.max(0),
        );
        Ok(())
    }
}
