//! Storing, pinning, expiring and forgetting memories.

use crate::model::{AgentId, ExpiredMemories, MemoryHit, MemoryRecord, NewMemory};
use crate::service::error::InDb;
use crate::service::{Service, ServiceError};
use crate::store::agent::memory::{self, change};

/// Memories that one sweep deletes at most; the next takes the rest.
const SWEEP: u32 = 1_000;

impl Service {
    /// Stores a memory under its key. What the key held before is replaced: the old memory stays, marked as superseded,
    /// and pins pass on. The same content again only brings labels, vector and time up to date.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn store_memory(
        &self,
        agent: &AgentId,
        new: NewMemory,
    ) -> Result<MemoryHit, ServiceError> {
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let owner = agent.clone();
        db.write(move |tx| {
            Box::pin(async move {
                let mut record = record_of(new, now_ms);
                let old = change::find(tx, &owner, &record.key).await?;
                let living = old
                    .into_iter()
                    .find(|old| old.memory.key == record.key && old.memory.superseded_by.is_none());
                match living {
                    Some(old) if old.memory.content == record.content => {
                        record.memory_id = old.memory.memory_id;
                        record.pinned |= old.memory.pinned;
                        if record.embedding.is_none() {
                            let kept = memory::get_many(tx, &[&record.memory_id]).await?;
                            keep_vector(&mut record, kept);
                        }
                        change::relabel(tx, &record).await?;
                    }
                    living => {
                        if let Some(old) = living {
                            record.pinned |= old.memory.pinned;
                            memory::supersede(tx, &old.memory.memory_id, &record.memory_id).await?;
                        }
                        memory::insert(tx, &[&record]).await?;
                        change::index(tx, &record.memory_id).await?;
                    }
                }
                let stored = change::find(tx, &owner, &record.memory_id).await?;
                stored.into_iter().next().ok_or(ServiceError::NotFound {
                    what: "memory",
                    name: record.key,
                })
            })
        })
        .await
    }

    /// All memories of a key, replaced ones too, or the one of an id; the living one first.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, [`ServiceError`] when SQLite fails.
    pub async fn show_memory(
        &self,
        agent: &AgentId,
        reference: &str,
    ) -> Result<Vec<MemoryHit>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let found = change::find(&mut conn, agent, reference).await.in_db(&db)?;
        if found.is_empty() {
            return Err(no_memory(reference));
        }
        Ok(found)
    }

    /// Deletes all memories of a key, replaced ones too, or the one of an id, with their words and vectors; gives them.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, [`ServiceError`] when SQLite fails.
    pub async fn forget_memory(
        &self,
        agent: &AgentId,
        reference: &str,
    ) -> Result<Vec<MemoryHit>, ServiceError> {
        let db = self.agent(agent).await?;
        let (owner, reference) = (agent.clone(), reference.to_owned());
        db.write(move |tx| {
            Box::pin(async move {
                let found = change::find(tx, &owner, &reference).await?;
                if found.is_empty() {
                    return Err(no_memory(&reference));
                }
                let ids: Vec<&str> = found
                    .iter()
                    .map(|hit| hit.memory.memory_id.as_str())
                    .collect();
                change::delete(tx, &ids).await?;
                Ok(found)
            })
        })
        .await
    }

    /// Pins the living memory of a key, or lets it go: a pinned one neither ages nor expires.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is none, [`ServiceError`] when SQLite fails.
    pub async fn pin_memory(
        &self,
        agent: &AgentId,
        reference: &str,
        is_pinned: bool,
    ) -> Result<(), ServiceError> {
        let found = self.show_memory(agent, reference).await?;
        let id = found[0].memory.memory_id.clone();
        let db = self.agent(agent).await?;
        let reference = reference.to_owned();
        db.write(move |tx| {
            Box::pin(async move {
                if change::set_pinned(tx, &id, is_pinned).await? {
                    Ok(())
                } else {
                    Err(no_memory(&reference))
                }
            })
        })
        .await
    }

    /// Deletes all memories that have expired and are not pinned, of an agent or of all, in bounded steps.
    ///
    /// * `is_dry_run`: only counts.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn prune_memories(
        &self,
        agent: Option<&AgentId>,
        is_dry_run: bool,
    ) -> Result<Vec<ExpiredMemories>, ServiceError> {
        let mut pruned = Vec::new();
        for record in self.agents_or(agent).await? {
            let id = record.agent_id;
            let Some(db) = self.agent_unless_broken(&id, agent.is_some()).await? else {
                continue;
            };
            let expired = if !is_dry_run {
                self.expire_all(&id).await?
            } else if db.version() < memory::SINCE_SCHEMA {
                0
            } else {
                let mut conn = db.read().await?;
                let count = change::count_expired(&mut conn, self.clock().now_ms());
                u64::try_from(count.await.in_db(&db)?).unwrap_or(0)
            };
            pruned.push(ExpiredMemories {
                agent_id: id,
                expired,
            });
        }
        Ok(pruned)
    }

    async fn expire_all(&self, agent: &AgentId) -> Result<u64, ServiceError> {
        let mut expired = 0;
        loop {
            let gone = self.expire_memories(agent).await?;
            expired += gone;
            if gone < u64::from(SWEEP) {
                return Ok(expired);
            }
        }
    }

    /// Deletes memories that have expired and are not pinned, up to a bound; gives how many went. Whoever keeps the root in
    /// order calls it until none go.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn expire_memories(&self, agent: &AgentId) -> Result<u64, ServiceError> {
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        db.write(move |tx| {
            Box::pin(async move {
                let ids = change::expired(tx, now_ms, SWEEP).await?;
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                Ok(change::delete(tx, &ids).await?)
            })
        })
        .await
    }
}

fn no_memory(reference: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "memory",
        name: reference.to_owned(),
    }
}

fn record_of(new: NewMemory, now_ms: i64) -> MemoryRecord {
    let vector = new.vector.filter(|vector| !vector.is_empty());
    MemoryRecord {
        memory_id: uuid::Uuid::now_v7().to_string(),
        key: new.key,
        category: new.category,
        namespace: new.namespace,
        kind_json: None,
        importance: new.importance.map(|value| value.clamp(0.0, 1.0)),
        pinned: new.pinned,
        is_trusted: true,
        session_hint: new.session_hint,
        tenant_id: None,
        superseded_by: None,
        embedding_provider: new.embedding_provider,
        embedding_model: new.embedding_model,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        created_at_text: None,
        updated_at_text: None,
        expires_at_ms: new.expires_at_ms,
        content: new.content,
        embedding: vector.map(|vector| vector.into_iter().flat_map(f32::to_le_bytes).collect()),
    }
}

/// The vector of the same content still holds.
fn keep_vector(record: &mut MemoryRecord, kept: Vec<MemoryRecord>) {
    if let Some(old) = kept.into_iter().next() {
        record.embedding = old.embedding;
        record.embedding_provider = old.embedding_provider;
        record.embedding_model = old.embedding_model;
    }
}
