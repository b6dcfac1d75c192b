//! What a root was like before an import: kept with the run, so that undoing it leaves no more behind.
//!
//! The first import makes the control plane it keeps its notes in. Until then they lie in a file of their own, so that
//! a kill between cannot make a fresh control plane pass for one that was there.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zeroclaw::fs::{FsError, FsErrorKind, Layout, atomic};
use zeroclaw::service::undo::RowCounts;

/// What a root was like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Before {
    /// Whether there was a control plane.
    pub(crate) had_state: bool,
    /// Folders that an import would make and that were there, below the root.
    pub(crate) folders: Vec<String>,
    /// Files that an import would copy from a foreign root and that were there, below the root.
    pub(crate) files: Vec<String>,
}

/// Key of [`Before`] in a run's report.
const BEFORE: &str = "before";
/// Key of what a run left, rows by tier and table.
const ROWS: &str = "rows";
/// Key of when a run was undone.
const UNDONE: &str = "undone_at_ms";

impl Before {
    fn of(layout: &Layout, had_state: bool) -> Self {
        let files = [layout.config_file(), layout.secret_key_file()];
        let below = |path: &Path| layout.stored(path).to_str().map(str::to_owned);
        Self {
            had_state,
            folders: folders(layout),
            files: files
                .iter()
                .filter(|path| path.symlink_metadata().is_ok())
                .filter_map(|path| below(path))
                .collect(),
        }
    }

    /// What the report of a run says; a run of a release that kept no such notes is taken for a later one.
    pub(crate) fn of_run(report_json: &str) -> Self {
        let said = object(report_json).remove(BEFORE);
        let said = said.and_then(|said| serde_json::from_value(said).ok());
        said.unwrap_or(Self {
            had_state: true,
            folders: Vec::new(),
            files: Vec::new(),
        })
    }

    /// Puts it into the report of a run that begins.
    pub(crate) fn into_report(self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        with(&[(BEFORE, value)], "{}")
    }
}

/// Folders that an import makes, of which there are some already: below the root.
fn folders(layout: &Layout) -> Vec<String> {
    let mut found = vec![
        layout.state_dir(),
        layout.migrated_dir(),
        layout.quarantines_dir(),
        layout.backups_dir(),
        layout.agents_dir(),
    ];
    for name in agent_folders(layout) {
        found.push(layout.agent_dir(&name));
        found.push(layout.agent_db_dir(&name));
    }
    found.retain(|path| path.is_dir());
    let below = found.iter().map(|path| layout.stored(path).to_str());
    below.flatten().map(str::to_owned).collect()
}

/// Names of the folders of agents; one that is no text is nobody's we know.
pub(crate) fn agent_folders(layout: &Layout) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(layout.agents_dir()) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().into_string());
    let mut names: Vec<String> = names.flatten().collect();
    names.sort();
    names
}

/// Notes what there is, where an import is about to make the control plane.
pub(crate) fn note(layout: &Layout) -> Result<(), FsError> {
    let file = layout.before_import_file();
    let has_state = std::fs::metadata(layout.global_db()).is_ok_and(|meta| meta.len() > 0);
    if has_state || file.exists() {
        return Ok(());
    }
    let before = Before::of(layout, false);
    let bytes = serde_json::to_vec(&before)
        .expect("invariant: what was there is text and facts, which always have a JSON form");
    atomic::create_dir_private(&layout.state_dir())?;
    atomic::write_private(&file, &bytes)
}

/// What there was before the run that begins now, under the lock.
///
/// * `is_fresh`: the control plane knows of no agent and no run.
pub(crate) fn noted(layout: &Layout, is_fresh: bool) -> Before {
    let noted = std::fs::read(layout.before_import_file()).ok();
    let noted = noted.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    // A note beside a control plane that has been in use is one that somebody else overtook.
    let noted = noted.filter(|_| is_fresh);
    noted.unwrap_or_else(|| Before::of(layout, true))
}

/// Takes the note away; the run has it now.
pub(crate) fn forget(layout: &Layout) -> Result<(), FsError> {
    match atomic::remove_file_synced(&layout.before_import_file()) {
        Err(error) if error.kind() != FsErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The report with more in it.
pub(crate) fn with(more: &[(&str, Value)], report_json: &str) -> String {
    let mut report = object(report_json);
    for (key, value) in more {
        report.insert((*key).to_owned(), value.clone());
    }
    Value::Object(report).to_string()
}

/// The report of a run that ended, with the rows it left.
pub(crate) fn with_rows(rows: &RowCounts, total: Value, report_json: &str) -> String {
    let rows = serde_json::to_value(rows).unwrap_or_default();
    with(&[("total", total), (ROWS, rows)], report_json)
}

/// The rows that a run left; `None` when it did not end, or nobody counted.
pub(crate) fn rows_of(report_json: &str) -> Option<RowCounts> {
    let rows = object(report_json).remove(ROWS)?;
    serde_json::from_value(rows).ok()
}

/// The report of a run that was undone.
pub(crate) fn with_undone(now_ms: i64, report_json: &str) -> String {
    with(&[(UNDONE, now_ms.into())], report_json)
}

/// When a run was undone; `None` when it was not.
pub(crate) fn undone_at(report_json: &str) -> Option<i64> {
    object(report_json).get(UNDONE)?.as_i64()
}

fn object(report_json: &str) -> Map<String, Value> {
    match serde_json::from_str(report_json) {
        Ok(Value::Object(report)) => report,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_holds_only_for_a_control_plane_that_nobody_used() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path().to_owned());
        note(&layout).unwrap();
        std::fs::write(layout.config_file(), "").unwrap();

        let first = noted(&layout, true);
        assert!(!first.had_state && first.files.is_empty());
        assert_eq!(first.folders, Vec::<String>::new());
        let later = noted(&layout, false);
        assert!(later.had_state);
        assert_eq!(later.files, ["config.toml"]);

        forget(&layout).unwrap();
        forget(&layout).unwrap();
        assert!(noted(&layout, true).had_state);
    }

    #[test]
    fn a_report_keeps_what_it_said_when_more_is_said() {
        let before = Before {
            had_state: false,
            folders: vec!["agents".to_owned()],
            files: Vec::new(),
        };
        let report = before.clone().into_report();
        let report = with_undone(7, &with(&[("total", 1.into())], &report));

        assert_eq!(Before::of_run(&report), before);
        assert_eq!((undone_at(&report), undone_at("{}")), (Some(7), None));
        assert!(Before::of_run("nonsense").had_state);
    }
}
