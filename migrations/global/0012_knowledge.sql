-- 0012: the knowledge graph.

-- Why: what an install knows beside what its agents remember: patterns, decisions, people. No agent's own.
-- Written by: knowledge tools, import. Rows leave: when a person or a tool removes them.
CREATE TABLE knowledge_nodes (
    node_id        TEXT    NOT NULL PRIMARY KEY,
    -- 'pattern', 'decision', 'client' and so on: its writer's word.
    node_type      TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    content        TEXT    NOT NULL,
    -- JSON array of texts.
    tags_json      TEXT    NOT NULL DEFAULT '[]',
    source_project TEXT,
    created_at_ms  INTEGER,
    updated_at_ms  INTEGER NOT NULL,
    -- What an import found and has no column for.
    detail_json    TEXT
) STRICT;

-- Serves: nodes, newest update first.
CREATE INDEX knowledge_nodes_by_update ON knowledge_nodes (updated_at_ms DESC, node_id DESC);

-- Why: how nodes belong together.
-- Written by: knowledge tools, import. Rows leave: with the tool's own deletion.
-- No reference to the nodes: an edge whose node is lost says that there was one.
CREATE TABLE knowledge_edges (
    from_id  TEXT NOT NULL,
    to_id    TEXT NOT NULL,
    -- 'uses', 'replaces', 'authored_by' and so on: its writer's word.
    relation TEXT NOT NULL,
    PRIMARY KEY (from_id, to_id, relation)
) STRICT;

-- Serves: edges that lead to a node.
CREATE INDEX knowledge_edges_by_target ON knowledge_edges (to_id, from_id, relation);
