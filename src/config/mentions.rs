//! Where a configuration names an agent: for a person who is to change it, because it is never written here.

use std::path::Path;

use toml::{Table, Value};

/// Most places told.
const MAX_TOLD: usize = 200;
/// Deepest level looked at.
const MAX_DEPTH: usize = 16;

/// Keys of a configuration that name an agent, dotted: headings and keys of its name, values that are its name, and paths
/// into its folder. Values are not repeated. A file that is missing or cannot be read names nobody.
#[must_use]
pub fn mentions(path: &Path, agent: &str) -> Vec<String> {
    let text = match super::read_bounded(path) {
        Ok(Some(bytes)) => String::from_utf8(bytes).unwrap_or_default(),
        _ => return Vec::new(),
    };
    in_text(&text, agent)
}

fn in_text(text: &str, agent: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(table) = toml::from_str::<Table>(text) {
        walk(&table, agent, "", 0, &mut found);
    }
    found.truncate(MAX_TOLD);
    found
}

fn walk(table: &Table, agent: &str, above: &str, depth: usize, found: &mut Vec<String>) {
    for (key, value) in table {
        let here = match above {
            "" => key.clone(),
            above => format!("{above}.{key}"),
        };
        if key == agent || names(value, agent) {
            found.push(here.clone());
        }
        if depth < MAX_DEPTH {
            below(value, agent, &here, depth + 1, found);
        }
    }
}

fn below(value: &Value, agent: &str, here: &str, depth: usize, found: &mut Vec<String>) {
    match value {
        Value::Table(table) => walk(table, agent, here, depth, found),
        Value::Array(values) if depth < MAX_DEPTH => {
            for value in values {
                if let Value::Table(_) | Value::Array(_) = value {
                    below(value, agent, here, depth + 1, found);
                }
            }
        }
        _ => {}
    }
}

/// Whether a value, or one in a list, is the name or a path into the agent's folder.
fn names(value: &Value, agent: &str) -> bool {
    match value {
        Value::String(text) => {
            let folder = format!("agents/{agent}");
            text == agent || text.ends_with(&folder) || text.contains(&format!("{folder}/"))
        }
        Value::Array(values) => values
            .iter()
            .any(|value| matches!(value, Value::String(_)) && names(value, agent)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_values_lists_and_paths_are_told_by_key() {
        let text = r#"
            [agents.atlas]
            enabled = true
            workspace.path = "~/.zeroclaw/agents/atlas/workspace"
            [agents.birch]
            read_memory_from = ["atlas"]
            [[agents.birch.grants]]
            agent = "atlas"
            [agents.birch.workspace]
            access = { atlas = "read", atlas2 = "read" }
            [cron.daily]
            agent = "atlas"
            command = "echo atlas is up"
        "#;

        let told = in_text(text, "atlas");

        assert_eq!(
            told,
            [
                "agents.atlas",
                "agents.atlas.workspace.path",
                "agents.birch.grants.agent",
                "agents.birch.read_memory_from",
                "agents.birch.workspace.access.atlas",
                "cron.daily.agent",
            ]
        );
        assert_eq!(in_text("not toml [", "atlas"), Vec::<String>::new());
    }
}
