-- 0008: sessions of editors and other programs that speak the Agent Client Protocol.

-- Why: such a client asks for its session by id alone, before any agent is known.
-- Written by: ACP use cases and import. Rows leave: with their session.
CREATE TABLE acp_sessions (
    agent_id            TEXT    NOT NULL,
    session_id          TEXT    NOT NULL,
    session_key         TEXT    NOT NULL,
    -- The client's working folder as it named it: may lie outside the root, or be gone. Never resolved by us.
    cwd                 TEXT    NOT NULL,
    -- An ended session is a tombstone: it is never resumed.
    state               TEXT    NOT NULL CHECK (state IN ('open', 'ended')),
    -- A counter of its origin, no billing data.
    token_count         INTEGER NOT NULL DEFAULT 0 CHECK (token_count >= 0),
    created_at_ms       INTEGER NOT NULL,
    last_activity_at_ms INTEGER NOT NULL,
    ended_at_ms         INTEGER,
    PRIMARY KEY (agent_id, session_id),
    CHECK ((state = 'ended') = (ended_at_ms IS NOT NULL))
) STRICT;

-- Serves: list, newest activity first.
CREATE INDEX acp_sessions_by_activity ON acp_sessions (last_activity_at_ms DESC, session_id, agent_id);
-- Serves: a client's question for its session.
CREATE INDEX acp_sessions_by_session ON acp_sessions (session_id);
