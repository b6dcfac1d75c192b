//! Where plugins may answer, and which are installed: `plugin_binding_approvals`, `installed_plugin_index`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{InstalledPlugins, PluginBinding};
use crate::store::StoreError;

fn read_binding(row: &SqliteRow) -> Result<PluginBinding, StoreError> {
    Ok(PluginBinding {
        plugin_root: row.try_get("plugin_root")?,
        channel: row.try_get("channel")?,
        account_id: row.try_get("account_id")?,
        plugin_id: row.try_get("plugin_id")?,
        plugin_name: row.try_get("plugin_name")?,
        approved_at_ms: row.try_get("approved_at_ms")?,
    })
}

/// Allows a plugin to answer somewhere, in place of what was allowed its folder there.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn approve(tx: &mut WriteTx<'_>, binding: &PluginBinding) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO plugin_binding_approvals (plugin_root, channel, account_id, plugin_id, plugin_name, approved_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (plugin_root, channel, account_id) DO UPDATE SET
             plugin_id = excluded.plugin_id, plugin_name = excluded.plugin_name,
             approved_at_ms = excluded.approved_at_ms",
    )
    .bind(&binding.plugin_root)
    .bind(&binding.channel)
    .bind(&binding.account_id)
    .bind(&binding.plugin_id)
    .bind(&binding.plugin_name)
    .bind(binding.approved_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// What was allowed the plugin of a folder somewhere.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn binding(
    conn: &mut SqliteConnection,
    plugin_root: &str,
    channel: &str,
    account_id: &str,
) -> Result<Option<PluginBinding>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM plugin_binding_approvals WHERE plugin_root = ?1 AND channel = ?2 AND account_id = ?3",
    )
    .bind(plugin_root)
    .bind(channel)
    .bind(account_id)
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read_binding).transpose()
}

/// Takes back what was allowed; says whether it was.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn revoke(
    tx: &mut WriteTx<'_>,
    plugin_root: &str,
    channel: &str,
    account_id: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "DELETE FROM plugin_binding_approvals WHERE plugin_root = ?1 AND channel = ?2 AND account_id = ?3",
    )
    .bind(plugin_root)
    .bind(channel)
    .bind(account_id)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// What plugins, or one, may, newest first. There are as many as people have said yes: a handful.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn bindings(
    conn: &mut SqliteConnection,
    plugin_id: Option<&str>,
) -> Result<Vec<PluginBinding>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM plugin_binding_approvals WHERE ?1 IS NULL OR plugin_id = ?1
         ORDER BY approved_at_ms DESC, plugin_root, channel, account_id",
    )
    .bind(plugin_id)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_binding).collect()
}

/// Writes an index in place of the one of its key.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or a text is no JSON.
pub async fn put_installed(
    tx: &mut WriteTx<'_>,
    index: &InstalledPlugins,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT OR REPLACE INTO installed_plugin_index
             (index_key, version, host_contract_version, compat_registry_version, migration_version, policy_hash,
              generated_at_ms, refresh_reason, install_records_json, plugins_json, diagnostics_json, warning, updated_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )
    .bind(&index.index_key)
    .bind(index.version)
    .bind(&index.host_contract_version)
    .bind(&index.compat_registry_version)
    .bind(index.migration_version)
    .bind(&index.policy_hash)
    .bind(index.generated_at_ms)
    .bind(&index.refresh_reason)
    .bind(&index.install_records_json)
    .bind(&index.plugins_json)
    .bind(&index.diagnostics_json)
    .bind(&index.warning)
    .bind(index.updated_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// All indexes, by key.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn installed(conn: &mut SqliteConnection) -> Result<Vec<InstalledPlugins>, StoreError> {
    let rows = sqlx::query("SELECT * FROM installed_plugin_index ORDER BY index_key")
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(InstalledPlugins {
                index_key: row.try_get("index_key")?,
                version: row.try_get("version")?,
                host_contract_version: row.try_get("host_contract_version")?,
                compat_registry_version: row.try_get("compat_registry_version")?,
                migration_version: row.try_get("migration_version")?,
                policy_hash: row.try_get("policy_hash")?,
                generated_at_ms: row.try_get("generated_at_ms")?,
                refresh_reason: row.try_get("refresh_reason")?,
                install_records_json: row.try_get("install_records_json")?,
                plugins_json: row.try_get("plugins_json")?,
                diagnostics_json: row.try_get("diagnostics_json")?,
                warning: row.try_get("warning")?,
                updated_at_ms: row.try_get("updated_at_ms")?,
            })
        })
        .collect()
}
