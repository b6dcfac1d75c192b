//! The life of an agent after it was made: put out of service and taken into it again, given another name, deleted.
//!
//! Nothing of it happens to an agent that somebody uses: [`LifeError::InUse`] names who. What moves files happens under the
//! root's lock with every database closed, so never in a daemon: it is told as the holder of the root.

mod delete;
mod error;
mod in_use;
mod rename;

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, AgentRecord, AgentStatus};
use crate::store::StoreError;
use crate::store::global::{agent, cron};

pub use self::delete::{DeleteOptions, DeleteReport, delete};
pub use self::error::LifeError;
pub use self::rename::{RenameOptions, RenameReport, rename};

/// Why jobs of a retired agent are off.
const JOB_OFF: &str = "its agent is retired";

/// An agent that was retired, or taken into service again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentChanged {
    /// Its row in the registry.
    #[serde(flatten)]
    pub agent: AgentRecord,
    /// Ids of its jobs that are off because it was retired.
    pub jobs_off: Vec<String>,
}

impl Service {
    /// Keeps an agent for its history: it is searched and never run, and its jobs are off.
    ///
    /// May be repeated; the newest reason counts.
    ///
    /// # Errors
    ///
    /// [`LifeError::InUse`] while something under way needs it, [`ServiceError::NotFound`] when there is none.
    pub async fn retire_agent(
        &self,
        id: &AgentId,
        reason: Option<String>,
    ) -> Result<AgentChanged, ServiceError> {
        self.agents_or(Some(id)).await?;
        self.refuse_in_use(id).await?;
        let reason = reason.unwrap_or_else(|| "retired by hand".to_owned());
        let (agent, now_ms) = (id.clone(), self.clock().now_ms());
        let done = self.global().write(move |tx| {
            Box::pin(async move {
                cron::disable_of(tx, &agent, JOB_OFF, now_ms).await?;
                agent::set_status(tx, &agent, AgentStatus::Retired, Some(&reason)).await?;
                Ok::<_, StoreError>(())
            })
        });
        done.await.in_db(self.global())?;
        self.changed(id).await
    }

    /// Takes a retired agent into service again. Its jobs stay off: each is resumed by itself.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for an earlier generation of a name, [`ServiceError::NotFound`] when there is none.
    pub async fn activate_agent(&self, id: &AgentId) -> Result<AgentChanged, ServiceError> {
        self.agents_or(Some(id)).await?;
        if id.is_generation() {
            return Err(ServiceError::Invalid {
                what: "agent id",
                reason: format!("{id} is of an earlier generation, which only has a past"),
            });
        }
        // One whose database is gone or damaged cannot serve.
        self.agent(id).await?;
        let agent = id.clone();
        let done = self.global().write(move |tx| {
            Box::pin(async move {
                agent::set_status(tx, &agent, AgentStatus::Active, None).await?;
                Ok::<_, StoreError>(())
            })
        });
        done.await.in_db(self.global())?;
        self.changed(id).await
    }

    async fn changed(&self, id: &AgentId) -> Result<AgentChanged, ServiceError> {
        let agent = self.agents_or(Some(id)).await?.remove(0);
        let mut conn = self.global().read().await?;
        let jobs = cron::list(&mut conn, Some(id)).await.in_db(self.global())?;
        let off = jobs
            .into_iter()
            .filter(|job| job.disabled_reason.as_deref() == Some(JOB_OFF));
        Ok(AgentChanged {
            agent,
            jobs_off: off.map(|job| job.job_id).collect(),
        })
    }

    /// Refuses what only an agent in service does.
    pub(super) async fn refuse_retired(&self, id: &AgentId) -> Result<(), ServiceError> {
        let mut conn = self.global().read().await?;
        let record = agent::get(&mut conn, id).await.in_db(self.global())?;
        match record {
            Some(record) if record.status == AgentStatus::Retired => {
                Err(LifeError::Retired { agent: id.clone() }.into())
            }
            _ => Ok(()),
        }
    }
}
