//! Keys of the old configuration that say where files are, and the variables that override them.
//!
//! The old program took `ZEROCLAW_<path>`, with `__` for dots, over the file: `ZEROCLAW_observability__log_persistence_path`.
//! Those are honoured for the keys below; all of them are named, and none with its value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Table;
use zeroclaw::fs::Layout;
use zeroclaw::fs::layout::expand_home;

use super::finding::{Finding, Level};

/// How the names of variables begin that override a key.
const PREFIX: &str = "ZEROCLAW_";

/// What the configuration and the environment say.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    table: Table,
    overrides: BTreeMap<String, String>,
}

impl Settings {
    /// Of a root; what cannot be read says nothing here, its reader tells it.
    ///
    /// * `variables`: of the environment, where the root is the process's own.
    pub(crate) fn load(root: &Path, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let text = std::fs::read_to_string(Layout::new(root.to_owned()).config_file());
        let table = text.ok().and_then(|text| text.parse().ok());
        let overrides = variables.into_iter().filter_map(|(name, value)| {
            // Those of this product itself are in upper case throughout.
            let path = name.strip_prefix(PREFIX)?;
            let is_path = path.starts_with(|c: char| c.is_ascii_lowercase());
            is_path.then(|| (path.replace("__", "."), value))
        });
        Self {
            table: table.unwrap_or_default(),
            overrides: overrides.collect(),
        }
    }

    /// The text at a path of keys, from the environment or the file.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        if let Some(value) = self.overrides.get(path) {
            return Some(value.clone()).filter(|value| !value.is_empty());
        }
        let mut keys = path.split('.');
        let first = self.table.get(keys.next()?)?;
        let found = keys.try_fold(first, |value, key| value.get(key))?;
        let text = found.as_str().map(str::trim);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Where the trace is, if not in its usual place: below the root, or absolute where it is not.
    pub(crate) fn trace(&self, root: &Path) -> Option<PathBuf> {
        let told = ["log_persistence_path", "runtime_trace_path"]
            .iter()
            .find_map(|key| self.text(&format!("observability.{key}")))?;
        Some(below(root, &root.join("data"), &told))
    }

    /// What there is to say of the environment.
    pub(crate) fn findings(&self) -> Option<Finding> {
        let names: Vec<String> = self
            .overrides
            .keys()
            .map(|path| format!("{PREFIX}{}", path.replace('.', "__")))
            .collect();
        let first = names.first()?;
        let message = format!(
            "variables stood over the old configuration: {}; those that say where files are were followed, the others \
             not: whose things are, the file says",
            names.join(", ")
        );
        let finding = Finding::new("environment-override", Level::Advice, first, message);
        Some(finding.with_remedy("write into config.toml what still holds"))
    }
}

/// A path as the configuration writes it: `~` is the home folder, a relative one starts at `base`.
fn below(root: &Path, base: &Path, told: &str) -> PathBuf {
    let full = base.join(expand_home(
        Path::new(told),
        std::env::home_dir().as_deref(),
    ));
    full.strip_prefix(root)
        .map_or(full.clone(), Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str, variables: &[(&str, &str)]) -> Settings {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::load(folder.path(), variables)
    }

    #[test]
    fn a_trace_has_its_place_by_either_name_and_a_variable_wins() {
        let root = Path::new("/r");
        let old = settings("[observability]\nruntime_trace_path = 'a/b.jsonl'", &[]);
        let absolute = settings(
            "[observability]\nlog_persistence_path = '/r/logs/x.jsonl'",
            &[],
        );
        let variable = [(
            "ZEROCLAW_observability__log_persistence_path",
            "/other/x.jsonl",
        )];
        let outside = settings("[observability]\nlog_persistence_path = 'x'", &variable);

        assert_eq!(old.trace(root), Some(PathBuf::from("data/a/b.jsonl")));
        assert_eq!(absolute.trace(root), Some(PathBuf::from("logs/x.jsonl")));
        assert_eq!(outside.trace(root), Some(PathBuf::from("/other/x.jsonl")));
        assert_eq!(settings("", &[]).trace(root), None);
    }

    #[test]
    fn variables_are_named_and_their_values_are_not() {
        let variables = [
            ("ZEROCLAW_channels__telegram__main__bot_token", "s3cret"),
            ("ZEROCLAW_CONFIG_DIR", "/x"),
            ("HOME", "/h"),
        ];

        let said = settings("", &variables).findings().unwrap();

        assert!(
            said.message
                .contains("ZEROCLAW_channels__telegram__main__bot_token")
        );
        assert!(!said.message.contains("s3cret") && !said.message.contains("CONFIG_DIR"));
        assert!(settings("", &[]).findings().is_none());
    }
}
