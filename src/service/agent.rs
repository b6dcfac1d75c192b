//! Agents and how much they hold.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, AgentRecord};
use crate::store::agent::{conversation, memory, session};

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
