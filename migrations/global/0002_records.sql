-- 0002: what doctor and backup did, so that a person can ask and a rerun can know.

-- Why: one row for each `doctor --fix` that had something to do.
-- Written by: doctor. Rows leave: never by themselves; receipts hang on them.
CREATE TABLE migration_runs (
    id             TEXT    NOT NULL PRIMARY KEY,
    started_at_ms  INTEGER NOT NULL,
    finished_at_ms INTEGER,
    status         TEXT    NOT NULL CHECK (status IN ('running', 'completed', 'warning', 'failed')),
    -- The phase reached: a rerun after a kill goes on from here.
    phase          TEXT    NOT NULL CHECK (phase IN ('backup', 'apply', 'verify', 'retire', 'index', 'report')),
    -- Foreign root of the sources; NULL when the root itself was imported.
    from_path      TEXT,
    -- Archive made before the first change; NULL when there was nothing to keep.
    backup_path    TEXT,
    app_version    TEXT    NOT NULL,
    report_json    TEXT    NOT NULL
) STRICT;

-- Serves: history, newest first.
CREATE INDEX migration_runs_by_start ON migration_runs (started_at_ms DESC, id);

-- Why: the receipt of one source: what came in, and the proof.
-- Written by: doctor. Rows leave: with their run, which is never pruned while it owns receipts.
CREATE TABLE migration_sources (
    source_key          TEXT    NOT NULL PRIMARY KEY,
    migration_kind      TEXT    NOT NULL,
    -- Relative to the root the source was found in.
    source_path         TEXT    NOT NULL,
    target_table        TEXT    NOT NULL,
    source_sha256       TEXT    NOT NULL CHECK (length(source_sha256) = 64),
    source_size_bytes   INTEGER NOT NULL CHECK (source_size_bytes >= 0),
    source_record_count INTEGER NOT NULL CHECK (source_record_count >= 0),
    imported_count      INTEGER NOT NULL CHECK (imported_count >= 0),
    present_count       INTEGER NOT NULL CHECK (present_count >= 0),
    merged_count        INTEGER NOT NULL CHECK (merged_count >= 0),
    refused_count       INTEGER NOT NULL CHECK (refused_count >= 0),
    last_run_id         TEXT    NOT NULL REFERENCES migration_runs (id) ON DELETE CASCADE,
    status              TEXT    NOT NULL CHECK (status IN ('applied', 'verified', 'retired', 'kept', 'discarded', 'failed')),
    imported_at_ms      INTEGER NOT NULL,
    removed_source      INTEGER NOT NULL DEFAULT 0 CHECK (removed_source IN (0, 1)),
    retired_path        TEXT,
    report_json         TEXT    NOT NULL,
    -- Nothing is lost in silence: every record of the source is accounted for.
    CHECK (status = 'failed'
        OR source_record_count = imported_count + present_count + merged_count + refused_count)
) STRICT;

-- Serves: receipts of one run.
CREATE INDEX migration_sources_by_run ON migration_sources (last_run_id, source_path);
-- Serves: has this path been imported before.
CREATE INDEX migration_sources_by_path ON migration_sources (source_path, migration_kind);

-- Why: every backup, verification and restore, good, failed or interrupted.
-- Written by: backup. Rows leave: bounded list, oldest first.
CREATE TABLE backup_runs (
    id             TEXT    NOT NULL PRIMARY KEY,
    kind           TEXT    NOT NULL CHECK (kind IN ('create', 'verify', 'restore')),
    created_at_ms  INTEGER NOT NULL,
    finished_at_ms INTEGER,
    archive_path   TEXT    NOT NULL,
    archive_bytes  INTEGER CHECK (archive_bytes IS NULL OR archive_bytes >= 0),
    status         TEXT    NOT NULL CHECK (status IN ('running', 'completed', 'failed', 'interrupted')),
    -- Why it failed; NULL unless it did.
    error          TEXT,
    manifest_json  TEXT    NOT NULL
) STRICT;

-- Serves: list, newest first; freshness.
CREATE INDEX backup_runs_by_creation ON backup_runs (created_at_ms DESC, id);
