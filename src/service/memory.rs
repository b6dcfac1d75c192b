//! Memories: listing, searching.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, MemoryHit, Page, PageLimit};
use crate::store::agent::memory::{self, MemoryFilter};

mod change;
mod recall;

impl Service {
    pub(super) async fn list_memories(
        &self,
        agent: Option<&AgentId>,
        filter: &MemoryFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<MemoryHit>, ServiceError> {
        let mut items = Vec::new();
        let mut more = false;
        for record in self.agents_or(agent).await? {
            let Some(db) = self
                .agent_unless_broken(&record.agent_id, agent.is_some())
                .await?
            else {
                continue;
            };
            if db.version() < memory::SINCE_SCHEMA {
                continue;
            }
            let mut conn = db.read().await?;
            let page = memory::list(&mut conn, &record.agent_id, filter, before, limit)
                .await
                .in_db(&db)?;
            more |= page.next.is_some();
            items.extend(page.items);
        }
        items.sort_by(|a, b| {
            let newest = b.memory.updated_at_ms.cmp(&a.memory.updated_at_ms);
            newest.then_with(|| a.memory.memory_id.cmp(&b.memory.memory_id))
        });
        let keep = limit.rows() as usize;
        more |= items.len() > keep;
        items.truncate(keep);
        let last = items
            .last()
            .map(|hit| format!("{}:{}", hit.memory.updated_at_ms, hit.memory.memory_id));
        Ok(Page {
            items,
            next: last.filter(|_| more),
        })
    }

    pub(super) async fn search_memories(
        &self,
        text: &str,
        agent: Option<&AgentId>,
        with_expired: bool,
        limit: PageLimit,
    ) -> Result<Page<MemoryHit>, ServiceError> {
        let living_at_ms = (!with_expired).then(|| self.clock().now_ms());
        let mut items = Vec::new();
        for record in self.agents_or(agent).await? {
            let Some(db) = self
                .agent_unless_broken(&record.agent_id, agent.is_some())
                .await?
            else {
                continue;
            };
            if db.version() < memory::SINCE_SCHEMA {
                continue;
            }
            let mut conn = db.read().await?;
            items.extend(
                memory::search(&mut conn, &record.agent_id, text, living_at_ms, limit)
                    .await
                    .in_db(&db)?,
            );
        }
        items.sort_by(|a, b| a.rank.unwrap_or(0.0).total_cmp(&b.rank.unwrap_or(0.0)));
        items.truncate(limit.rows() as usize);
        Ok(Page { items, next: None })
    }
}
