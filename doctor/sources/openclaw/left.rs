//! Tables of the old program's databases that are known and not read, each with the reason.
//!
//! A `*` at the end of a name stands for any ending; the first row that fits is the one.

/// Of an agent.
pub(super) const AGENT: &[(&str, &str)] = &[
    ("schema_meta", "it says what the file is"),
    ("schema_migration*", "it says what the file is"),
    ("transcript_event_identities", "made from the events"),
    ("transcript_rewrite_watermarks", "marks of the old program"),
    ("session_key_contract", "how the old program makes keys"),
    (
        "session_transcript_archives",
        "packed copies of what was deleted or reset",
    ),
    (
        "session_transcript_cold_archives",
        "packed copies of what was deleted or reset",
    ),
    ("session_transcript_*", "an index over the events"),
    (
        "session_*",
        "who takes part, in the old program's own terms",
    ),
    (
        "transcript_snapshots",
        "places to go back to, in the old program's own terms",
    ),
    (
        "trajectory_runtime_events",
        "what the old program's runtime did, step by step",
    ),
    (
        "acp_parent_stream_events",
        "what children told, step by step",
    ),
    ("memory_*", "made from files and sessions"),
    ("auth_profile_*", "secrets; sign in anew"),
    ("cache_entries", "a cache"),
    ("vfs_entries", "files of the old program's runs"),
    ("tool_artifacts", "payloads of the old program's runs"),
    ("run_artifacts", "payloads of the old program's runs"),
    ("state_leases", "who held what; nobody does"),
];

/// Of all agents together.
pub(super) const STATE: &[(&str, &str)] = &[
    ("schema_meta", "it says what the file is"),
    ("schema_migration*", "it says what the file is"),
    ("migration_*", "imports of the old program"),
    ("backup_runs", "backups of the old program"),
    ("agent_databases", "found by their files"),
    (
        "agent_provenance",
        "who made an agent, in the old program's own terms",
    ),
    ("agent_model_catalogs", "made from the configuration"),
    ("audit_events", "what the old program did; it stays there"),
    ("diagnostic_*", "logs of the old program"),
    (
        "config_*",
        "the old program's own configuration; it may hold secrets",
    ),
    ("update_check_state", "versions of the old program"),
    ("gateway_*", "starts of the old program"),
    ("skill_*", "skills of the old program"),
    ("cron_run_receipts", "told by the tasks"),
    ("cron_*", "grants and claims of the old program's scheduler"),
    (
        "task_delivery_state",
        "who was told, in the old program's own terms",
    ),
    ("flow_runs", "mirrors of tasks"),
    ("subagent_runs", "work of a process that is gone"),
    ("worker_*", "places of the old program's processes"),
    ("session_*", "told by the agents' databases"),
    ("plugin_*", "state of plugins"),
    (
        "channel_ingress_events",
        "messages that were taken in already",
    ),
    ("channel_pairing_*", "who may write; approve them anew"),
    ("device_identities", "a secret key; a new one is made"),
    ("device_*", "secrets and requests; pair anew"),
    (
        "exec_approvals_config",
        "what was allowed there is not allowed here unasked",
    ),
    ("workspace_*", "how far a workspace was set up"),
    ("voicewake_*", "settings of the old program's voice"),
    (
        "acp_*",
        "sessions of editors, in the old program's own terms",
    ),
    ("commitments", "what was promised then would be said now"),
    ("capture_*", "captures for debugging"),
    ("auth_profile_*", "secrets; sign in anew"),
    ("mcp_*", "secrets; sign in anew"),
    ("apns_*", "secrets; register anew"),
    ("web_push_*", "secrets; register anew"),
    ("node_*", "nodes of the old program"),
    ("sandbox_*", "containers of the old program"),
    (
        "current_conversation_bindings",
        "bindings of the old program",
    ),
    ("installed_plugin_index", "plugins that cannot run here"),
    ("tui_*", "settings of the old program's terminal"),
    ("managed_outgoing_*", "files that stay there"),
    ("media_blobs", "files that stay there"),
    ("model_*", "made anew"),
    (
        "command_log_entries",
        "what the old program was told; it stays there",
    ),
    ("state_leases", "who held what; nobody does"),
    ("native_hook_*", "doors of the old program"),
    ("android_*", "notifications of a phone"),
    ("macos_*", "ports of the old program"),
    ("operator_*", "approvals of the old program"),
    ("user_profile*", "people, in the old program's own terms"),
];
