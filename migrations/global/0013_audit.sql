-- 0013: who looked at and changed memories.

-- Why: what was done to memories, by whom and when, for a person who asks.
-- Written by: memory access where it is audited, import. Rows leave: by the retention of their subject.
CREATE TABLE audit_events (
    event_id     TEXT    NOT NULL PRIMARY KEY,
    -- What kind of thing it is about: 'memory'.
    subject      TEXT    NOT NULL,
    -- 'store', 'recall', 'forget' and so on: its writer's word.
    operation    TEXT    NOT NULL,
    subject_key  TEXT,
    namespace    TEXT,
    session_hint TEXT,
    -- Who did it, where its writer says so; the name of that time.
    agent_id     TEXT,
    at_ms        INTEGER NOT NULL,
    -- The same as its writer wrote it, local offset included.
    at_text      TEXT,
    -- What else its writer says, as a text of its own form.
    metadata     TEXT,
    -- What an import found and has no column for.
    detail_json  TEXT
) STRICT;

-- Serves: events, newest first.
CREATE INDEX audit_events_by_time ON audit_events (at_ms DESC, event_id DESC);
