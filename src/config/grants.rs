//! Whose memories an agent may read, as the configuration says it and nothing else.
//!
//! `read_memory_from` of the reader names owners, whole or by exact category. Nothing follows from what an owner may read.

use toml::Value;

use super::Config;

/// Memories of one owner that a reader may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGrant {
    /// The owner, as written.
    pub owner: String,
    /// Only these categories, by their exact names; `None` for all. An empty list opens nothing.
    pub categories: Option<Vec<String>>,
}

impl Config {
    /// The grants of `reader`, one an owner; its own memories need none and are not among them.
    ///
    /// An entry that cannot be understood opens nothing, rather than all.
    #[must_use]
    pub fn memory_grants(&self, reader: &str) -> Vec<MemoryGrant> {
        let mut grants: Vec<MemoryGrant> = Vec::new();
        let told = self.agents.get(reader);
        let entries = told.into_iter().flat_map(|agent| &agent.read_memory_from);
        for grant in entries
            .filter_map(grant)
            .filter(|grant| grant.owner != reader)
        {
            match grants.iter_mut().find(|known| known.owner == grant.owner) {
                Some(known) => known.widen(grant.categories),
                None => grants.push(grant),
            }
        }
        grants
    }
}

impl MemoryGrant {
    /// Two entries for one owner open what either opens.
    fn widen(&mut self, categories: Option<Vec<String>>) {
        match (&mut self.categories, categories) {
            (Some(known), Some(more)) => known.extend(more),
            (known, None) => *known = None,
            (None, Some(_)) => {}
        }
    }

    /// The categories to look in when these are asked for; `None` for all.
    #[must_use]
    pub fn within(&self, asked: Option<&[String]>) -> Option<Vec<String>> {
        match (&self.categories, asked) {
            (None, asked) => asked.map(<[String]>::to_vec),
            (Some(granted), None) => Some(granted.clone()),
            (Some(granted), Some(asked)) => {
                let both = granted.iter().filter(|name| asked.contains(name));
                Some(both.cloned().collect())
            }
        }
    }
}

fn grant(entry: &Value) -> Option<MemoryGrant> {
    match entry {
        Value::String(owner) => Some(MemoryGrant {
            owner: owner.clone(),
            categories: None,
        }),
        Value::Table(table) => Some(MemoryGrant {
            owner: table.get("agent")?.as_str()?.to_owned(),
            // What is no text names no category.
            categories: table.get("categories").map(|list| {
                let names = list.as_array().into_iter().flatten();
                names
                    .filter_map(|name| name.as_str().map(str::to_owned))
                    .collect()
            }),
        }),
        _ => None,
    }
}
