//! A plugin brings its own values up to date, one version at a time.
//!
//! What is in a value only its plugin knows; that a namespace changes as a whole or not at all, that it is done once,
//! and that it is recorded, is for here.

use std::fmt::Debug;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Plugins, check_id};
use crate::db::WriteTx;
use crate::model::{MigrationRun, MigrationStatus, PageLimit, PluginEntry, RunPhase};
use crate::service::ServiceError;
use crate::service::append::{invalid, named, new_id};
use crate::service::open::APP_VERSION;
use crate::store::global::plugin::{self, NewEntry};
use crate::store::global::{migration, plugin_room};

/// The service's own namespace in every plugin: by namespace, the version of the values there.
pub(super) const VERSIONS_NAMESPACE: &str = "@versions";

/// Values read in one go.
const BATCH: u32 = 500;

/// A namespace and the version of its values that a plugin writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceVersion {
    /// The namespace.
    pub name: String,
    /// The version, from 1. Values of before there was one, as from an import, are version 0.
    pub version: i64,
}

/// Why a plugin cannot bring a value up to date. The text is recorded and shown: it must hold nothing of the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginFault(pub String);

/// What a plugin knows of its own values.
pub trait PluginProvider: Debug + Send + Sync + 'static {
    /// The plugin.
    fn plugin_id(&self) -> &str;

    /// Its namespaces, each with the version it writes.
    fn namespaces(&self) -> Vec<NamespaceVersion>;

    /// Takes one value from version `from` to the next; `None` for one that is needed no more.
    ///
    /// # Errors
    ///
    /// [`PluginFault`] leaves the whole namespace as it was.
    fn migrate(
        &self,
        namespace: &str,
        from: i64,
        key: &str,
        value: Value,
    ) -> Result<Option<Value>, PluginFault>;
}

/// What became of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceMigrated {
    /// Whose it is.
    pub plugin_id: String,
    /// The namespace.
    pub namespace: String,
    /// Version it had.
    pub from: i64,
    /// Version it has.
    pub to: i64,
    /// Values that were written anew.
    pub changed: u64,
    /// Values that are gone.
    pub dropped: u64,
    /// Values that stayed as they were.
    pub kept: u64,
    /// The run in `migration_runs`; `None` where there was nothing to do.
    pub run_id: Option<String>,
}

impl Plugins {
    /// Brings the namespaces of a plugin to the versions it writes, each in one transaction, and records each that had to
    /// change. Done before the plugin reads any of them; claims and blobs stay as they are.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] for a namespace that a newer plugin has written, [`ServiceError::Invalid`] with the
    /// plugin's own words; namespaces before that one are done, it and those after it are as they were.
    pub async fn register(
        &self,
        provider: Arc<dyn PluginProvider>,
    ) -> Result<Vec<NamespaceMigrated>, ServiceError> {
        check_id("plugin", provider.plugin_id())?;
        let mut done = Vec::new();
        for namespace in provider.namespaces() {
            check_id("namespace", &namespace.name)?;
            if namespace.version < 1 || namespace.name == VERSIONS_NAMESPACE {
                return Err(invalid("namespace", format!("{namespace:?} is none")));
            }
            done.push(self.migrate_one(Arc::clone(&provider), namespace).await?);
        }
        Ok(done)
    }

    async fn migrate_one(
        &self,
        provider: Arc<dyn PluginProvider>,
        to: NamespaceVersion,
    ) -> Result<NamespaceMigrated, ServiceError> {
        let clock = self.control.clock.clone();
        let plugin_id = provider.plugin_id().to_owned();
        let wanted = to.clone();
        let db = &self.control.db;
        let done = db.write(move |tx| {
            Box::pin(async move { migrate(tx, &*provider, &to, clock.now_ms()).await })
        });
        let failed = match done.await {
            Ok(done) => return Ok(done),
            Err(failed @ ServiceError::Invalid { .. }) => failed,
            Err(other) => return Err(named(other, db)),
        };
        // What failed is undone; that it was tried is not.
        let now_ms = self.control.clock.now_ms();
        let report = json!({
            "plugin_id": plugin_id, "namespace": wanted.name, "to": wanted.version, "error": failed.to_string(),
        });
        let run = run(MigrationStatus::Failed, now_ms, now_ms, &report);
        let recorded =
            db.write(move |tx| Box::pin(async move { Ok(migration::insert_run(tx, &run).await?) }));
        recorded
            .await
            .map_err(|error: ServiceError| named(error, db))?;
        Err(failed)
    }
}

async fn migrate(
    tx: &mut WriteTx<'_>,
    provider: &dyn PluginProvider,
    to: &NamespaceVersion,
    now_ms: i64,
) -> Result<NamespaceMigrated, ServiceError> {
    let plugin_id = provider.plugin_id();
    let recorded = plugin::get(tx, plugin_id, VERSIONS_NAMESPACE, &to.name).await?;
    let recorded = recorded.and_then(|entry| entry.value?.as_i64());
    let is_empty = !plugin_room::usage(tx, Some(plugin_id))
        .await?
        .iter()
        .any(|usage| usage.namespace == to.name && usage.entries > 0);
    let from = match recorded {
        Some(version) => version,
        None if is_empty => to.version,
        None => 0,
    };
    if from > to.version {
        return Err(ServiceError::Conflict {
            what: "namespace",
            name: format!("{plugin_id}/{}", to.name),
            expected: format!("at version {} or before", to.version),
            found: format!("at {from}, of a newer plugin"),
        });
    }
    let mut done = NamespaceMigrated {
        plugin_id: plugin_id.to_owned(),
        namespace: to.name.clone(),
        from,
        to: to.version,
        changed: 0,
        dropped: 0,
        kept: 0,
        run_id: None,
    };
    if recorded == Some(to.version) {
        return Ok(done);
    }
    if from < to.version {
        migrate_values(tx, provider, &mut done, now_ms).await?;
        let run = run(
            MigrationStatus::Completed,
            now_ms,
            now_ms,
            &json!({
                "plugin_id": plugin_id, "namespace": done.namespace, "from": from, "to": done.to,
                "changed": done.changed, "dropped": done.dropped, "kept": done.kept,
            }),
        );
        migration::insert_run(tx, &run).await?;
        done.run_id = Some(run.id);
    }
    let version = to.version.to_string();
    let entry = row(plugin_id, VERSIONS_NAMESPACE, &to.name, &version, now_ms);
    plugin::put(tx, entry, false).await?;
    Ok(done)
}

async fn migrate_values(
    tx: &mut WriteTx<'_>,
    provider: &dyn PluginProvider,
    done: &mut NamespaceMigrated,
    now_ms: i64,
) -> Result<(), ServiceError> {
    let (plugin_id, namespace) = (done.plugin_id.clone(), done.namespace.clone());
    let mut after: Option<String> = None;
    loop {
        let page = plugin::list(
            tx,
            &plugin_id,
            Some(&namespace),
            now_ms,
            true,
            after.as_deref(),
            PageLimit::from(BATCH),
        );
        let page = page.await?;
        for entry in &page.items {
            migrate_value(tx, provider, entry, done, now_ms).await?;
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

async fn migrate_value(
    tx: &mut WriteTx<'_>,
    provider: &dyn PluginProvider,
    entry: &PluginEntry,
    done: &mut NamespaceMigrated,
    now_ms: i64,
) -> Result<(), ServiceError> {
    if entry.claim_owner.is_some() {
        done.kept += 1;
        return Ok(());
    }
    let (plugin_id, namespace, key) = (&entry.plugin_id, &entry.namespace, &entry.entry_key);
    let mut value = entry.value.clone().unwrap_or_default();
    for from in done.from..done.to {
        let next = provider.migrate(namespace, from, key, value);
        let next = next.map_err(|fault| {
            let reason = format!(
                "{plugin_id}/{namespace} stays at version {}: {fault}",
                done.from
            );
            invalid("namespace", reason)
        })?;
        let Some(next) = next else {
            plugin::delete(tx, plugin_id, namespace, key).await?;
            done.dropped += 1;
            return Ok(());
        };
        value = next;
    }
    if Some(&value) == entry.value.as_ref() {
        done.kept += 1;
        return Ok(());
    }
    let text = value.to_string();
    let mut new = row(plugin_id, namespace, key, &text, now_ms);
    new.expires_at_ms = entry.expires_at_ms;
    plugin::put(tx, new, false).await?;
    done.changed += 1;
    Ok(())
}

fn row<'a>(
    plugin_id: &'a str,
    namespace: &'a str,
    entry_key: &'a str,
    value_json: &'a str,
    now_ms: i64,
) -> NewEntry<'a> {
    NewEntry {
        plugin_id,
        namespace,
        entry_key,
        value_json,
        now_ms,
        expires_at_ms: None,
        claim_owner: None,
    }
}

fn run(status: MigrationStatus, started_at_ms: i64, now_ms: i64, report: &Value) -> MigrationRun {
    MigrationRun {
        id: format!("{}{}", migration::PLUGIN_RUN, new_id()),
        started_at_ms,
        finished_at_ms: Some(now_ms),
        status,
        phase: RunPhase::Report,
        from_path: None,
        backup_path: None,
        app_version: APP_VERSION.to_owned(),
        report_json: report.to_string(),
    }
}
