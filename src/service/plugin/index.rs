//! Where plugins may answer, and which are installed.

use super::Plugins;
use crate::model::{InstalledPlugins, PluginBinding};
use crate::service::ServiceError;
use crate::service::append::{check_name, invalid, named};
use crate::service::error::InDb;
use crate::store::global::plugin_index;

impl Plugins {
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
