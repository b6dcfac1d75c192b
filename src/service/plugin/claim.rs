//! Keys that are claimed once: what was seen or done is not seen or done again.

use std::time::Duration;

use super::namespace::{PluginNamespace, end, is_there};
use crate::model::PluginEntry;
use crate::service::ServiceError;
use crate::service::append::check_name;
use crate::store::global::plugin;

/// A key that was claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedKey {
    /// Who has it.
    pub owner: String,
    /// Until when.
    pub expires_at_ms: i64,
    /// Version of the key, which tells two claims of one owner apart.
    pub version: i64,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyClaim {
    /// It is the caller's.
    Won(ClaimedKey),
    /// It was claimed before, also by the caller itself, and that has not expired.
    Held(ClaimedKey),
}

impl PluginNamespace {
    /// Claims a key: of all who try, one wins until the claim is released or has expired.
    ///
    /// A clock that is set back makes a claim last longer, never shorter: what was claimed is not done twice.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where the key has a value, [`ServiceError::PluginFull`].
    pub async fn claim(
        &self,
        key: &str,
        owner: &str,
        ttl: Duration,
    ) -> Result<KeyClaim, ServiceError> {
        check_name("key", key)?;
        check_name("owner", owner)?;
        let (me, key, owner) = (self.clone(), key.to_owned(), owner.to_owned());
        self.write(move |tx, now_ms| {
            Box::pin(async move {
                let there = plugin::get(tx, &me.plugin_id, &me.name, &key).await?;
                if let Some(entry) = there.as_ref().filter(|entry| is_there(entry, now_ms)) {
                    return me.held(&key, entry);
                }
                let expires_at_ms = end(now_ms, ttl);
                let new = me.row(&key, "null", now_ms, Some(expires_at_ms), Some(&owner));
                let version = me.store(tx, new, true).await?;
                Ok(KeyClaim::Won(ClaimedKey {
                    owner,
                    expires_at_ms,
                    version,
                }))
            })
        })
        .await
    }

    fn held(&self, key: &str, entry: &PluginEntry) -> Result<KeyClaim, ServiceError> {
        let (Some(owner), Some(expires_at_ms)) = (&entry.claim_owner, entry.expires_at_ms) else {
            return Err(ServiceError::Conflict {
                what: "key",
                name: format!("{}/{key}", self.name),
                expected: "a claim or absent".to_owned(),
                found: "a value".to_owned(),
            });
        };
        Ok(KeyClaim::Held(ClaimedKey {
            owner: owner.clone(),
            expires_at_ms,
            version: entry.version,
        }))
    }

    /// Keeps a claim for `ttl` from now on, as one does when the work is done; gives whether it was still the caller's.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn keep_claim(
        &self,
        key: &str,
        claim: &ClaimedKey,
        ttl: Duration,
    ) -> Result<bool, ServiceError> {
        let (me, key, claim) = (self.clone(), key.to_owned(), claim.clone());
        self.write(move |tx, now_ms| {
            Box::pin(async move {
                let there = plugin::get(tx, &me.plugin_id, &me.name, &key).await?;
                if !is_of(there.as_ref(), &claim, now_ms) {
                    return Ok(false);
                }
                let (until, owner) = (Some(end(now_ms, ttl)), Some(claim.owner.as_str()));
                let new = me.row(&key, "null", now_ms, until, owner);
                me.store(tx, new, false).await?;
                Ok(true)
            })
        })
        .await
    }

    /// Gives a claim up, so that another may have the key; says whether it was still the caller's.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn release_claim(&self, key: &str, claim: &ClaimedKey) -> Result<bool, ServiceError> {
        let (me, key, claim) = (self.clone(), key.to_owned(), claim.clone());
        self.write(move |tx, now_ms| {
            Box::pin(async move {
                let there = plugin::get(tx, &me.plugin_id, &me.name, &key).await?;
                let is_mine = is_of(there.as_ref(), &claim, now_ms);
                if is_mine {
                    plugin::delete(tx, &me.plugin_id, &me.name, &key).await?;
                }
                Ok(is_mine)
            })
        })
        .await
    }
}

fn is_of(there: Option<&PluginEntry>, claim: &ClaimedKey, now_ms: i64) -> bool {
    there.is_some_and(|entry| {
        is_there(entry, now_ms)
            && entry.version == claim.version
            && entry.claim_owner.as_ref() == Some(&claim.owner)
    })
}
