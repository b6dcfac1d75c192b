-- 0011: views for other tools.

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
