-- 0018: who drives a run of a procedure.

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
