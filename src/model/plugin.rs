//! What plugins keep, where they may answer, and which are installed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Most bytes of one value of a plugin, as JSON text: 1 MiB.
pub const MAX_PLUGIN_VALUE_BYTES: usize = 1024 * 1024;

/// Most bytes of one blob of a plugin, with what is said of it: 16 MiB.
pub const MAX_PLUGIN_BLOB_BYTES: usize = 16 * 1024 * 1024;

/// How much one plugin may keep, values and blobs together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginLimits {
    /// Rows.
    pub max_rows: i64,
    /// Bytes of keys, values, blobs and what is said of them.
    pub max_bytes: i64,
}

impl Default for PluginLimits {
    /// 100,000 rows and 256 MiB: ten times what the largest known plugin keeps.
    fn default() -> Self {
        Self {
            max_rows: 100_000,
            max_bytes: 256 * 1024 * 1024,
        }
    }
}

/// What becomes of a namespace when its plugin is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamespaceKind {
    /// Nothing of it goes unasked: the write is refused.
    Durable,
    /// The values written longest ago make room.
    Cache,
}

/// A value under a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginEntry {
    /// Whose it is.
    pub plugin_id: String,
    /// Where in it.
    pub namespace: String,
    /// Its name there.
    pub entry_key: String,
    /// The value; not in listings that leave values out.
    #[serde(
        default,
        deserialize_with = "super::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub value: Option<Value>,
    /// Grows with each write of the key.
    pub version: i64,
    /// Bytes of the key and the value.
    pub size_bytes: i64,
    /// When the key was first written.
    pub created_at_ms: i64,
    /// When it was last.
    pub updated_at_ms: i64,
    /// From when on it is not there.
    pub expires_at_ms: Option<i64>,
    /// Who has claimed the key, where it is a claim.
    pub claim_owner: Option<String>,
}

/// A blob as a listing shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginBlobEntry {
    /// Whose it is.
    pub plugin_id: String,
    /// Where in it.
    pub namespace: String,
    /// Its name there.
    pub entry_key: String,
    /// What is said of it; not in listings that leave values out.
    #[serde(
        default,
        deserialize_with = "super::given",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata: Option<Value>,
    /// Bytes of the key, the blob and what is said of it.
    pub size_bytes: i64,
    /// When the key was first written.
    pub created_at_ms: i64,
    /// When it was last.
    pub updated_at_ms: i64,
    /// From when on it is not there.
    pub expires_at_ms: Option<i64>,
}

/// A blob.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginBlob {
    /// What is known of it.
    pub entry: PluginBlobEntry,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// How much a namespace holds, expired rows too while they are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginUsage {
    /// Whose it is.
    pub plugin_id: String,
    /// The namespace.
    pub namespace: String,
    /// Values and claims.
    pub entries: i64,
    /// Blobs.
    pub blobs: i64,
    /// Bytes of both.
    pub size_bytes: i64,
    /// When it was last written.
    pub updated_at_ms: i64,
}

/// Leave for a plugin to answer on an account of a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginBinding {
    /// Folder the plugin is loaded from: another one of the same name is another plugin.
    pub plugin_root: String,
    /// The channel.
    pub channel: String,
    /// The account there.
    pub account_id: String,
    /// The plugin.
    pub plugin_id: String,
    /// Its name for people.
    pub plugin_name: Option<String>,
    /// When somebody allowed it.
    pub approved_at_ms: i64,
}

/// Which plugins are installed, as the runtime found them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstalledPlugins {
    /// Which index it is.
    pub index_key: String,
    /// Shape of the index.
    pub version: i64,
    /// Contract that the host offered.
    pub host_contract_version: String,
    /// Table of what works with what.
    pub compat_registry_version: String,
    /// Step of the plugins' own migrations.
    pub migration_version: i64,
    /// Digest of the rules it was made under.
    pub policy_hash: String,
    /// When it was made.
    pub generated_at_ms: i64,
    /// Why it was made anew.
    pub refresh_reason: Option<String>,
    /// Where each came from, JSON text. May hold tokens of registries: not shown by commands.
    #[serde(skip_serializing, default)]
    pub install_records_json: String,
    /// The plugins, JSON text.
    pub plugins_json: String,
    /// What was wrong with some, JSON text.
    pub diagnostics_json: String,
    /// What a person should know.
    pub warning: Option<String>,
    /// When the row was written.
    pub updated_at_ms: i64,
}
