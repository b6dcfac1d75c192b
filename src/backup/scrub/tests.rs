use std::collections::BTreeSet;

use super::*;

const SCHEMAS: [(&str, &[(&str, Decision)]); 2] = [
    (include_str!("../../../schema/global.sql"), GLOBAL),
    (include_str!("../../../schema/agent.sql"), AGENT),
];

/// Each table of a schema with the text that defines it.
fn tables(schema: &str) -> Vec<(String, String)> {
    let starts = ["CREATE TABLE ", "CREATE VIRTUAL TABLE "];
    let is_sql = |line: &&str| !line.trim_start().starts_with("--");
    let sql: Vec<&str> = schema.lines().filter(is_sql).collect();
    let sql = sql.join("\n");
    let parts = sql.split(';').filter_map(|part| {
        let text = starts
            .iter()
            .find_map(|start| part.trim_start().strip_prefix(start))?;
        let name = text.split([' ', '(']).next()?;
        Some((name.to_owned(), text.to_owned()))
    });
    parts.collect()
}

/// What the schema and the decisions do not agree on.
fn disagreements(schema: &str, decisions: &[(&str, Decision)]) -> Vec<String> {
    let tables = tables(schema);
    let known: BTreeSet<&str> = tables.iter().map(|it| it.0.as_str()).collect();
    let decided: BTreeSet<&str> = decisions.iter().map(|it| it.0).collect();
    let mut found: Vec<String> = known
        .symmetric_difference(&decided)
        .map(|table| (*table).to_owned())
        .collect();
    for (table, decision) in decisions {
        let text = tables
            .iter()
            .find(|it| it.0 == *table)
            .map_or("", |it| &it.1);
        let ScrubColumns(columns) = decision else {
            continue;
        };
        for scrub in *columns {
            let names = std::iter::once(scrub.column).chain(scrub.only.map(|only| only.0));
            let missing = names.filter(|name| !text.contains(&format!("    {name} ")));
            found.extend(missing.map(|name| format!("{table}.{name}")));
        }
    }
    found
}

#[test]
fn every_table_of_both_tiers_has_a_decision() {
    for (schema, decisions) in SCHEMAS {
        assert_eq!(disagreements(schema, decisions), Vec::<String>::new());
    }
}

#[test]
fn a_new_table_and_a_renamed_column_are_found() {
    let (global, decisions) = SCHEMAS[0];
    let grown = format!("{global}\nCREATE TABLE device_tokens (token TEXT) STRICT;");
    let renamed = global.replace("    job_json ", "    job_text ");

    assert_eq!(disagreements(&grown, decisions), ["device_tokens"]);
    assert_eq!(disagreements(&renamed, decisions), ["cron_jobs.job_json"]);
}

#[test]
fn what_is_kept_says_why() {
    for (table, decision) in GLOBAL.iter().chain(AGENT) {
        let Keep(because) = decision else { continue };
        assert!(!because.is_empty(), "{table}");
    }
}
