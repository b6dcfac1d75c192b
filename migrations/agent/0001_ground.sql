-- 0001: the agent tier's ground floor: who this file is and what was imported.

-- Why: says which tier this file is, whose it is and which schema it carries.
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

-- Why: a transaction cannot span two files, so this tier's share of a receipt is committed with
-- this tier's rows; the control plane's receipt of the same key adds the shares up.
-- Written by: doctor. Rows leave: never.
CREATE TABLE migration_sources (
    source_key     TEXT    NOT NULL PRIMARY KEY,
    source_sha256  TEXT    NOT NULL CHECK (length(source_sha256) = 64),
    last_run_id    TEXT    NOT NULL,
    imported_at_ms INTEGER NOT NULL,
    -- Counts by kind of record, and what was said about single records.
    report_json    TEXT    NOT NULL
) STRICT;
