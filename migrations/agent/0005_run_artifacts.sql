-- 0005: what runs gave that is more than a line: outputs of background work, files made by tools.

-- Why: the output of a run, kept with its digest, so that its end can be proven.
-- Written by: whoever runs the work, and import. Rows leave: by retention of the run.
CREATE TABLE run_artifacts (
    -- The task, or another run, that gave it.
    run_id        TEXT    NOT NULL,
    path          TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    -- What its producer said of it, as JSON.
    metadata_json TEXT    NOT NULL,
    -- Of `blob`, hex.
    sha256        TEXT    NOT NULL CHECK (length(sha256) = 64),
    size_bytes    INTEGER NOT NULL CHECK (size_bytes >= 0),
    created_at_ms INTEGER NOT NULL,
    blob          BLOB    NOT NULL,
    PRIMARY KEY (run_id, path),
    CHECK (size_bytes = length(blob))
) STRICT;
