-- 0009: what a session needs to live: a branch it is on, a turn at a time, checkpoints, a guard against lost updates.

-- Place of the event the conversation stands at; NULL while it was never taken back, and then the newest event; 0 before
-- the first one.
ALTER TABLE sessions ADD COLUMN leaf_seq INTEGER CHECK (leaf_seq IS NULL OR leaf_seq >= 0);
-- Goes up with each change of the session itself, not with its events: a change names the revision it saw.
ALTER TABLE sessions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0);
-- Kept for ever, whatever retention says.
ALTER TABLE sessions ADD COLUMN pinned_at_ms INTEGER;
-- Session and event this one was copied from; hints, not foreign keys: the origin may go.
ALTER TABLE sessions ADD COLUMN forked_from TEXT;
ALTER TABLE sessions ADD COLUMN forked_at_event TEXT;

-- Serves: sessions with a turn, whose owners may have died.
CREATE INDEX sessions_running ON sessions (session_id) WHERE status = 'running';

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
