//! Caches of an agent: what may be computed again.

use std::time::Duration;

use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::Db;
use crate::model::{
    AgentId, CacheCleared, CacheEntry, CacheValue, MAX_CACHE_BYTES, Page, PageLimit,
};
use crate::store::agent::cache;

/// Values that one transaction deletes at most: others get their turn between two of them.
const SWEEP: u32 = 1_000;

impl Service {
    /// Caches a value in place of what its key held; without `ttl` until it is cleared.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for what cannot be taken, [`ServiceError::NotFound`] when there is no such agent,
    /// [`ServiceError`] when SQLite fails.
    pub async fn put_cache(
        &self,
        agent: &AgentId,
        scope: &str,
        key: &str,
        value: CacheValue,
        ttl: Option<Duration>,
    ) -> Result<(), ServiceError> {
        refuse(&value)?;
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let expires_at_ms = ttl
            .map(|ttl| now_ms.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)));
        let (scope, key) = (scope.to_owned(), key.to_owned());
        db.write(move |tx| {
            Box::pin(async move {
                Ok(cache::put(tx, &scope, &key, &value, expires_at_ms, now_ms).await?)
            })
        })
        .await
    }

    /// A cached value; `None` where there is none or it has expired.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn get_cache(
        &self,
        agent: &AgentId,
        scope: &str,
        key: &str,
    ) -> Result<Option<CacheValue>, ServiceError> {
        let db = self.agent(agent).await?;
        if db.version() < cache::SINCE_SCHEMA {
            return Ok(None);
        }
        let mut conn = db.read().await?;
        cache::get(&mut conn, scope, key, self.clock().now_ms())
            .await
            .in_db(&db)
    }

    /// Deletes a cached value; says whether one was there, expired or not.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn delete_cache(
        &self,
        agent: &AgentId,
        scope: &str,
        key: &str,
    ) -> Result<bool, ServiceError> {
        let db = self.agent(agent).await?;
        let (scope, key) = (scope.to_owned(), key.to_owned());
        db.write(move |tx| Box::pin(async move { Ok(cache::delete(tx, &scope, &key).await?) }))
            .await
    }

    /// Deletes expired values, up to a bound; gives how many went. Whoever keeps the root in order calls it until none go.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn expire_cache(&self, agent: &AgentId) -> Result<u64, ServiceError> {
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        db.write(move |tx| Box::pin(async move { Ok(cache::expire(tx, now_ms, SWEEP).await?) }))
            .await
    }

    /// Deletes all cached values of an agent or of all, of one scope where it is given, in bounded steps.
    ///
    /// * `is_dry_run`: only counts.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn clear_cache(
        &self,
        agent: Option<&AgentId>,
        scope: Option<&str>,
        is_dry_run: bool,
    ) -> Result<Vec<CacheCleared>, ServiceError> {
        let mut cleared = Vec::new();
        for record in self.agents_or(agent).await? {
            let id = record.agent_id;
            let Some(db) = self.agent_unless_broken(&id, agent.is_some()).await? else {
                continue;
            };
            let entries = if !is_dry_run {
                clear_one(&db, scope).await?
            } else if db.version() < cache::SINCE_SCHEMA {
                0
            } else {
                let mut conn = db.read().await?;
                let count = cache::count(&mut conn, scope).await.in_db(&db)?;
                u64::try_from(count).unwrap_or(0)
            };
            cleared.push(CacheCleared {
                agent_id: id,
                entries,
            });
        }
        Ok(cleared)
    }

    /// Lists what is cached by scope and key, without the values; what has expired is not there.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] for a foreign cursor or when SQLite fails.
    pub async fn list_cache(
        &self,
        agent: &AgentId,
        scope: Option<&str>,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<CacheEntry>, ServiceError> {
        let db = self.agent(agent).await?;
        if db.version() < cache::SINCE_SCHEMA {
            return Ok(Page {
                items: Vec::new(),
                next: None,
            });
        }
        let mut conn = db.read().await?;
        let now_ms = self.clock().now_ms();
        cache::list(&mut conn, agent, scope, now_ms, after, limit)
            .await
            .in_db(&db)
    }
}

/// Deletes an agent's cached values step by step; gives how many went.
async fn clear_one(db: &Db, scope: Option<&str>) -> Result<u64, ServiceError> {
    let mut entries = 0;
    loop {
        let scope = scope.map(str::to_owned);
        let gone: u64 = db
            .write(move |tx| {
                Box::pin(async move {
                    let gone = cache::clear(tx, scope.as_deref(), SWEEP).await?;
                    Ok::<_, ServiceError>(gone)
                })
            })
            .await?;
        entries += gone;
        if gone < u64::from(SWEEP) {
            return Ok(entries);
        }
    }
}

fn refuse(value: &CacheValue) -> Result<(), ServiceError> {
    let json = value.value_json.as_deref();
    let bytes = json.map_or(0, str::len) + value.blob.as_ref().map_or(0, Vec::len);
    let is_json =
        json.is_none_or(|json| serde_json::from_str::<serde::de::IgnoredAny>(json).is_ok());
    let reason = if bytes > MAX_CACHE_BYTES {
        format!("has more than {MAX_CACHE_BYTES} bytes")
    } else if !is_json {
        "has a value that is not JSON".to_owned()
    } else {
        return Ok(());
    };
    Err(ServiceError::Invalid {
        what: "cache value",
        reason,
    })
}
