//! A session of ours from what a key and its entry say: typed once, here, and never parsed again.

use zeroclaw::model::{AgentId, ChatType, Conversation, SessionRecord, SessionStatus};

use super::home::{Home, Standing, Transcript};
use super::index::Entry;
use super::key::{self, Routing};
use crate::doctor::record::ImportSession;
use crate::doctor::units::stable_id;

/// Account where none is named.
const DEFAULT_ACCOUNT: &str = "default";

/// When a session began and last changed, as far as something says so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// First record of its transcript.
    pub(crate) first_ms: Option<i64>,
    /// Last record of its transcript, or the file's own time.
    pub(crate) last_ms: Option<i64>,
}

/// The session that a key of an index leads to.
pub(crate) fn of_entry(
    home: &Home,
    agent: AgentId,
    key: &str,
    entry: &Entry,
    times: Times,
) -> ImportSession {
    let updated = entry.updated_at_ms.or(times.last_ms).unwrap_or(0);
    let created = times.first_ms.or(entry.started_at_ms).unwrap_or(updated);
    let routing = key::routing(key, &home.settings.rules);
    let chat_type = routing
        .chat_type
        .or_else(|| key::kind_of(&entry.chat_type.as_deref()?.to_lowercase()));
    let channel = routing
        .channel
        .clone()
        .or_else(|| entry.target.channel.clone());
    let record = SessionRecord {
        session_scope: routing.scope,
        status: status(entry.status.as_deref()),
        chat_type,
        account_id: routing
            .account
            .clone()
            .or_else(|| entry.target.account.clone()),
        channel,
        display_name: entry.name.clone(),
        model_provider: entry.provider.clone(),
        model: entry.model.clone(),
        created_at_ms: created.min(updated),
        updated_at_ms: updated,
        archived_at_ms: entry.archived_at_ms,
        has_synthetic_times: entry.updated_at_ms.is_none(),
        ..SessionRecord::new(agent, &entry.session_id, key, updated)
    };
    ImportSession {
        conversation: conversation(&record, &routing, entry),
        record,
        entry_json: None,
        takes_route: false,
        sequence: None,
    }
}

/// The session of a transcript that no key leads to.
pub(crate) fn of_file(agent: AgentId, transcript: &Transcript, times: Times) -> ImportSession {
    let last = times.last_ms.unwrap_or(0);
    let archived_at_ms = match transcript.standing {
        Standing::Routed | Standing::Unindexed => None,
        Standing::Lost => Some(last),
        Standing::Past { at_ms, .. } => Some(at_ms.unwrap_or(last)),
    };
    let record = SessionRecord {
        created_at_ms: times.first_ms.unwrap_or(last),
        archived_at_ms,
        has_synthetic_times: times.first_ms.is_none(),
        ..SessionRecord::new(agent, &transcript.session_id, &transcript.key, last)
    };
    ImportSession {
        record,
        conversation: None,
        entry_json: None,
        takes_route: true,
        sequence: None,
    }
}

/// What ran when its program ended was interrupted; nothing runs by import.
fn status(word: Option<&str>) -> SessionStatus {
    match word {
        Some("done") => SessionStatus::Done,
        Some("failed") => SessionStatus::Failed,
        Some("timeout") => SessionStatus::Timeout,
        // A turn was ended, not the session.
        Some("running" | "killed") => SessionStatus::Interrupted,
        _ => SessionStatus::Idle,
    }
}

/// Whom it is with: by its key, else by whom it last answered.
fn conversation(record: &SessionRecord, routing: &Routing, entry: &Entry) -> Option<Conversation> {
    let channel = record.channel.clone()?;
    let told = entry.target.to.as_deref();
    let told = told.map(|to| to.strip_prefix(&format!("{channel}:")).unwrap_or(to));
    let peer_id = routing.peer.clone().or_else(|| told.map(str::to_owned))?;
    let account_id = record
        .account_id
        .clone()
        .unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
    let kind = record.chat_type.unwrap_or(ChatType::Direct);
    let thread_id = routing
        .thread
        .clone()
        .or_else(|| entry.target.thread.clone());
    let parts = [
        "conversation",
        &channel,
        &account_id,
        kind.as_str(),
        &peer_id,
        thread_id.as_deref().unwrap_or(""),
    ];
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    Some(Conversation {
        conversation_id: stable_id(&parts),
        channel,
        account_id,
        kind,
        peer_id,
        thread_id,
        created_at_ms: record.created_at_ms,
        updated_at_ms: record.updated_at_ms,
    })
}
