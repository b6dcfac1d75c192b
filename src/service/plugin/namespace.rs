//! One namespace of a plugin: values, blobs, and keys that are claimed once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::migrate::VERSIONS_NAMESPACE;
use super::room::{self, Rows, Wish};
use super::{Plugins, check_id};
use crate::clock::Clock;
use crate::db::WriteTx;
use crate::model::{
    MAX_PLUGIN_BLOB_BYTES, MAX_PLUGIN_VALUE_BYTES, NamespaceKind, Page, PageLimit, PluginBlob,
    PluginEntry, PluginLimits,
};
use crate::service::ServiceError;
use crate::service::append::{check_name, invalid, named};
use crate::service::control::Control;
use crate::service::error::InDb;
use crate::store::global::plugin::{self, NewEntry};
use crate::store::global::plugin_blob::{self, NewBlob};

/// What a write expects of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there is written over.
    #[default]
    Anything,
    /// Nothing is there.
    Absent,
    /// What is there has this version.
    Version(i64),
}

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

/// One namespace of a plugin.
#[derive(Clone, Debug)]
pub struct PluginNamespace {
    control: Arc<Control>,
    plugin_id: Arc<str>,
    name: Arc<str>,
    kind: NamespaceKind,
    limits: PluginLimits,
}

impl Plugins {
    /// A namespace of a plugin; there is nothing to be made.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a name that is none, or the service's own.
    pub fn namespace(
        &self,
        plugin_id: &str,
        name: &str,
        kind: NamespaceKind,
    ) -> Result<PluginNamespace, ServiceError> {
        check_id("plugin", plugin_id)?;
        check_id("namespace", name)?;
        if name == VERSIONS_NAMESPACE {
            return Err(invalid("namespace", format!("{name} is the service's own")));
        }
        Ok(PluginNamespace {
            control: Arc::clone(&self.control),
            plugin_id: plugin_id.into(),
            name: name.into(),
            kind,
            limits: self.limits(plugin_id),
        })
    }
}

impl PluginNamespace {
    /// The value of a key; `None` where there is none, it has expired, or is a claim.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn get(&self, key: &str) -> Result<Option<PluginEntry>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let found = plugin::get(&mut conn, &self.plugin_id, &self.name, key).await;
        let now_ms = self.control.clock.now_ms();
        Ok(found
            .in_db(db)?
            .filter(|entry| is_there(entry, now_ms) && entry.claim_owner.is_none()))
    }

    /// Values and claims by key.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] for a foreign cursor, or when SQLite fails.
    pub async fn list(
        &self,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<PluginEntry>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let now_ms = self.control.clock.now_ms();
        let name = Some(&*self.name);
        plugin::list(&mut conn, &self.plugin_id, name, now_ms, true, after, limit)
            .await
            .in_db(db)
    }

    /// Writes a value; gives its version. Without `ttl` it stays until it is deleted.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] where the key is not as expected or is claimed, [`ServiceError::PluginFull`],
    /// [`ServiceError::Invalid`] for a value above [`MAX_PLUGIN_VALUE_BYTES`].
    pub async fn put(
        &self,
        key: &str,
        value: &Value,
        expect: Expect,
        ttl: Option<Duration>,
    ) -> Result<i64, ServiceError> {
        check_name("key", key)?;
        let value_json = value.to_string();
        if value_json.len() > MAX_PLUGIN_VALUE_BYTES {
            let reason = format!("has more than {MAX_PLUGIN_VALUE_BYTES} bytes");
            return Err(invalid("value of a plugin", reason));
        }
        let (me, key) = (self.clone(), key.to_owned());
        self.write(move |tx, now_ms| {
            Box::pin(async move {
                let there = plugin::get(tx, &me.plugin_id, &me.name, &key).await?;
                let living = there.as_ref().filter(|entry| is_there(entry, now_ms));
                me.check_expected(&key, living, expect)?;
                let new = me.row(&key, &value_json, now_ms, until(now_ms, ttl), None);
                me.store(tx, new, living.is_none()).await
            })
        })
        .await
    }

    fn check_expected(
        &self,
        key: &str,
        living: Option<&PluginEntry>,
        expect: Expect,
    ) -> Result<(), ServiceError> {
        let wanted = match expect {
            Expect::Anything => "not claimed".to_owned(),
            Expect::Absent => "absent".to_owned(),
            Expect::Version(version) => format!("at version {version}"),
        };
        let found = match living {
            Some(PluginEntry {
                claim_owner: Some(owner),
                ..
            }) => format!("claimed by {owner}"),
            Some(entry) => match expect {
                Expect::Anything => return Ok(()),
                Expect::Version(version) if version == entry.version => return Ok(()),
                _ => format!("at version {}", entry.version),
            },
            None => match expect {
                Expect::Anything | Expect::Absent => return Ok(()),
                Expect::Version(_) => "absent".to_owned(),
            },
        };
        Err(ServiceError::Conflict {
            what: "key",
            name: format!("{}/{key}", self.name),
            expected: wanted,
            found,
        })
    }

    /// Deletes a key, value or claim; says whether something was there.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn delete(&self, key: &str) -> Result<bool, ServiceError> {
        let (me, key) = (self.clone(), key.to_owned());
        self.write(move |tx, now_ms| {
            Box::pin(async move {
                let there = plugin::get(tx, &me.plugin_id, &me.name, &key).await?;
                plugin::delete(tx, &me.plugin_id, &me.name, &key).await?;
                Ok(there.is_some_and(|entry| is_there(&entry, now_ms)))
            })
        })
        .await
    }

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

    /// Writes a blob in place of what its key held, with what is said of it.
    ///
    /// # Errors
    ///
    /// [`ServiceError::PluginFull`], [`ServiceError::Invalid`] for one above [`MAX_PLUGIN_BLOB_BYTES`].
    pub async fn put_blob(
        &self,
        key: &str,
        metadata: &Value,
        bytes: Vec<u8>,
        ttl: Option<Duration>,
    ) -> Result<(), ServiceError> {
        check_name("key", key)?;
        let metadata_json = metadata.to_string();
        if metadata_json.len() + bytes.len() > MAX_PLUGIN_BLOB_BYTES {
            let reason = format!("has more than {MAX_PLUGIN_BLOB_BYTES} bytes");
            return Err(invalid("blob of a plugin", reason));
        }
        let (me, key) = (self.clone(), key.to_owned());
        self.write(move |tx, now_ms| {
            Box::pin(async move {
                let new = NewBlob {
                    plugin_id: &me.plugin_id,
                    namespace: &me.name,
                    entry_key: &key,
                    metadata_json: &metadata_json,
                    blob: &bytes,
                    now_ms,
                    expires_at_ms: until(now_ms, ttl),
                };
                me.make_room(tx, Rows::Blobs, &key, new.size_bytes(), now_ms)
                    .await?;
                Ok(plugin_blob::put(tx, new).await?)
            })
        })
        .await
    }

    /// The blob of a key; `None` where there is none or it has expired.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn get_blob(&self, key: &str) -> Result<Option<PluginBlob>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let now_ms = self.control.clock.now_ms();
        plugin_blob::get(&mut conn, &self.plugin_id, &self.name, key, now_ms)
            .await
            .in_db(db)
    }

    /// Deletes a blob; says whether one was there, expired or not.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn delete_blob(&self, key: &str) -> Result<bool, ServiceError> {
        let (me, key) = (self.clone(), key.to_owned());
        self.write(move |tx, _| {
            Box::pin(
                async move { Ok(plugin_blob::delete(tx, &me.plugin_id, &me.name, &key).await?) },
            )
        })
        .await
    }

    fn row<'a>(
        &'a self,
        key: &'a str,
        value_json: &'a str,
        now_ms: i64,
        expires_at_ms: Option<i64>,
        claim_owner: Option<&'a str>,
    ) -> NewEntry<'a> {
        NewEntry {
            plugin_id: &self.plugin_id,
            namespace: &self.name,
            entry_key: key,
            value_json,
            now_ms,
            expires_at_ms,
            claim_owner,
        }
    }

    async fn store(
        &self,
        tx: &mut WriteTx<'_>,
        new: NewEntry<'_>,
        is_anew: bool,
    ) -> Result<i64, ServiceError> {
        let bytes = new.size_bytes();
        self.make_room(tx, Rows::Entries, new.entry_key, bytes, new.now_ms)
            .await?;
        Ok(plugin::put(tx, new, is_anew).await?)
    }

    async fn make_room(
        &self,
        tx: &mut WriteTx<'_>,
        rows: Rows,
        key: &str,
        bytes: i64,
        now_ms: i64,
    ) -> Result<(), ServiceError> {
        let wish = Wish {
            plugin_id: &self.plugin_id,
            namespace: &self.name,
            key,
            kind: self.kind,
            rows,
            bytes,
            now_ms,
        };
        room::make(tx, &wish, self.limits).await
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t, 'c> FnOnce(
            &'t mut WriteTx<'c>,
            i64,
        ) -> crate::db::BoxFuture<'t, Result<T, ServiceError>>
        + Send
        + 'static,
    ) -> Result<T, ServiceError> {
        let clock: Clock = self.control.clock.clone();
        // The time is asked for inside: who waited for the writer must not judge by when it came.
        let done = self.control.db.write(move |tx| work(tx, clock.now_ms()));
        done.await.map_err(|error| named(error, &self.control.db))
    }
}

fn is_there(entry: &PluginEntry, now_ms: i64) -> bool {
    entry.expires_at_ms.is_none_or(|end| end > now_ms)
}

fn is_of(there: Option<&PluginEntry>, claim: &ClaimedKey, now_ms: i64) -> bool {
    there.is_some_and(|entry| {
        is_there(entry, now_ms)
            && entry.version == claim.version
            && entry.claim_owner.as_ref() == Some(&claim.owner)
    })
}

fn end(now_ms: i64, ttl: Duration) -> i64 {
    now_ms.saturating_add(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX))
}

fn until(now_ms: i64, ttl: Option<Duration>) -> Option<i64> {
    ttl.map(|ttl| end(now_ms, ttl))
}
