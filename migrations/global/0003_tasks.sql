-- 0003: the task ledger: the only authority of a task's life.

-- Why: one row for each piece of background work, runs of cron jobs among them.
-- Written by: whoever starts and settles work, and import. Rows leave: by retention of their owner.
CREATE TABLE task_runs (
    task_id         TEXT    NOT NULL PRIMARY KEY,
    owner_kind      TEXT    NOT NULL
        CHECK (owner_kind IN ('task', 'cron', 'delegate', 'subagent', 'heartbeat')),
    -- What it is a run of: the job id for cron, NULL where there is none.
    source_id       TEXT,
    agent_id        TEXT,
    parent_task_id  TEXT,
    label           TEXT,
    status          TEXT    NOT NULL
        CHECK (status IN ('pending', 'running', 'waiting', 'succeeded', 'failed', 'cancelled', 'lost', 'timed_out')),
    -- The producer's own word for the outcome where it says more than `status`.
    status_detail   TEXT,
    created_at_ms   INTEGER NOT NULL,
    started_at_ms   INTEGER,
    ended_at_ms     INTEGER,
    duration_ms     INTEGER,
    output          TEXT,
    error           TEXT,
    -- What an import found and has no column for.
    detail_json     TEXT
) STRICT;

-- Serves: runs of one job, newest first.
CREATE INDEX task_runs_by_source ON task_runs (owner_kind, source_id, started_at_ms DESC, task_id);
-- Serves: newest runs of all.
CREATE INDEX task_runs_by_start ON task_runs (started_at_ms DESC, task_id);
-- Serves: tasks of one agent.
CREATE INDEX task_runs_by_agent ON task_runs (agent_id, started_at_ms DESC, task_id);
-- Serves: sweep of unfinished work.
CREATE INDEX task_runs_unfinished ON task_runs (status, task_id)
    WHERE status IN ('pending', 'running', 'waiting');
