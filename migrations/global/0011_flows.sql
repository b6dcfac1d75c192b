-- 0011: runs of standing procedures, what happened in them, and what they propose.

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
