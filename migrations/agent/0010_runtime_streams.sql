-- 0010: what runtimes did, event by event, and what may be computed again.

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
