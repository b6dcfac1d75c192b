//! What `session_metadata` says, and the session that is made of it.

use std::collections::BTreeMap;

use zeroclaw::model::{ChatType, Conversation, SessionRecord, SessionScope, SessionStatus};

use super::session_id;
use crate::doctor::owner::Owners;
use crate::doctor::record::{ImportSession, Item};
use crate::doctor::sources::ReadError;
use crate::doctor::sources::rows::{Found, Table, each_row};
use crate::doctor::sources::sqlite::LegacyDb;
use crate::doctor::units::{LegacyTime, stable_uuid};

const METADATA: [&str; 12] = [
    "session_key",
    "created_at",
    "last_activity",
    "message_count",
    "name",
    "state",
    "turn_id",
    "turn_started_at",
    "agent_alias",
    "channel_id",
    "room_id",
    "sender_id",
];

/// What `session_metadata` says of one session.
pub(super) struct Metadata {
    created_at_ms: Option<i64>,
    last_activity_ms: Option<i64>,
    name: Option<String>,
    state: Option<String>,
    agent_alias: Option<String>,
    channel_id: Option<String>,
    room_id: Option<String>,
    sender_id: Option<String>,
    entry_json: String,
}

/// All metadata by session key, and what of it is damaged: the sessions come in without it.
pub(super) async fn read_metadata(
    db: &mut LegacyDb,
) -> Result<(BTreeMap<Vec<u8>, Metadata>, Option<String>), ReadError> {
    let mut all = BTreeMap::new();
    if db.columns("session_metadata").await?.is_empty() {
        return Ok((all, None));
    }
    let table = Table {
        name: "session_metadata",
        wanted: &METADATA,
        order: "session_key",
    };
    let damage = each_row(db, table, async |found| {
        let Found::Row(values) = found else {
            return Ok(());
        };
        let time = |column| {
            values
                .hint(column)
                .and_then(|text| LegacyTime::parse(&text))
                .map(LegacyTime::ms)
        };
        let metadata = Metadata {
            created_at_ms: time(1),
            last_activity_ms: time(2),
            name: values.hint(4),
            state: values.hint(5),
            agent_alias: values.hint(8),
            channel_id: values.hint(9),
            room_id: values.hint(10),
            sender_id: values.hint(11),
            entry_json: values.json(&METADATA, &[]),
        };
        all.insert(values.bytes(0).unwrap_or_default().to_vec(), metadata);
        Ok(())
    });
    let damage = damage.await?;
    Ok((all, damage))
}

/// The session of a key, and what is to be said of its owner.
pub(super) fn session(
    key: &[u8],
    metadata: Option<Metadata>,
    first: Option<i64>,
    owners: &Owners,
) -> Result<(ImportSession, Option<Item>), String> {
    let key = std::str::from_utf8(key).map_err(|_| "its key is not UTF-8".to_owned())?;
    let hint = |pick: fn(&Metadata) -> &Option<String>| {
        metadata.as_ref().and_then(|found| pick(found).clone())
    };
    let channel_id = hint(|found| &found.channel_id);
    let alias = hint(|found| &found.agent_alias);
    let owner = owners.of_session(alias.as_deref(), channel_id.as_deref(), key)?;
    let note = owner.is_fallback.then(|| Item::Note {
        code: "owner-by-rule",
        place: format!("session {key}"),
        message: format!("names no agent; given to {}", owner.agent),
    });
    let created_at_ms = metadata
        .as_ref()
        .and_then(|found| found.created_at_ms)
        .or(first)
        .unwrap_or(0);
    let updated_at_ms = metadata
        .as_ref()
        .and_then(|found| found.last_activity_ms)
        .unwrap_or(created_at_ms);
    let conversation = conversation(
        channel_id.as_deref(),
        &hint(|f| &f.room_id),
        &hint(|f| &f.sender_id),
        created_at_ms,
    );
    let status = match hint(|found| &found.state).as_deref() {
        // Whoever ran the turn is gone.
        Some("running") => SessionStatus::Interrupted,
        Some("error") => SessionStatus::Failed,
        _ => SessionStatus::Idle,
    };
    let record = SessionRecord {
        agent_id: owner.agent,
        session_id: session_id(key),
        session_key: key.to_owned(),
        session_scope: match conversation.as_ref().map(|found| found.kind) {
            Some(ChatType::Group) => SessionScope::Group,
            _ => SessionScope::Conversation,
        },
        status,
        chat_type: conversation.as_ref().map(|found| found.kind),
        channel: conversation
            .as_ref()
            .map(|found| found.channel.clone())
            .or_else(|| {
                channel_id
                    .as_deref()
                    .map(|id| id.split('.').next().unwrap_or(id).to_owned())
            }),
        account_id: channel_id
            .as_deref()
            .and_then(|id| id.split_once('.'))
            .map(|(_, account)| account.to_owned()),
        primary_conversation_id: None,
        display_name: hint(|found| &found.name),
        model_provider: None,
        model: None,
        event_count: 0,
        message_count: 0,
        created_at_ms,
        updated_at_ms,
        archived_at_ms: None,
        has_synthetic_times: false,
        revision: 0,
        pinned_at_ms: None,
        forked_from: None,
    };
    let entry_json = metadata.map(|found| found.entry_json);
    Ok((
        ImportSession {
            record,
            conversation,
            entry_json,
            takes_route: true,
            sequence: None,
        },
        note,
    ))
}

/// Typed routing, from the metadata alone: a key cannot be taken apart reliably.
fn conversation(
    channel_id: Option<&str>,
    room: &Option<String>,
    sender: &Option<String>,
    at_ms: i64,
) -> Option<Conversation> {
    let channel_id = channel_id?;
    let (channel, account) = channel_id
        .split_once('.')
        .unwrap_or((channel_id, "default"));
    let (kind, peer) = match (room, sender) {
        (Some(room), Some(sender)) if room != sender => (ChatType::Group, room),
        (Some(peer), _) | (None, Some(peer)) => (ChatType::Direct, peer),
        (None, None) => return None,
    };
    Some(Conversation {
        conversation_id: stable_uuid(&[
            b"conversation",
            channel.as_bytes(),
            account.as_bytes(),
            kind.as_str().as_bytes(),
            peer.as_bytes(),
        ]),
        channel: channel.to_owned(),
        account_id: account.to_owned(),
        kind,
        peer_id: peer.clone(),
        thread_id: None,
        created_at_ms: at_ms,
        updated_at_ms: at_ms,
    })
}
