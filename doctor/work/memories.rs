//! Memories on their way in: who lives when a key comes twice, which state of one memory holds.

use std::collections::{HashMap, HashSet};

use zeroclaw::model::MemoryRecord;
use zeroclaw::store::agent::memory;

use super::{TierWork, service};
use crate::doctor::record::kind;
use crate::doctor::sources::ReadError;
use crate::doctor::survey::note;
use crate::doctor::units::stable_id;

impl TierWork {
    /// Settles who lives when a key comes twice: the newest; the other becomes its history.
    pub(super) async fn memory(&mut self, mut memory: MemoryRecord) -> Result<(), ReadError> {
        if memory.superseded_by.is_none() {
            let last = self
                .living
                .take()
                .filter(|(key, ..)| *key == memory.key)
                .map(|(_, id, at_ms)| (id, at_ms));
            let before = match last {
                Some(last) => Some(last),
                None if self.had_memories => memory::living(&mut self.tx.tx(), &memory.key)
                    .await
                    .map_err(service)?,
                None => None,
            };
            let mut lives = (memory.memory_id.clone(), memory.updated_at_ms);
            if let Some((id, at_ms)) = before.filter(|(id, _)| *id != memory.memory_id) {
                let place = format!("memory {}", memory.key);
                let message = "stands twice under its key; the newest lives, the other is kept as its history";
                note(&mut self.notes, "repeated-key", place, message.to_owned());
                if memory.updated_at_ms > at_ms {
                    match self
                        .memories
                        .iter_mut()
                        .find(|waiting| waiting.memory_id == id)
                    {
                        Some(waiting) => waiting.superseded_by = Some(memory.memory_id.clone()),
                        None => memory::supersede(&mut self.tx.tx(), &id, &memory.memory_id)
                            .await
                            .map_err(service)?,
                    }
                } else {
                    memory.superseded_by = Some(id.clone());
                    lives = (id, at_ms);
                }
            }
            self.living = Some((memory.key.clone(), lives.0, lives.1));
        }
        self.memories.push(memory);
        if self.memories.len() >= memory::MAX_INSERT {
            self.flush_memories().await?;
        }
        Ok(())
    }

    pub(super) async fn flush_memories(&mut self) -> Result<(), ReadError> {
        let memories = std::mem::take(&mut self.memories);
        if memories.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = memories
            .iter()
            .map(|memory| memory.memory_id.as_str())
            .collect();
        let found = memory::get_many(&mut self.tx.tx(), &ids)
            .await
            .map_err(service)?;
        let stored: HashMap<String, MemoryRecord> = found
            .into_iter()
            .map(|memory| (memory.memory_id.clone(), memory))
            .collect();
        let mut new: Vec<MemoryRecord> = Vec::with_capacity(memories.len());
        let mut present = 0;
        let mut ids = HashSet::new();
        for mut memory in memories {
            // Rows without an id get one by their content: equal ones are one.
            if !ids.insert(memory.memory_id.clone()) {
                let same = |other: &&MemoryRecord| other.memory_id == memory.memory_id;
                if new
                    .iter()
                    .find(same)
                    .is_some_and(|other| says_the_same(other, &memory))
                {
                    present += 1;
                    continue;
                }
                let history = history_id(&memory);
                if self.has_memory(&history).await? {
                    present += 1;
                    continue;
                }
                memory.superseded_by = Some(std::mem::replace(&mut memory.memory_id, history));
            }
            match stored.get(&memory.memory_id) {
                None => new.push(memory),
                Some(existing) if says_the_same(existing, &memory) => present += 1,
                Some(existing) => match self.other_state(existing, memory).await? {
                    Some(memory) => new.push(memory),
                    None => present += 1,
                },
            }
        }
        memory::insert(&mut self.tx.tx(), &new.iter().collect::<Vec<_>>())
            .await
            .map_err(service)?;
        let count = self.count(kind::MEMORY);
        count.imported += new.len() as u64;
        count.present += present;
        Ok(())
    }

    async fn has_memory(&mut self, id: &str) -> Result<bool, ReadError> {
        let found = memory::get_many(&mut self.tx.tx(), &[id]).await;
        Ok(!found.map_err(service)?.is_empty())
    }

    /// Settles an earlier or later state of a memory from another generation: the newest holds, the
    /// other is kept as its history. Gives the row to insert; `None` when it is there.
    async fn other_state(
        &mut self,
        existing: &MemoryRecord,
        mut memory: MemoryRecord,
    ) -> Result<Option<MemoryRecord>, ReadError> {
        let history = history_id(&memory);
        if self.has_memory(&history).await? {
            return Ok(None);
        }
        if memory.updated_at_ms > existing.updated_at_ms {
            memory::set_aside(
                &mut self.tx.tx(),
                &existing.memory_id,
                &history_id(existing),
            )
            .await
            .map_err(service)?;
        } else {
            memory.superseded_by = Some(existing.memory_id.clone());
            memory.memory_id = history;
        }
        Ok(Some(memory))
    }
}

/// The id under which another state of a memory is kept as history.
pub(crate) fn history_id(memory: &MemoryRecord) -> String {
    let digest = stable_id(&[
        memory.content.as_bytes(),
        &memory.updated_at_ms.to_le_bytes(),
    ]);
    format!("{}~{}", memory.memory_id, &digest[..8])
}

/// Whether two states of a memory hold the same; its place in a chain of successors does not count.
pub(crate) fn says_the_same(a: &MemoryRecord, b: &MemoryRecord) -> bool {
    a.key == b.key
        && a.content == b.content
        && a.category == b.category
        && a.updated_at_ms == b.updated_at_ms
        && a.embedding == b.embedding
}
