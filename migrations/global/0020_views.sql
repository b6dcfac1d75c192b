-- 0020: views for other tools.

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
