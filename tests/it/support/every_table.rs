//! A row in every ordinary table of both tiers, so that whatever moves a root can be shown to forget none.
//!
//! [`GLOBAL`] and [`AGENT`] are the table of values. A table of the schema that is not in it stops [`fill`] with its
//! name: who adds a table says here what a row of it looks like, even if that is nothing special.

use std::collections::BTreeSet;
use std::path::Path;

use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

use super::sqlite::{self, Journal, block_on};

/// Columns that cannot be filled by their type alone, as SQL literals; all others are.
type Values = &'static [(&'static str, &'static str)];

/// Tables that every root has rows in by itself.
const OWN_ROWS: [&str; 3] = ["schema_meta", "agent_databases", "memory_index_state"];

/// SHA-256 of nothing.
const DIGEST: &str = "'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'";

/// The control plane.
const GLOBAL: &[(&str, Values)] = &[
    ("state_leases", &[("scope", "'gateway_locks'")]),
    (
        "migration_runs",
        &[
            ("id", "'run-1'"),
            ("status", "'completed'"),
            ("phase", "'report'"),
        ],
    ),
    (
        "migration_sources",
        &[
            ("source_sha256", DIGEST),
            // One of each fate: the sum is the number of records.
            ("source_record_count", "10"),
            ("imported_count", "4"),
            ("present_count", "3"),
            ("merged_count", "2"),
            ("refused_count", "1"),
            ("last_run_id", "'run-1'"),
            ("status", "'retired'"),
            ("removed_source", "1"),
        ],
    ),
    (
        "backup_runs",
        &[
            ("id", "'every-table'"),
            ("kind", "'create'"),
            ("status", "'failed'"),
        ],
    ),
    (
        "task_runs",
        &[
            ("owner_kind", "'cron'"),
            ("agent_id", "'atlas'"),
            ("status", "'succeeded'"),
            ("task_id", "'task-1'"),
            ("caller_chain_json", "'[\"atlas\",\"birch\"]'"),
            ("depth", "1"),
            ("cancel_state", "'requested'"),
            ("progress_json", "'[{\"at_ms\":1,\"text\":\"half way\"}]'"),
        ],
    ),
    (
        "task_delivery_state",
        &[("task_id", "'task-1'"), ("is_delivered", "1")],
    ),
    (
        "goal_tasks",
        &[("task_id", "'task-1'"), ("blockers_json", "'[]'")],
    ),
    ("task_continuations", &[("task_id", "'task-1'")]),
    (
        "task_settlements",
        &[("task_id", "'task-1'"), ("artifact_sha256", DIGEST)],
    ),
    (
        "cron_jobs",
        &[
            ("origin", "'runtime'"),
            ("agent_id", "'atlas'"),
            ("enabled", "0"),
            ("delete_after_run", "1"),
            ("schedule_kind", "'cron'"),
            ("schedule_expr", "'0 9 * * *'"),
            ("schedule_tz", "'Asia/Tokyo'"),
            ("schedule_tz_origin", "'host'"),
            ("payload_kind", "'shell'"),
            ("payload_tools_allow_json", "'[\"shell\"]'"),
            ("uses_memory", "0"),
            ("shell_output_format", "'raw'"),
            ("delivery_best_effort", "0"),
            ("catch_up", "'skip'"),
        ],
    ),
    ("device_identities", &[]),
    (
        "device_auth_tokens",
        &[("token_sha256", DIGEST), ("status", "'revoked'")],
    ),
    ("device_bootstrap_tokens", &[("token_key", DIGEST)]),
    (
        "device_pairing_requests",
        &[("secret_sha256", DIGEST), ("status", "'collected'")],
    ),
    ("channel_pairing_requests", &[]),
    ("channel_pairing_allow_entries", &[]),
    (
        "acp_sessions",
        &[("agent_id", "'atlas'"), ("state", "'ended'")],
    ),
    (
        "usage_costs",
        &[("agent_id", "'atlas'"), ("has_price", "0")],
    ),
    (
        "diagnostic_events",
        &[("agent_id", "'atlas'"), ("level", "'warn'")],
    ),
    (
        "flow_runs",
        &[("flow_id", "'flow-1'"), ("status", "'paused'")],
    ),
    ("flow_events", &[]),
    ("flow_proposals", &[("status", "'stale'")]),
    (
        "delivery_queue_entries",
        &[
            ("status", "'unknown'"),
            ("dead_reason", "NULL"),
            ("agent_id", "'atlas'"),
            ("claim_token", "NULL"),
            ("claim_owner_json", "NULL"),
            ("may_resend", "1"),
        ],
    ),
    (
        "commitments",
        &[
            ("agent_id", "'atlas'"),
            ("status", "'snoozed'"),
            ("confidence", "0.5"),
        ],
    ),
    ("flow_claims", &[("flow_id", "'flow-1'")]),
    ("knowledge_nodes", &[("tags_json", "'[\"a\", \"b\"]'")]),
    ("knowledge_edges", &[]),
    ("audit_events", &[("agent_id", "'atlas'")]),
    (
        "plugin_state_entries",
        &[
            ("entry_key", "'seen'"),
            ("value_json", "'null'"),
            ("size_bytes", "8"),
        ],
    ),
    (
        "plugin_blob_entries",
        &[
            ("entry_key", "'keys'"),
            ("metadata_json", "'{}'"),
            ("size_bytes", "9"),
            ("blob", "x'00ff2a'"),
        ],
    ),
    ("plugin_binding_approvals", &[]),
    ("installed_plugin_index", &[]),
];

/// One agent's data.
const AGENT: &[(&str, Values)] = &[
    (
        "run_artifacts",
        &[
            ("sha256", DIGEST),
            ("size_bytes", "3"),
            ("blob", "x'00ff2a'"),
        ],
    ),
    ("migration_sources", &[("source_sha256", DIGEST)]),
    (
        "conversations",
        &[("conversation_id", "'talk-1'"), ("kind", "'group'")],
    ),
    (
        "sessions",
        &[
            ("session_no", "1"),
            ("session_id", "'session-1'"),
            ("session_scope", "'group'"),
            ("status", "'done'"),
            ("chat_type", "'group'"),
            ("primary_conversation_id", "'talk-1'"),
            ("has_synthetic_times", "1"),
            ("leaf_seq", "1"),
        ],
    ),
    ("session_routes", &[("session_id", "'session-1'")]),
    ("session_entries", &[("session_id", "'session-1'")]),
    (
        "session_conversations",
        &[
            ("session_id", "'session-1'"),
            ("conversation_id", "'talk-1'"),
            ("role", "'primary'"),
        ],
    ),
    (
        "transcript_events",
        &[("event_no", "1"), ("session_no", "1"), ("seq", "1")],
    ),
    (
        "transcript_event_identities",
        &[("session_no", "1"), ("seq", "1")],
    ),
    (
        "transcript_snapshots",
        &[("session_id", "'session-1'"), ("seq", "1")],
    ),
    ("state_leases", &[("scope", "'turn'")]),
    (
        "memories",
        &[
            ("memory_no", "1001"),
            ("pinned", "1"),
            ("is_trusted", "0"),
            ("embedding", "x'0000803f'"),
        ],
    ),
    (
        "tool_artifacts",
        &[
            ("session_id", "'session-1'"),
            ("kind", "'result'"),
            ("sha256", DIGEST),
            ("size_bytes", "3"),
        ],
    ),
    (
        "vfs_entries",
        &[
            ("entry_no", "7"),
            ("path", "'notes/tide.md'"),
            ("parent", "'notes'"),
            ("kind", "'file'"),
            ("size_bytes", "4"),
            ("chunk_bytes", "NULL"),
            ("is_executable", "1"),
            ("is_text", "1"),
            ("is_opaque", "0"),
            ("content_blob", "x'74696465'"),
        ],
    ),
    ("vfs_chunks", &[("entry_no", "7")]),
    (
        "memory_index_sources",
        &[
            ("source_no", "1"),
            ("source_kind", "'memory'"),
            ("hash", DIGEST),
        ],
    ),
    (
        "memory_index_chunks",
        &[("source_no", "1"), ("start_line", "1"), ("end_line", "2")],
    ),
    (
        "trajectory_runtime_events",
        &[("session_id", "'session-1'"), ("seq", "1")],
    ),
    (
        "acp_parent_stream_events",
        &[("session_id", "'session-1'"), ("seq", "1")],
    ),
    ("cache_entries", &[]),
];

/// Puts a row with a value in every column into every ordinary table of a control plane.
///
/// # Panics
///
/// With the names of the tables that have no values.
pub(crate) fn fill_global(store: &Path) {
    fill(store, GLOBAL);
}

/// The same for an agent's database; its full-text indexes are built anew.
///
/// # Panics
///
/// As [`fill_global`].
pub(crate) fn fill_agent(store: &Path) {
    fill(store, AGENT);
    let rebuild = zeroclaw::db::FULL_TEXT_INDEXES
        .map(|index| format!("INSERT INTO {index} ({index}) VALUES ('rebuild');"));
    sqlite::change(store, &rebuild.concat());
}

/// Whether a table of the tier `global` or `agent` gets a row.
pub(crate) fn covers(tier: &str, table: &str) -> bool {
    let values = if tier == "global" { GLOBAL } else { AGENT };
    OWN_ROWS.contains(&table) || values.iter().any(|(name, _)| *name == table)
}

fn fill(store: &Path, values: &[(&str, Values)]) {
    block_on(async {
        let mut conn = sqlite::open(store, Journal::Wal).await;
        let tables = ordinary_tables(&mut conn).await;
        refuse_gaps(&tables, values);
        // Foreign keys are off while it lasts: the order of tables need not be told.
        sqlite::run(&mut conn, "BEGIN IMMEDIATE").await;
        for (table, hand) in values {
            let sql = insert_of(&mut conn, table, hand).await;
            sqlite::run(&mut conn, &sql).await;
        }
        sqlite::run(&mut conn, "COMMIT").await;
        let broken = sqlx::query("PRAGMA foreign_key_check").fetch_all(&mut conn);
        assert!(broken.await.unwrap().is_empty(), "a row has no parent");
        conn.close().await.unwrap();
    });
}

/// Names of the ordinary tables, as the schema of this very file has them.
async fn ordinary_tables(conn: &mut SqliteConnection) -> BTreeSet<String> {
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_sqlx%' ESCAPE '\\'",
    )
    .fetch_all(conn)
    .await
    .unwrap();
    names.into_iter().collect()
}

fn refuse_gaps(tables: &BTreeSet<String>, values: &[(&str, Values)]) {
    let told: BTreeSet<&str> = values.iter().map(|(table, _)| *table).collect();
    let missing: Vec<&String> = tables
        .iter()
        .filter(|table| !told.contains(table.as_str()) && !OWN_ROWS.contains(&table.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "no row of {missing:?} is known: add one to tests/it/support/every_table.rs, \
         so that it is proved to survive backup, restore and moving"
    );
}

/// The statement that fills every column: by hand, else by its type with a value that names the column.
async fn insert_of(conn: &mut SqliteConnection, table: &str, hand: Values) -> String {
    let columns =
        sqlx::query("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid")
            .bind(table)
            .fetch_all(conn)
            .await
            .unwrap();
    assert!(!columns.is_empty(), "there is no table {table}");
    let mut names = Vec::new();
    let mut literals = Vec::new();
    for (place, column) in (1..).zip(&columns) {
        let (name, kind): (String, String) = (column.get(0), column.get(1));
        let by_hand = hand.iter().find(|(column, _)| *column == name);
        literals.push(match by_hand {
            Some((_, literal)) => (*literal).to_owned(),
            None => by_type(table, &name, &kind, place),
        });
        names.push(format!("\"{name}\""));
    }
    for (name, _) in hand {
        let is_there = names.iter().any(|column| column.trim_matches('"') == *name);
        assert!(is_there, "{table} has no column {name}");
    }
    format!(
        "INSERT INTO \"{table}\" ({}) VALUES ({})",
        names.join(", "),
        literals.join(", ")
    )
}

fn by_type(table: &str, column: &str, kind: &str, place: i64) -> String {
    match kind {
        "TEXT" if column.ends_with("_json") => format!("'{{\"of\": \"{table}.{column}\"}}'"),
        "TEXT" => format!("'{table}.{column} \u{2728}'"),
        "INTEGER" => format!("{}", 1_767_608_100_000 + place),
        "REAL" => format!("{place}.25"),
        "BLOB" => format!("x'00ff{place:02x}'"),
        other => panic!("{table}.{column} is of the unknown type {other}"),
    }
}

/// The ordinary tables without a row.
pub(crate) fn empty_tables(store: &Path) -> Vec<String> {
    let copy = sqlite::PrivateCopy::of(store);
    block_on(async {
        let mut conn = copy.open().await;
        let mut empty = Vec::new();
        for table in ordinary_tables(&mut conn).await {
            let sql = format!("SELECT count(*) FROM \"{table}\"");
            // Safe: the name comes from the schema of a test's own file and is quoted.
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
                .fetch_one(&mut conn)
                .await
                .unwrap();
            if count == 0 {
                empty.push(table);
            }
        }
        empty
    })
}
