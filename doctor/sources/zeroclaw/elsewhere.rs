//! Stores that the configuration puts elsewhere than the install's layout does.
//!
//! Read leniently: a key of the wrong type says nothing, and a configuration that is no TOML is told by whoever
//! needs it whole. Only what lies inside the root is followed.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};
use zeroclaw::fs::Layout;
use zeroclaw::fs::layout::expand_home;

use super::surfaces::Format;

/// Keys that name a file or a folder, the file in that folder, and what is there.
const KEYS: [(&str, &str, Target); 3] = [
    (
        "sop.run_state_dir",
        "runs.db",
        Target::Source(Format::SopDb),
    ),
    ("knowledge.db_path", "", Target::Source(Format::KnowledgeDb)),
    ("security.estop.state_file", "", Target::EmergencyStop),
];

/// What is at a configured place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A source.
    Source(Format),
    /// The emergency stop.
    EmergencyStop,
}

/// A place that the configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The key.
    pub(crate) key: &'static str,
    /// What is there.
    pub(crate) target: Target,
    /// Below the root; `Err` with the whole path where it is outside.
    pub(crate) place: Result<PathBuf, PathBuf>,
}

/// The places that the configuration of `root` names and where there is a file.
pub(crate) fn configured(root: &Path) -> Vec<Elsewhere> {
    let config = std::fs::read_to_string(Layout::new(root.to_owned()).config_file());
    let Some(config) = config.ok().and_then(|text| toml::from_str(&text).ok()) else {
        return Vec::new();
    };
    let home = std::env::home_dir();
    let named = KEYS.iter().filter_map(|(key, file, target)| {
        let written = text_at(&config, key)?;
        let path = expand_home(Path::new(&written), home.as_deref());
        // A relative path meant the root or its data folder, as releases went.
        let path = [root.join(&path), root.join("data").join(&path)]
            .into_iter()
            .map(|path| match *file {
                "" => path,
                file => path.join(file),
            })
            .find(|path| path.is_file())?;
        Some(Elsewhere {
            key,
            target: *target,
            place: below(root, &path).ok_or(path),
        })
    });
    named.collect()
}

fn text_at(config: &Table, key: &str) -> Option<String> {
    let (sections, last) = key.rsplit_once('.')?;
    let mut table = config;
    for section in sections.split('.') {
        table = table.get(section)?.as_table()?;
    }
    let text = table.get(last).and_then(Value::as_str)?.trim();
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The path below `root`, also where it is written by another way that leads there.
fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    let is_plain = |path: &Path| {
        path.components()
            .all(|part| matches!(part, Component::Normal(_)))
    };
    if let Ok(relative) = path.strip_prefix(root)
        && is_plain(relative)
    {
        return Some(relative.to_owned());
    }
    let (root, path) = (root.canonicalize().ok()?, path.canonicalize().ok()?);
    path.strip_prefix(&root)
        .ok()
        .filter(|relative| is_plain(relative))
        .map(Path::to_owned)
}
