-- 0010: the log of what a runtime did.

-- Why: one row for each event of a log, for people who look for a cause.
-- Written by: runtimes, and import. Rows leave: by retention, oldest first.
CREATE TABLE diagnostic_events (
    -- Which log; an event's name is its own only there.
    scope         TEXT    NOT NULL,
    event_key     TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    -- Order among events of one instant.
    sequence      INTEGER NOT NULL DEFAULT 0,
    level         TEXT    NOT NULL CHECK (level IN ('trace', 'debug', 'info', 'warn', 'error')),
    -- Part of the runtime, and what it did; NULL where the event does not say.
    category      TEXT,
    action        TEXT,
    outcome       TEXT,
    -- The name it ran under then, which may be of nobody by now.
    agent_id      TEXT,
    -- The event as it was recorded: message, attributes and all; may hold what tools were given and gave.
    payload_json  TEXT    NOT NULL,
    PRIMARY KEY (scope, event_key)
) STRICT;

-- Serves: the log, newest first.
CREATE INDEX diagnostic_events_by_time ON diagnostic_events (created_at_ms DESC, sequence DESC, event_key);
-- Serves: the log of one agent.
CREATE INDEX diagnostic_events_by_agent ON diagnostic_events (agent_id, created_at_ms DESC, sequence DESC, event_key)
    WHERE agent_id IS NOT NULL;
