-- 0001: the control plane's ground floor: who this file is, which agents exist, who holds what.

-- Why: says which tier this file is and which schema it carries.
-- Written by: migration and open. Rows leave: never.
CREATE TABLE schema_meta (
    meta_key       TEXT    NOT NULL PRIMARY KEY,
    role           TEXT    NOT NULL CHECK (role IN ('global', 'agent')),
    schema_version INTEGER NOT NULL CHECK (schema_version >= 0),
    agent_id       TEXT,
    app_version    TEXT    NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;

-- Why: the only registry of agents and of their databases.
-- Written by: agent creation, open and import. Rows leave: when an agent is deleted.
CREATE TABLE agent_databases (
    agent_id       TEXT    NOT NULL PRIMARY KEY,
    -- Relative to the root, so that a moved root still finds its agents.
    path           TEXT    NOT NULL UNIQUE,
    schema_version INTEGER NOT NULL,
    status         TEXT    NOT NULL CHECK (status IN ('active', 'retired')),
    -- Why an agent is retired, for people; NULL while active.
    status_reason  TEXT,
    created_at_ms  INTEGER NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    size_bytes     INTEGER CHECK (size_bytes IS NULL OR size_bytes >= 0),
    integrity      TEXT    CHECK (integrity IN ('ok', 'damaged'))
) STRICT;

-- Serves: list of agents by status.
CREATE INDEX agent_databases_by_status ON agent_databases (status, agent_id);

-- Why: short ownership of a named thing between processes.
-- Written by: whoever holds the lease. Rows leave: on release, on expiry, when the owner is gone.
CREATE TABLE state_leases (
    scope           TEXT    NOT NULL,
    lease_key       TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    expires_at_ms   INTEGER,
    heartbeat_at_ms INTEGER,
    payload_json    TEXT,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    PRIMARY KEY (scope, lease_key)
) STRICT;

-- Serves: sweep of expired leases.
CREATE INDEX state_leases_by_expiry ON state_leases (expires_at_ms, scope, lease_key)
    WHERE expires_at_ms IS NOT NULL;
