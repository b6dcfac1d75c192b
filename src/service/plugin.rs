//! What plugins keep, each in namespaces of its own, under limits.
//!
//! A plugin that is at its limit gets room in this order, and a write either fits then or changes nothing:
//!
//! 1. what of the plugin has expired goes;
//! 2. in a namespace that the plugin calls a cache, what was written there longest ago goes, until the new value fits;
//! 3. otherwise the write is refused with [`ServiceError::PluginFull`], which names the limit, how full it is, and the
//!    command that frees it.
//!
//! Other plugins are never touched. Limits stand in `[state.plugins]` of the configuration.

mod migrate;
mod namespace;
mod room;

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::migrate::VERSIONS_NAMESPACE;
use super::append::{check_name, invalid, named};
use super::control::Control;
use super::error::InDb;
use super::{Service, ServiceError};
use crate::clock::Clock;
use crate::model::{
    InstalledPlugins, MigrationRun, Page, PageLimit, PluginBinding, PluginBlobEntry, PluginEntry,
    PluginLimits, PluginUsage,
};
use crate::store::global::{migration, plugin, plugin_blob, plugin_index, plugin_room};

pub use migrate::{NamespaceMigrated, NamespaceVersion, PluginFault, PluginProvider};
pub use namespace::{ClaimedKey, Expect, KeyClaim, PluginNamespace};

/// Longest name of a plugin or a namespace, bytes.
const MAX_NAME_BYTES: usize = 128;
/// Rows that one transaction deletes at most: others get their turn between two of them.
const SWEEP: u32 = 1_000;
/// Migrations of a plugin that are shown.
const SHOWN_RUNS: u32 = 20;

/// How much one plugin keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginOverview {
    /// The plugin.
    pub plugin_id: String,
    /// Its namespaces, with the service's own.
    pub namespaces: i64,
    /// Values, claims and blobs.
    pub rows: i64,
    /// Bytes of all.
    pub size_bytes: i64,
    /// What it may keep.
    pub limits: PluginLimits,
    /// When it last wrote.
    pub updated_at_ms: i64,
}

/// What one plugin keeps and may.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginShown {
    /// The plugin.
    pub plugin_id: String,
    /// What it may keep.
    pub limits: PluginLimits,
    /// Its namespaces.
    pub namespaces: Vec<PluginUsage>,
    /// Where it may answer.
    pub bindings: Vec<PluginBinding>,
    /// Migrations of its namespaces, newest first.
    pub migrations: Vec<MigrationRun>,
    /// Values and claims.
    pub entries: Page<PluginEntry>,
    /// Blobs.
    pub blobs: Page<PluginBlobEntry>,
}

/// Which rows of a plugin to show.
#[derive(Clone, Debug, Default)]
pub struct PluginQuery {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Blobs instead of values.
    pub blobs: bool,
    /// With the values, or what is said of blobs.
    pub with_values: bool,
    /// Cursor of an earlier page.
    pub after: Option<String>,
    /// Most rows.
    pub limit: PageLimit,
}

/// What a clearing took from a plugin, or would take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginCleared {
    /// The plugin.
    pub plugin_id: String,
    /// By namespace.
    pub namespaces: Vec<PluginUsage>,
    /// Whether everything is still there.
    pub is_dry_run: bool,
}

/// What all plugins keep, for the runtime that hosts them.
///
/// Clones share one connection. Any number of processes may have one each.
#[derive(Clone, Debug)]
pub struct Plugins {
    control: Arc<Control>,
}

impl Service {
    /// What all plugins keep.
    #[must_use]
    pub fn plugins(&self) -> Plugins {
        Plugins {
            control: Arc::new(Control::of(self)),
        }
    }
}

impl Plugins {
    /// Opens the plugins of a root beside whoever holds that, as a process does that only works.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when there is no state or it cannot be opened.
    pub async fn open(root: &Path, clock: Clock) -> Result<Self, ServiceError> {
        Ok(Self {
            control: Arc::new(Control::open(root, clock).await?),
        })
    }

    /// Closes its connection, where it has one of its own and this is the last clone.
    pub async fn close(self) {
        self.control.close().await;
    }

    /// What a plugin may keep.
    #[must_use]
    pub fn limits(&self, plugin_id: &str) -> PluginLimits {
        self.control.config.plugins.limits_of(plugin_id)
    }

    /// How much each plugin keeps, by name.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn list(&self) -> Result<Vec<PluginOverview>, ServiceError> {
        let mut all: Vec<PluginOverview> = Vec::new();
        for usage in self.usage(None).await? {
            if all
                .last()
                .is_none_or(|last| last.plugin_id != usage.plugin_id)
            {
                all.push(PluginOverview {
                    limits: self.limits(&usage.plugin_id),
                    plugin_id: usage.plugin_id,
                    namespaces: 0,
                    rows: 0,
                    size_bytes: 0,
                    updated_at_ms: 0,
                });
            }
            if let Some(last) = all.last_mut() {
                last.namespaces += 1;
                last.rows += usage.entries + usage.blobs;
                last.size_bytes += usage.size_bytes;
                last.updated_at_ms = last.updated_at_ms.max(usage.updated_at_ms);
            }
        }
        Ok(all)
    }

    async fn usage(&self, plugin_id: Option<&str>) -> Result<Vec<PluginUsage>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        plugin_room::usage(&mut conn, plugin_id).await.in_db(db)
    }

    /// What one plugin keeps and may; values only where they are asked for.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when nothing is known of it.
    pub async fn show(
        &self,
        plugin_id: &str,
        query: &PluginQuery,
    ) -> Result<PluginShown, ServiceError> {
        let namespaces = self.usage(Some(plugin_id)).await?;
        let bindings = self.bindings(Some(plugin_id)).await?;
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let limit = PageLimit::from(SHOWN_RUNS);
        let migrations = migration::list_plugin_runs(&mut conn, plugin_id, limit).await;
        let migrations = migrations.in_db(db)?;
        if namespaces.is_empty() && bindings.is_empty() && migrations.is_empty() {
            return Err(no_such(plugin_id));
        }
        let (namespace, after) = (query.namespace.as_deref(), query.after.as_deref());
        let (now_ms, with_values, limit) =
            (self.control.clock.now_ms(), query.with_values, query.limit);
        let (mut entries, mut blobs) = (Page::empty(), Page::empty());
        if query.blobs {
            let found = plugin_blob::list(
                &mut conn,
                plugin_id,
                namespace,
                now_ms,
                with_values,
                after,
                limit,
            );
            blobs = found.await.in_db(db)?;
        } else {
            let found = plugin::list(
                &mut conn,
                plugin_id,
                namespace,
                now_ms,
                with_values,
                after,
                limit,
            );
            entries = found.await.in_db(db)?;
        }
        Ok(PluginShown {
            plugin_id: plugin_id.to_owned(),
            limits: self.limits(plugin_id),
            namespaces,
            bindings,
            migrations,
            entries,
            blobs,
        })
    }

    /// Deletes what a plugin keeps, in one namespace or in all of its own, in bounded steps.
    ///
    /// * `is_dry_run`: only counts.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when it keeps nothing there.
    pub async fn clear(
        &self,
        plugin_id: &str,
        namespace: Option<&str>,
        is_dry_run: bool,
    ) -> Result<PluginCleared, ServiceError> {
        let mut namespaces = self.usage(Some(plugin_id)).await?;
        if namespaces.is_empty() {
            return Err(no_such(plugin_id));
        }
        namespaces.retain(|usage| match namespace {
            Some(only) => usage.namespace == only,
            None => usage.namespace != VERSIONS_NAMESPACE,
        });
        if let (Some(name), true) = (namespace, namespaces.is_empty()) {
            return Err(ServiceError::NotFound {
                what: "namespace",
                name: name.to_owned(),
            });
        }
        if !is_dry_run {
            for usage in &mut namespaces {
                (usage.entries, usage.blobs) = self.clear_one(plugin_id, &usage.namespace).await?;
            }
        }
        Ok(PluginCleared {
            plugin_id: plugin_id.to_owned(),
            namespaces,
            is_dry_run,
        })
    }

    async fn clear_one(&self, plugin_id: &str, name: &str) -> Result<(i64, i64), ServiceError> {
        let (mut entries, mut blobs) = (0, 0);
        loop {
            let (plugin_id, name) = (plugin_id.to_owned(), name.to_owned());
            let gone = self.control.db.write(move |tx| {
                Box::pin(async move {
                    let entries = plugin::clear(tx, &plugin_id, &name, SWEEP).await?;
                    let blobs = plugin_blob::clear(tx, &plugin_id, &name, SWEEP).await?;
                    Ok::<_, ServiceError>((entries, blobs))
                })
            });
            let gone = gone.await.map_err(|error| named(error, &self.control.db))?;
            entries += i64::try_from(gone.0).unwrap_or(0);
            blobs += i64::try_from(gone.1).unwrap_or(0);
            if gone.0.max(gone.1) < u64::from(SWEEP) {
                return Ok((entries, blobs));
            }
        }
    }

    /// Deletes what has expired, so much in one go; gives how many rows went. Called every now and then.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn expire(&self) -> Result<u64, ServiceError> {
        let now_ms = self.control.clock.now_ms();
        let done = self.control.db.write(move |tx| {
            Box::pin(async move {
                let entries = plugin::expire(tx, None, now_ms, SWEEP).await?;
                Ok(entries + plugin_blob::expire(tx, None, now_ms, SWEEP).await?)
            })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }

    /// Allows a plugin to answer on an account of a channel, from now on.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for names that are empty or too long.
    pub async fn approve_binding(&self, binding: PluginBinding) -> Result<(), ServiceError> {
        for (what, name) in [
            ("plugin folder", &binding.plugin_root),
            ("channel", &binding.channel),
            ("account", &binding.account_id),
            ("plugin", &binding.plugin_id),
        ] {
            check_name(what, name)?;
        }
        let done = self.control.db.write(move |tx| {
            Box::pin(async move { Ok(plugin_index::approve(tx, &binding).await?) })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }

    /// Whether the plugin of a folder may answer there. What was allowed another plugin of that folder does not count.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn is_bound(
        &self,
        plugin_root: &str,
        plugin_id: &str,
        channel: &str,
        account_id: &str,
    ) -> Result<bool, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        let found = plugin_index::binding(&mut conn, plugin_root, channel, account_id).await;
        Ok(found
            .in_db(db)?
            .is_some_and(|binding| binding.plugin_id == plugin_id))
    }

    /// Takes back what was allowed; says whether it was.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn revoke_binding(
        &self,
        plugin_root: &str,
        channel: &str,
        account_id: &str,
    ) -> Result<bool, ServiceError> {
        let (root, channel, account) = (
            plugin_root.to_owned(),
            channel.to_owned(),
            account_id.to_owned(),
        );
        let done = self.control.db.write(move |tx| {
            Box::pin(async move { Ok(plugin_index::revoke(tx, &root, &channel, &account).await?) })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }

    /// Where plugins, or one, may answer, newest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn bindings(
        &self,
        plugin_id: Option<&str>,
    ) -> Result<Vec<PluginBinding>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        plugin_index::bindings(&mut conn, plugin_id).await.in_db(db)
    }

    /// Writes which plugins are installed, in place of what stood under that key.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a text that is no JSON.
    pub async fn put_installed(&self, index: InstalledPlugins) -> Result<(), ServiceError> {
        check_name("index key", &index.index_key)?;
        for text in [
            &index.install_records_json,
            &index.plugins_json,
            &index.diagnostics_json,
        ] {
            if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
                return Err(invalid("index", "has a part that is not JSON"));
            }
        }
        let done = self.control.db.write(move |tx| {
            Box::pin(async move { Ok(plugin_index::put_installed(tx, &index).await?) })
        });
        done.await
            .map_err(|error: ServiceError| named(error, &self.control.db))
    }

    /// Which plugins are installed, by key of the index.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn installed(&self) -> Result<Vec<InstalledPlugins>, ServiceError> {
        let db = &self.control.db;
        let mut conn = db.read().await?;
        plugin_index::installed(&mut conn).await.in_db(db)
    }
}

/// A name of a plugin or of a namespace can stand in a command as it is.
fn check_id(what: &'static str, name: &str) -> Result<(), ServiceError> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._@/:+-".contains(char);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(is_plain) {
        let reason = format!(
            "{name:?} is not of 1 to {MAX_NAME_BYTES} letters, digits and signs of ._@/:+-"
        );
        return Err(invalid(what, reason));
    }
    Ok(())
}

fn no_such(plugin_id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "plugin",
        name: plugin_id.to_owned(),
    }
}
