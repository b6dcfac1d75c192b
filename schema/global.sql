-- The global tier: the control plane, one `state/state.sqlite` a root.
--
-- For people to read. Nothing runs this file: migrations make the schema, and a test proves that they make this one.
-- Change it in the same commit as the migration; new columns stand last in their table.
--
-- All tables are STRICT, foreign keys are on, times end in `_ms` and are Unix milliseconds UTC.
-- `application_id` is 'ZCLG', `user_version` the number of the last migration.

-- Who this file is, which agents exist, who holds what
-- ----------------------------------------------------

-- Why: says which tier this file is and which schema it carries.
-- Written by: migration and open. Rows leave: never.
CREATE TABLE schema_meta (
    meta_key       TEXT    NOT NULL PRIMARY KEY,
    role           TEXT    NOT NULL CHECK (role IN ('global', 'agent')),
    schema_version INTEGER NOT NULL CHECK (schema_version >= 0),
    agent_id       TEXT,
    app_version    TEXT    NOT NULL,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL
) STRICT;

-- Why: the only registry of agents and of their databases.
-- Written by: agent creation, open and import. Rows leave: when an agent is deleted.
CREATE TABLE agent_databases (
    agent_id       TEXT    NOT NULL PRIMARY KEY,
    -- Relative to the root, so that a moved root still finds its agents.
    path           TEXT    NOT NULL UNIQUE,
    schema_version INTEGER NOT NULL,
    status         TEXT    NOT NULL CHECK (status IN ('active', 'retired')),
    -- Why an agent is retired, for people; NULL while active.
    status_reason  TEXT,
    created_at_ms  INTEGER NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    size_bytes     INTEGER CHECK (size_bytes IS NULL OR size_bytes >= 0),
    integrity      TEXT    CHECK (integrity IN ('ok', 'damaged'))
) STRICT;

-- Serves: list of agents by status.
CREATE INDEX agent_databases_by_status ON agent_databases (status, agent_id);

-- Why: short ownership of a named thing between processes.
-- Written by: whoever holds the lease. Rows leave: on release, on expiry, when the owner is gone.
CREATE TABLE state_leases (
    scope           TEXT    NOT NULL,
    lease_key       TEXT    NOT NULL,
    owner           TEXT    NOT NULL,
    expires_at_ms   INTEGER,
    heartbeat_at_ms INTEGER,
    payload_json    TEXT,
    created_at_ms   INTEGER NOT NULL,
    updated_at_ms   INTEGER NOT NULL,
    -- The holder: number, start and boot of its process; NULL where it did not say.
    owner_pid       INTEGER,
    owner_start_identity TEXT,
    owner_boot_id   TEXT,
    -- Goes up with each holder and never back, released or not: see the row of scope `fencing`, which holds the last one given.
    fencing_token   INTEGER NOT NULL DEFAULT 0 CHECK (fencing_token >= 0),
    PRIMARY KEY (scope, lease_key)
) STRICT;

-- Serves: sweep of expired leases.
CREATE INDEX state_leases_by_expiry ON state_leases (expires_at_ms, scope, lease_key)
    WHERE expires_at_ms IS NOT NULL;

-- What doctor and backup did
-- --------------------------

-- Why: one row for each `doctor --fix` that had something to do.
-- Written by: doctor. Rows leave: never by themselves; receipts hang on them.
CREATE TABLE migration_runs (
    id             TEXT    NOT NULL PRIMARY KEY,
    started_at_ms  INTEGER NOT NULL,
    finished_at_ms INTEGER,
    status         TEXT    NOT NULL CHECK (status IN ('running', 'completed', 'warning', 'failed')),
    -- The phase reached: a rerun after a kill goes on from here.
    phase          TEXT    NOT NULL CHECK (phase IN ('backup', 'apply', 'verify', 'retire', 'index', 'report')),
    -- Foreign root of the sources; NULL when the root itself was imported.
    from_path      TEXT,
    -- Archive made before the first change; NULL when there was nothing to keep.
    backup_path    TEXT,
    app_version    TEXT    NOT NULL,
    report_json    TEXT    NOT NULL
) STRICT;

-- Serves: history, newest first.
CREATE INDEX migration_runs_by_start ON migration_runs (started_at_ms DESC, id);

-- Why: the receipt of one source: what came in, and the proof.
-- Written by: doctor. Rows leave: with their run, which is never pruned while it owns receipts.
CREATE TABLE migration_sources (
    source_key          TEXT    NOT NULL PRIMARY KEY,
    migration_kind      TEXT    NOT NULL,
    -- Relative to the root the source was found in.
    source_path         TEXT    NOT NULL,
    target_table        TEXT    NOT NULL,
    source_sha256       TEXT    NOT NULL CHECK (length(source_sha256) = 64),
    source_size_bytes   INTEGER NOT NULL CHECK (source_size_bytes >= 0),
    source_record_count INTEGER NOT NULL CHECK (source_record_count >= 0),
    imported_count      INTEGER NOT NULL CHECK (imported_count >= 0),
    present_count       INTEGER NOT NULL CHECK (present_count >= 0),
    merged_count        INTEGER NOT NULL CHECK (merged_count >= 0),
    refused_count       INTEGER NOT NULL CHECK (refused_count >= 0),
    last_run_id         TEXT    NOT NULL REFERENCES migration_runs (id) ON DELETE CASCADE,
    status              TEXT    NOT NULL CHECK (status IN ('applied', 'verified', 'retired', 'kept', 'discarded', 'failed')),
    imported_at_ms      INTEGER NOT NULL,
    removed_source      INTEGER NOT NULL DEFAULT 0 CHECK (removed_source IN (0, 1)),
    retired_path        TEXT,
    report_json         TEXT    NOT NULL,
    -- Nothing is lost in silence: every record of the source is accounted for.
    CHECK (status = 'failed'
        OR source_record_count = imported_count + present_count + merged_count + refused_count)
) STRICT;

-- Serves: receipts of one run.
CREATE INDEX migration_sources_by_run ON migration_sources (last_run_id, source_path);
-- Serves: has this path been imported before.
CREATE INDEX migration_sources_by_path ON migration_sources (source_path, migration_kind);

-- Why: every backup, verification and restore, good, failed or interrupted.
-- Written by: backup. Rows leave: bounded list, oldest first.
CREATE TABLE backup_runs (
    id             TEXT    NOT NULL PRIMARY KEY,
    kind           TEXT    NOT NULL CHECK (kind IN ('create', 'verify', 'restore')),
    created_at_ms  INTEGER NOT NULL,
    finished_at_ms INTEGER,
    archive_path   TEXT    NOT NULL,
    archive_bytes  INTEGER CHECK (archive_bytes IS NULL OR archive_bytes >= 0),
    status         TEXT    NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'interrupted')),
    -- Why it failed; NULL unless it did.
    error          TEXT,
    manifest_json  TEXT    NOT NULL
) STRICT;

-- Serves: list, newest first; freshness.
CREATE INDEX backup_runs_by_creation ON backup_runs (created_at_ms DESC, id);

-- Tasks: the only authority of their life
-- ---------------------------------------

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
    detail_json     TEXT,
    -- The producer's own word for the kind of work, where it says more than `owner_kind`.
    task_kind       TEXT,
    -- Who asked for it: an agent for background work, a route of a channel for what people asked.
    originator_route TEXT,
    -- On whose behalf, as its producer knew them: to be looked at, never to grant access.
    principal_id    TEXT,
    -- JSON array of the agents that may ask after it, the nearest caller first; NULL where none was recorded.
    caller_chain_json TEXT,
    -- How many tasks stand above it.
    depth           INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
    -- The same key of the same producer is the same task.
    idempotency_key TEXT,
    -- The process that runs it: number, start and boot together tell it from a later one.
    execution_owner_pid INTEGER,
    execution_owner_start_identity TEXT,
    execution_owner_boot_id TEXT,
    -- Last sign of life; NULL for producers that give none, which never time out.
    heartbeat_at_ms INTEGER,
    cancel_state    TEXT    NOT NULL DEFAULT 'none'
        CHECK (cancel_state IN ('none', 'requested', 'acknowledged')),
    -- Goes up with each claim: a write that names another one is refused.
    fencing_token   INTEGER NOT NULL DEFAULT 0 CHECK (fencing_token >= 0),
    -- The last sign of life by the time since boot, which nobody sets; counts only within the owner's boot.
    heartbeat_uptime_ms INTEGER,
    -- Silence after which it is taken to have timed out; NULL for producers that do not beat.
    heartbeat_timeout_ms INTEGER
        CHECK (heartbeat_timeout_ms IS NULL OR heartbeat_timeout_ms > 0),
    -- JSON array of the last things its worker said of it: at_ms, text. Bounded by its writer.
    progress_json   TEXT
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
-- Serves: tasks of one status, newest first.
CREATE INDEX task_runs_by_status ON task_runs (status, started_at_ms DESC, task_id);
-- Serves: tasks of one kind, newest first.
CREATE INDEX task_runs_by_kind ON task_runs (owner_kind, started_at_ms DESC, task_id);
-- Serves: what a task has started.
CREATE INDEX task_runs_by_parent ON task_runs (parent_task_id, task_id)
    WHERE parent_task_id IS NOT NULL;
-- Serves: the next task to claim of a kind, oldest first.
CREATE INDEX task_runs_pending ON task_runs (owner_kind, created_at_ms, task_id) WHERE status = 'pending';
-- Serves: the task that a producer has started under a key before.
CREATE INDEX task_runs_by_idempotency_key ON task_runs (idempotency_key) WHERE idempotency_key IS NOT NULL;

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

-- Scheduled jobs; their runs are tasks
-- ------------------------------------

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
    -- Up to which occurrence the job was run or passed over; earlier ones never run again, also when the clock goes back.
    last_occurrence_at_ms INTEGER,
    -- The run it is in; that row of `task_runs` names the process. NULL while it is in none.
    claim_task_id        TEXT,
    -- What happens to occurrences that were missed; NULL as the configuration says.
    catch_up             TEXT    CHECK (catch_up IN ('skip', 'once', 'all')),
    -- How old an occurrence may be to be caught up on; NULL for the policy's own bound.
    catch_up_window_ms   INTEGER CHECK (catch_up_window_ms IS NULL OR catch_up_window_ms > 0),
    -- Longest run of a command; NULL for the usual.
    timeout_ms           INTEGER CHECK (timeout_ms IS NULL OR timeout_ms > 0),
    -- Runs kept; 0 keeps all, NULL as the configuration says.
    runs_kept            INTEGER CHECK (runs_kept IS NULL OR runs_kept >= 0),
    -- Failures in a row, and from how many on somebody is told, where, and how often at most.
    consecutive_failures INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    failure_alert_after  INTEGER CHECK (failure_alert_after IS NULL OR failure_alert_after > 0),
    failure_alert_channel TEXT,
    failure_alert_to     TEXT,
    failure_alert_cooldown_ms INTEGER CHECK (failure_alert_cooldown_ms IS NULL OR failure_alert_cooldown_ms >= 0),
    failure_alerted_at_ms INTEGER,
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
-- Serves: jobs that are in a run.
CREATE INDEX cron_jobs_claimed ON cron_jobs (claim_task_id) WHERE claim_task_id IS NOT NULL;
-- Keeps: one run for an occurrence of a job.
CREATE UNIQUE INDEX task_runs_by_occurrence ON task_runs (source_id, idempotency_key)
    WHERE owner_kind = 'cron' AND idempotency_key IS NOT NULL;

-- Devices
-- -------

-- Why: who may talk to the gateway, as people know it. Nothing here opens anything.
-- Written by: pairing, import. Rows leave: never; a device whose tokens are revoked stays to be seen.
CREATE TABLE device_identities (
    device_id         TEXT    NOT NULL PRIMARY KEY,
    display_name      TEXT,
    -- What kind of device, in its own word; 'legacy' where only a token is known.
    device_type       TEXT,
    remote_ip         TEXT,
    -- What it can do, JSON as it said.
    capabilities_json TEXT,
    paired_at_ms      INTEGER,
    last_seen_at_ms   INTEGER
) STRICT;

-- Why: a token is proved by its SHA-256 alone; the token itself is in no column of any table.
-- Written by: pairing, revocation, import. Rows leave: never, so that a revoked token stays known as such.
-- No reference to the device: a token may be known before it.
CREATE TABLE device_auth_tokens (
    -- SHA-256 of the whole token, 64 lower-case hex digits.
    token_sha256  TEXT    NOT NULL PRIMARY KEY
        CHECK (length(token_sha256) = 64 AND token_sha256 NOT GLOB '*[^0-9a-f]*'),
    device_id     TEXT    NOT NULL,
    -- 'unverified': nobody could tell whether it was still paired. Only 'active' opens.
    status        TEXT    NOT NULL CHECK (status IN ('active', 'revoked', 'unverified')),
    -- Why it is not active; NULL while it is.
    status_reason TEXT,
    revoked_at_ms INTEGER,
    CHECK (status <> 'active' OR (status_reason IS NULL AND revoked_at_ms IS NULL))
) STRICT;

-- Serves: tokens of one device.
CREATE INDEX device_auth_tokens_by_device ON device_auth_tokens (device_id, token_sha256);

-- Sessions of ACP clients
-- -----------------------

-- Why: such a client asks for its session by id alone, before any agent is known.
-- Written by: ACP use cases and import. Rows leave: with their session.
CREATE TABLE acp_sessions (
    agent_id            TEXT    NOT NULL,
    session_id          TEXT    NOT NULL,
    session_key         TEXT    NOT NULL,
    -- The client's working folder as it named it: may lie outside the root, or be gone. Never resolved by us.
    cwd                 TEXT    NOT NULL,
    -- An ended session is a tombstone: it is never resumed.
    state               TEXT    NOT NULL CHECK (state IN ('open', 'ended')),
    -- A counter of its origin, no billing data.
    token_count         INTEGER NOT NULL DEFAULT 0 CHECK (token_count >= 0),
    created_at_ms       INTEGER NOT NULL,
    last_activity_at_ms INTEGER NOT NULL,
    ended_at_ms         INTEGER,
    PRIMARY KEY (agent_id, session_id),
    CHECK ((state = 'ended') = (ended_at_ms IS NOT NULL))
) STRICT;

-- Serves: list, newest activity first.
CREATE INDEX acp_sessions_by_activity ON acp_sessions (last_activity_at_ms DESC, session_id, agent_id);
-- Serves: a client's question for its session.
CREATE INDEX acp_sessions_by_session ON acp_sessions (session_id);

-- What model calls cost
-- ---------------------

-- Why: one row for each call of a model. Remaining budget is derived from the rows and never stored.
-- Written by: whoever calls models, and import. Rows leave: never by themselves.
CREATE TABLE usage_costs (
    cost_id             TEXT    NOT NULL PRIMARY KEY,
    -- The name it ran under then; NULL where none was recorded. It may be of nobody by now.
    agent_id            TEXT,
    model               TEXT    NOT NULL,
    input_tokens        INTEGER NOT NULL,
    output_tokens       INTEGER NOT NULL,
    cached_input_tokens INTEGER NOT NULL DEFAULT 0,
    total_tokens        INTEGER NOT NULL,
    cost_usd            REAL    NOT NULL,
    -- The price as it was written, where the number above does not print as that; NULL otherwise.
    cost_usd_text       TEXT,
    -- 0 where no price of the model was known: the cost is 0 then and means nothing.
    has_price           INTEGER NOT NULL DEFAULT 1 CHECK (has_price IN (0, 1)),
    recorded_at_ms      INTEGER NOT NULL,
    -- The time as it was written, which may be finer than a millisecond; NULL where it is not.
    recorded_at_text    TEXT,
    -- The life of the process that recorded it; no chat session.
    process_id          TEXT,
    goal_task_id        TEXT,
    -- What an import found and has no column for.
    detail_json         TEXT
) STRICT;

-- Serves: costs, newest first; sums of a span of time.
CREATE INDEX usage_costs_by_time ON usage_costs (recorded_at_ms DESC, cost_id);
-- Serves: costs of one agent.
CREATE INDEX usage_costs_by_agent ON usage_costs (agent_id, recorded_at_ms DESC, cost_id);

-- The log of what a runtime did
-- -----------------------------

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

-- Runs of standing procedures
-- ---------------------------

-- Why: one row for each run of a procedure: where it stands and what it waits for.
-- Written by: whoever drives a run, by compare-and-set of its revision, and import. Rows leave: never by themselves.
CREATE TABLE flow_runs (
    flow_id          TEXT    NOT NULL PRIMARY KEY,
    -- Name of the procedure it is a run of.
    controller_id    TEXT    NOT NULL,
    revision         INTEGER NOT NULL DEFAULT 0 CHECK (revision >= 0),
    -- 'waiting_approval' and 'paused' wait for a person; 'interrupted': its driver is gone, and nobody took it up.
    status           TEXT    NOT NULL
        CHECK (status IN ('pending', 'running', 'waiting_approval', 'paused', 'completed', 'failed', 'cancelled',
                          'interrupted')),
    -- The driver's own word where it says more than `status`.
    status_detail    TEXT,
    trigger_source   TEXT,
    current_step     INTEGER,
    total_steps      INTEGER,
    started_at_ms    INTEGER,
    waiting_since_ms INTEGER,
    updated_at_ms    INTEGER NOT NULL,
    ended_at_ms      INTEGER,
    -- The whole run, steps and their results included; the typed columns win.
    state_json       TEXT    NOT NULL,
    -- What an import found and has no column for.
    detail_json      TEXT
) STRICT;

-- Serves: runs, newest update first.
CREATE INDEX flow_runs_by_update ON flow_runs (updated_at_ms DESC, flow_id DESC);
-- Serves: runs that wait for a driver or a person.
CREATE INDEX flow_runs_open ON flow_runs (status, flow_id)
    WHERE status IN ('pending', 'running', 'waiting_approval', 'paused', 'interrupted');

-- Why: what happened in a run, in order; never changed.
-- Written by: whoever drives a run, and import. Rows leave: with their run.
-- No reference to the run: what happened is kept also where the run itself is lost.
CREATE TABLE flow_events (
    event_id     TEXT    NOT NULL PRIMARY KEY,
    flow_id      TEXT    NOT NULL,
    -- Order among events of the run.
    seq          INTEGER NOT NULL,
    at_ms        INTEGER,
    kind         TEXT    NOT NULL,
    actor        TEXT,
    reason       TEXT,
    payload_json TEXT    NOT NULL,
    -- What an import found and has no column for.
    detail_json  TEXT
) STRICT;

-- Serves: events of one run, in order.
CREATE INDEX flow_events_by_flow ON flow_events (flow_id, seq, event_id);

-- Why: a procedure that a run proposes to make or to change, and what became of that.
-- Written by: runs, people who decide, import. Rows leave: never by themselves.
CREATE TABLE flow_proposals (
    proposal_id    TEXT    NOT NULL PRIMARY KEY,
    -- Name of the procedure it would make or change.
    controller_id  TEXT    NOT NULL,
    source_flow_id TEXT,
    -- What it would do, in its writer's word.
    kind           TEXT    NOT NULL,
    status         TEXT    NOT NULL CHECK (status IN ('pending', 'applied', 'rejected', 'quarantined', 'stale')),
    -- The writer's own word where it says more than `status`.
    status_detail  TEXT,
    status_reason  TEXT,
    created_at_ms  INTEGER,
    updated_at_ms  INTEGER NOT NULL,
    applied_at_ms  INTEGER,
    applied_by     TEXT,
    -- The whole proposal, its texts included.
    proposal_json  TEXT    NOT NULL,
    -- What an import found and has no column for.
    detail_json    TEXT
) STRICT;

-- Serves: proposals, newest update first.
CREATE INDEX flow_proposals_by_update ON flow_proposals (updated_at_ms DESC, proposal_id DESC);
-- Serves: proposals of one run.
CREATE INDEX flow_proposals_by_flow ON flow_proposals (source_flow_id, proposal_id);

-- The knowledge graph
-- -------------------

-- Why: what an install knows beside what its agents remember: patterns, decisions, people. No agent's own.
-- Written by: knowledge tools, import. Rows leave: when a person or a tool removes them.
CREATE TABLE knowledge_nodes (
    node_id        TEXT    NOT NULL PRIMARY KEY,
    -- 'pattern', 'decision', 'client' and so on: its writer's word.
    node_type      TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    content        TEXT    NOT NULL,
    -- JSON array of texts.
    tags_json      TEXT    NOT NULL DEFAULT '[]',
    source_project TEXT,
    created_at_ms  INTEGER,
    updated_at_ms  INTEGER NOT NULL,
    -- What an import found and has no column for.
    detail_json    TEXT
) STRICT;

-- Serves: nodes, newest update first.
CREATE INDEX knowledge_nodes_by_update ON knowledge_nodes (updated_at_ms DESC, node_id DESC);

-- Why: how nodes belong together.
-- Written by: knowledge tools, import. Rows leave: with the tool's own deletion.
-- No reference to the nodes: an edge whose node is lost says that there was one.
CREATE TABLE knowledge_edges (
    from_id  TEXT NOT NULL,
    to_id    TEXT NOT NULL,
    -- 'uses', 'replaces', 'authored_by' and so on: its writer's word.
    relation TEXT NOT NULL,
    PRIMARY KEY (from_id, to_id, relation)
) STRICT;

-- Serves: edges that lead to a node.
CREATE INDEX knowledge_edges_by_target ON knowledge_edges (to_id, from_id, relation);

-- What was done to memories
-- -------------------------

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

-- Messages for channels
-- ---------------------

-- Why: a message outlives the process that wanted it sent, and nobody gets it twice because that process died.
-- Written by: whoever has something to tell, the process that sends, people who decide, import. Rows leave: sent ones
-- some days after they were sent, dead ones when a person prunes them.
CREATE TABLE delivery_queue_entries (
    id                          TEXT    NOT NULL PRIMARY KEY,
    queue_name                  TEXT    NOT NULL DEFAULT 'outbound',
    -- 'sending': a process has it. 'unknown': its process ended between the beginning of the send and its
    -- acknowledgement, so that it may have been sent; it is not sent again by itself.
    status                      TEXT    NOT NULL CHECK (status IN ('pending', 'sending', 'unknown', 'sent', 'dead')),
    dead_reason                 TEXT
        CHECK (dead_reason IS NULL OR dead_reason IN ('permanent', 'exhausted', 'expired', 'given_up')),
    -- What it is, in its writer's word.
    entry_kind                  TEXT,
    channel                     TEXT    NOT NULL,
    account_id                  TEXT,
    -- Whom the channel is to give it to, in the channel's own form.
    target                      TEXT    NOT NULL,
    thread_id                   TEXT,
    agent_id                    TEXT,
    session_key                 TEXT,
    -- The task whose end it tells. No reference: it is sent also where the task is gone.
    task_id                     TEXT,
    -- The same key of the same queue is the same message.
    idempotency_key             TEXT,
    -- What is to be sent, as its writer and the channel understand it.
    entry_json                  TEXT    NOT NULL,
    -- Whether it may be sent again where nobody knows if it was: a message that may come twice.
    may_resend                  INTEGER NOT NULL DEFAULT 0 CHECK (may_resend IN (0, 1)),
    -- Attempts that failed.
    retry_count                 INTEGER NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    max_retries                 INTEGER NOT NULL CHECK (max_retries >= 0),
    next_attempt_at_ms          INTEGER NOT NULL,
    -- From here on it is too old to be sent.
    expires_at_ms               INTEGER NOT NULL,
    claim_token                 TEXT,
    -- The process that has it, as it wrote itself down.
    claim_owner_json            TEXT,
    claimed_at_ms               INTEGER,
    -- When the channel began to send; NULL while nothing can have left.
    platform_send_started_at_ms INTEGER,
    -- The channel's own id of what it sent.
    platform_message_id         TEXT,
    last_attempt_at_ms          INTEGER,
    last_error                  TEXT,
    enqueued_at_ms              INTEGER NOT NULL,
    updated_at_ms               INTEGER NOT NULL,
    sent_at_ms                  INTEGER,
    -- When it became dead or unknown.
    failed_at_ms                INTEGER,
    -- What an import found and has no column for.
    detail_json                 TEXT,
    CHECK ((status = 'sending') = (claim_token IS NOT NULL)),
    CHECK ((claim_token IS NULL) = (claim_owner_json IS NULL)),
    CHECK ((status = 'dead') = (dead_reason IS NOT NULL)),
    CHECK (status <> 'unknown' OR platform_send_started_at_ms IS NOT NULL)
) STRICT;

-- Serves: what is due, channel by channel.
CREATE INDEX delivery_queue_entries_due ON delivery_queue_entries (channel, next_attempt_at_ms, id)
    WHERE status = 'pending';
-- Serves: what has become too old.
CREATE INDEX delivery_queue_entries_expiring ON delivery_queue_entries (expires_at_ms, id) WHERE status = 'pending';
-- Serves: what is under way, and what died on the way.
CREATE INDEX delivery_queue_entries_sending ON delivery_queue_entries (channel, id) WHERE status = 'sending';
-- Serves: what was sent long ago.
CREATE INDEX delivery_queue_entries_sent ON delivery_queue_entries (sent_at_ms, id) WHERE status = 'sent';
-- Serves: a message that is enqueued again.
CREATE UNIQUE INDEX delivery_queue_entries_by_key ON delivery_queue_entries (queue_name, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
-- Serves: messages, newest first.
CREATE INDEX delivery_queue_entries_by_time ON delivery_queue_entries (enqueued_at_ms DESC, id DESC);
-- Serves: messages of one status, newest first.
CREATE INDEX delivery_queue_entries_by_status ON delivery_queue_entries (status, enqueued_at_ms DESC, id DESC);

-- Commitments
-- -----------

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

-- Drivers of runs
-- ---------------

-- Why: a run has one driver at a time, and so many runs are driven at once and no more.
-- Written by: whoever drives runs. Rows leave: with the end of the drive, or when the driver's process is proven gone.
CREATE TABLE flow_claims (
    flow_id          TEXT    NOT NULL PRIMARY KEY
        REFERENCES flow_runs (flow_id) ON DELETE CASCADE,
    -- Name of the procedure, for its cap.
    controller_id    TEXT    NOT NULL,
    -- Who it is, for people.
    owner            TEXT    NOT NULL,
    claim_token      TEXT    NOT NULL,
    -- The process that drives it, as it wrote itself down.
    claim_owner_json TEXT    NOT NULL,
    claimed_at_ms    INTEGER NOT NULL
) STRICT;

-- Plugins
-- -------

-- Why: a plugin has state of its own, in namespaces: cursors, preferences, keys of messages it has seen. Values are the
-- plugin's own JSON; nobody else reads them.
-- Written by: plugins, import. Rows leave: when they expire, by `plugins clear`, and where a plugin is at its limit:
-- expired ones first, then the oldest of a namespace that its plugin calls a cache.
CREATE TABLE plugin_state_entries (
    plugin_id     TEXT    NOT NULL,
    -- '@versions' is the service's own: by namespace, the version of what the plugin keeps there.
    namespace     TEXT    NOT NULL,
    entry_key     TEXT    NOT NULL,
    value_json    TEXT    NOT NULL CHECK (json_valid(value_json)),
    -- Grows with each write of the key: who writes may say which one it has seen.
    version       INTEGER NOT NULL CHECK (version >= 1),
    -- What counts against the plugin's limit.
    size_bytes    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    -- From here on it is not there, swept or not.
    expires_at_ms INTEGER,
    -- Who has claimed the key, where it is a claim and no value.
    claim_owner   TEXT,
    PRIMARY KEY (plugin_id, namespace, entry_key),
    CHECK (size_bytes = length(CAST(entry_key AS BLOB)) + length(CAST(value_json AS BLOB))),
    -- A claim of one who died must end.
    CHECK (claim_owner IS NULL OR expires_at_ms IS NOT NULL)
) STRICT;

-- Serves: how much a plugin holds, without reading a value, and what of a cache is the oldest.
CREATE INDEX plugin_state_by_age ON plugin_state_entries (plugin_id, namespace, updated_at_ms, size_bytes);
-- Serves: what has expired.
CREATE INDEX plugin_state_by_expiry ON plugin_state_entries (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Why: what a plugin keeps that is no JSON.
-- Written by: plugins, import. Rows leave: as above, under the same limits.
CREATE TABLE plugin_blob_entries (
    plugin_id     TEXT    NOT NULL,
    namespace     TEXT    NOT NULL,
    entry_key     TEXT    NOT NULL,
    metadata_json TEXT    NOT NULL CHECK (json_valid(metadata_json)),
    blob          BLOB    NOT NULL,
    size_bytes    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    PRIMARY KEY (plugin_id, namespace, entry_key),
    CHECK (size_bytes = length(CAST(entry_key AS BLOB)) + length(CAST(metadata_json AS BLOB)) + length(blob))
) STRICT;

-- Serves: as the index of the same name above.
CREATE INDEX plugin_blob_by_age ON plugin_blob_entries (plugin_id, namespace, updated_at_ms, size_bytes);
-- Serves: what has expired.
CREATE INDEX plugin_blob_by_expiry ON plugin_blob_entries (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

-- Why: a plugin answers on an account of a channel only where somebody has allowed it.
-- Written by: whoever asks the person, import. Rows leave: when it is taken back.
CREATE TABLE plugin_binding_approvals (
    -- Folder the plugin is loaded from: another one of the same name is another plugin.
    plugin_root    TEXT    NOT NULL,
    channel        TEXT    NOT NULL,
    account_id     TEXT    NOT NULL,
    plugin_id      TEXT    NOT NULL,
    plugin_name    TEXT,
    approved_at_ms INTEGER NOT NULL,
    PRIMARY KEY (plugin_root, channel, account_id)
) STRICT;

-- Serves: what one plugin may, newest first.
CREATE INDEX plugin_binding_approvals_by_plugin ON plugin_binding_approvals (plugin_id, approved_at_ms DESC);

-- Why: which plugins are installed, as the runtime found them, so that it need not look again.
-- Written by: the runtime, import. Rows leave: replaced under their key.
CREATE TABLE installed_plugin_index (
    index_key               TEXT    NOT NULL PRIMARY KEY,
    version                 INTEGER NOT NULL,
    host_contract_version   TEXT    NOT NULL,
    compat_registry_version TEXT    NOT NULL,
    migration_version       INTEGER NOT NULL,
    -- Digest of the rules it was made under: others make it void.
    policy_hash             TEXT    NOT NULL,
    generated_at_ms         INTEGER NOT NULL,
    refresh_reason          TEXT,
    install_records_json    TEXT    NOT NULL CHECK (json_valid(install_records_json)),
    plugins_json            TEXT    NOT NULL CHECK (json_valid(plugins_json)),
    diagnostics_json        TEXT    NOT NULL CHECK (json_valid(diagnostics_json)),
    warning                 TEXT,
    updated_at_ms           INTEGER NOT NULL
) STRICT;

-- Views for other tools
-- --------------------

-- Why: other tools read a root through these, whatever becomes of the tables behind them. A column stays where it is and
-- means what it meant; new ones come last. None shows what an archive without secrets would leave out.

-- Agents, retired ones too.
CREATE VIEW v_agents (
    agent_id, status, status_reason, path, schema_version, created_at_ms, last_seen_at_ms, size_bytes
) AS
SELECT
    agent_id, status, status_reason, path, schema_version, created_at_ms, last_seen_at_ms, size_bytes
FROM agent_databases;

-- Background work and runs of scheduled jobs.
CREATE VIEW v_tasks (
    task_id, owner_kind, task_kind, source_id, agent_id, parent_task_id, label, status, status_detail,
    created_at_ms, started_at_ms, ended_at_ms, duration_ms, output, error
) AS
SELECT
    task_id, owner_kind, task_kind, source_id, agent_id, parent_task_id, label, status, status_detail,
    created_at_ms, started_at_ms, ended_at_ms, duration_ms, output, error
FROM task_runs;

-- Scheduled jobs.
CREATE VIEW v_cron_jobs (
    job_id, name, description, origin, agent_id, enabled, disabled_reason, schedule_kind, schedule_expr,
    schedule_tz, every_ms, at_ms, payload_kind, payload_message, next_run_at_ms, last_run_at_ms, last_run_status,
    consecutive_failures, created_at_ms, updated_at_ms
) AS
SELECT
    job_id, name, description, origin, agent_id, enabled, disabled_reason, schedule_kind, schedule_expr,
    schedule_tz, every_ms, at_ms, payload_kind, payload_message, next_run_at_ms, last_run_at_ms, last_run_status,
    consecutive_failures, created_at_ms, updated_at_ms
FROM cron_jobs;

-- What calls of models cost.
CREATE VIEW v_costs (
    cost_id, agent_id, model, input_tokens, output_tokens, cached_input_tokens, total_tokens, cost_usd, has_price,
    recorded_at_ms, goal_task_id
) AS
SELECT
    cost_id, agent_id, model, input_tokens, output_tokens, cached_input_tokens, total_tokens, cost_usd, has_price,
    recorded_at_ms, goal_task_id
FROM usage_costs;

-- Messages for channels, without what they say.
CREATE VIEW v_deliveries (
    id, queue_name, status, dead_reason, entry_kind, channel, account_id, target, thread_id, agent_id, session_key,
    task_id, retry_count, max_retries, next_attempt_at_ms, expires_at_ms, last_error, enqueued_at_ms,
    updated_at_ms, sent_at_ms, failed_at_ms
) AS
SELECT
    id, queue_name, status, dead_reason, entry_kind, channel, account_id, target, thread_id, agent_id, session_key,
    task_id, retry_count, max_retries, next_attempt_at_ms, expires_at_ms, last_error, enqueued_at_ms,
    updated_at_ms, sent_at_ms, failed_at_ms
FROM delivery_queue_entries;

-- Runs of standing procedures.
CREATE VIEW v_flows (
    flow_id, controller_id, revision, status, status_detail, trigger_source, current_step, total_steps,
    started_at_ms, waiting_since_ms, updated_at_ms, ended_at_ms
) AS
SELECT
    flow_id, controller_id, revision, status, status_detail, trigger_source, current_step, total_steps,
    started_at_ms, waiting_since_ms, updated_at_ms, ended_at_ms
FROM flow_runs;

-- What agents promised to come back to.
CREATE VIEW v_commitments (
    id, agent_id, session_key, channel, kind, status, reason, suggested_text, confidence, due_earliest_ms,
    due_latest_ms, due_timezone, attempts, created_at_ms, updated_at_ms
) AS
SELECT
    id, agent_id, session_key, channel, kind, status, reason, suggested_text, confidence, due_earliest_ms,
    due_latest_ms, due_timezone, attempts, created_at_ms, updated_at_ms
FROM commitments;

-- Paired devices.
CREATE VIEW v_devices (
    device_id, display_name, device_type, paired_at_ms, last_seen_at_ms
) AS
SELECT
    device_id, display_name, device_type, paired_at_ms, last_seen_at_ms
FROM device_identities;

-- What a runtime did, without the events' own bodies.
CREATE VIEW v_logs (
    scope, event_key, created_at_ms, sequence, level, category, action, outcome, agent_id
) AS
SELECT
    scope, event_key, created_at_ms, sequence, level, category, action, outcome, agent_id
FROM diagnostic_events;

-- What was done to memories.
CREATE VIEW v_audit (
    event_id, subject, operation, subject_key, namespace, session_hint, agent_id, at_ms
) AS
SELECT
    event_id, subject, operation, subject_key, namespace, session_hint, agent_id, at_ms
FROM audit_events;

-- The knowledge graph's nodes.
CREATE VIEW v_knowledge (
    node_id, node_type, title, content, tags_json, source_project, created_at_ms, updated_at_ms
) AS
SELECT
    node_id, node_type, title, content, tags_json, source_project, created_at_ms, updated_at_ms
FROM knowledge_nodes;

-- Backup, verification and restore runs.
CREATE VIEW v_backups (
    id, kind, created_at_ms, finished_at_ms, archive_path, archive_bytes, status, error
) AS
SELECT
    id, kind, created_at_ms, finished_at_ms, archive_path, archive_bytes, status, error
FROM backup_runs;

-- What imports brought in, a row a source.
CREATE VIEW v_imports (
    source_path, migration_kind, target_table, source_size_bytes, source_record_count, imported_count,
    present_count, merged_count, refused_count, status, last_run_id, imported_at_ms
) AS
SELECT
    source_path, migration_kind, target_table, source_size_bytes, source_record_count, imported_count,
    present_count, merged_count, refused_count, status, last_run_id, imported_at_ms
FROM migration_sources;

-- Pairing
-- -------

-- Why: a person reads a code off a terminal and types it into a device; the code opens once, for minutes.
-- Written by: whoever asks for a code. Rows leave: a while after they are over.
CREATE TABLE device_bootstrap_tokens (
    -- SHA-256 of the code, 64 lower-case hex digits; the code itself is in no column.
    token_key       TEXT    NOT NULL PRIMARY KEY
        CHECK (length(token_key) = 64 AND token_key NOT GLOB '*[^0-9a-f]*'),
    -- What the device shall be called, where that was said.
    display_name    TEXT,
    issued_at_ms    INTEGER NOT NULL,
    expires_at_ms   INTEGER NOT NULL,
    -- Wrong codes presented while this one was open; too many void it.
    failed_attempts INTEGER NOT NULL DEFAULT 0 CHECK (failed_attempts >= 0),
    -- When it was used, or voided; NULL while it is open.
    closed_at_ms    INTEGER,
    -- The device it paired.
    device_id       TEXT,
    CHECK (device_id IS NULL OR closed_at_ms IS NOT NULL)
) STRICT;

-- Serves: codes that are open, and those that are over.
CREATE INDEX device_bootstrap_tokens_by_expiry ON device_bootstrap_tokens (expires_at_ms, token_key);

-- Why: a device that has no code asks, and a person says yes or no.
-- Written by: the device's request, the decision, its collecting of the token. Rows leave: a while after they are over.
CREATE TABLE device_pairing_requests (
    request_id    TEXT    NOT NULL PRIMARY KEY,
    -- SHA-256 of what the device proves itself with when it collects its token.
    secret_sha256 TEXT    NOT NULL
        CHECK (length(secret_sha256) = 64 AND secret_sha256 NOT GLOB '*[^0-9a-f]*'),
    display_name  TEXT,
    device_type   TEXT,
    remote_ip     TEXT,
    status        TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'denied', 'collected')),
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    decided_at_ms INTEGER,
    -- The device it became.
    device_id     TEXT,
    CHECK ((status = 'pending') = (decided_at_ms IS NULL)),
    CHECK ((status = 'collected') = (device_id IS NOT NULL))
) STRICT;

-- Serves: requests, newest first.
CREATE INDEX device_pairing_requests_by_time ON device_pairing_requests (created_at_ms DESC, request_id DESC);

-- Why: a stranger who writes on a channel gets a code to show to the owner, and no answer.
-- Written by: runtimes with channels, import. Rows leave: with the decision, or when they expire.
CREATE TABLE channel_pairing_requests (
    -- Channel type, for example 'telegram'.
    channel_key     TEXT    NOT NULL,
    account_id      TEXT    NOT NULL,
    -- Who asks, in the channel's own terms.
    request_id      TEXT    NOT NULL,
    -- What the stranger was told; it opens nothing, the owner's word does.
    code            TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    expires_at_ms   INTEGER NOT NULL,
    -- What the channel knows of them, JSON.
    meta_json       TEXT,
    PRIMARY KEY (channel_key, account_id, request_id)
) STRICT;

-- Serves: the request of a code; no two open ones of a channel have the same.
CREATE UNIQUE INDEX channel_pairing_requests_by_code ON channel_pairing_requests (channel_key, code);
-- Serves: requests, oldest first.
CREATE INDEX channel_pairing_requests_by_time ON channel_pairing_requests (created_at_ms, channel_key, request_id);

-- Why: who may write to the agent through a channel. Nobody else may.
-- Written by: approval, the owner, import. Rows leave: when the owner says so.
CREATE TABLE channel_pairing_allow_entries (
    channel_key   TEXT    NOT NULL,
    account_id    TEXT    NOT NULL,
    -- Who, in the channel's own terms; never a wildcard.
    entry         TEXT    NOT NULL CHECK (entry NOT IN ('', '*')),
    sort_order    INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (channel_key, account_id, entry)
) STRICT;

-- Serves: the entries of a channel, in their order.
CREATE INDEX channel_pairing_allow_entries_by_order ON channel_pairing_allow_entries (channel_key, account_id, sort_order, entry);
