//! Whose a record is: the rules by which the old program itself decided.

use std::collections::BTreeMap;

use zeroclaw::config::Config;
use zeroclaw::model::{AgentId, AgentStatus};

use super::record::Owner;

/// Agent that owns what nobody claims, when the configuration has it.
const DEFAULT_AGENT: &str = "default";

/// The configuration's say on ownership.
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    config: Config,
    own: Option<Config>,
    renames: BTreeMap<String, String>,
}

impl Owners {
    /// By `config` of the root that is imported, with names replaced as `renames` says.
    ///
    /// * `own`: configuration of the root imported into, where that is another one and has one.
    pub(crate) fn new(
        config: Config,
        own: Option<Config>,
        renames: BTreeMap<String, String>,
    ) -> Self {
        Self {
            config,
            own,
            renames,
        }
    }

    /// The configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The agent an old alias means now, or why it can be none.
    pub(crate) fn named(&self, alias: &str) -> Result<AgentId, String> {
        let name = self.renames.get(alias).map_or(alias, String::as_str);
        AgentId::new(name)
            .map_err(|error| format!("{error}; name another with --agent-map '{alias}=NEW'"))
    }

    /// Whether an agent takes part, and why not.
    pub(crate) fn status(&self, id: &AgentId) -> (AgentStatus, Option<&'static str>) {
        if self
            .own
            .as_ref()
            .unwrap_or(&self.config)
            .agents
            .contains_key(id.as_str())
        {
            (AgentStatus::Active, None)
        } else if id.is_generation() {
            (AgentStatus::Retired, Some("deleted by the old program"))
        } else {
            (AgentStatus::Retired, Some("not in the configuration"))
        }
    }

    /// Owner of what names an agent itself; the fallback where it names none.
    pub(crate) fn of_alias(&self, alias: Option<&str>) -> Result<Owner, String> {
        match alias.filter(|alias| !alias.is_empty()) {
            Some(alias) => Ok(Owner {
                agent: self.named(alias)?,
                is_fallback: false,
            }),
            None => self.fallback(),
        }
    }

    /// Owner of a chat session: its own word, its channel's agent, its key's channel, the fallback.
    pub(crate) fn of_session(
        &self,
        alias: Option<&str>,
        channel_id: Option<&str>,
        key: &str,
    ) -> Result<Owner, String> {
        if let Some(alias) = alias.filter(|alias| !alias.is_empty()) {
            return Ok(Owner {
                agent: self.named(alias)?,
                is_fallback: false,
            });
        }
        let channel = channel_id.filter(|channel| !channel.is_empty());
        let by_rule = channel
            .and_then(|channel| self.of_channel(channel))
            .or_else(|| self.of_key(key));
        match by_rule {
            Some(alias) => Ok(Owner {
                agent: self.named(&alias)?,
                is_fallback: false,
            }),
            None => self.fallback(),
        }
    }

    /// Owner of what was kept of all channels of a type: the first agent that answers on one.
    pub(crate) fn of_channel_archive(&self, channel: &str) -> Result<Owner, String> {
        match self.of_channel(channel) {
            Some(alias) => Ok(Owner {
                agent: self.named(&alias)?,
                is_fallback: false,
            }),
            None => self.fallback(),
        }
    }

    /// The earlier agent of a name that was deleted at `stamp`, `YYYYMMDDTHHMMSSZ`.
    pub(crate) fn deleted(&self, alias: &str, stamp: &str) -> Result<AgentId, String> {
        let name = self.named(alias)?;
        AgentId::new(format!("{name}@{stamp}")).map_err(|error| error.to_string())
    }

    /// The agent that owns what nobody claims: `default` if configured, else the first enabled one.
    pub(crate) fn fallback(&self) -> Result<Owner, String> {
        let configured = self.config.agents.contains_key(DEFAULT_AGENT);
        let first = self
            .config
            .agents
            .iter()
            .find(|(_, agent)| agent.enabled)
            .map(|(alias, _)| alias.as_str());
        let alias = if configured {
            DEFAULT_AGENT
        } else {
            first.unwrap_or(DEFAULT_AGENT)
        };
        Ok(Owner {
            agent: self.named(alias)?,
            is_fallback: true,
        })
    }

    /// Owner of a scheduled job: its own word, else the enabled agent whose list names it.
    pub(crate) fn of_job(&self, alias: &str, job_id: &str) -> Result<Option<AgentId>, String> {
        if !alias.is_empty() {
            return self.named(alias).map(Some);
        }
        let listed = self
            .enabled()
            .find(|(_, agent)| agent.cron_jobs.iter().any(|id| id == job_id));
        listed.map(|(alias, _)| self.named(alias)).transpose()
    }

    fn enabled(&self) -> impl Iterator<Item = (&String, &zeroclaw::config::AgentConfig)> {
        self.config.agents.iter().filter(|(_, agent)| agent.enabled)
    }

    fn of_channel(&self, channel: &str) -> Option<String> {
        let is_bare = !channel.contains('.');
        self.enabled()
            .find(|(_, agent)| {
                agent.channels.iter().any(|reference| {
                    reference == channel
                        || (is_bare && reference.split('.').next() == Some(channel))
                })
            })
            .map(|(alias, _)| alias.clone())
    }

    /// By the start of a session key: the longest configured channel reference, in the form keys
    /// have it, else its bare type.
    fn of_key(&self, key: &str) -> Option<String> {
        let mut best: Option<(usize, &str)> = None;
        for (alias, agent) in self.enabled() {
            for reference in &agent.channels {
                let full = sanitised(reference);
                let bare = reference.split('.').next().unwrap_or_default();
                for prefix in [full.as_str(), bare] {
                    let fits = !prefix.is_empty()
                        && sanitised(key)
                            .strip_prefix(prefix)
                            .is_some_and(|rest| rest.starts_with('_'));
                    if fits && best.is_none_or(|(length, _)| prefix.len() > length) {
                        best = Some((prefix.len(), alias));
                    }
                }
            }
        }
        best.map(|(_, alias)| alias.to_owned())
    }
}

/// The old program's own rule for keys: what is neither alphanumeric nor `_` nor `-` becomes `_`.
fn sanitised(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '_' | '-') {
                c
            } else {
                '_'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(text: &str) -> Owners {
        Owners::new(Config::parse(text).unwrap(), None, BTreeMap::new())
    }

    const TWO: &str = "schema_version = 3
        [agents.atlas]
        channels = ['telegram.main']
        cron_jobs = ['nightly']
        [agents.birch]
        channels = ['telegram.main_2', 'slack.ops']
        [agents.aspen]
        enabled = false
        channels = ['irc.x']";

    #[test]
    fn a_session_belongs_to_whom_it_says_then_its_channel_then_its_key_then_the_fallback() {
        let owners = owners(TWO);
        let of = |alias, channel, key| owners.of_session(alias, channel, key).unwrap();

        assert_eq!(of(Some("gone"), None, "gw_1").agent.as_str(), "gone");
        assert_eq!(of(None, Some("slack.ops"), "x").agent.as_str(), "birch");
        assert_eq!(of(Some(""), Some("slack"), "x").agent.as_str(), "birch");
        assert_eq!(of(None, None, "telegram_main_2_7").agent.as_str(), "birch");
        assert_eq!(of(None, None, "telegram_main_7").agent.as_str(), "atlas");
        assert_eq!(of(None, None, "telegram:77").agent.as_str(), "atlas");
        assert!(of(None, None, "irc_x_1").is_fallback);
        assert_eq!(of(None, None, "gw_1").agent.as_str(), "atlas");
    }

    #[test]
    fn an_illegal_name_is_refused_and_the_map_is_the_way_out() {
        let error = owners(TWO).named("агент✨").unwrap_err();
        assert!(error.contains("--agent-map"), "{error}");

        let renames = BTreeMap::from([("агент✨".to_owned(), "agent".to_owned())]);
        let owners = Owners::new(Config::parse(TWO).unwrap(), None, renames);
        assert_eq!(owners.named("агент✨").unwrap().as_str(), "agent");
    }

    #[test]
    fn a_job_without_owner_belongs_to_the_agent_that_lists_it() {
        let owners = owners(TWO);

        assert_eq!(
            owners.of_job("", "nightly").unwrap().unwrap().as_str(),
            "atlas"
        );
        assert_eq!(owners.of_job("", "other").unwrap(), None);
        assert_eq!(
            owners.of_job("birch", "nightly").unwrap().unwrap().as_str(),
            "birch"
        );
    }
}
