//! `[state.plugins]`: how much a plugin may keep.
//!
//! ```toml
//! [state.plugins]
//! max_rows = 100000
//! max_bytes = 268435456
//!
//! [state.plugins.of.telegram]
//! max_rows = 500000
//! ```
//!
//! There is always a limit: one that cannot be read is named with the other warnings, and the usual one holds.

use std::collections::BTreeMap;

use toml::Value;

use super::section::{Section, Warnings};
use crate::model::PluginLimits;

/// Where the limits of single plugins stand.
const OF: &str = "of";

/// What the file says of plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsConfig {
    all: PluginLimits,
    of: BTreeMap<String, PluginLimits>,
}

impl PluginsConfig {
    /// The limits of one plugin.
    #[must_use]
    pub fn limits_of(&self, plugin: &str) -> PluginLimits {
        *self.of.get(plugin).unwrap_or(&self.all)
    }

    /// Reads the part, if there is one.
    pub(super) fn read(state: &Section<'_>, warnings: &mut Warnings) -> Self {
        let Some(part) = state.section("plugins", warnings) else {
            return Self::default();
        };
        let all = limits(&part, PluginLimits::default(), warnings);
        let mut of = BTreeMap::new();
        if let Some(plugins) = part.section(OF, warnings) {
            for plugin in plugins.table.keys() {
                if let Some(own) = plugins.section(plugin, warnings) {
                    of.insert(plugin.clone(), limits(&own, all, warnings));
                }
            }
        }
        Self { all, of }
    }
}

/// The limits of one table, over those of the table above.
fn limits(part: &Section<'_>, above: PluginLimits, warnings: &mut Warnings) -> PluginLimits {
    let positive = |value: &Value| value.as_integer().filter(|number| *number > 0);
    let mut limit = |key, above| {
        part.get(key, "a positive whole number", positive, warnings)
            .unwrap_or(above)
    };
    PluginLimits {
        max_rows: limit("max_rows", above.max_rows),
        max_bytes: limit("max_bytes", above.max_bytes),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::model::PluginLimits;

    #[test]
    fn a_plugin_has_its_own_limits_over_those_of_all() {
        let text = "[state.plugins]\nmax_rows = 7\n[state.plugins.of.telegram]\nmax_bytes = 9\n";
        let config = Config::parse(text).unwrap();
        let usual = PluginLimits::default();

        assert_eq!(
            config.plugins.limits_of("telegram"),
            PluginLimits {
                max_rows: 7,
                max_bytes: 9
            }
        );
        assert_eq!(
            config.plugins.limits_of("matrix"),
            PluginLimits {
                max_rows: 7,
                ..usual
            }
        );
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_named_and_never_none() {
        for (text, named) in [
            ("[state]\nplugins = 3", "state.plugins:"),
            ("[state.plugins]\nmax_rows = 0", "state.plugins.max_rows:"),
            (
                "[state.plugins]\nmax_bytes = \"1G\"",
                "state.plugins.max_bytes:",
            ),
            (
                "[state.plugins.of]\ntelegram = 1",
                "state.plugins.of.telegram:",
            ),
            (
                "[state.plugins.of.telegram]\nmax_rows = -1",
                "state.plugins.of.telegram.max_rows:",
            ),
        ] {
            let config = Config::parse(text).unwrap();

            assert_eq!(
                config.plugins.limits_of("telegram"),
                PluginLimits::default()
            );
            assert!(
                config.warnings[0].starts_with(named),
                "{:?}",
                config.warnings
            );
        }
    }
}
