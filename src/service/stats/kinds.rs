//! What is kept in which table, in words that mean something to who wonders where the disk went.

const BOOKS: &str = "bookkeeping";

/// Tables by kind; full-text indexes are of a kind of their own.
const KINDS: [(&str, &[&str]); 10] = [
    (
        "conversations",
        &[
            "conversations",
            "sessions",
            "session_routes",
            "session_entries",
            "session_conversations",
            "transcript_events",
            "transcript_event_identities",
            "transcript_snapshots",
        ],
    ),
    (
        "memories",
        &[
            "memories",
            "memory_index_sources",
            "memory_index_chunks",
            "memory_index_state",
            "memory_index_meta",
            "memory_embedding_cache",
            "knowledge_nodes",
            "knowledge_edges",
        ],
    ),
    ("files", &["vfs_entries", "vfs_chunks"]),
    (
        "artifacts and media",
        &[
            "run_artifacts",
            "tool_artifacts",
            "media_blobs",
            "managed_outgoing_image_records",
            "skill_uploads",
            "skill_upload_chunks",
        ],
    ),
    (
        "runtime streams",
        &["trajectory_runtime_events", "acp_parent_stream_events"],
    ),
    ("caches", &["cache_entries"]),
    (
        "tasks, jobs and flows",
        &[
            "task_runs",
            "task_delivery_state",
            "goal_tasks",
            "task_continuations",
            "task_settlements",
            "subagent_runs",
            "cron_jobs",
            "flow_runs",
            "flow_events",
            "flow_claims",
            "flow_proposals",
            "commitments",
            "delivery_queue_entries",
        ],
    ),
    (
        "plugins",
        &[
            "plugin_state_entries",
            "plugin_blob_entries",
            "plugin_binding_approvals",
            "installed_plugin_index",
        ],
    ),
    (
        "logs, costs and audit",
        &[
            "diagnostic_events",
            "usage_costs",
            "audit_events",
            "command_log_entries",
        ],
    ),
    ("search indexes", &[]),
];

/// What a table keeps; whatever is not told apart is bookkeeping.
pub(super) fn kind_of(table: &str) -> &'static str {
    if table.ends_with("_fts") {
        return "search indexes";
    }
    let found = KINDS.iter().find(|(_, tables)| tables.contains(&table));
    found.map_or(BOOKS, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::FULL_TEXT_INDEXES;

    #[test]
    fn a_table_is_of_one_kind_and_indexes_are_told_apart() {
        for index in FULL_TEXT_INDEXES {
            assert_eq!(kind_of(index), "search indexes");
        }
        assert_eq!(kind_of("memories"), "memories");
        assert_eq!(kind_of("schema_meta"), BOOKS);
        let all: Vec<_> = KINDS.iter().flat_map(|(_, tables)| *tables).collect();
        let once: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), once.len());
    }
}
