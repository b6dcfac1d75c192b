//! `[state.media]`: by which rules media go.
//!
//! ```toml
//! [state.media]
//! max_age_days = 90
//! max_bytes = 1073741824
//! ```
//!
//! No rule is on by itself; one that cannot be read is named with the other warnings, and is off.

use toml::Value;

use super::section::{Section, Warnings};
use crate::model::MediaRules;

pub(super) fn media(state: &Section<'_>, warnings: &mut Warnings) -> MediaRules {
    let Some(part) = state.section("media", warnings) else {
        return MediaRules::default();
    };
    let number = |value: &Value| value.as_integer().filter(|number| *number >= 0);
    let mut rule = |key| {
        part.get(key, "a whole number, 0 for off", number, warnings)
            .unwrap_or(0)
    };
    MediaRules {
        max_age_days: rule("max_age_days"),
        max_bytes: rule("max_bytes"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::model::MediaRules;

    #[test]
    fn no_rule_is_on_by_itself_and_one_that_cannot_be_read_is_named_and_off() {
        let config = Config::parse("[state.media]\nmax_age_days = 90\nmax_bytes = -1").unwrap();

        let only_age = MediaRules {
            max_age_days: 90,
            max_bytes: 0,
        };
        assert_eq!(config.media, only_age);
        assert!(config.warnings[0].starts_with("state.media.max_bytes:"));
        assert_eq!(Config::parse("").unwrap().media, MediaRules::default());
    }
}
