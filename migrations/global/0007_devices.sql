-- 0007: paired devices, and the digests of the tokens they present.

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
