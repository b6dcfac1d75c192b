//! Recall over one agent's memories and those it was granted.

use std::collections::HashMap;

use crate::config::MemoryGrant;
use crate::model::{AgentId, MemoryHit, RecallQuery, Recalled, fused_score};
use crate::service::error::InDb;
use crate::service::{Service, ServiceError};
use crate::store::agent::memory::recall::{self, RecallScope};

/// Candidates of each ranking for one wanted memory: what one ranking has far behind, the other may have in front.
const DEPTH: u32 = 4;

/// A memory found, by its agent and its key in that agent's database.
type Found = (AgentId, i64);

/// Both rankings over all owners.
#[derive(Default)]
struct Rankings {
    words: Vec<Found>,
    vectors: Vec<(Found, f64)>,
}

impl Service {
    /// Recalls what fits words, a vector, or both, best first, for one reader.
    ///
    /// The reader sees its own memories, and those of siblings that `read_memory_from` of its configuration grants, whole
    /// or by exact category. Replaced, expired and untrusted ones are left out. [`fused_score`] says how the rankings are
    /// joined; ranks by words are those within each owner, since scores of two indexes cannot be compared.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such reader, [`ServiceError`] when SQLite fails. A granted sibling that
    /// is not there, or cannot be opened, is left out.
    pub async fn recall(
        &self,
        reader: &AgentId,
        query: &RecallQuery,
    ) -> Result<Vec<Recalled>, ServiceError> {
        let now_ms = self.clock().now_ms();
        let scope = |categories: Option<Vec<String>>| RecallScope {
            categories,
            namespace: query.namespace.clone(),
            now_ms,
        };
        let mut scopes = vec![(reader.clone(), scope(query.categories.clone()))];
        for grant in self.config().memory_grants(reader.as_str()) {
            if let Some(owner) = self.granted_owner(&grant).await? {
                scopes.push((owner, scope(grant.within(query.categories.as_deref()))));
            }
        }
        let mut rankings = Rankings::default();
        let mut places: HashMap<Found, usize> = HashMap::new();
        for (owner, scope) in &scopes {
            self.rank(
                owner,
                scope,
                query,
                owner == reader,
                &mut rankings,
                &mut places,
            )
            .await?;
        }
        rankings.vectors.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut recalled = Vec::new();
        for (owner, scope) in &scopes {
            let hits = self.hits(owner, scope, &rankings, owner == reader).await?;
            for (memory_no, hit) in hits {
                let found = (owner.clone(), memory_no);
                recalled.push(join(hit, &found, &rankings, &places, now_ms));
            }
        }
        recalled.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| a.hit.memory.memory_id.cmp(&b.hit.memory.memory_id))
        });
        recalled.truncate(query.limit.rows() as usize);
        Ok(recalled)
    }

    /// The owner of a grant, if there is such an agent.
    async fn granted_owner(&self, grant: &MemoryGrant) -> Result<Option<AgentId>, ServiceError> {
        let Ok(owner) = AgentId::new(grant.owner.as_str()) else {
            return Ok(None);
        };
        match self.agents_or(Some(&owner)).await {
            Ok(_) => Ok(Some(owner)),
            Err(ServiceError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn rank(
        &self,
        owner: &AgentId,
        scope: &RecallScope,
        query: &RecallQuery,
        is_reader: bool,
        rankings: &mut Rankings,
        places: &mut HashMap<Found, usize>,
    ) -> Result<(), ServiceError> {
        let Some(db) = self.agent_unless_broken(owner, is_reader).await? else {
            return Ok(());
        };
        let mut conn = db.read().await?;
        let depth = query.limit.rows().saturating_mul(DEPTH);
        if let Some(text) = &query.text {
            let found = recall::by_words(&mut conn, scope, text, depth);
            for (rank, memory_no) in (1..).zip(found.await.in_db(&db)?) {
                rankings.words.push((owner.clone(), memory_no));
                places.insert((owner.clone(), memory_no), rank);
            }
        }
        if let Some(vector) = &query.vector {
            let found = recall::by_vector(&mut conn, scope, vector, depth as usize);
            let found = found.await.in_db(&db)?.into_iter();
            let owned = found.map(|(memory_no, cosine)| ((owner.clone(), memory_no), cosine));
            rankings.vectors.extend(owned);
        }
        Ok(())
    }

    async fn hits(
        &self,
        owner: &AgentId,
        scope: &RecallScope,
        rankings: &Rankings,
        is_reader: bool,
    ) -> Result<Vec<(i64, MemoryHit)>, ServiceError> {
        let by_words = rankings.words.iter();
        let found = by_words.chain(rankings.vectors.iter().map(|(found, _)| found));
        let mut numbers: Vec<i64> = found
            .filter(|(agent, _)| agent == owner)
            .map(|(_, memory_no)| *memory_no)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let Some(db) = self.agent_unless_broken(owner, is_reader).await? else {
            return Ok(Vec::new());
        };
        let mut conn = db.read().await?;
        recall::hits(&mut conn, owner, scope, &numbers)
            .await
            .in_db(&db)
    }
}

fn join(
    hit: MemoryHit,
    found: &Found,
    rankings: &Rankings,
    places: &HashMap<Found, usize>,
    now_ms: i64,
) -> Recalled {
    let word_rank = places.get(found).copied();
    let at = rankings
        .vectors
        .iter()
        .position(|(other, _)| other == found);
    let vector = at.map(|at| (at + 1, rankings.vectors[at].1));
    let age_ms = (!hit.memory.pinned).then_some(now_ms - hit.memory.updated_at_ms);
    Recalled {
        score: fused_score(word_rank, vector, hit.memory.importance, age_ms),
        word_rank,
        vector_rank: vector.map(|(rank, _)| rank),
        similarity: vector.map(|(_, cosine)| cosine),
        hit,
    }
}
