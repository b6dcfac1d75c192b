-- 0004: what the agent remembers, and the index to recall it.

-- Why: canonical memories with their vectors.
-- Written by: memory use cases and import. Rows leave: on forget, on expiry.
CREATE TABLE memories (
    memory_no           INTEGER NOT NULL PRIMARY KEY,
    memory_id           TEXT    NOT NULL UNIQUE,
    key                 TEXT    NOT NULL,
    category            TEXT    NOT NULL,
    namespace           TEXT    NOT NULL DEFAULT 'default',
    -- JSON: 'episodic', 'procedural' or {"semantic": …}; NULL where the writer did not say.
    kind_json           TEXT,
    importance          REAL,
    pinned              INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    -- 0 for notes whose origin declared them untrusted: kept, shown, not recalled.
    is_trusted          INTEGER NOT NULL DEFAULT 1 CHECK (is_trusted IN (0, 1)),
    -- A hint where it was learned, not a foreign key: sessions go, memories stay.
    session_hint        TEXT,
    tenant_id           TEXT,
    -- Key or id of the memory that replaced this one; NULL while it holds.
    superseded_by       TEXT,
    embedding_provider  TEXT,
    embedding_model     TEXT,
    created_at_ms       INTEGER NOT NULL,
    updated_at_ms       INTEGER NOT NULL,
    -- The times as their origin wrote them, local offset included; NULL for our own.
    created_at_text     TEXT,
    updated_at_text     TEXT,
    expires_at_ms       INTEGER,
    content             TEXT    NOT NULL,
    -- Little-endian 32-bit floats, no header; NULL where there is no vector.
    embedding           BLOB    CHECK (embedding IS NULL OR length(embedding) % 4 = 0)
) STRICT;

-- One living memory a key.
CREATE UNIQUE INDEX memories_living_key ON memories (key) WHERE superseded_by IS NULL;
-- Serves: list, newest first.
CREATE INDEX memories_by_update ON memories (updated_at_ms DESC, memory_id);
-- Serves: list of one category.
CREATE INDEX memories_by_category ON memories (category, updated_at_ms DESC, memory_id);
-- Serves: expiry.
CREATE INDEX memories_by_expiry ON memories (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Why: word search over memories. Derived: dropped and rebuilt without touching them.
-- Written by: memory use cases, in their transaction; after an import by a rebuild. Rows leave: by the store.
CREATE VIRTUAL TABLE memories_fts USING fts5 (
    key,
    content,
    content = 'memories',
    content_rowid = 'memory_no',
    tokenize = 'unicode61 remove_diacritics 2'
);
