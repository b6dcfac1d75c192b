-- The agent tier: the data plane of one agent, `agents/<agent id>/agent/agent.sqlite`.
--
-- For people to read. Nothing runs this file: migrations make the schema, and a test proves that they make this one.
-- Change it in the same commit as the migration; new columns stand last in their table.
--
-- All tables are STRICT, foreign keys are on, times end in `_ms` and are Unix milliseconds UTC.
-- `application_id` is 'ZCLA', `user_version` the number of the last migration.

-- Who this file is and what was imported
-- --------------------------------------

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

-- Sessions and the conversations they belong to
-- ---------------------------------------------

-- Why: a conversation partner as a channel knows it, typed, so that nobody parses a key.
-- Written by: session routing and import. Rows leave: with their agent.
CREATE TABLE conversations (
    conversation_id        TEXT    NOT NULL PRIMARY KEY,
    channel                TEXT    NOT NULL,
    account_id             TEXT    NOT NULL,
    kind                   TEXT    NOT NULL CHECK (kind IN ('direct', 'group', 'channel')),
    peer_id                TEXT    NOT NULL,
    parent_conversation_id TEXT,
    thread_id              TEXT,
    label                  TEXT,
    metadata_json          TEXT,
    created_at_ms          INTEGER NOT NULL,
    updated_at_ms          INTEGER NOT NULL
) STRICT;

-- One conversation cannot exist under two ids.
CREATE UNIQUE INDEX conversations_identity ON conversations
    (channel, account_id, kind, peer_id, ifnull(parent_conversation_id, ''), ifnull(thread_id, ''));
-- Serves: newest conversations.
CREATE INDEX conversations_by_update ON conversations (updated_at_ms DESC, conversation_id);

-- Why: one generation of a conversation with this agent; the root of all it owns.
-- Written by: session use cases and import. Rows leave: on delete, with all they own.
CREATE TABLE sessions (
    -- Small key for the event rows; never leaves this file.
    session_no              INTEGER NOT NULL PRIMARY KEY,
    session_id              TEXT    NOT NULL UNIQUE,
    -- The route this session was made under, opaque; `session_routes` says which session is live.
    session_key             TEXT    NOT NULL,
    session_scope           TEXT    NOT NULL DEFAULT 'conversation'
        CHECK (session_scope IN ('conversation', 'shared-main', 'group', 'channel')),
    status                  TEXT    NOT NULL
        CHECK (status IN ('idle', 'running', 'done', 'failed', 'killed', 'timeout', 'interrupted')),
    chat_type               TEXT    CHECK (chat_type IN ('direct', 'group', 'channel')),
    channel                 TEXT,
    account_id              TEXT,
    primary_conversation_id TEXT    REFERENCES conversations (conversation_id) ON DELETE SET NULL,
    display_name            TEXT,
    model_provider          TEXT,
    model                   TEXT,
    parent_session_key      TEXT,
    spawned_by              TEXT,
    event_count             INTEGER NOT NULL DEFAULT 0 CHECK (event_count >= 0),
    message_count           INTEGER NOT NULL DEFAULT 0 CHECK (message_count >= 0),
    -- Highest `seq` ever given out in this session; never goes down.
    last_seq                INTEGER NOT NULL DEFAULT 0 CHECK (last_seq >= 0),
    created_at_ms           INTEGER NOT NULL,
    updated_at_ms           INTEGER NOT NULL,
    started_at_ms           INTEGER,
    ended_at_ms             INTEGER,
    archived_at_ms          INTEGER,
    -- 1 when the source had no times and a file time stands in.
    has_synthetic_times     INTEGER NOT NULL DEFAULT 0 CHECK (has_synthetic_times IN (0, 1)),
    -- Place of the event the conversation stands at; NULL while it was never taken back, and then the newest event; 0
    -- before the first one.
    leaf_seq                INTEGER CHECK (leaf_seq IS NULL OR leaf_seq >= 0),
    -- Goes up with each change of the session itself, not with its events: a change names the revision it saw.
    revision                INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    -- Kept for ever, whatever retention says.
    pinned_at_ms            INTEGER,
    -- Session and event this one was copied from; hints, not foreign keys: the origin may go.
    forked_from             TEXT,
    forked_at_event         TEXT
) STRICT;

-- Serves: list, newest first.
CREATE INDEX sessions_by_update ON sessions (updated_at_ms DESC, session_id);
-- Serves: generations of one key.
CREATE INDEX sessions_by_key ON sessions (session_key, created_at_ms DESC, session_id);
-- Serves: list of one channel.
CREATE INDEX sessions_by_channel ON sessions (channel, updated_at_ms DESC, session_id)
    WHERE channel IS NOT NULL;
-- Serves: sessions of one conversation; the foreign key's own look-up.
CREATE INDEX sessions_by_conversation ON sessions (primary_conversation_id, updated_at_ms DESC)
    WHERE primary_conversation_id IS NOT NULL;
-- Serves: sessions with a turn, whose owners may have died.
CREATE INDEX sessions_running ON sessions (session_id) WHERE status = 'running';

-- Why: which session a key leads to now.
-- Written by: session use cases and import. Rows leave: with their session.
CREATE TABLE session_routes (
    session_key   TEXT    NOT NULL PRIMARY KEY,
    session_id    TEXT    NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    updated_at_ms INTEGER NOT NULL
) STRICT;

-- Serves: the foreign key's own look-up.
CREATE INDEX session_routes_by_session ON session_routes (session_id);

-- Why: the entry of a session as its origin kept it, for replay and debugging; typed columns win.
-- Written by: session use cases and import. Rows leave: with their session.
CREATE TABLE session_entries (
    session_key   TEXT    NOT NULL,
    session_id    TEXT    NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    entry_json    TEXT    NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (session_key, session_id)
) STRICT;

-- Serves: the foreign key's own look-up.
CREATE INDEX session_entries_by_session ON session_entries (session_id);

-- Why: which conversations a session belongs to.
-- Written by: session routing and import. Rows leave: with either side.
CREATE TABLE session_conversations (
    session_id       TEXT    NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    conversation_id  TEXT    NOT NULL REFERENCES conversations (conversation_id) ON DELETE CASCADE,
    role             TEXT    NOT NULL DEFAULT 'primary' CHECK (role IN ('primary', 'participant', 'related')),
    first_seen_at_ms INTEGER NOT NULL,
    last_seen_at_ms  INTEGER NOT NULL,
    PRIMARY KEY (session_id, conversation_id, role)
) STRICT;

-- Serves: sessions of one conversation.
CREATE INDEX session_conversations_by_conversation
    ON session_conversations (conversation_id, last_seen_at_ms DESC, session_id);
-- A session has one primary conversation.
CREATE UNIQUE INDEX session_conversations_primary ON session_conversations (session_id)
    WHERE role = 'primary';

-- What was said and done, and the index to find it
-- ------------------------------------------------

-- Why: the events of a session in the order they were accepted.
-- Written by: append and import. Rows leave: with their session.
CREATE TABLE transcript_events (
    -- Stable row id: the full-text index hangs on it.
    event_no      INTEGER NOT NULL PRIMARY KEY,
    session_no    INTEGER NOT NULL REFERENCES sessions (session_no) ON DELETE CASCADE,
    seq           INTEGER NOT NULL CHECK (seq > 0),
    event_type    TEXT    NOT NULL,
    -- Who spoke; NULL for events that are no message.
    role          TEXT,
    created_at_ms INTEGER NOT NULL,
    -- Readable text, the searchable part; empty where there is none.
    text          TEXT    NOT NULL,
    -- The whole event where text and typed columns do not say it all, else NULL.
    -- Last: lists and searches never touch its pages.
    event_json    TEXT,
    UNIQUE (session_no, seq)
) STRICT;

-- Why: finds an event by its id, its parent or the caller's idempotency key.
-- Written by: append and import. Rows leave: with their event.
CREATE TABLE transcript_event_identities (
    session_no              INTEGER NOT NULL,
    event_id                TEXT    NOT NULL,
    seq                     INTEGER NOT NULL,
    event_type              TEXT    NOT NULL,
    parent_id               TEXT,
    message_idempotency_key TEXT,
    created_at_ms           INTEGER NOT NULL,
    PRIMARY KEY (session_no, event_id),
    FOREIGN KEY (session_no, seq) REFERENCES transcript_events (session_no, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Serves: the foreign key's own look-up; id of an event by its place.
CREATE UNIQUE INDEX transcript_event_identities_by_seq
    ON transcript_event_identities (session_no, seq);
-- A repeated append finds its first result.
CREATE UNIQUE INDEX transcript_event_identities_idempotency
    ON transcript_event_identities (session_no, message_idempotency_key)
    WHERE message_idempotency_key IS NOT NULL;

-- Why: word search over all transcripts. Derived: dropped and rebuilt without touching events.
-- Written by: append, in its transaction; after an import in slices, in `event_no` order, so that
-- the highest document it holds says how far it is complete. Rows leave: with their event, by the store.
CREATE VIRTUAL TABLE transcript_events_fts USING fts5 (
    text,
    content = 'transcript_events',
    content_rowid = 'event_no',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- What the agent remembers, and the index to recall it
-- ----------------------------------------------------

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

-- Artifacts of runs
-- -----------------

-- Why: the output of a run, kept with its digest, so that its end can be proven.
-- Written by: whoever runs the work, and import. Rows leave: by retention of the run.
CREATE TABLE run_artifacts (
    -- The task, or another run, that gave it.
    run_id        TEXT    NOT NULL,
    path          TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    -- What its producer said of it, as JSON.
    metadata_json TEXT    NOT NULL,
    -- Of `blob`, hex.
    sha256        TEXT    NOT NULL CHECK (length(sha256) = 64),
    size_bytes    INTEGER NOT NULL CHECK (size_bytes >= 0),
    created_at_ms INTEGER NOT NULL,
    blob          BLOB    NOT NULL,
    PRIMARY KEY (run_id, path),
    CHECK (size_bytes = length(blob))
) STRICT;

-- What tools were given and gave
-- ------------------------------

-- Why: a payload of megabytes in an event would be read with every page of its session; the event names it instead.
-- Written by: import, and runtimes that run tools. Rows leave: with their session.
CREATE TABLE tool_artifacts (
    run_id        TEXT    NOT NULL,
    artifact_id   TEXT    NOT NULL,
    session_id    TEXT    REFERENCES sessions (session_id) ON DELETE CASCADE,
    kind          TEXT    NOT NULL CHECK (kind IN ('arguments', 'result')),
    -- Which tool, which call; JSON.
    metadata_json TEXT    NOT NULL,
    sha256        TEXT    NOT NULL CHECK (length(sha256) = 64),
    size_bytes    INTEGER NOT NULL CHECK (size_bytes = length(blob)),
    created_at_ms INTEGER NOT NULL,
    -- The bytes as they were, never encoded. Last: lists never touch its pages.
    blob          BLOB    NOT NULL,
    PRIMARY KEY (run_id, artifact_id)
) STRICT;

-- Serves: artifacts of one session; the foreign key's own look-up.
CREATE INDEX tool_artifacts_by_session ON tool_artifacts (session_id, created_at_ms, artifact_id)
    WHERE session_id IS NOT NULL;
-- Files of the agent
-- ------------------

-- Why: trees of files and folders, one a namespace, that travel with the agent.
-- Written by: file use cases and workers. Rows leave: on delete; parts of a cut-off upload after a day.
CREATE TABLE vfs_entries (
    -- Small key for chunks and the word index; never leaves this file.
    entry_no      INTEGER NOT NULL PRIMARY KEY,
    -- Empty for an upload under way, which no path leads to.
    namespace     TEXT    NOT NULL,
    -- Names joined by '/', none at either end. Every folder above is a row too.
    path          TEXT    NOT NULL CHECK (path <> ''),
    -- The path of the folder it stands in; '' for the top, which is no row.
    parent        TEXT    NOT NULL,
    -- A whiteout hides what a layer lies over.
    kind          TEXT    NOT NULL CHECK (kind IN ('file', 'folder', 'whiteout')),
    size_bytes    INTEGER NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    -- Size of each chunk but the last; NULL where the bytes are in this row.
    chunk_bytes   INTEGER CHECK (chunk_bytes > 0),
    is_executable INTEGER NOT NULL DEFAULT 0 CHECK (is_executable IN (0, 1)),
    -- 1 when the bytes of this row are readable text, which the word index takes.
    is_text       INTEGER NOT NULL DEFAULT 0 CHECK (is_text IN (0, 1)),
    -- 1 for a folder of a layer that hides all of the folder it lies over.
    is_opaque     INTEGER NOT NULL DEFAULT 0 CHECK (is_opaque IN (0, 1)),
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    -- A small file's bytes. Last: listings never touch its pages.
    content_blob  BLOB,
    UNIQUE (namespace, path),
    CHECK ((kind = 'file' AND chunk_bytes IS NULL) = (content_blob IS NOT NULL)),
    CHECK (content_blob IS NULL OR length(content_blob) = size_bytes)
) STRICT;

-- Serves: list of one folder. Everything below a folder is a range of the unique index.
CREATE INDEX vfs_entries_by_parent ON vfs_entries (namespace, parent, path);

-- Why: the bytes of files too large for their row.
-- Written by: file use cases. Rows leave: with their file.
CREATE TABLE vfs_chunks (
    entry_no     INTEGER NOT NULL REFERENCES vfs_entries (entry_no) ON DELETE CASCADE,
    chunk_no     INTEGER NOT NULL CHECK (chunk_no >= 0),
    content_blob BLOB    NOT NULL CHECK (length(content_blob) > 0),
    PRIMARY KEY (entry_no, chunk_no)
) STRICT;

-- What the word index reads: names, and the text of files that are text and lie in their row.
CREATE VIEW vfs_words AS
    SELECT entry_no,
           CASE parent WHEN '' THEN path ELSE substr(path, length(parent) + 2) END AS name,
           CASE is_text WHEN 1 THEN CAST(content_blob AS TEXT) ELSE '' END AS text
    FROM vfs_entries
    WHERE namespace <> '' AND kind <> 'whiteout';

-- Why: word search over files. Derived: dropped and rebuilt without touching them.
-- Written by: file use cases, in their transaction. Rows leave: by the store.
CREATE VIRTUAL TABLE vfs_entries_fts USING fts5 (
    name,
    text,
    content = 'vfs_words',
    content_rowid = 'entry_no',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- Files that hold memories, indexed
-- ----------------------------------

-- Why: one row a file that was indexed. Derived: dropped and rebuilt from the files without touching canonical rows.
-- Written by: import, when a file is new or has changed. Rows leave: when the file is indexed anew.
CREATE TABLE memory_index_sources (
    source_no   INTEGER NOT NULL PRIMARY KEY,
    source_kind TEXT    NOT NULL DEFAULT 'memory' CHECK (source_kind IN ('memory')),
    -- Relative to the root it was found in.
    path        TEXT    NOT NULL,
    hash        TEXT    NOT NULL CHECK (length(hash) = 64),
    mtime_ms    INTEGER NOT NULL,
    size_bytes  INTEGER NOT NULL CHECK (size_bytes >= 0),
    UNIQUE (source_kind, path)
) STRICT;

-- Why: one row an entry of such a file, to be listed and found.
-- Written by: import, with its file. Rows leave: with their file.
CREATE TABLE memory_index_chunks (
    chunk_no      INTEGER NOT NULL PRIMARY KEY,
    source_no     INTEGER NOT NULL REFERENCES memory_index_sources (source_no) ON DELETE CASCADE,
    -- Of the text and of how often it occurred before in its file: lines shift when people edit.
    id            TEXT    NOT NULL,
    start_line    INTEGER NOT NULL CHECK (start_line > 0),
    end_line      INTEGER NOT NULL CHECK (end_line >= start_line),
    category      TEXT    NOT NULL,
    -- Name of the entry, where it has one.
    key           TEXT,
    text          TEXT    NOT NULL,
    UNIQUE (source_no, id)
) STRICT;

-- Why: word search over entries. Derived.
-- Written by: import, in its transaction. Rows leave: with their entry, by the store.
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5 (
    key,
    text,
    content = 'memory_index_chunks',
    content_rowid = 'chunk_no',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- Why: says which state of the index a reader has seen.
-- Written by: import, at each change of the index. Rows leave: never.
CREATE TABLE memory_index_state (
    id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;

-- Turns and checkpoints
-- ---------------------

-- Why: short ownership of a named thing of this agent; a turn of a session is one.
-- Written by: turns. Rows leave: at the end of the turn, or when its owner is gone.
CREATE TABLE state_leases (
    scope                  TEXT    NOT NULL,
    lease_key              TEXT    NOT NULL,
    owner                  TEXT    NOT NULL,
    -- Pid, start time and boot id of the holder, as JSON.
    payload_json           TEXT    NOT NULL,
    -- When somebody asked the holder to stop.
    cancel_requested_at_ms INTEGER,
    heartbeat_at_ms        INTEGER NOT NULL,
    created_at_ms          INTEGER NOT NULL,
    PRIMARY KEY (scope, lease_key)
) STRICT;

-- Why: places of a transcript that can be gone back to, or from which a model reads on after a compaction.
-- Written by: compaction and whoever asks for a checkpoint. Rows leave: with their session, or when it is cut before them.
CREATE TABLE transcript_snapshots (
    session_id    TEXT    NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    snapshot_id   TEXT    NOT NULL,
    reason        TEXT    NOT NULL,
    -- The event the conversation stood at; 0 before the first one.
    seq           INTEGER NOT NULL CHECK (seq >= 0),
    -- Events of the branch up to there.
    event_count   INTEGER NOT NULL CHECK (event_count >= 0),
    created_at_ms INTEGER NOT NULL,
    metadata_json TEXT,
    PRIMARY KEY (session_id, snapshot_id)
) STRICT;

-- Serves: newest checkpoints of a session.
CREATE INDEX transcript_snapshots_by_seq ON transcript_snapshots (session_id, seq DESC, created_at_ms DESC);

-- What runtimes did, and what may be computed again
-- --------------------------------------------------

-- Why: what a runtime did for a session, step by step, for whoever looks into it later; the conversation needs none of it.
-- Written by: runtimes, in order. Rows leave: with their session.
CREATE TABLE trajectory_runtime_events (
    session_id    TEXT    NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    -- Place in its session, from 1, given out here.
    seq           INTEGER NOT NULL CHECK (seq > 0),
    run_id        TEXT,
    created_at_ms INTEGER NOT NULL,
    event_json    TEXT    NOT NULL CHECK (json_valid(event_json)),
    PRIMARY KEY (session_id, seq)
) STRICT;

-- Serves: events of one run of a session.
CREATE INDEX trajectory_runtime_events_by_run ON trajectory_runtime_events (session_id, run_id, seq)
    WHERE run_id IS NOT NULL;

-- Why: what an ACP child told its parent while it ran, so that a parent that was away can catch up.
-- Written by: runtimes, in order. Rows leave: with the parent's session.
CREATE TABLE acp_parent_stream_events (
    session_id    TEXT    NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    run_id        TEXT    NOT NULL,
    -- Place in its run, from 1, given out here.
    seq           INTEGER NOT NULL CHECK (seq > 0),
    created_at_ms INTEGER NOT NULL,
    event_json    TEXT    NOT NULL CHECK (json_valid(event_json)),
    PRIMARY KEY (session_id, run_id, seq)
) STRICT;

-- Why: what may be computed again and is dear. Dropped without loss.
-- Written by: runtimes. Rows leave: at their expiry, by scope, or all at once.
CREATE TABLE cache_entries (
    scope         TEXT    NOT NULL,
    key           TEXT    NOT NULL,
    -- From this instant on the entry is not there; NULL for one that only a clearing takes.
    expires_at_ms INTEGER,
    updated_at_ms INTEGER NOT NULL,
    value_json    TEXT    CHECK (value_json IS NULL OR json_valid(value_json)),
    blob          BLOB,
    PRIMARY KEY (scope, key)
) STRICT;

-- Serves: expiry, longest expired first.
CREATE INDEX cache_entries_by_expiry ON cache_entries (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Views for other tools
-- --------------------

-- Why: other tools read a root through these, whatever becomes of the tables behind them. A column stays where it is and
-- means what it meant; new ones come last. None shows what an archive without secrets would leave out.

-- Conversations.
CREATE VIEW v_sessions (
    session_id, session_key, session_scope, status, chat_type, channel, account_id, display_name, model_provider,
    model, parent_session_key, event_count, message_count, created_at_ms, updated_at_ms, started_at_ms,
    ended_at_ms, archived_at_ms, pinned_at_ms, forked_from
) AS
SELECT
    session_id, session_key, session_scope, status, chat_type, channel, account_id, display_name, model_provider,
    model, parent_session_key, event_count, message_count, created_at_ms, updated_at_ms, started_at_ms,
    ended_at_ms, archived_at_ms, pinned_at_ms, forked_from
FROM sessions;

-- What was said, in every branch; `seq` is the order within a session.
CREATE VIEW v_messages (
    session_id, seq, event_id, parent_id, event_type, role, text, created_at_ms
) AS
SELECT s.session_id, e.seq, i.event_id, i.parent_id, e.event_type, e.role, e.text, e.created_at_ms
    FROM transcript_events e
    JOIN sessions s ON s.session_no = e.session_no
    LEFT JOIN transcript_event_identities i ON i.session_no = e.session_no AND i.seq = e.seq;

-- What the agent remembers, what was superseded too.
CREATE VIEW v_memories (
    memory_id, key, category, namespace, importance, pinned, is_trusted, superseded_by, content, created_at_ms,
    updated_at_ms, expires_at_ms
) AS
SELECT
    memory_id, key, category, namespace, importance, pinned, is_trusted, superseded_by, content, created_at_ms,
    updated_at_ms, expires_at_ms
FROM memories;

-- Files and folders in the agent's database, without their bytes.
CREATE VIEW v_files (
    namespace, path, kind, size_bytes, is_executable, is_text, created_at_ms, updated_at_ms
) AS
SELECT
    namespace, path, kind, size_bytes, is_executable, is_text, created_at_ms, updated_at_ms
FROM vfs_entries;

-- What runs gave, without the bytes.
CREATE VIEW v_run_artifacts (
    run_id, path, kind, sha256, size_bytes, created_at_ms
) AS
SELECT
    run_id, path, kind, sha256, size_bytes, created_at_ms
FROM run_artifacts;

-- Large payloads of tools, without the bytes.
CREATE VIEW v_tool_artifacts (
    run_id, artifact_id, session_id, kind, sha256, size_bytes, created_at_ms
) AS
SELECT
    run_id, artifact_id, session_id, kind, sha256, size_bytes, created_at_ms
FROM tool_artifacts;
