//! A root in which every table names the agent `atlas`, and what still names somebody.

use std::fs;
use std::path::Path;

use crate::support::dump::{Skip, logical_dump};
use crate::support::every_table::{fill_agent, fill_global};
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{change, rows};

/// Tables of the global tier that keep what was done to the root, by path or archive.
const BOOKS: [&str; 4] = [
    "migration_runs",
    "migration_sources",
    "backup_runs",
    "state_leases",
];

/// `atlas` with a row in every table of both tiers, a workspace and the copy of a deleted session; `birch` with a task that
/// `atlas` asked for.
pub(super) fn inhabited() -> Sandbox {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    for agent in ["atlas", "birch"] {
        home.zeroclaw(&["agents", "create", agent]).exits(0);
    }
    let root = home.root();
    fill_global(&global(&root));
    fill_agent(&root.join("agents/atlas/agent/agent.sqlite"));
    change(
        &global(&root),
        "UPDATE task_runs SET originator_route = 'atlas';
         INSERT INTO task_runs (task_id, owner_kind, agent_id, status, created_at_ms, originator_route, caller_chain_json)
         VALUES ('task-of-birch', 'delegate', 'birch', 'succeeded', 1, 'atlas', '[\"birch\",\"atlas\"]')",
    );
    for (path, text) in [
        ("agents/atlas/workspace/notes/tide.md", "at nine"),
        ("state/deleted/atlas/session.jsonl", "{}"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    // What no process holds any more is settled before a step in a life begins.
    home.zeroclaw(&["tasks", "sweep"]).exits(0);
    home
}

pub(super) fn global(root: &Path) -> std::path::PathBuf {
    root.join("state/state.sqlite")
}

/// Everything of the root that names an agent: values of text columns but those of the books, and paths outside of
/// `backups`.
pub(super) fn traces(root: &Path, agent: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(root).min_depth(1) {
        let entry = entry.unwrap();
        let path = entry.path().strip_prefix(root).unwrap();
        if path.starts_with("backups") {
            continue;
        }
        if path.iter().any(|part| part == agent) {
            found.push(path.display().to_string());
        }
        if path.extension().is_some_and(|it| it == "sqlite") {
            found.extend(
                values(entry.path(), agent)
                    .into_iter()
                    .map(|column| format!("{}: {column}", path.display())),
            );
        }
    }
    found
}

/// Columns with a value that is the name, or JSON text in which it stands.
fn values(store: &Path, agent: &str) -> Vec<String> {
    let columns = rows(
        store,
        "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name) c
         WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND c.type = 'TEXT'",
    );
    let columns: Vec<_> = columns
        .into_iter()
        .filter(|column| !BOOKS.contains(&column[0].as_str()))
        .map(|column| {
            let (table, name) = (&column[0], &column[1]);
            format!(
                "SELECT DISTINCT '{table}.{name}' FROM \"{table}\" WHERE \"{name}\" = '{agent}'
                 OR \"{name}\" LIKE '%\"{agent}\"%' OR \"{name}\" LIKE 'agents/{agent}/%'"
            )
        })
        .collect();
    // As many as SQLite takes in one statement.
    let found = columns
        .chunks(400)
        .flat_map(|some| rows(store, &some.join(" UNION ALL ")));
    found.map(|row| row[0].clone()).collect()
}

/// What the root says with this name masked, line by line: equal before and after an agent was renamed.
///
/// The new name must stand in the same order among the others.
pub(super) fn said(root: &Path, agent: &str) -> Vec<String> {
    let skip = Skip {
        tables: &["state_leases", "backup_runs"],
        columns: &[],
    };
    let tier = root.join(format!("agents/{agent}/agent/agent.sqlite"));
    let all = logical_dump(&global(root), skip) + &logical_dump(&tier, skip);
    let masked = all.replace(agent, "<agent>");
    masked.lines().map(str::to_owned).collect()
}

/// Compares two dumps and tells the lines that differ, not all of them.
#[track_caller]
pub(super) fn assert_same(is: &[String], was: &[String], what: &str) {
    let differing: Vec<_> = is.iter().zip(was).filter(|(is, was)| is != was).collect();
    assert_eq!(differing, [], "{what}");
    assert_eq!(is.len(), was.len(), "{what}");
}
