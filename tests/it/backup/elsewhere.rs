//! A root restored on another machine: other path, other user, other HOME, other time zone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;
use sqlx::{AssertSqlSafe, Row};

use crate::support::legacy::copy_sample;
use crate::support::sandbox::{Ran, Sandbox};
use crate::support::sqlite::{PrivateCopy, block_on};
use crate::support::stranger::Stranger;

/// What may name a folder of another machine, and why that does no harm.
const HISTORY: [(&str, &str); 2] = [
    // Where archives outside of the root were written: told by `backup list`, and read by nobody else.
    ("backup_runs", "archive_path"),
    // The foreign root of an import: told by `doctor history`; compared, never opened.
    ("migration_runs", "from_path"),
];

/// Tables and columns of a database whose values hold `needle`.
fn columns_with(store: &Path, needle: &str) -> Vec<(String, String)> {
    let copy = PrivateCopy::of(store);
    block_on(async {
        let mut conn = copy.open().await;
        let columns = sqlx::query(
            "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_xinfo(t.name) c
             WHERE t.schema = 'main' AND t.type = 'table' ORDER BY t.name, c.cid",
        )
        .fetch_all(&mut conn)
        .await
        .unwrap();
        let mut found = Vec::new();
        for row in columns {
            let (table, column): (String, String) = (row.get(0), row.get(1));
            let sql = format!(
                "SELECT count(*) FROM \"{table}\" WHERE instr(CAST(\"{column}\" AS TEXT), ?1) > 0"
            );
            // Safe: the names come from the schema of a test's own file and are quoted.
            let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql))
                .bind(needle)
                .fetch_one(&mut conn)
                .await
                .unwrap();
            if count > 0 {
                found.push((table, column));
            }
        }
        found
    })
}

/// What a person looks at; nothing of it may depend on where the root is.
const LOOKS: [&[&str]; 9] = [
    &["agents", "list"],
    &["agents", "show", "atlas"],
    &["sessions", "list", "--archived"],
    &["sessions", "search", "lantern"],
    &["memory", "list"],
    &["cron", "list"],
    &["cron", "runs"],
    &["doctor", "history"],
    &["db", "check"],
];

fn answers(run: impl Fn(&[&str]) -> Ran) -> Vec<Value> {
    let json = |args: &&[&str]| run(&[*args, &["--json"]].concat()).exits(0).json();
    LOOKS.iter().map(json).collect()
}

/// Takes the sizes of the databases out of what `db check` said.
fn without_sizes(said: &mut [Value]) -> Vec<u64> {
    let checks = said.last_mut().unwrap().as_array_mut().unwrap();
    let size = |check: &mut Value| check["size_bytes"].take().as_u64().unwrap();
    checks.iter_mut().map(size).collect()
}

#[test]
fn c51_a_root_moves_to_another_user_path_home_and_time_zone() {
    let there = Sandbox::new();
    let old_prefix = there.home().to_str().unwrap().to_owned();
    copy_sample(there.home().join("old install"));
    let in_tokyo = |args: &[&str]| {
        let mut command = there.command(args);
        command.env("TZ", "Asia/Tokyo");
        Ran::of(command)
    };
    in_tokyo(&["init"]).exits(0);
    in_tokyo(&["doctor", "--fix", "--from", "old install"]);
    // One archive in the root, one outside of it.
    in_tokyo(&["backup", "create"]).exits(0);
    in_tokyo(&["backup", "create", "--output", "moved.tar.gz"]).exits(0);
    let mut said = answers(in_tokyo);

    let here = Stranger::new();
    let archive = here.home().join("moved.tar.gz");
    fs::copy(there.home().join("moved.tar.gz"), &archive).unwrap();
    here.own(&archive);
    // Nothing can resolve through what is gone.
    drop(there);
    let root = here.home().join("srv/b/state");
    let elsewhere = |args: &[&str]| {
        let args = [&["--config-dir", root.to_str().unwrap()], args].concat();
        let mut command = here.command(&args);
        command.env("TZ", "UTC");
        Ran::of(command)
    };
    let restored = elsewhere(&["backup", "restore", "moved.tar.gz", "--yes"]).exits(0);

    assert!(restored.stderr.contains("the state is that of"));
    let mut says = answers(elsewhere);
    // A restored database is a compact one: what was free in the one that grew is gone.
    let (grown, compact) = (without_sizes(&mut said), without_sizes(&mut says));
    assert_eq!(grown.len(), compact.len());
    assert!(
        grown
            .iter()
            .zip(&compact)
            .all(|(grown, compact)| compact <= grown)
    );
    assert_eq!(says, said);
    for entry in walkdir::WalkDir::new(&root) {
        let meta = entry.unwrap().metadata().unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o077), (here.uid(), 0));
    }
    let mut stores = vec![root.join("state/state.sqlite")];
    let agents = fs::read_dir(root.join("agents")).unwrap();
    stores.extend(agents.map(|it| it.unwrap().path().join("agent/agent.sqlite")));
    assert!(stores.len() > 3);
    for store in &stores {
        for (table, column) in columns_with(store, &old_prefix) {
            let is_history = HISTORY.contains(&(table.as_str(), column.as_str()));
            assert!(is_history, "{table}.{column} of {}", store.display());
        }
    }
    // The search can fail, and the archive inside the root moved with it.
    let found = columns_with(&stores[0], &old_prefix);
    assert!(found.contains(&("migration_runs".to_owned(), "from_path".to_owned())));
    let runs = elsewhere(&["backup", "list", "--json"]).exits(0).json();
    let paths: Vec<&str> = runs
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["archive_path"].as_str().unwrap())
        .collect();
    let inside = root.join("backups");
    assert!(
        paths
            .iter()
            .any(|path| Path::new(path).starts_with(&inside)),
        "{paths:?}"
    );
    assert!(paths.iter().any(|path| Path::new(path) == archive));
    // And it works on: the first writer of the new home.
    elsewhere(&["backup", "create"]).exits(0);
    elsewhere(&["agents", "export", "atlas"]).exits(0);
}
