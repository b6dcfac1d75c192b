//! `[state.logs]`: how long events of a runtime's log are kept.
//!
//! ```toml
//! [state.logs]
//! max_age_days = 90   # 0, as without it: for ever.
//! ```

use toml::Value;

use super::section::{Section, Warnings};

/// What `[state.logs]` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogsConfig {
    /// Days after which events go; `None` for never, also where the file says something that cannot be read.
    pub max_age_days: Option<u32>,
}

impl LogsConfig {
    pub(super) fn read(state: &Section<'_>, warnings: &mut Warnings) -> Self {
        let Some(logs) = state.section("logs", warnings) else {
            return Self::default();
        };
        let days = |value: &Value| u32::try_from(value.as_integer()?).ok();
        let wanted = "a whole number of days, 0 for ever";
        let max_age_days = logs.get("max_age_days", wanted, days, warnings);
        Self {
            max_age_days: max_age_days.filter(|days| *days > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn c67_logs_stay_unless_a_number_of_days_is_given() {
        for (text, days) in [
            ("", None),
            ("[state.logs]\nmax_age_days = 0", None),
            ("[state.logs]\nmax_age_days = -1", None),
            ("[state.logs]\nmax_age_days = \"30d\"", None),
            ("[state.logs]\nmax_age_days = 30", Some(30)),
        ] {
            assert_eq!(
                Config::parse(text).unwrap().logs.max_age_days,
                days,
                "{text}"
            );
        }
    }
}
