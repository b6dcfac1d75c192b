//! `db query`: reads whatever is asked for, and nothing else happens.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::inhabited;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::rows;

fn inhabited() -> Sandbox {
    let home = Sandbox::in_memory();
    inhabited::build(&home.root());
    home
}

/// Numbers without end.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";

#[test]
fn what_would_write_attach_or_set_something_is_refused_and_nothing_changes() {
    let home = inhabited();
    let before = home.tree();

    for sql in [
        "DELETE FROM agent_databases",
        "delete from agent_databases returning *",
        "INSERT INTO cron_jobs DEFAULT VALUES",
        "REPLACE INTO cron_jobs DEFAULT VALUES",
        "UPDATE cron_jobs SET name = 'x'",
        "WITH x AS (SELECT 1) DELETE FROM cron_jobs",
        "SELECT 1; DELETE FROM cron_jobs",
        "DROP TABLE cron_jobs",
        "ALTER TABLE cron_jobs ADD COLUMN x",
        "CREATE TABLE x (a)",
        "CREATE TEMP TABLE x AS SELECT 1",
        "ATTACH 'other.sqlite' AS other",
        "ATTACH DATABASE ':memory:' AS m",
        "DETACH other",
        "VACUUM",
        "VACUUM INTO 'copy.sqlite'",
        "REINDEX",
        "ANALYZE",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "SAVEPOINT x",
        "PRAGMA writable_schema",
        "PRAGMA writable_schema = ON",
        "PRAGMA main.writable_schema=1",
        "PRAGMA query_only = OFF",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 3",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "PRAGMA hard_heap_limit = 0",
        "SELECT load_extension('x.so')",
        "SELECT writefile('x', 'y')",
        "EXPLAIN DELETE FROM cron_jobs",
        "",
    ] {
        let ran = home.zeroclaw(&["db", "query", sql]).says_nothing();
        assert!(matches!(ran.code(), Some(2 | 10)), "{}", ran.told());
        assert!(ran.stderr.contains("error: "), "{}", ran.told());
    }
    for sql in [
        "DELETE FROM agent_databases",
        "ATTACH 'x' AS y",
        "PRAGMA writable_schema = ON",
    ] {
        home.zeroclaw(&["db", "query", sql])
            .exits(10)
            .complains("a query only reads");
        home.zeroclaw(&["db", "query", "--agent", "atlas", sql])
            .exits(10);
    }

    home.is_unchanged_since(&before);
}

#[test]
fn an_endless_query_is_stopped_in_its_time() {
    let home = inhabited();
    let since = Instant::now();

    for sql in [
        format!("{ENDLESS} SELECT count(*) FROM n"),
        "SELECT count(*) FROM pragma_function_list a, pragma_function_list b, pragma_function_list c, \
         pragma_function_list d, pragma_function_list e"
            .to_owned(),
    ] {
        home.zeroclaw(&["db", "query", "--timeout", "1", &sql])
            .exits(10)
            .says_nothing()
            .complains("ran for longer than 1 s")
            .complains("--timeout");
    }

    assert!(since.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_huge_result_is_cut_and_says_so() {
    let home = inhabited();

    // A thousand rows unless asked otherwise.
    let rows = home
        .zeroclaw(&[
            "db",
            "query",
            "--json",
            &format!("{ENDLESS} SELECT i FROM n"),
        ])
        .exits(1)
        .complains("--limit");
    let answer = rows.json();
    assert_eq!(answer["rows"].as_array().unwrap().len(), 1_000);
    assert_eq!(answer["cut"], "rows");
    // A gigabyte in rows of 1 MB each.
    let sql = format!("{ENDLESS} SELECT i, randomblob(1000000) FROM n LIMIT 1000");
    let bytes = home
        .zeroclaw(&["db", "query", "--json", &sql])
        .exits(1)
        .complains("64.0 MiB");
    assert_eq!(bytes.json()["cut"], "bytes");
    // A gigabyte in one value, and in a sort.
    for sql in [
        "SELECT randomblob(1000000000)".to_owned(),
        format!(
            "{ENDLESS} SELECT * FROM (SELECT randomblob(1000000) AS b FROM n LIMIT 1000) ORDER BY b"
        ),
    ] {
        home.zeroclaw(&["db", "query", &sql])
            .exits(10)
            .says_nothing()
            .complains("more memory");
    }
    // A long value among short ones.
    let cut = home
        .zeroclaw(&[
            "db",
            "query",
            "--json",
            "SELECT 1, hex(randomblob(3000000))",
        ])
        .exits(1)
        .complains("substr");
    assert_eq!(cut.json()["cut_cells"], 1);
}

#[test]
fn what_may_hold_a_credential_is_not_read_whichever_way_leads_there() {
    let home = inhabited();

    for sql in [
        "SELECT * FROM device_auth_tokens",
        "SELECT d.display_name FROM device_identities d JOIN device_auth_tokens t USING (device_id)",
        "SELECT count(*) FROM device_auth_tokens WHERE token_sha256 > 'a'",
        "SELECT value_json FROM plugin_state_entries",
        "SELECT hex(blob) FROM plugin_blob_entries",
        "SELECT payload_json FROM diagnostic_events",
        "SELECT * FROM diagnostic_events",
        "WITH x AS (SELECT job_json AS y FROM cron_jobs) SELECT length(y) FROM x",
    ] {
        home.zeroclaw(&["db", "query", sql])
            .exits(10)
            .says_nothing()
            .complains("may hold credentials");
    }
    home.zeroclaw(&["db", "query", "SELECT level, action FROM diagnostic_events"])
        .exits(0);
}

#[test]
fn an_answer_is_a_table_json_or_comma_separated() {
    let home = inhabited();
    let sql = "SELECT 1 AS a, NULL AS b, 'x,\"y\"' AS c, x'00ff' AS d";

    home.zeroclaw(&["db", "query", sql])
        .exits(0)
        .says("x'00ff'");
    let json = home
        .zeroclaw(&["db", "query", sql, "--json"])
        .exits(0)
        .json();
    assert_eq!(json["columns"], json!(["a", "b", "c", "d"]));
    assert_eq!(
        json["rows"],
        json!([[1, null, "x,\"y\"", { "blob": "00ff" }]])
    );
    assert_eq!(
        (&json["cut"], &json["tier"]),
        (&json!(null), &json!("global"))
    );
    let csv = home.zeroclaw(&["db", "query", sql, "--csv"]).exits(0);
    assert_eq!(csv.stdout, "a,b,c,d\r\n1,,\"x,\"\"y\"\"\",x'00ff'\r\n");
    home.zeroclaw(&["db", "query", "SELECT frobnicate FROM v_agents"])
        .exits(2)
        .complains("no such column");
    home.zeroclaw(&["db", "query", "--agent", "nobody", "SELECT 1"])
        .exits(9);
}

/// Columns that `docs/views.md` names, by view.
fn documented() -> BTreeMap<String, Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/views.md");
    let text = std::fs::read_to_string(page).unwrap();
    let parts = text.split("\n### `").skip(1);
    parts
        .map(|part| {
            let part = part.split("\n## ").next().unwrap();
            let (name, rest) = part.split_once('`').unwrap();
            let list = rest.trim().rsplit("\n\n").next().unwrap();
            let columns = list.split(',').map(|name| name.trim().trim_matches('`'));
            (name.to_owned(), columns.map(str::to_owned).collect())
        })
        .collect()
}

#[test]
fn every_view_has_the_columns_that_are_documented_in_that_order_and_can_be_read() {
    let home = inhabited();
    let documented = documented();
    let mut found = BTreeMap::new();
    for (store, agent) in [
        ("state/state.sqlite", None),
        ("agents/atlas/agent/agent.sqlite", Some("atlas")),
    ] {
        let sql = "SELECT v.name, c.name FROM sqlite_schema v, pragma_table_info(v.name) c
                   WHERE v.type = 'view' AND v.name GLOB 'v_*' ORDER BY v.name, c.cid";
        for row in rows(&home.root().join(store), sql) {
            let [view, column] = [0, 1].map(|at| row[at].clone());
            found
                .entry(view)
                .or_insert_with(|| (agent, Vec::new()))
                .1
                .push(column);
        }
    }

    let columns: BTreeMap<_, _> = found
        .iter()
        .map(|(view, (_, columns))| (view.clone(), columns.clone()))
        .collect();
    assert_eq!(columns, documented);
    for (view, (agent, _)) in &found {
        let sql = format!("SELECT * FROM {view}");
        let mut args = vec!["db", "query", "--csv", "--limit", "100000", &sql];
        args.extend(agent.iter().flat_map(|agent| ["--agent", agent]));
        home.zeroclaw(&args).exits(0);
    }
}
