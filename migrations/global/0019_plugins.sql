-- 0019: what plugins keep, which of them may answer where, and what is installed.

-- Why: a plugin has state of its own, in namespaces: cursors, preferences, keys of messages it has seen. Values are the
-- plugin's own JSON; nobody else reads them.
-- Written by: plugins, import. Rows leave: when they expire, by `plugins clear`, and where a plugin is at its limit:
-- expired ones first, then the oldest of a namespace that its plugin calls a cache.
CREATE TABLE plugin_state_entries (
    plugin_id     TEXT    NOT NULL,
    -- '@versions' is the service's own: by namespace, the version of what the plugin keeps there.
    namespace     TEXT    NOT NULL,
    entry_key     TEXT    NOT NULL,
    value_json    TEXT    NOT NULL CHECK (json_valid(value_json)),
    -- Grows with each write of the key: who writes may say which one it has seen.
    version       INTEGER NOT NULL CHECK (version >= 1),
    -- What counts against the plugin's limit.
    size_bytes    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    -- From here on it is not there, swept or not.
    expires_at_ms INTEGER,
    -- Who has claimed the key, where it is a claim and no value.
    claim_owner   TEXT,
    PRIMARY KEY (plugin_id, namespace, entry_key),
    CHECK (size_bytes = length(CAST(entry_key AS BLOB)) + length(CAST(value_json AS BLOB))),
    -- A claim of one who died must end.
    CHECK (claim_owner IS NULL OR expires_at_ms IS NOT NULL)
) STRICT;

-- Serves: how much a plugin holds, without reading a value, and what of a cache is the oldest.
CREATE INDEX plugin_state_by_age ON plugin_state_entries (plugin_id, namespace, updated_at_ms, size_bytes);
-- Serves: what has expired.
CREATE INDEX plugin_state_by_expiry ON plugin_state_entries (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Why: what a plugin keeps that is no JSON.
-- Written by: plugins, import. Rows leave: as above, under the same limits.
CREATE TABLE plugin_blob_entries (
    plugin_id     TEXT    NOT NULL,
    namespace     TEXT    NOT NULL,
    entry_key     TEXT    NOT NULL,
    metadata_json TEXT    NOT NULL CHECK (json_valid(metadata_json)),
    blob          BLOB    NOT NULL,
    size_bytes    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    PRIMARY KEY (plugin_id, namespace, entry_key),
    CHECK (size_bytes = length(CAST(entry_key AS BLOB)) + length(CAST(metadata_json AS BLOB)) + length(blob))
) STRICT;

-- Serves: as the index of the same name above.
CREATE INDEX plugin_blob_by_age ON plugin_blob_entries (plugin_id, namespace, updated_at_ms, size_bytes);
-- Serves: what has expired.
CREATE INDEX plugin_blob_by_expiry ON plugin_blob_entries (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Why: a plugin answers on an account of a channel only where somebody has allowed it.
-- Written by: whoever asks the person, import. Rows leave: when it is taken back.
CREATE TABLE plugin_binding_approvals (
    -- Folder the plugin is loaded from: another one of the same name is another plugin.
    plugin_root    TEXT    NOT NULL,
    channel        TEXT    NOT NULL,
    account_id     TEXT    NOT NULL,
    plugin_id      TEXT    NOT NULL,
    plugin_name    TEXT,
    approved_at_ms INTEGER NOT NULL,
    PRIMARY KEY (plugin_root, channel, account_id)
) STRICT;

-- Serves: what one plugin may, newest first.
CREATE INDEX plugin_binding_approvals_by_plugin ON plugin_binding_approvals (plugin_id, approved_at_ms DESC);

-- Why: which plugins are installed, as the runtime found them, so that it need not look again.
-- Written by: the runtime, import. Rows leave: replaced under their key.
CREATE TABLE installed_plugin_index (
    index_key               TEXT    NOT NULL PRIMARY KEY,
    version                 INTEGER NOT NULL,
    host_contract_version   TEXT    NOT NULL,
    compat_registry_version TEXT    NOT NULL,
    migration_version       INTEGER NOT NULL,
    -- Digest of the rules it was made under: others make it void.
    policy_hash             TEXT    NOT NULL,
    generated_at_ms         INTEGER NOT NULL,
    refresh_reason          TEXT,
    install_records_json    TEXT    NOT NULL CHECK (json_valid(install_records_json)),
    plugins_json            TEXT    NOT NULL CHECK (json_valid(plugins_json)),
    diagnostics_json        TEXT    NOT NULL CHECK (json_valid(diagnostics_json)),
    warning                 TEXT,
    updated_at_ms           INTEGER NOT NULL
) STRICT;
