-- 0014: who holds a lease and who works on a task, so that others can tell whether they live and which claim is the newest.
-- Why: what a dead process held is free at once, what a living one holds is never taken, and a writer that lost its claim
-- is refused.

-- The holder: number, start and boot of its process; NULL where it did not say.
ALTER TABLE state_leases ADD COLUMN owner_pid INTEGER;
ALTER TABLE state_leases ADD COLUMN owner_start_identity TEXT;
ALTER TABLE state_leases ADD COLUMN owner_boot_id TEXT;
-- Goes up with each holder and never back, released or not: see the row of scope `fencing`, which holds the last one given.
ALTER TABLE state_leases ADD COLUMN fencing_token INTEGER NOT NULL DEFAULT 0 CHECK (fencing_token >= 0);

-- Goes up with each claim: a write that names another one is refused.
ALTER TABLE task_runs ADD COLUMN fencing_token INTEGER NOT NULL DEFAULT 0 CHECK (fencing_token >= 0);
-- The last sign of life by the time since boot, which nobody sets; counts only within the owner's boot.
ALTER TABLE task_runs ADD COLUMN heartbeat_uptime_ms INTEGER;
-- Silence after which it is taken to have timed out; NULL for producers that do not beat.
ALTER TABLE task_runs ADD COLUMN heartbeat_timeout_ms INTEGER
    CHECK (heartbeat_timeout_ms IS NULL OR heartbeat_timeout_ms > 0);
-- JSON array of the last things its worker said of it: at_ms, text. Bounded by its writer.
ALTER TABLE task_runs ADD COLUMN progress_json TEXT;

-- Serves: the next task to claim of a kind, oldest first.
CREATE INDEX task_runs_pending ON task_runs (owner_kind, created_at_ms, task_id) WHERE status = 'pending';
-- Serves: the task that a producer has started under a key before.
CREATE INDEX task_runs_by_idempotency_key ON task_runs (idempotency_key) WHERE idempotency_key IS NOT NULL;
