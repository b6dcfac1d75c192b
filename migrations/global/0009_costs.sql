-- 0009: what model calls cost, at the price they were recorded with.

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
