-- 0006: what a task has beside its row: whom to tell, its goal, how it goes on, how it was to end.

-- Why: whom to tell of a task's end, and whether they were told.
-- Written by: whoever starts and delivers work, and import. Rows leave: with their task.
CREATE TABLE task_delivery_state (
    task_id                   TEXT    NOT NULL PRIMARY KEY
        REFERENCES task_runs (task_id) ON DELETE CASCADE,
    -- Where the request came from, as JSON; NULL where nobody waits.
    requester_origin_json     TEXT,
    is_delivered              INTEGER NOT NULL DEFAULT 0 CHECK (is_delivered IN (0, 1)),
    last_notified_event_at_ms INTEGER
) STRICT;

-- Serves: ends that nobody was told of yet.
CREATE INDEX task_delivery_state_open ON task_delivery_state (task_id) WHERE is_delivered = 0;

-- Why: what a task that pursues a goal is to reach, within which limits, and why it waits.
-- Written by: goal use cases and import. Rows leave: with their task.
CREATE TABLE goal_tasks (
    task_id                  TEXT    NOT NULL PRIMARY KEY
        REFERENCES task_runs (task_id) ON DELETE CASCADE,
    objective                TEXT    NOT NULL,
    effective_token_limit    INTEGER CHECK (effective_token_limit IS NULL OR effective_token_limit >= 0),
    effective_cost_limit_usd REAL    CHECK (effective_cost_limit_usd IS NULL OR effective_cost_limit_usd >= 0),
    -- Why it waits; NULL while it does not.
    pause_reason             TEXT,
    pause_description        TEXT,
    -- JSON array of what stands in the way: kind, message, payload.
    blockers_json            TEXT    NOT NULL DEFAULT '[]',
    -- What an import found and has no column for.
    detail_json              TEXT
) STRICT;

-- Why: where and to whom a task goes on once it may: channel, target, sender, thread.
-- Written by: goal use cases and import. Rows leave: with their task, or when it has gone on.
CREATE TABLE task_continuations (
    task_id      TEXT NOT NULL PRIMARY KEY
        REFERENCES task_runs (task_id) ON DELETE CASCADE,
    context_json TEXT NOT NULL,
    -- What an import found and has no column for.
    detail_json  TEXT
) STRICT;

-- Why: how a task is to end, decided before its output is published, so that a crash between the two
-- is settled by what can be proven.
-- Written by: the worker that ends, recovery, import. Rows leave: in the transaction that settles the task.
CREATE TABLE task_settlements (
    task_id              TEXT    NOT NULL PRIMARY KEY
        REFERENCES task_runs (task_id) ON DELETE CASCADE,
    owner_pid            INTEGER NOT NULL,
    owner_start_identity TEXT,
    owner_boot_id        TEXT    NOT NULL,
    -- The producer's own word, which need not be a status of ours.
    desired_status       TEXT    NOT NULL,
    artifact_path        TEXT    NOT NULL,
    artifact_ref         TEXT,
    -- Of the exact bytes, hex.
    artifact_sha256      TEXT    NOT NULL,
    terminal_error       TEXT,
    -- When it was decided; NULL where its producer did not say.
    created_at_ms        INTEGER,
    -- What an import found and has no column for.
    detail_json          TEXT
) STRICT;

-- Serves: recovery of what one process left.
CREATE INDEX task_settlements_by_owner ON task_settlements (owner_pid, owner_boot_id, task_id);
