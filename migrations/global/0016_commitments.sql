-- 0016: what an agent has promised or noticed, to come back to in its time.

-- Why: "ask how the exam went" has a window in which it is kind and after which it is not.
-- Written by: whoever makes, keeps or drops a commitment, import. Rows leave: never by themselves.
CREATE TABLE commitments (
    id                 TEXT    NOT NULL PRIMARY KEY,
    agent_id           TEXT    NOT NULL,
    session_key        TEXT    NOT NULL,
    channel            TEXT    NOT NULL,
    account_id         TEXT,
    -- Whom to come back to, in the channel's own form.
    recipient_id       TEXT,
    thread_id          TEXT,
    sender_id          TEXT,
    -- 'deadline_check', 'open_loop' and so on: its writer's word; so are `sensitivity` and `source`.
    kind               TEXT    NOT NULL,
    sensitivity        TEXT    NOT NULL,
    source             TEXT    NOT NULL,
    -- 'snoozed' waits for `snoozed_until_ms`, then as 'pending' does. One whose window has closed is 'expired', never due.
    status             TEXT    NOT NULL CHECK (status IN ('pending', 'snoozed', 'sent', 'dismissed', 'expired')),
    reason             TEXT    NOT NULL,
    suggested_text     TEXT    NOT NULL,
    -- Of the living ones of one conversation no two have the same.
    dedupe_key         TEXT    NOT NULL,
    confidence         REAL    NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    due_earliest_ms    INTEGER NOT NULL,
    due_latest_ms      INTEGER NOT NULL,
    due_timezone       TEXT    NOT NULL,
    source_message_id  TEXT,
    source_run_id      TEXT,
    created_at_ms      INTEGER NOT NULL,
    updated_at_ms      INTEGER NOT NULL,
    attempts           INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    last_attempt_at_ms INTEGER,
    sent_at_ms         INTEGER,
    dismissed_at_ms    INTEGER,
    snoozed_until_ms   INTEGER,
    expired_at_ms      INTEGER,
    -- What an import found and has no column for.
    detail_json        TEXT,
    CHECK (due_earliest_ms <= due_latest_ms),
    CHECK (status <> 'snoozed' OR snoozed_until_ms IS NOT NULL)
) STRICT;

-- Serves: what is due, and whose window has closed.
CREATE INDEX commitments_open ON commitments (due_earliest_ms, id) WHERE status IN ('pending', 'snoozed');
-- Serves: one that is made again.
CREATE UNIQUE INDEX commitments_by_dedupe ON commitments (agent_id, session_key, channel, dedupe_key)
    WHERE status IN ('pending', 'snoozed');
-- Serves: commitments, newest first.
CREATE INDEX commitments_by_time ON commitments (created_at_ms DESC, id DESC);
