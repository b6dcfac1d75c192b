-- 0006: what tools were given and gave, where it is too large for a transcript.

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
