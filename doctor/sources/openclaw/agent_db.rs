//! `openclaw-agent.sqlite`: sessions and transcripts of one agent, since schema 4; before, none of them.
//!
//! Up to schema 13 a session was a row of `sessions`, its key one of `session_routes`, its entry one of
//! `session_entries`. Since 14 a key is a row of `session_nodes` and each of its generations one of `session_windows`.
//! Long events are packed by Zstandard since 22. The records themselves are those of the files before.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use zeroclaw::model::{AgentId, ChatType, Conversation, SessionRoute, SessionScope, Tier};

use super::super::sqlite::{LegacyDb, Values};
use super::super::zstd;
use super::super::{Batcher, ReadError, Sink};
use super::database::{Read, all, each, open, tell_columns, tell_others};
use super::events::Events;
use super::home::Home;
use super::index::{self, Entry};
use super::left;
use super::part::{Part, record};
use super::session::{Times, of_entry};
use crate::doctor::record::{Item, Record};
use crate::doctor::rows::branch::BranchTip;

/// Most bytes that a packed event has by the old program's own rule.
const MAX_EVENT: usize = 4 * 1024 * 1024;

const OLD_KEYS: Read = Read {
    table: "session_routes",
    columns: &["session_key", "session_id", "updated_at"],
    order: "session_key",
};
const OLD_ENTRIES: Read = Read {
    table: "session_entries",
    columns: &["session_key", "session_id", "updated_at", "entry_json"],
    order: "session_key",
};
const NODES: Read = Read {
    table: "session_nodes",
    columns: &[
        "session_key",
        "current_session_id",
        "updated_at",
        "entry_json",
        "archived_at",
        "label",
        "display_name",
    ],
    order: "session_key",
};
const SESSION: [&str; 12] = [
    "session_id",
    "session_key",
    "session_scope",
    "created_at",
    "updated_at",
    "status",
    "chat_type",
    "channel",
    "account_id",
    "model_provider",
    "model",
    "display_name",
];
const OLD_SESSIONS: Read = Read {
    table: "sessions",
    columns: &SESSION,
    order: "created_at, session_id",
};
const WINDOWS: Read = Read {
    table: "session_windows",
    columns: &SESSION,
    order: "created_at, session_id",
};
const CONVERSATIONS: Read = Read {
    table: "conversations",
    columns: &[
        "conversation_id",
        "channel",
        "account_id",
        "kind",
        "peer_id",
        "thread_id",
        "created_at",
        "updated_at",
    ],
    order: "conversation_id",
};
const MEMBERS: Read = Read {
    table: "session_conversations",
    columns: &["session_id", "conversation_id", "role"],
    order: "session_id",
};
const EVENTS: Read = Read {
    table: "transcript_events",
    columns: &["seq", "event_json", "created_at", "event_zstd"],
    order: "seq",
};
const TABLES: [Read; 8] = [
    OLD_KEYS,
    OLD_ENTRIES,
    NODES,
    OLD_SESSIONS,
    WINDOWS,
    CONVERSATIONS,
    MEMBERS,
    EVENTS,
];

/// Columns that say again what others say, or what only the old program means by them.
const IGNORED: [&str; 20] = [
    "session_id",
    "event_utf8_bytes",
    "navigation_json",
    "first_seen_at",
    "last_seen_at",
    "started_at",
    "ended_at",
    "transcript_updated_at",
    "transcript_observed_at",
    "session_entry_provenance",
    "acp_owned",
    "entry_valid",
    "agent_harness_id",
    "previous_session_id",
    "reason",
    "primary_conversation_id",
    "status",
    "created_at",
    "legacy_acp_migration_json",
    "route_context_json",
];

/// Streams the sessions of an agent.
pub(super) async fn read<S: Sink>(
    db: &mut LegacyDb,
    home: &Home,
    agent: AgentId,
    sink: &mut S,
) -> Result<(), ReadError> {
    let mut out = Batcher::new(sink);
    open(db, "agent", &mut out).await?;
    let (routes, entries) = keys(db).await?;
    let conversations = conversations(db).await?;
    let tier = Tier::Agent(agent.clone());
    let current: BTreeSet<String> = routes.values().map(|(id, _)| id.clone()).collect();
    let mut given = BTreeSet::new();
    for table in [OLD_SESSIONS, WINDOWS] {
        for values in all(db, table).await? {
            let Some(id) = values.hint(0) else { continue };
            let entry = entries.get(&id).cloned();
            let (import, last_ms) = session(
                &values,
                &id,
                entry,
                home,
                &agent,
                &conversations,
                current.contains(&id),
            );
            let Some(import) = import else { continue };
            given.insert(id.clone());
            out.push(
                Item::Record {
                    tier: tier.clone(),
                    record: Record::Session(Box::new(import)),
                },
                512,
            )
            .await?;
            events(db, &id, last_ms, &tier, &mut out).await?;
        }
    }
    for (key, (id, updated_at_ms)) in routes {
        let Some(entry) = entries.get(&id) else {
            continue;
        };
        if given.insert(id.clone()) {
            // A key of which nothing was ever said.
            let empty = of_entry(home, agent.clone(), &key, entry, Times::default());
            let record = Record::Session(Box::new(empty));
            out.push(
                Item::Record {
                    tier: tier.clone(),
                    record,
                },
                512,
            )
            .await?;
        }
        let route = SessionRoute {
            session_key: key,
            session_id: id,
            updated_at_ms,
            entry_json: Some(entry.json.clone()),
        };
        out.push(
            Item::Record {
                tier: tier.clone(),
                record: route.into(),
            },
            512,
        )
        .await?;
    }
    tell_columns(db, &TABLES, &IGNORED, &mut out).await?;
    tell_others(db, &TABLES, left::AGENT, &mut out).await?;
    out.flush().await
}

/// Keys with the sessions they lead to, and entries by session.
type Keys = (BTreeMap<String, (String, i64)>, BTreeMap<String, Entry>);

async fn keys(db: &mut LegacyDb) -> Result<Keys, ReadError> {
    let (mut routes, mut entries) = (BTreeMap::new(), BTreeMap::new());
    for values in all(db, OLD_KEYS).await? {
        if let (Some(key), Some(id)) = (values.hint(0), values.hint(1)) {
            routes.insert(key, (id, values.integer(2).unwrap_or(0)));
        }
    }
    for table in [OLD_ENTRIES, NODES] {
        for values in all(db, table).await? {
            let (Some(key), Some(id)) = (values.hint(0), values.hint(1)) else {
                continue;
            };
            let updated = values.integer(2).unwrap_or(0);
            routes.entry(key.clone()).or_insert((id.clone(), updated));
            let json: Value = values
                .hint(3)
                .and_then(|json| serde_json::from_str(&json).ok())
                .unwrap_or_default();
            let mut fields = json.as_object().cloned().unwrap_or_default();
            // The columns hold where an entry is empty, as that of a job that is gone.
            fields.insert("sessionId".to_owned(), json!(id));
            fields.entry("updatedAt").or_insert(json!(updated));
            if table.table == NODES.table {
                for (name, at) in [("label", 5), ("displayName", 6)] {
                    if let Some(text) = values.hint(at) {
                        fields.insert(name.to_owned(), json!(text));
                    }
                }
                if let Some(at) = values.integer(4) {
                    fields.insert("archivedAt".to_owned(), json!(at));
                }
            }
            if let Ok(entry) = index::entry(&key, Value::Object(fields)) {
                entries.insert(id, entry);
            }
        }
    }
    Ok((routes, entries))
}

async fn conversations(db: &mut LegacyDb) -> Result<BTreeMap<String, Conversation>, ReadError> {
    let mut by_id = BTreeMap::new();
    for values in all(db, CONVERSATIONS).await? {
        let text = |at| values.hint(at);
        let (Some(id), Some(channel), Some(account_id), Some(peer_id)) =
            (text(0), text(1), text(2), text(4))
        else {
            continue;
        };
        let found = Conversation {
            conversation_id: id.clone(),
            channel,
            account_id,
            kind: text(3)
                .and_then(|kind| ChatType::parse(&kind))
                .unwrap_or(ChatType::Direct),
            peer_id,
            thread_id: text(5),
            created_at_ms: values.integer(6).unwrap_or(0),
            updated_at_ms: values.integer(7).unwrap_or(0),
        };
        by_id.insert(id, found);
    }
    let mut by_session = BTreeMap::new();
    for values in all(db, MEMBERS).await? {
        let is_primary = values.hint(2).is_none_or(|role| role == "primary");
        let found = values.hint(1).and_then(|id| by_id.get(&id).cloned());
        if let (Some(session), Some(found), true) = (values.hint(0), found, is_primary) {
            by_session.entry(session).or_insert(found);
        }
    }
    Ok(by_session)
}

/// A session by its row; with the time that stands in for events without one.
fn session(
    values: &Values,
    id: &str,
    entry: Option<Entry>,
    home: &Home,
    agent: &AgentId,
    conversations: &BTreeMap<String, Conversation>,
    is_current: bool,
) -> (Option<crate::doctor::record::ImportSession>, i64) {
    let (created, updated) = (
        values.integer(3).unwrap_or(0),
        values.integer(4).unwrap_or(0),
    );
    let key = values
        .hint(1)
        .unwrap_or_else(|| format!("agent:{agent}:recovered:{id}"));
    let known = match entry {
        Some(entry) => Some(entry),
        None => {
            let fields = Map::from_iter([
                ("sessionId".to_owned(), json!(id)),
                ("updatedAt".to_owned(), json!(updated)),
            ]);
            index::entry(&key, Value::Object(fields)).ok()
        }
    };
    let Some(entry) = known else {
        return (None, updated);
    };
    let times = Times {
        first_ms: Some(created),
        last_ms: Some(updated),
    };
    let mut import = of_entry(home, agent.clone(), &key, &entry, times);
    let record = &mut import.record;
    let text = |at| values.hint(at);
    record.session_scope = text(2)
        .and_then(|scope| SessionScope::parse(&scope))
        .unwrap_or(record.session_scope);
    record.chat_type = text(6)
        .and_then(|kind| ChatType::parse(&kind))
        .or(record.chat_type);
    record.channel = text(7).or(record.channel.take());
    record.account_id = text(8).or(record.account_id.take());
    record.model_provider = text(9).or(record.model_provider.take());
    record.model = text(10).or(record.model.take());
    record.display_name = record.display_name.take().or(text(11));
    if !is_current {
        // An earlier generation of its key: history.
        record.archived_at_ms = record.archived_at_ms.or(Some(updated));
    }
    // Where the database keeps whom a session is with, a key is not taken apart for it.
    let by_key = import.conversation.filter(|_| conversations.is_empty());
    import.conversation = conversations.get(id).cloned().or(by_key);
    (Some(import), updated)
}

async fn events<S: Sink>(
    db: &mut LegacyDb,
    session_id: &str,
    at_ms: i64,
    tier: &Tier,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let mut events = Events::new(session_id, at_ms);
    each(
        db,
        EVENTS,
        "session_id = ?1",
        &[session_id],
        async |values| events.give(part(&values, session_id), tier, out).await,
    )
    .await?;
    if let Some(event_id) = events.tip() {
        let tip = BranchTip {
            session_id: session_id.to_owned(),
            event_id,
        };
        out.push(
            Item::Record {
                tier: tier.clone(),
                record: tip.into(),
            },
            64,
        )
        .await?;
    }
    Ok(())
}

fn part(values: &Values, session_id: &str) -> Part {
    let place = format!(
        "session {session_id}, event {}",
        values.integer(0).unwrap_or(-1)
    );
    let broken = |reason, raw: &[u8]| Part::Broken {
        place: place.clone(),
        reason,
        raw: raw.to_vec(),
        is_tail: false,
    };
    if let Some(json) = values.bytes(1) {
        return match std::str::from_utf8(json) {
            Ok(text) => record(place, text, false),
            Err(_) => record(place, &String::from_utf8_lossy(json), true),
        };
    }
    let Some(packed) = values.bytes(3) else {
        return broken("it holds nothing", &[]);
    };
    match zstd::unpack(packed, MAX_EVENT).map(String::from_utf8) {
        Ok(Ok(text)) => record(place, &text, false),
        Ok(Err(_)) => broken("what it unpacks to is not UTF-8", packed),
        Err(_) => broken("it cannot be unpacked", packed),
    }
}
