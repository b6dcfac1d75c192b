//! Other folders than the root that hold, or held, state: they are named, and a person decides.

use std::path::{Path, PathBuf};

use zeroclaw::fs::layout::expand_home;

use super::finding::{Finding, Level};
use super::plan::Earlier;
use super::scan::root_tag;
use super::task::Task;

/// Variables that name a data folder, from which the root follows by a rule.
const DATA_VARIABLES: [&str; 2] = ["ZEROCLAW_DATA_DIR", "ZEROCLAW_WORKSPACE"];

/// Names folders that may hold more.
///
/// * `earlier`: receipts so far; what was imported from there is not named again.
pub(crate) fn look(task: &Task, earlier: &Earlier) -> Vec<Finding> {
    if task.from.is_some() {
        return Vec::new();
    }
    let root = canonical(&task.root);
    let is_other = |folder: &PathBuf| {
        let tag = root_tag(Some(folder));
        !root.starts_with(folder)
            && !folder.starts_with(&root)
            && std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
            && !earlier
                .keys()
                .any(|key| key.starts_with(&format!("{tag}:")))
    };
    let redirected = redirect(&task.root).filter(is_other).map(|folder| {
        let place = "active_workspace.toml";
        let message = format!(
            "releases before 0.8 took {} for the root, because this file says so; what is there is not looked at here",
            folder.display()
        );
        Finding::new("root-redirect", Level::Warning, place, message).with_remedy(elsewhere(&folder))
    });
    let set: Vec<PathBuf> = DATA_VARIABLES
        .iter()
        .filter_map(std::env::var_os)
        .filter(|value| !value.is_empty() && value != "undefined" && value != "null")
        .map(PathBuf::from)
        .collect();
    // Where a variable names the data folder, the root is that or the one at home: the other one may be full too.
    let home = std::env::home_dir().filter(|_| !set.is_empty());
    let candidates = set
        .into_iter()
        .chain(home.map(|home| home.join(".zeroclaw")));
    let mut seconds: Vec<PathBuf> = candidates.map(|folder| canonical(&folder)).collect();
    seconds.dedup();
    let seconds = seconds.into_iter().filter(is_other).map(|folder| {
        let message = "a second folder that the rules for the root lead past; what is in it is not looked at here";
        Finding::new("second-root", Level::Warning, folder.display().to_string(), message)
            .with_remedy(elsewhere(&folder))
    });
    redirected.into_iter().chain(seconds).collect()
}

fn elsewhere(folder: &Path) -> String {
    format!(
        "look at it with `zeroclaw doctor --from {0}`; `zeroclaw doctor --fix --from {0}` copies from it",
        folder.display()
    )
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Where `active_workspace.toml` leads.
fn redirect(root: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(root.join("active_workspace.toml")).ok()?;
    let table: toml::Table = text.parse().ok()?;
    let told = table.get("config_dir")?.as_str()?.trim();
    let told = expand_home(Path::new(told), std::env::home_dir().as_deref());
    Some(canonical(&root.join(told)))
}
