-- 0008: an index over files that hold memories, which stay files.

-- Why: one row a file that was indexed. Derived: dropped and rebuilt from the files without touching canonical rows.
-- Written by: import, when a file is new or has changed. Rows leave: when the file is indexed anew.
CREATE TABLE memory_index_sources (
    source_no   INTEGER NOT NULL PRIMARY KEY,
    source_kind TEXT    NOT NULL DEFAULT 'memory' CHECK (source_kind IN ('memory')),
    -- Relative to the root it was found in.
    path        TEXT    NOT NULL,
    hash        TEXT    NOT NULL CHECK (length(hash) = 64),
    mtime_ms    INTEGER NOT NULL,
    size_bytes  INTEGER NOT NULL CHECK (size_bytes >= 0),
    UNIQUE (source_kind, path)
) STRICT;

-- Why: one row an entry of such a file, to be listed and found.
-- Written by: import, with its file. Rows leave: with their file.
CREATE TABLE memory_index_chunks (
    chunk_no      INTEGER NOT NULL PRIMARY KEY,
    source_no     INTEGER NOT NULL REFERENCES memory_index_sources (source_no) ON DELETE CASCADE,
    -- Of the text and of how often it occurred before in its file: lines shift when people edit.
    id            TEXT    NOT NULL,
    start_line    INTEGER NOT NULL CHECK (start_line > 0),
    end_line      INTEGER NOT NULL CHECK (end_line >= start_line),
    category      TEXT    NOT NULL,
    -- Name of the entry, where it has one.
    key           TEXT,
    text          TEXT    NOT NULL,
    UNIQUE (source_no, id)
) STRICT;

-- Why: word search over entries. Derived.
-- Written by: import, in its transaction. Rows leave: with their entry, by the store.
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5 (
    key,
    text,
    content = 'memory_index_chunks',
    content_rowid = 'chunk_no',
    tokenize = 'unicode61 remove_diacritics 2'
);

-- Why: says which state of the index a reader has seen.
-- Written by: import, at each change of the index. Rows leave: never.
CREATE TABLE memory_index_state (
    id       INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL CHECK (revision >= 0)
) STRICT;

INSERT INTO memory_index_state VALUES (1, 0);
