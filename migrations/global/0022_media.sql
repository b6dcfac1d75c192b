-- 0022: media that channels brought or agents sent, and skills on their way in.

-- Why: pictures, voice and files that came through channels or are to leave by them, kept where a backup finds them.
-- Written by: channels, import. Rows leave: by `[state.media]` retention, oldest first, or by name; never one that an
-- image to be sent still needs.
CREATE TABLE media_blobs (
    -- 'inbound', 'outbound' and so on: its writer's word.
    subdir        TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    content_type  TEXT,
    size_bytes    INTEGER NOT NULL,
    -- Of the bytes, so that damage is seen.
    sha256        TEXT    NOT NULL CHECK (length(sha256) = 64),
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    -- Last: listings never touch its pages.
    blob          BLOB    NOT NULL,
    PRIMARY KEY (subdir, id),
    CHECK (size_bytes = length(blob))
) STRICT;

-- Serves: the oldest first, for retention; newest first, for people.
CREATE INDEX media_blobs_by_time ON media_blobs (created_at_ms, subdir, id, size_bytes);

-- Why: an image that an agent sent stays reachable for as long as its message may show it.
-- Written by: whoever sends it, import. Rows leave: with the blob they name, once they are marked.
CREATE TABLE managed_outgoing_image_records (
    attachment_id           TEXT    NOT NULL PRIMARY KEY,
    session_key             TEXT    NOT NULL,
    agent_id                TEXT,
    message_id              TEXT,
    created_at_ms           INTEGER NOT NULL,
    updated_at_ms           INTEGER,
    -- How long it is meant to stay, in its writer's word.
    retention_class         TEXT,
    alt                     TEXT    NOT NULL,
    -- Where its bytes are: a folder of files, or 'media_blobs'.
    original_media_root     TEXT    NOT NULL,
    original_media_id       TEXT    NOT NULL,
    original_media_subdir   TEXT    NOT NULL,
    original_content_type   TEXT    NOT NULL,
    original_width          INTEGER,
    original_height         INTEGER,
    original_size_bytes     INTEGER,
    original_filename       TEXT,
    record_json             TEXT    NOT NULL CHECK (json_valid(record_json)),
    -- 1: it is not needed any more, and goes with its blob.
    cleanup_pending         INTEGER NOT NULL DEFAULT 0 CHECK (cleanup_pending IN (0, 1))
) STRICT;

-- Serves: images of one conversation, newest first.
CREATE INDEX managed_outgoing_images_by_session
    ON managed_outgoing_image_records (session_key, created_at_ms DESC, attachment_id);
-- Serves: is a blob still needed.
CREATE INDEX managed_outgoing_images_by_media
    ON managed_outgoing_image_records (original_media_subdir, original_media_id);

-- Why: a skill comes in in pieces and is one archive that was proven, or nothing.
-- Written by: whoever uploads. Rows leave: when they expire, committed or not.
CREATE TABLE skill_uploads (
    upload_id            TEXT    NOT NULL PRIMARY KEY,
    kind                 TEXT    NOT NULL,
    -- Name the skill is to have.
    slug                 TEXT    NOT NULL,
    -- Whether one of that name is replaced.
    force                INTEGER NOT NULL DEFAULT 0 CHECK (force IN (0, 1)),
    -- What was announced.
    size_bytes           INTEGER NOT NULL CHECK (size_bytes > 0),
    sha256               TEXT CHECK (sha256 IS NULL OR length(sha256) = 64),
    -- What came.
    actual_sha256        TEXT CHECK (actual_sha256 IS NULL OR length(actual_sha256) = 64),
    received_bytes       INTEGER NOT NULL DEFAULT 0 CHECK (received_bytes BETWEEN 0 AND size_bytes),
    created_at_ms        INTEGER NOT NULL,
    expires_at_ms        INTEGER NOT NULL,
    committed            INTEGER NOT NULL DEFAULT 0 CHECK (committed IN (0, 1)),
    committed_at_ms      INTEGER,
    -- The same key is the same upload; only its digest is kept.
    idempotency_key_hash TEXT UNIQUE,
    -- The whole, once it is committed; nothing before. Last: listings never touch its pages.
    archive_blob         BLOB    NOT NULL DEFAULT X'',
    CHECK (committed = 0 OR length(archive_blob) = size_bytes AND actual_sha256 IS NOT NULL)
) STRICT;

-- Serves: what has expired.
CREATE INDEX skill_uploads_by_expiry ON skill_uploads (expires_at_ms);

-- Why: pieces of an upload that is not committed yet.
-- Written by: whoever uploads. Rows leave: when the upload is committed, or with it.
CREATE TABLE skill_upload_chunks (
    upload_id   TEXT    NOT NULL REFERENCES skill_uploads (upload_id) ON DELETE CASCADE,
    byte_offset INTEGER NOT NULL CHECK (byte_offset >= 0),
    size_bytes  INTEGER NOT NULL CHECK (size_bytes > 0),
    chunk_blob  BLOB    NOT NULL,
    PRIMARY KEY (upload_id, byte_offset),
    CHECK (length(chunk_blob) = size_bytes)
) STRICT;
