//! Agents and how much they hold.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::{Access, Db, known_version};
use crate::model::{AgentId, AgentRecord, AgentStatus, Tier};
use crate::store::agent::{conversation, memory, session, vfs};
use crate::store::global::agent;

/// One agent and how much it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentOverview {
    /// Its row in the registry.
    #[serde(flatten)]
    pub agent: AgentRecord,
    /// Whether the configuration names it and enables it; `None` when it does not name it.
    pub enabled_in_config: Option<bool>,
    /// Sessions, archived ones included.
    pub sessions: i64,
    /// Messages in all of them.
    pub messages: i64,
    /// Conversations.
    pub conversations: i64,
    /// Memories, superseded ones included.
    pub memories: i64,
}

impl Service {
    /// Makes an agent that holds nothing: its database first, its row in the registry second, so that a kill between
    /// the two leaves an empty database that the next call takes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Taken`] when the registry knows the name, an agent's rows lie under it, or something that is no
    /// database of ours; [`ServiceError::Invalid`] for a name with a stamp, which only earlier generations have.
    pub async fn create_agent(&self, id: &AgentId) -> Result<AgentRecord, ServiceError> {
        if id.is_generation() {
            return Err(ServiceError::Invalid {
                what: "agent id",
                reason: format!("{id} is of an earlier generation; a new agent has no stamp"),
            });
        }
        let path = self.layout().agent_db(id.as_str());
        let taken = || ServiceError::Taken {
            what: "agent",
            name: id.to_string(),
            path: path.clone(),
        };
        let mut conn = self.global().read().await?;
        let known = agent::get(&mut conn, id).await.in_db(self.global())?;
        drop(conn);
        if known.is_some() {
            return Err(taken());
        }
        if path.symlink_metadata().is_ok() && !self.is_blank(&path, id).await? {
            return Err(taken());
        }
        self.ensure_agent(id, AgentStatus::Active, None).await?;
        let mut made = self.agents_or(Some(id)).await?;
        Ok(made.remove(0))
    }

    /// Whether an agent's database that nobody registered holds nothing: what a kill in the making of one leaves.
    async fn is_blank(&self, path: &Path, id: &AgentId) -> Result<bool, ServiceError> {
        let tier = Tier::Agent(id.clone());
        // Whoever makes agents holds the root.
        let db = Db::open(path, &tier, Access::Look { is_at_rest: true }).await?;
        let is_blank = async {
            if db.version() != known_version(&tier) {
                return Ok(false);
            }
            let mut conn = db.read().await?;
            let (sessions, _) = session::count(&mut conn).await.in_db(&db)?;
            let memories = memory::count(&mut conn).await.in_db(&db)?;
            let trees = vfs::trees(&mut conn).await.in_db(&db)?;
            Ok(sessions == 0 && memories == 0 && trees.is_empty())
        }
        .await;
        db.close().await;
        is_blank
    }

    pub(super) async fn agent_overview(&self, id: &AgentId) -> Result<AgentOverview, ServiceError> {
        let mut found = self.agents_or(Some(id)).await?;
        let agent = found.remove(0);
        let db = self.agent(id).await?;
        let mut conn = db.read().await?;
        let (sessions, messages) = session::count(&mut conn).await.in_db(&db)?;
        Ok(AgentOverview {
            agent,
            enabled_in_config: self
                .config()
                .agents
                .get(id.as_str())
                .map(|agent| agent.enabled),
            sessions,
            messages,
            conversations: conversation::count(&mut conn).await.in_db(&db)?,
            memories: memory::count(&mut conn).await.in_db(&db)?,
        })
    }
}
