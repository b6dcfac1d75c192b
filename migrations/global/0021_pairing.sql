-- 0021: how devices come to be paired, and who may write on a channel.

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
