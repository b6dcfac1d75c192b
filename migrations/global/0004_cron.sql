-- 0004: scheduled jobs. Their runs are rows of `task_runs`.

-- Why: what is to run, when, as whom, and where the result goes.
-- Written by: cron commands, reconciliation with the config, import. Rows leave: on removal, or after a one-shot.
CREATE TABLE cron_jobs (
    store_key            TEXT    NOT NULL,
    job_id               TEXT    NOT NULL,
    name                 TEXT    NOT NULL,
    description          TEXT,
    -- 'config' jobs are owned by `config.toml`, 'runtime' jobs by this row.
    origin               TEXT    NOT NULL CHECK (origin IN ('runtime', 'config')),
    -- Who runs it; NULL only while disabled.
    agent_id             TEXT,
    enabled              INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    -- Why it is off although nobody switched it off; NULL otherwise.
    disabled_reason      TEXT,
    delete_after_run     INTEGER NOT NULL DEFAULT 0 CHECK (delete_after_run IN (0, 1)),
    schedule_kind        TEXT    NOT NULL CHECK (schedule_kind IN ('cron', 'every', 'at')),
    schedule_expr        TEXT,
    -- IANA zone; 'job' as its owner stated it, 'host' as recorded from the machine that ran it.
    schedule_tz          TEXT,
    schedule_tz_origin   TEXT    CHECK (schedule_tz_origin IN ('job', 'host')),
    every_ms             INTEGER CHECK (every_ms IS NULL OR every_ms > 0),
    anchor_ms            INTEGER,
    at_ms                INTEGER,
    stagger_ms           INTEGER,
    session_target       TEXT    NOT NULL,
    payload_kind         TEXT    NOT NULL CHECK (payload_kind IN ('shell', 'agent_turn', 'system_event')),
    payload_message      TEXT    NOT NULL,
    payload_model        TEXT,
    -- JSON array of tool names; NULL means no restriction, an empty array means none allowed.
    payload_tools_allow_json TEXT,
    uses_memory          INTEGER NOT NULL DEFAULT 1 CHECK (uses_memory IN (0, 1)),
    shell_output_format  TEXT    NOT NULL DEFAULT 'wrapped' CHECK (shell_output_format IN ('wrapped', 'raw')),
    delivery_mode        TEXT    NOT NULL DEFAULT 'none',
    delivery_channel     TEXT,
    delivery_to          TEXT,
    delivery_thread_id   TEXT,
    delivery_best_effort INTEGER NOT NULL DEFAULT 1 CHECK (delivery_best_effort IN (0, 1)),
    next_run_at_ms       INTEGER,
    last_run_at_ms       INTEGER,
    last_run_status      TEXT,
    last_output          TEXT,
    -- The definition as it came in, for replay and debugging; the typed columns win.
    job_json             TEXT    NOT NULL,
    created_at_ms        INTEGER NOT NULL,
    updated_at_ms        INTEGER NOT NULL,
    PRIMARY KEY (store_key, job_id),
    CHECK (enabled = 0 OR agent_id IS NOT NULL),
    CHECK (schedule_kind <> 'cron' OR schedule_expr IS NOT NULL),
    CHECK (schedule_kind <> 'every' OR every_ms IS NOT NULL),
    CHECK (schedule_kind <> 'at' OR at_ms IS NOT NULL)
) STRICT;

-- Serves: what is due.
CREATE INDEX cron_jobs_due ON cron_jobs (next_run_at_ms, job_id)
    WHERE enabled = 1 AND next_run_at_ms IS NOT NULL;
-- Serves: jobs of one agent.
CREATE INDEX cron_jobs_by_agent ON cron_jobs (agent_id, job_id);
