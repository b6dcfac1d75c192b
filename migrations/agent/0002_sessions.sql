-- 0002: sessions and the conversations they belong to.

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
    has_synthetic_times     INTEGER NOT NULL DEFAULT 0 CHECK (has_synthetic_times IN (0, 1))
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
