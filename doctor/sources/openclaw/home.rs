//! A home of the old program: its agents, which key leads to which session, which file is whose transcript.
//!
//! All of it is found before a transcript is opened, since a transcript says neither its agent nor its key.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use zeroclaw::config::{AgentConfig, Config};
use zeroclaw::fs::FsError;

use super::file_name::INDEX;
use super::index::{self, Entry};
use super::key;
use super::settings::Settings;
use crate::doctor::record::Refusal;
use crate::doctor::scan::{is_link, is_regular, names};

/// Files and folders of which one is enough to tell a home.
const SIGNS: [&str; 5] = [
    "state/openclaw.sqlite",
    "sessions/sessions.json",
    "exec-approvals.json",
    "devices/paired.json",
    "cron/jobs.json",
];

/// How a transcript stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A key leads to it.
    Routed,
    /// No key leads to it.
    Lost,
    /// No key leads to it, and the index that could say so cannot be read.
    Unindexed,
    /// Its program moved it aside, then.
    Past {
        /// `reset`, `deleted` or `bak`.
        why: &'static str,
        /// When, where its name says it.
        at_ms: Option<i64>,
    },
}

/// A transcript's file and the session it is of.
#[derive(Clone, Debug)]
pub(crate) struct Transcript {
    /// Name of the agent.
    pub(crate) agent: String,
    /// Its session.
    pub(crate) session_id: String,
    /// Id of a session by the file's name.
    pub(crate) named_id: String,
    /// The key that leads to it, or one made up.
    pub(crate) key: String,
    /// How it stands.
    pub(crate) standing: Standing,
}

/// An index and what came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// Keys of its entries that hold, by agent.
    pub(crate) keys: Vec<(String, String)>,
    /// Entries that are none.
    pub(crate) refused: Vec<Refusal>,
    /// Entries that another one of the same key stands for: key and why.
    pub(crate) merged: Vec<(String, String)>,
    /// What there is to say of entries that hold.
    pub(crate) notes: Vec<(&'static str, String, String)>,
    /// Why it cannot be read.
    pub(crate) error: Option<String>,
}

/// One agent's sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    /// Its folders' names, where they are not its own.
    pub(crate) folders: BTreeSet<String>,
    /// Entries that hold, by key.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// A key that leads to the session of another one, where there was none of its own.
    pub(crate) main_alias: Option<(String, String)>,
    pub(super) owner_of: HashMap<String, String>,
    pub(super) files: HashMap<String, PathBuf>,
    pub(super) has_unreadable_index: bool,
}

impl Agent {
    /// The key whose session this is, where several lead to it: of the newest entry, and of the run among equals.
    pub(crate) fn owning_key(&self, session_id: &str) -> Option<&str> {
        self.owner_of.get(session_id).map(String::as_str)
    }

    /// The transcript of a session that a key leads to, below the home.
    pub(crate) fn file_of(&self, session_id: &str) -> Option<&Path> {
        self.files.get(session_id).map(PathBuf::as_path)
    }
}

/// A home.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// Where it is.
    pub(crate) root: PathBuf,
    /// What its configuration says.
    pub(crate) settings: Settings,
    /// Its agents by name.
    pub(crate) agents: BTreeMap<String, Agent>,
    /// Its indexes by path below the home, oldest generation first.
    pub(crate) indexes: Vec<(PathBuf, Index)>,
    /// Its transcripts by path below the home.
    pub(crate) transcripts: BTreeMap<PathBuf, Transcript>,
}

/// Whether a folder is a home of the old program rather than a root of ours.
pub(crate) fn is_home(root: &Path) -> bool {
    let has = |name: &str| root.join(name).is_file();
    if super::settings::CONFIGS.iter().any(|name| has(name)) {
        return true;
    }
    let is_ours = has("config.toml") || has("state/state.sqlite");
    let has_agent = || {
        let agents = names(&root.join("agents")).unwrap_or_default();
        agents.iter().any(|agent| {
            let agent = root.join("agents").join(agent);
            agent.join("agent/openclaw-agent.sqlite").is_file()
                || agent.join("sessions").join(INDEX).is_file()
                || names(&agent.join("sessions")).is_ok_and(|files| {
                    files
                        .iter()
                        .any(|file| file.as_encoded_bytes().ends_with(b".jsonl"))
                })
        })
    };
    !is_ours && (SIGNS.iter().any(|name| has(name)) || has_agent())
}

impl Home {
    /// Reads everything but transcripts and databases.
    ///
    /// # Errors
    ///
    /// [`FsError`] when a folder cannot be listed.
    pub(crate) fn load(root: &Path) -> Result<Self, FsError> {
        let settings = Settings::load(root);
        let mut home = Self {
            root: root.to_owned(),
            agents: settings
                .agents
                .keys()
                .map(|name| (name.clone(), Agent::default()))
                .collect(),
            settings,
            indexes: Vec::new(),
            transcripts: BTreeMap::new(),
        };
        let folders = home.session_folders()?;
        for (relative, agent) in home.index_files(&folders) {
            home.read_index(relative, agent.as_deref());
        }
        for (relative, agent) in &folders {
            home.place_transcripts(relative, agent)?;
        }
        Ok(home)
    }

    /// The agents, as a configuration of ours would have them.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        for name in self.agents.keys() {
            config.agents.insert(name.clone(), AgentConfig::default());
        }
        config
    }

    /// Folders of sessions with the agent they are of; those of the oldest layout first.
    fn session_folders(&mut self) -> Result<Vec<(PathBuf, String)>, FsError> {
        let mut found = Vec::new();
        let old = PathBuf::from("sessions");
        if self.root.join(&old).is_dir() {
            found.push((old, self.settings.default_agent.clone()));
        }
        let agents = self.root.join("agents");
        if !agents.is_dir() {
            return Ok(found);
        }
        for name in names(&agents)? {
            let Some(folder) = name.to_str() else {
                continue;
            };
            let path = agents.join(folder);
            if is_link(&path) || !path.is_dir() {
                continue;
            }
            let agent = key::agent_name(folder);
            let known = self.agents.entry(agent.clone()).or_default();
            known.folders.insert(folder.to_owned());
            let sessions = Path::new("agents").join(folder).join("sessions");
            if self.root.join(&sessions).is_dir() && !is_link(&self.root.join(&sessions)) {
                found.push((sessions, agent));
            }
        }
        Ok(found)
    }

    /// Indexes with the agent they are of; `None` for one that several share.
    fn index_files(&self, folders: &[(PathBuf, String)]) -> Vec<(PathBuf, Option<String>)> {
        let own = folders
            .iter()
            .map(|(folder, agent)| (folder.join(INDEX), Some(agent.clone())));
        let mut found: Vec<_> = own
            .filter(|(file, _)| is_regular(&self.root.join(file)))
            .collect();
        let Some(written) = self.settings.text("session.store") else {
            return found;
        };
        let is_shared = !written.contains("{agentId}");
        for agent in self.agents.keys() {
            let path = self.settings.path(&self.root, written, agent);
            let relative = path.strip_prefix(&self.root).unwrap_or(&path).to_owned();
            let is_new = found.iter().all(|(known, _)| *known != relative);
            if is_new && is_regular(&path) {
                found.push((relative, (!is_shared).then(|| agent.clone())));
            }
        }
        found
    }

    fn read_index(&mut self, relative: PathBuf, agent: Option<&str>) {
        let is_oldest = relative.starts_with("sessions");
        let mut index = Index::default();
        let mut entries = Vec::new();
        let read = index::read(&self.root.join(&relative), |entry| match entry {
            Ok(entry) => entries.push(entry),
            Err(refusal) => index.refused.push(refusal),
        });
        if let Err(error) = read {
            index.error = Some(error);
            let of = agent.unwrap_or(&self.settings.default_agent).to_owned();
            self.agents.entry(of).or_default().has_unreadable_index = true;
        }
        for entry in entries {
            self.take_entry(entry, agent, &mut index);
        }
        let of = agent.unwrap_or(&self.settings.default_agent).to_owned();
        if is_oldest && index.error.is_none() {
            self.seed_main(&of);
        }
        self.indexes.push((relative, index));
        self.drop_replaced();
    }

    /// Takes an entry under the form of its key that holds; of two, the newer one.
    fn take_entry(&mut self, entry: Entry, agent: Option<&str>, index: &mut Index) {
        let rules = self.settings.rules.clone();
        let raw = entry.raw_key.trim().to_owned();
        let named = key::owner(&raw).map(key::agent_name);
        // Another agent's folder holds the shared session of the one that was alone before.
        let is_alias = raw.eq_ignore_ascii_case("agent:main:main");
        let owner = match (agent, &named) {
            (Some(agent), _) => agent.to_owned(),
            (None, Some(named)) => named.clone(),
            (None, None) => {
                let message = format!("names no agent; given to {}", self.settings.default_agent);
                index
                    .notes
                    .push(("owner-by-rule", format!("key {raw}"), message));
                self.settings.default_agent.clone()
            }
        };
        let canonical = match is_alias && agent.is_some() {
            true => Some(rules.main_key(&owner)),
            false => rules.canonical(&raw, &owner),
        };
        let Some(canonical) = canonical else { return };
        let known = self.agents.entry(owner.clone()).or_default();
        if let Some(there) = known.entries.get(&canonical) {
            let is_newer = entry.updated_at_ms > there.updated_at_ms
                || (entry.updated_at_ms == there.updated_at_ms
                    && raw == canonical
                    && there.raw_key != canonical);
            let (winner, loser) = if is_newer {
                (&entry, there)
            } else {
                (there, &entry)
            };
            let why = format!(
                "{:?} is the same key as {:?}, which is newer and holds; session {} is kept without key",
                loser.raw_key, winner.raw_key, loser.session_id
            );
            index.merged.push((canonical.clone(), why));
            if !is_newer {
                return;
            }
        }
        index.keys.push((owner, canonical.clone()));
        known.entries.insert(canonical, entry);
    }

    /// A key that a later entry took over is no longer its index's to give.
    fn drop_replaced(&mut self) {
        let mut seen = BTreeSet::new();
        for (_, index) in self.indexes.iter_mut().rev() {
            index.keys.reverse();
            index.keys.retain(|key| seen.insert(key.clone()));
            index.keys.reverse();
        }
        for agent in self.agents.values_mut() {
            agent.owner_of.clear();
            for (key, entry) in &agent.entries {
                let owner = agent
                    .owner_of
                    .entry(entry.session_id.clone())
                    .or_insert_with(|| key.clone());
                let there = &agent.entries[owner.as_str()];
                let is_run = |key: &str| key.contains(":run:");
                if (entry.updated_at_ms, is_run(key)) > (there.updated_at_ms, is_run(owner)) {
                    owner.clone_from(key);
                }
            }
        }
    }

    /// Where the oldest layout had no shared session, its newest direct one became it.
    fn seed_main(&mut self, agent: &str) {
        let rules = &self.settings.rules;
        let main = rules.main_key(agent);
        let Some(known) = self.agents.get_mut(agent) else {
            return;
        };
        if known.entries.contains_key(&main) {
            return;
        }
        let is_direct = |entry: &&Entry| {
            let raw = entry.raw_key.as_str();
            let is_other = [
                "group:",
                "channel:",
                "subagent:",
                ":group:",
                ":channel:",
                "@g.us",
            ]
            .iter()
            .any(|word| raw.contains(word));
            !is_other && key::owner(raw).is_none() && !["global", "unknown"].contains(&raw)
        };
        let newest = known
            .entries
            .values()
            .filter(is_direct)
            .max_by_key(|entry| entry.updated_at_ms);
        known.main_alias = newest.map(|entry| (main, entry.session_id.clone()));
    }
}
