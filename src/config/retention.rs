//! `[state.retention]`: by which rules sessions go, for all agents and for some.
//!
//! ```toml
//! [state.retention]
//! max_age_days = 180
//! max_sessions = 2000
//!
//! [state.retention.agents.atlas]
//! max_age_days = 0 # Off: kept for ever, whatever stands above.
//! ```
//!
//! Strict where the rest of the file is read leniently: a rule that cannot be read must not become no rule, or another.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::section::{Section, Warnings};
use crate::model::RetentionRules;

/// Names of the rules.
const RULES: [&str; 3] = ["max_age_days", "max_sessions", "max_bytes"];
/// Where the rules of single agents stand.
const AGENTS: &str = "agents";

/// What the file says of retention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    all: RetentionRules,
    agents: BTreeMap<String, RetentionRules>,
    fault: Option<String>,
}

impl Retention {
    /// The rules for one agent.
    ///
    /// # Errors
    ///
    /// Key and reason of the first thing that cannot be read, for any agent: no rule is to be trusted then.
    pub fn rules_of(&self, agent: &str) -> Result<RetentionRules, &str> {
        match &self.fault {
            Some(fault) => Err(fault),
            None => Ok(*self.agents.get(agent).unwrap_or(&self.all)),
        }
    }

    /// Reads the part, if there is one.
    pub(super) fn read(state: &Section<'_>, warnings: &mut Warnings) -> Self {
        let mut read = Self::default();
        if let Err(fault) = read.take(state) {
            // Said with the other warnings too: whoever looks at the root sees it before anything is to go.
            warnings.0.push(fault.clone());
            read.fault = Some(fault);
        }
        read
    }

    fn take(&mut self, state: &Section<'_>) -> Result<(), String> {
        let Some(value) = state.table.get("retention") else {
            return Ok(());
        };
        let path = "state.retention";
        let part = table(value, path)?;
        self.all = rules(part, path, RetentionRules::default())?;
        let Some(agents) = part.get(AGENTS) else {
            return Ok(());
        };
        let path = format!("{path}.{AGENTS}");
        for (agent, value) in table(agents, &path)? {
            let path = format!("{path}.{agent}");
            let own = rules(table(value, &path)?, &path, self.all)?;
            self.agents.insert(agent.clone(), own);
        }
        Ok(())
    }
}

fn table<'t>(value: &'t Value, path: &str) -> Result<&'t Table, String> {
    value
        .as_table()
        .ok_or_else(|| format!("{path}: expected a table"))
}

/// The rules of one table, over those of the table above.
fn rules(part: &Table, path: &str, above: RetentionRules) -> Result<RetentionRules, String> {
    let is_known = |key: &str| RULES.contains(&key) || (key == AGENTS && !path.contains(AGENTS));
    if let Some(key) = part.keys().find(|key| !is_known(key)) {
        let known = RULES.join(", ");
        return Err(format!("{path}.{key}: no such rule; there are {known}"));
    }
    let rule = |key: &str, above: i64| match part.get(key) {
        None => Ok(above),
        Some(Value::Integer(number)) => Ok(*number),
        Some(_) => Err(format!("{path}.{key}: expected a whole number, 0 for off")),
    };
    Ok(RetentionRules {
        max_age_days: rule("max_age_days", above.max_age_days)?,
        max_sessions: rule("max_sessions", above.max_sessions)?,
        max_bytes: rule("max_bytes", above.max_bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::model::RetentionRules;

    fn rules_of(text: &str, agent: &str) -> Result<RetentionRules, String> {
        let config = Config::parse(text).unwrap();
        config.retention.rules_of(agent).map_err(ToOwned::to_owned)
    }

    #[test]
    fn c67_no_rule_is_on_by_itself_and_an_agent_may_have_its_own() {
        let text = "[state.retention]\nmax_age_days = 180\nmax_bytes = 9\n\
                    [state.retention.agents.atlas]\nmax_age_days = 0\n";
        let rules = |max_age_days, max_bytes| RetentionRules {
            max_age_days,
            max_sessions: 0,
            max_bytes,
        };

        assert!(!rules_of("", "atlas").unwrap().is_any_on());
        assert!(!rules_of("[state.retention]", "atlas").unwrap().is_any_on());
        assert_eq!(rules_of(text, "birch"), Ok(rules(180, 9)));
        assert_eq!(rules_of(text, "atlas"), Ok(rules(0, 9)));
    }

    #[test]
    fn c67_what_cannot_be_read_is_named_and_no_rule_is_trusted() {
        for (text, named) in [
            ("[state]\nretention = 30", "state.retention:"),
            (
                "[state.retention]\nmax_age_days = \"30d\"",
                "state.retention.max_age_days:",
            ),
            (
                "[state.retention]\nmax_age_days = 1.5",
                "state.retention.max_age_days:",
            ),
            (
                "[state.retention]\nmax_age_day = 30",
                "state.retention.max_age_day:",
            ),
            (
                "[state.retention]\nmax_sessions = true",
                "state.retention.max_sessions:",
            ),
            (
                "[state.retention.agents]\natlas = 3",
                "state.retention.agents.atlas:",
            ),
            (
                "[state.retention.agents.atlas]\nmax_bytes = []",
                "state.retention.agents.atlas.max_bytes:",
            ),
            (
                "[state.retention.agents.atlas.agents.birch]\nmax_bytes = 1",
                "state.retention.agents.atlas.agents:",
            ),
        ] {
            let fault = rules_of(text, "birch").unwrap_err();
            assert!(fault.starts_with(named), "{text}: {fault}");
            assert_eq!(Config::parse(text).unwrap().warnings, [fault]);
        }
    }
}
