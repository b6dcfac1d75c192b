//! Entries of files that hold memories: listing, searching, indexing them.

mod reindex;

pub use self::reindex::MAX_MEMORY_FILE_BYTES;

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, IndexedHit, PageLimit};
use crate::store::agent::memory_index;

impl Service {
    pub(super) async fn find_indexed(
        &self,
        text: &str,
        agent: Option<&AgentId>,
        limit: PageLimit,
    ) -> Result<Vec<IndexedHit>, ServiceError> {
        let mut items = Vec::new();
        for record in self.agents_or(agent).await? {
            let Some(db) = self
                .agent_unless_broken(&record.agent_id, agent.is_some())
                .await?
            else {
                continue;
            };
            if db.version() < memory_index::SINCE_SCHEMA {
                continue;
            }
            let mut conn = db.read().await?;
            let found = memory_index::find(&mut conn, &record.agent_id, text, limit).await;
            items.extend(found.in_db(&db)?);
        }
        if !text.trim().is_empty() {
            items.sort_by(|a, b| a.rank.unwrap_or(0.0).total_cmp(&b.rank.unwrap_or(0.0)));
        }
        items.truncate(limit.rows() as usize);
        Ok(items)
    }
}
