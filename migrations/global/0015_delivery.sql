-- 0015: what is to be sent through channels, and what became of it.

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
