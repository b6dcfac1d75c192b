//! What names an agent in the control plane is known to what renames, deletes and restores one.

use zeroclaw::db::{HISTORY, OF_TASKS, OWNED};

use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{change, rows};

/// Columns that hold an agent's name in another way than `agent_id` of its own row; see `src/db/belongings.rs`.
const OTHERWISE: [&str; 3] = [
    // Always empty in this tier.
    "schema_meta.agent_id",
    "task_runs.caller_chain_json",
    "task_runs.originator_route",
];

/// Columns that by their name hold one, and that no list has; and tables that hang on an owned one, likewise.
fn unknown(home: &Sandbox) -> Vec<String> {
    let store = home.root().join("state/state.sqlite");
    let columns = rows(
        &store,
        "SELECT t.name || '.' || c.name FROM pragma_table_list t, pragma_table_info(t.name) c
         WHERE t.schema = 'main' AND t.type = 'table'
           AND (c.name LIKE '%agent%' OR c.name LIKE '%caller%' OR c.name LIKE 'originator%')",
    );
    let owned = OWNED.iter().chain(&HISTORY);
    let known: Vec<String> = owned.map(|table| format!("{table}.agent_id")).collect();
    let columns = columns.into_iter().map(|row| row[0].clone());
    let columns =
        columns.filter(|name| !known.contains(name) && !OTHERWISE.contains(&name.as_str()));
    let below = rows(
        &store,
        "SELECT t.name, f.\"table\" FROM pragma_table_list t, pragma_foreign_key_list(t.name) f
         WHERE t.schema = 'main' AND t.type = 'table'",
    );
    let below = below
        .into_iter()
        .filter(|row| OWNED.contains(&row[1].as_str()) && !OF_TASKS.contains(&row[0].as_str()));
    columns.chain(below.map(|row| row[0].clone())).collect()
}

#[test]
fn every_column_that_names_an_agent_is_known_to_its_life() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);

    assert_eq!(
        unknown(&home),
        Vec::<String>::new(),
        "say in src/db/belongings.rs what becomes of it when its agent is renamed, deleted or restored"
    );
}

#[test]
fn a_new_column_and_a_new_table_below_are_found() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    change(
        &home.root().join("state/state.sqlite"),
        "ALTER TABLE flow_runs ADD COLUMN agent_id TEXT;
         CREATE TABLE task_notes (task_id TEXT NOT NULL REFERENCES task_runs (task_id));",
    );

    assert_eq!(unknown(&home), ["flow_runs.agent_id", "task_notes"]);
}
