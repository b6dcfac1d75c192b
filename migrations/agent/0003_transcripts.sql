-- 0003: what was said and done, in order, and the index to find it.

-- Why: the events of a session in the order they were accepted.
-- Written by: append and import. Rows leave: with their session.
CREATE TABLE transcript_events (
    -- Stable row id: the full-text index hangs on it.
    event_no      INTEGER NOT NULL PRIMARY KEY,
    session_no    INTEGER NOT NULL REFERENCES sessions (session_no) ON DELETE CASCADE,
    seq           INTEGER NOT NULL CHECK (seq > 0),
    event_type    TEXT    NOT NULL,
    -- Who spoke; NULL for events that are no message.
    role          TEXT,
    created_at_ms INTEGER NOT NULL,
    -- Readable text, the searchable part; empty where there is none.
    text          TEXT    NOT NULL,
    -- The whole event where text and typed columns do not say it all, else NULL.
    -- Last: lists and searches never touch its pages.
    event_json    TEXT,
    UNIQUE (session_no, seq)
) STRICT;

-- Why: finds an event by its id, its parent or the caller's idempotency key.
-- Written by: append and import. Rows leave: with their event.
CREATE TABLE transcript_event_identities (
    session_no              INTEGER NOT NULL,
    event_id                TEXT    NOT NULL,
    seq                     INTEGER NOT NULL,
    event_type              TEXT    NOT NULL,
    parent_id               TEXT,
    message_idempotency_key TEXT,
    created_at_ms           INTEGER NOT NULL,
    PRIMARY KEY (session_no, event_id),
    FOREIGN KEY (session_no, seq) REFERENCES transcript_events (session_no, seq) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Serves: the foreign key's own look-up; id of an event by its place.
CREATE UNIQUE INDEX transcript_event_identities_by_seq
    ON transcript_event_identities (session_no, seq);
-- A repeated append finds its first result.
CREATE UNIQUE INDEX transcript_event_identities_idempotency
    ON transcript_event_identities (session_no, message_idempotency_key)
    WHERE message_idempotency_key IS NOT NULL;

-- Why: word search over all transcripts. Derived: dropped and rebuilt without touching events.
-- Written by: append, in its transaction; after an import in slices, in `event_no` order, so that
-- the highest document it holds says how far it is complete. Rows leave: with their event, by the store.
CREATE VIRTUAL TABLE transcript_events_fts USING fts5 (
    text,
    content = 'transcript_events',
    content_rowid = 'event_no',
    tokenize = 'unicode61 remove_diacritics 2'
);
