-- 0017: what a scheduler needs: the run a job is in, the occurrence it came to, and what is to happen when runs are
-- missed or fail.
-- Why: an occurrence runs once, whatever crashes. So the run, the claim and the next time change in one transaction, and
-- the run's row names the process that does it.

-- Up to which occurrence the job was run or passed over; earlier ones never run again, also when the clock goes back.
ALTER TABLE cron_jobs ADD COLUMN last_occurrence_at_ms INTEGER;
-- The run it is in; that row of `task_runs` names the process. NULL while it is in none.
ALTER TABLE cron_jobs ADD COLUMN claim_task_id TEXT;
-- What happens to occurrences that were missed; NULL as the configuration says.
ALTER TABLE cron_jobs ADD COLUMN catch_up TEXT CHECK (catch_up IN ('skip', 'once', 'all'));
-- How old an occurrence may be to be caught up on; NULL for the policy's own bound.
ALTER TABLE cron_jobs ADD COLUMN catch_up_window_ms INTEGER CHECK (catch_up_window_ms IS NULL OR catch_up_window_ms > 0);
-- Longest run of a command; NULL for the usual.
ALTER TABLE cron_jobs ADD COLUMN timeout_ms INTEGER CHECK (timeout_ms IS NULL OR timeout_ms > 0);
-- Runs kept; 0 keeps all, NULL as the configuration says.
ALTER TABLE cron_jobs ADD COLUMN runs_kept INTEGER CHECK (runs_kept IS NULL OR runs_kept >= 0);
-- Failures in a row, and from how many on somebody is told, where, and how often at most.
ALTER TABLE cron_jobs ADD COLUMN consecutive_failures INTEGER NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0);
ALTER TABLE cron_jobs ADD COLUMN failure_alert_after INTEGER CHECK (failure_alert_after IS NULL OR failure_alert_after > 0);
ALTER TABLE cron_jobs ADD COLUMN failure_alert_channel TEXT;
ALTER TABLE cron_jobs ADD COLUMN failure_alert_to TEXT;
ALTER TABLE cron_jobs ADD COLUMN failure_alert_cooldown_ms INTEGER CHECK (failure_alert_cooldown_ms IS NULL OR failure_alert_cooldown_ms >= 0);
ALTER TABLE cron_jobs ADD COLUMN failure_alerted_at_ms INTEGER;

-- Serves: jobs that are in a run.
CREATE INDEX cron_jobs_claimed ON cron_jobs (claim_task_id) WHERE claim_task_id IS NOT NULL;
-- Keeps: one run for an occurrence of a job.
CREATE UNIQUE INDEX task_runs_by_occurrence ON task_runs (source_id, idempotency_key)
    WHERE owner_kind = 'cron' AND idempotency_key IS NOT NULL;
