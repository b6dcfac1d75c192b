-- 0005: who asked for a task, who runs it, and whether it is to stop.
-- Why: a task may be read and cancelled by whoever asked for it and by their callers alone, and it is
-- lost only when the process that runs it is proven gone.

-- The producer's own word for the kind of work, where it says more than `owner_kind`.
ALTER TABLE task_runs ADD COLUMN task_kind TEXT;
-- Who asked for it: an agent for background work, a route of a channel for what people asked.
ALTER TABLE task_runs ADD COLUMN originator_route TEXT;
-- On whose behalf, as its producer knew them: to be looked at, never to grant access.
ALTER TABLE task_runs ADD COLUMN principal_id TEXT;
-- JSON array of the agents that may ask after it, the nearest caller first; NULL where none was recorded.
ALTER TABLE task_runs ADD COLUMN caller_chain_json TEXT;
-- How many tasks stand above it.
ALTER TABLE task_runs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0);
-- The same key of the same producer is the same task.
ALTER TABLE task_runs ADD COLUMN idempotency_key TEXT;
-- The process that runs it: number, start and boot together tell it from a later one.
ALTER TABLE task_runs ADD COLUMN execution_owner_pid INTEGER;
ALTER TABLE task_runs ADD COLUMN execution_owner_start_identity TEXT;
ALTER TABLE task_runs ADD COLUMN execution_owner_boot_id TEXT;
-- Last sign of life; NULL for producers that give none, which never time out.
ALTER TABLE task_runs ADD COLUMN heartbeat_at_ms INTEGER;
ALTER TABLE task_runs ADD COLUMN cancel_state TEXT NOT NULL DEFAULT 'none'
    CHECK (cancel_state IN ('none', 'requested', 'acknowledged'));

-- Serves: tasks of one status, newest first.
CREATE INDEX task_runs_by_status ON task_runs (status, started_at_ms DESC, task_id);
-- Serves: tasks of one kind, newest first.
CREATE INDEX task_runs_by_kind ON task_runs (owner_kind, started_at_ms DESC, task_id);
-- Serves: what a task has started.
CREATE INDEX task_runs_by_parent ON task_runs (parent_task_id, task_id)
    WHERE parent_task_id IS NOT NULL;
