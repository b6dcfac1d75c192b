-- 0007: files of the agent that live in its database.

-- Why: trees of files and folders, one a namespace, that travel with the agent.
-- Written by: file use cases and workers. Rows leave: on delete; parts of a cut-off upload after a day.
CREATE TABLE vfs_entries (
    -- Small key for chunks and the word index; never leaves this file.
    entry_no      INTEGER NOT NULL PRIMARY KEY,
    -- Empty for an upload under way, which no path leads to.
    namespace     TEXT    NOT NULL,
    -- Names joined by '/', none at either end. Every folder above is a row too.
    path          TEXT    NOT NULL CHECK (path <> ''),
    -- The path of the folder it stands in; '' for the top, which is no row.
    parent        TEXT    NOT NULL,
    -- A whiteout hides what a layer lies over.
    kind          TEXT    NOT NULL CHECK (kind IN ('file', 'folder', 'whiteout')),
    size_bytes    INTEGER NOT NULL DEFAULT 0 CHECK (size_bytes >= 0),
    -- Size of each chunk but the last; NULL where the bytes are in this row.
    chunk_bytes   INTEGER CHECK (chunk_bytes > 0),
    is_executable INTEGER NOT NULL DEFAULT 0 CHECK (is_executable IN (0, 1)),
    -- 1 when the bytes of this row are readable text, which the word index takes.
    is_text       INTEGER NOT NULL DEFAULT 0 CHECK (is_text IN (0, 1)),
    -- 1 for a folder of a layer that hides all of the folder it lies over.
    is_opaque     INTEGER NOT NULL DEFAULT 0 CHECK (is_opaque IN (0, 1)),
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    -- A small file's bytes. Last: listings never touch its pages.
    content_blob  BLOB,
    UNIQUE (namespace, path),
    CHECK ((kind = 'file' AND chunk_bytes IS NULL) = (content_blob IS NOT NULL)),
    CHECK (content_blob IS NULL OR length(content_blob) = size_bytes)
) STRICT;

-- Serves: list of one folder. Everything below a folder is a range of the unique index.
CREATE INDEX vfs_entries_by_parent ON vfs_entries (namespace, parent, path);

-- Why: the bytes of files too large for their row.
-- Written by: file use cases. Rows leave: with their file.
CREATE TABLE vfs_chunks (
    entry_no     INTEGER NOT NULL REFERENCES vfs_entries (entry_no) ON DELETE CASCADE,
    chunk_no     INTEGER NOT NULL CHECK (chunk_no >= 0),
    content_blob BLOB    NOT NULL CHECK (length(content_blob) > 0),
    PRIMARY KEY (entry_no, chunk_no)
) STRICT;

-- What the word index reads: names, and the text of files that are text and lie in their row.
CREATE VIEW vfs_words AS
    SELECT entry_no,
           CASE parent WHEN '' THEN path ELSE substr(path, length(parent) + 2) END AS name,
           CASE is_text WHEN 1 THEN CAST(content_blob AS TEXT) ELSE '' END AS text
    FROM vfs_entries
    WHERE namespace <> '' AND kind <> 'whiteout';

-- Why: word search over files. Derived: dropped and rebuilt without touching them.
-- Written by: file use cases, in their transaction. Rows leave: by the store.
CREATE VIRTUAL TABLE vfs_entries_fts USING fts5 (
    name,
    text,
    content = 'vfs_words',
    content_rowid = 'entry_no',
    tokenize = 'unicode61 remove_diacritics 2'
);
