//! `openclaw.json`: agents, how keys are made, where stores are. JSON5, under four names over time.
//!
//! Agents were a list with ids, later a map by id. Nothing of it is written anywhere: what an own configuration would
//! say of the agents is shown, and a person decides.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::key::{self, KeyRules, agent_name};
use super::tolerant;

/// Names of the configuration, newest first.
pub(crate) const CONFIGS: [&str; 4] = [
    "openclaw.json",
    "clawdbot.json",
    "moldbot.json",
    "moltbot.json",
];

/// An agent as the configuration has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its workspace, as written.
    pub(crate) workspace: Option<String>,
    /// Channels bound to it, as `<channel>.<account>`.
    pub(crate) channels: Vec<String>,
}

/// What the configuration says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Its file; `None` where there is none.
    pub(crate) file: Option<&'static str>,
    /// Why it cannot be read.
    pub(crate) error: Option<String>,
    /// How keys are made.
    pub(crate) rules: KeyRules,
    /// Who owns what names nobody.
    pub(crate) default_agent: String,
    /// Agents by name.
    pub(crate) agents: BTreeMap<String, Listed>,
    all: Value,
}

impl Settings {
    /// Of a home.
    pub(crate) fn load(home: &Path) -> Self {
        let file = CONFIGS.into_iter().find(|name| home.join(name).is_file());
        let read = file.map(|name| tolerant::file(&home.join(name)));
        let (all, error) = match read {
            None => (Value::Null, None),
            Some(Ok(all)) => (all, None),
            Some(Err(error)) => (Value::Null, Some(error)),
        };
        Self {
            file,
            error,
            ..Self::of(all)
        }
    }

    fn of(all: Value) -> Self {
        let (agents, default_agent) = agents(&all);
        let session = &all["session"];
        let main = session["mainKey"]
            .as_str()
            .map(|key| key.trim().to_lowercase());
        Self {
            file: None,
            error: None,
            rules: KeyRules {
                main: main
                    .filter(|key| !key.is_empty())
                    .unwrap_or_else(|| key::MAIN.to_owned()),
                is_global: session["scope"] == "global",
            },
            default_agent,
            agents,
            all,
        }
    }

    /// A text at a dotted path.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        let found = path
            .split('.')
            .try_fold(&self.all, |value, key| value.get(key))?;
        found
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// Whether a person wrote down agents at all.
    pub(crate) fn names(&self, agent: &str) -> bool {
        self.agents.contains_key(agent)
    }

    /// A path as it is written: `~` is the folder round the home, `{agentId}` an agent.
    pub(crate) fn path(&self, home: &Path, written: &str, agent: &str) -> PathBuf {
        let written = written.replace("{agentId}", agent);
        match written.strip_prefix("~/") {
            Some(rest) => home.parent().unwrap_or(home).join(rest),
            None => home.join(written),
        }
    }

    /// What an own configuration would say of the agents found.
    pub(crate) fn fragment<'a>(&self, agents: impl Iterator<Item = &'a str>) -> String {
        let mut text = String::from("schema_version = 3\n");
        for name in agents {
            text.push_str(&format!("\n[agents.{name}]\nenabled = true\n"));
            let Some(listed) = self.agents.get(name) else {
                continue;
            };
            if !listed.channels.is_empty() {
                let channels: Vec<String> = listed
                    .channels
                    .iter()
                    .map(|channel| quoted(channel))
                    .collect();
                text.push_str(&format!("channels = [{}]\n", channels.join(", ")));
            }
            if let Some(workspace) = &listed.workspace {
                text.push_str(&format!("workspace_path = {}\n", quoted(workspace)));
            }
        }
        text
    }
}

/// A text in the quotes of JSON, which are those of TOML too.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The agents, and the one that owns what names nobody.
fn agents(all: &Value) -> (BTreeMap<String, Listed>, String) {
    let mut agents = BTreeMap::new();
    let mut first = None;
    let mut default = None;
    let mut add = |id: &str, entry: &Value| {
        let name = agent_name(id);
        first.get_or_insert_with(|| name.clone());
        if entry["default"] == true {
            default.get_or_insert_with(|| name.clone());
        }
        let listed = Listed {
            workspace: entry["workspace"].as_str().map(str::to_owned),
            channels: Vec::new(),
        };
        agents.entry(name).or_insert(listed);
    };
    for entry in all["agents"]["list"].as_array().into_iter().flatten() {
        if let Some(id) = entry["id"].as_str() {
            add(id, entry);
        }
    }
    let entries = all["agents"]["entries"].as_object();
    for (id, entry) in entries.unwrap_or(&Map::new()) {
        add(id, entry);
    }
    let system = all["agents"]["defaults"]["systemAgent"]["agentId"].as_str();
    let has_main = agents.contains_key(key::MAIN);
    // A map has no first: there the agent of the old name is the one, if there is such.
    let first = if entries.is_some() && has_main {
        None
    } else {
        first
    };
    let default = default
        .or_else(|| system.map(agent_name))
        .or(first)
        .unwrap_or_else(|| key::MAIN.to_owned());
    for binding in all["bindings"].as_array().into_iter().flatten() {
        let rule = &binding["match"];
        if let (Some(agent), Some(channel)) =
            (binding["agentId"].as_str(), rule["channel"].as_str())
        {
            let account = rule["accountId"].as_str().unwrap_or("default");
            let listed: &mut Listed = agents.entry(agent_name(agent)).or_default();
            let channel = format!("{channel}.{account}");
            if !listed.channels.contains(&channel) {
                listed.channels.push(channel);
            }
        }
    }
    (agents, default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn agents_are_a_list_or_a_map_and_one_of_them_owns_the_rest() {
        let list = Settings::of(json!({
            "agents": {"list": [{"id": "ops", "workspace": "~/w"}, {"id": "Work Bot", "default": true}]},
            "session": {"mainKey": " Home ", "scope": "per-sender"},
            "bindings": [{"agentId": "ops", "match": {"channel": "slack", "accountId": "a"}}],
        }));
        assert_eq!(
            (list.default_agent.as_str(), list.rules.main.as_str()),
            ("work-bot", "home")
        );
        let fragment = list.fragment(["ops", "zed"].into_iter());
        let told: toml::Table = fragment.parse().unwrap();
        assert_eq!(
            told["agents"]["ops"]["channels"][0].as_str(),
            Some("slack.a")
        );
        assert_eq!(
            told["agents"]["ops"]["workspace_path"].as_str(),
            Some("~/w")
        );

        let map = Settings::of(json!({"agents": {"entries": {"a": {}, "main": {}}}}));
        assert_eq!(map.default_agent, "main");
        assert_eq!(Settings::of(Value::Null).default_agent, "main");
        let system = json!({"agents": {"entries": {"a": {}, "b": {}}, "defaults": {"systemAgent": {"agentId": "b"}}}});
        assert_eq!(Settings::of(system).default_agent, "b");
    }
}
