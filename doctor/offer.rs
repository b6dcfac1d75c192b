//! Homes of other programs: each is named once, by its real path, and none is imported unasked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zeroclaw::fs::layout::expand_home;

use super::finding::{Finding, Level};
use super::plan::Earlier;
use super::scan::{names, root_tag};
use super::sources::openclaw::home::is_home;
use super::task::Task;

/// Variables that name a home, the newer one first.
const VARIABLES: [&str; 2] = ["OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"];
/// Names it had, in the order its program looked for them.
const NAMES: [&str; 4] = [".openclaw", ".clawdbot", ".moldbot", ".moltbot"];
/// Start of the names of further homes, one a profile.
const PROFILE: &str = ".openclaw-";

/// Names the homes there are, but for those that were imported from.
pub(crate) fn homes(task: &Task, earlier: &Earlier) -> Vec<Finding> {
    if task.from.is_some() {
        return Vec::new();
    }
    let own = task
        .root
        .canonicalize()
        .unwrap_or_else(|_| task.root.clone());
    let mut seen = BTreeSet::from([own]);
    let real = candidates()
        .into_iter()
        .filter_map(|path| path.canonicalize().ok());
    let new = real.filter(|path| is_home(path) && seen.insert(path.clone()));
    let is_unknown = |path: &PathBuf| {
        let tag = format!("{}:", root_tag(Some(path)));
        !earlier.keys().any(|key| key.starts_with(&tag))
    };
    let found = new.filter(is_unknown);
    found.map(|path| offer(&path)).collect()
}

fn candidates() -> Vec<PathBuf> {
    let user = std::env::home_dir();
    let told = VARIABLES.iter().filter_map(|name| std::env::var(name).ok());
    // A shell script that joins an unset variable writes one of these words.
    let told = told
        .map(|path| path.trim().to_owned())
        .filter(|path| !path.is_empty() && path != "undefined" && path != "null");
    let mut found: Vec<PathBuf> = told
        .map(|path| expand_home(Path::new(&path), user.as_deref()))
        .collect();
    let Some(user) = user else { return found };
    found.extend(NAMES.iter().map(|name| user.join(name)));
    let profiles = names(&user).unwrap_or_default();
    let profiles = profiles
        .iter()
        .filter(|name| name.as_encoded_bytes().starts_with(PROFILE.as_bytes()));
    found.extend(profiles.map(|name| user.join(name)));
    found
}

fn offer(home: &Path) -> Finding {
    let message = "an OpenClaw home; nothing of it is imported unasked";
    let finding = Finding::new(
        "other-home",
        Level::Advice,
        home.display().to_string(),
        message,
    );
    finding.with_remedy(format!(
        "look at it with `zeroclaw doctor --from {0}`; `zeroclaw doctor --fix --from {0}` copies from it and leaves it as it is",
        home.display()
    ))
}
