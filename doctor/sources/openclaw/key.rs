//! Names of agents and keys of sessions: how they were written, and what they mean.
//!
//! A key is `agent:<agent>:<rest>`; older ones lack the first two parts. It is taken apart once, at import, and
//! opaque from then on.

use zeroclaw::model::{ChatType, SessionScope};

/// Key of the shared session where the configuration names no other.
pub(crate) const MAIN: &str = "main";
/// Longest name of an agent, characters.
const MAX_NAME: usize = 64;

/// The name an agent of that name, or of a folder of that name, goes by; `main` for one without any.
pub(crate) fn agent_name(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let mut name = String::new();
    for c in lower.chars() {
        match is_plain(c) {
            true => name.push(c),
            false if !name.ends_with('-') => name.push('-'),
            false => {}
        }
    }
    let name: String = name.trim_matches('-').chars().take(MAX_NAME).collect();
    match name.trim_end_matches('-') {
        "" => MAIN.to_owned(),
        name => name.to_owned(),
    }
}

/// What an old program's configuration says of keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyRules {
    /// Rest of the key of the shared session.
    pub(crate) main: String,
    /// Whether all agents share one session of the key `global`.
    pub(crate) is_global: bool,
}

impl KeyRules {
    /// Key of an agent's shared session.
    pub(crate) fn main_key(&self, agent: &str) -> String {
        match self.is_global {
            true => "global".to_owned(),
            false => format!("agent:{agent}:{}", self.main),
        }
    }

    /// The form of a key that holds today, for a session of `agent`; `None` for an empty one.
    pub(crate) fn canonical(&self, raw: &str, agent: &str) -> Option<String> {
        let key = raw.trim();
        let lower = key.to_lowercase();
        let of_agent = |rest: &str| Some(format!("agent:{agent}:{rest}"));
        if lower.is_empty() {
            return None;
        }
        if lower == "global" || lower == "unknown" {
            return Some(lower);
        }
        let own = |rest: &str| lower == rest || lower == format!("agent:{agent}:{rest}");
        if own(MAIN) || own(&self.main) {
            return Some(self.main_key(agent));
        }
        if owner(&lower).is_some() {
            return Some(folded(key));
        }
        if lower.starts_with("subagent:") {
            return of_agent(&lower);
        }
        if let Some(id) = lower.strip_prefix("group:") {
            let channel = if id.contains("@g.us") {
                "whatsapp"
            } else {
                "unknown"
            };
            return of_agent(&format!("{channel}:group:{id}"));
        }
        let jid = lower.strip_prefix("whatsapp:").unwrap_or(&lower);
        if jid.ends_with("@g.us") && !jid.contains(':') {
            return of_agent(&format!("whatsapp:group:{jid}"));
        }
        if let Some(id) = lower.strip_prefix("channel:") {
            return of_agent(&format!("unknown:channel:{id}"));
        }
        Some(folded(&format!("agent:{agent}:{key}")))
    }
}

/// The agent a key names; `None` where it names none.
pub(crate) fn owner(key: &str) -> Option<&str> {
    let mut parts = key.splitn(3, ':');
    let is_agent = parts
        .next()
        .is_some_and(|part| part.eq_ignore_ascii_case("agent"));
    let agent = parts.next().filter(|part| !part.is_empty())?;
    parts.next().filter(|rest| is_agent && !rest.is_empty())?;
    Some(agent)
}

/// Lower case, but for what a channel tells apart by case: rooms and people of Matrix, groups of Signal.
fn folded(key: &str) -> String {
    let parts: Vec<&str> = key.split(':').collect();
    let channel = parts.get(2).map(|part| part.to_lowercase());
    let is_opaque = match channel.as_deref() {
        Some("matrix") => true,
        Some("signal") => parts.iter().any(|part| part.eq_ignore_ascii_case("group")),
        _ => false,
    };
    if !is_opaque {
        return key.to_lowercase();
    }
    let is_word = |part: &str| {
        let words = [
            "direct", "dm", "group", "channel", "room", "thread", "topic",
        ];
        words.contains(&part.to_lowercase().as_str())
    };
    let fold = |(at, part): (usize, &&str)| match at < 3 || is_word(part) {
        true => part.to_lowercase(),
        false => (*part).to_owned(),
    };
    parts
        .iter()
        .enumerate()
        .map(fold)
        .collect::<Vec<_>>()
        .join(":")
}

/// What a key says of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Routing {
    /// What the session spans.
    pub(crate) scope: SessionScope,
    /// Kind of chat.
    pub(crate) chat_type: Option<ChatType>,
    /// Channel.
    pub(crate) channel: Option<String>,
    /// Account on it.
    pub(crate) account: Option<String>,
    /// Who is on the other side.
    pub(crate) peer: Option<String>,
    /// Thread or topic.
    pub(crate) thread: Option<String>,
}

/// Takes a canonical key apart.
pub(crate) fn routing(key: &str, rules: &KeyRules) -> Routing {
    let mut routing = Routing::default();
    let Some(agent) = owner(key) else {
        if key == "global" {
            routing.scope = SessionScope::SharedMain;
            routing.chat_type = Some(ChatType::Direct);
        }
        return routing;
    };
    let rest = &key["agent:".len() + agent.len() + 1..];
    if rest == rules.main || rest == MAIN {
        routing.scope = SessionScope::SharedMain;
        routing.chat_type = Some(ChatType::Direct);
        return routing;
    }
    let parts: Vec<&str> = rest.split(':').collect();
    if ["subagent", "cron", "acp"].contains(&parts[0]) {
        return routing;
    }
    let kind_at = parts.iter().position(|part| kind_of(part).is_some());
    let Some((at, kind)) = kind_at.and_then(|at| Some((at, kind_of(parts[at])?))) else {
        return routing;
    };
    routing.chat_type = Some(kind);
    routing.scope = match kind {
        ChatType::Direct => SessionScope::Conversation,
        ChatType::Group => SessionScope::Group,
        ChatType::Channel => SessionScope::Channel,
    };
    routing.channel = parts
        .first()
        .filter(|_| at > 0)
        .map(|part| (*part).to_owned());
    routing.account = parts
        .get(1)
        .filter(|_| at > 1)
        .map(|part| (*part).to_owned());
    let mut peer = parts[at + 1..].to_vec();
    if let Some(thread_at) = peer
        .iter()
        .rposition(|part| ["thread", "topic"].contains(part))
    {
        let thread = peer.split_off(thread_at);
        routing.thread = Some(thread[1..].join(":")).filter(|thread| !thread.is_empty());
    }
    routing.peer = Some(peer.join(":")).filter(|peer| !peer.is_empty());
    routing
}

/// The kind of chat a word of a key or an entry stands for.
pub(crate) fn kind_of(word: &str) -> Option<ChatType> {
    match word {
        "direct" | "dm" => Some(ChatType::Direct),
        "group" => Some(ChatType::Group),
        "channel" | "room" => Some(ChatType::Channel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: fn() -> KeyRules = || KeyRules {
        main: "home".to_owned(),
        is_global: false,
    };

    #[test]
    fn names_of_agents_follow_one_rule() {
        for (text, name) in [
            (" Work Bot ", "work-bot"),
            ("MAIN", "main"),
            ("-x-", "x"),
            ("агент", "main"),
            ("a..b", "a-b"),
            ("under_score", "under_score"),
        ] {
            assert_eq!(agent_name(text), name, "{text}");
        }
        assert_eq!(agent_name(&"a".repeat(80)).len(), 64);
    }

    #[test]
    fn old_keys_get_the_form_that_holds_today() {
        let of = |key| RULES().canonical(key, "ops");
        for (old, new) in [
            ("main", "agent:ops:home"),
            ("home", "agent:ops:home"),
            ("agent:ops:main", "agent:ops:home"),
            ("agent:Other:Main", "agent:other:main"),
            ("subagent:X", "agent:ops:subagent:x"),
            ("group:1@g.us", "agent:ops:whatsapp:group:1@g.us"),
            ("12@g.us", "agent:ops:whatsapp:group:12@g.us"),
            ("whatsapp:12@g.us", "agent:ops:whatsapp:group:12@g.us"),
            ("group:7", "agent:ops:unknown:group:7"),
            ("channel:C1", "agent:ops:unknown:channel:c1"),
            ("discord:channel:9", "agent:ops:discord:channel:9"),
            ("+1555", "agent:ops:+1555"),
            ("Global", "global"),
            ("UNKNOWN", "unknown"),
            (
                "agent:ops:Matrix:Channel:!AbC:Server.org:Thread:$Ev",
                "agent:ops:matrix:channel:!AbC:Server.org:thread:$Ev",
            ),
            ("agent:ops:signal:group:AbC=", "agent:ops:signal:group:AbC="),
        ] {
            assert_eq!(of(old).as_deref(), Some(new), "{old}");
        }
        assert_eq!(of("  "), None);
    }

    #[test]
    fn a_key_says_what_its_session_spans() {
        let of = |key| routing(key, &RULES());
        let topic = of("agent:ops:telegram:group:-100:topic:1");
        assert_eq!(topic.scope, SessionScope::Group);
        assert_eq!(
            (topic.channel.as_deref(), topic.peer.as_deref()),
            (Some("telegram"), Some("-100"))
        );
        assert_eq!(topic.thread.as_deref(), Some("1"));
        let direct = of("agent:ops:slack:work:dm:u1");
        assert_eq!(
            (direct.chat_type, direct.account.as_deref()),
            (Some(ChatType::Direct), Some("work"))
        );
        assert_eq!(of("agent:ops:home").scope, SessionScope::SharedMain);
        assert_eq!(of("agent:ops:cron:j:run:r"), Routing::default());
        assert_eq!(of("agent:ops:direct:p").channel, None);
    }
}
