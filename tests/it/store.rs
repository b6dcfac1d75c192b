//! Typed rows: pages without gaps, texts of any kind, words in every script, and every statement once.

use std::path::Path;

use zeroclaw::db::{BulkTx, Db, Durability, Release, WriteAccess};
use zeroclaw::model::{AgentId, NewEvent, SessionRecord, SessionScope, SessionStatus, Tier};
use zeroclaw::store::agent::session::{self, SessionTail};
use zeroclaw::store::agent::transcript::{self, PlacedEvent};

mod memory;
mod records;
mod search;
mod session_pages;
mod statements;
mod transcript_pages;

fn atlas() -> AgentId {
    AgentId::new("atlas").unwrap()
}

/// A new database of a tier in `dir`.
async fn database(dir: &Path, tier: Tier) -> Db {
    let access = WriteAccess {
        durability: Durability::Normal,
        release: Release {
            app_version: "0.0.0-test",
            now_ms: 0,
        },
        migrate_lock: dir.join("migrate.lock"),
    };
    let path = dir.join(format!("{}.sqlite", tier.role()));
    Db::create(&path, &tier, access).await.unwrap()
}

async fn agent_database(dir: &Path) -> Db {
    database(dir, Tier::Agent(atlas())).await
}

fn session_of(id: &str, updated_at_ms: i64) -> SessionRecord {
    SessionRecord {
        agent_id: atlas(),
        session_id: id.to_owned(),
        session_key: format!("key of {id}"),
        session_scope: SessionScope::Conversation,
        status: SessionStatus::Idle,
        chat_type: None,
        channel: None,
        account_id: None,
        primary_conversation_id: None,
        display_name: None,
        model_provider: None,
        model: None,
        event_count: 0,
        message_count: 0,
        created_at_ms: 0,
        updated_at_ms,
        archived_at_ms: None,
        has_synthetic_times: false,
    }
}

fn event_of(id: &str, text: &str) -> NewEvent {
    NewEvent {
        event_id: id.to_owned(),
        event_type: "message".to_owned(),
        role: Some("user".to_owned()),
        parent_id: None,
        idempotency_key: None,
        created_at_ms: 17,
        text: text.to_owned(),
        event_json: None,
    }
}

/// Inserts a session with these events, from place 1.
async fn insert_session(bulk: &mut BulkTx, id: &str, events: &[NewEvent]) -> SessionTail {
    let mut tail = session::insert(&mut bulk.tx(), &session_of(id, 0))
        .await
        .unwrap();
    let placed: Vec<_> = (1..)
        .zip(events)
        .map(|(seq, event)| PlacedEvent {
            session_no: tail.session_no,
            seq,
            event,
        })
        .collect();
    for events in placed.chunks(transcript::MAX_INSERT) {
        transcript::insert(&mut bulk.tx(), events).await.unwrap();
    }
    tail.last_seq = i64::try_from(events.len()).unwrap();
    session::grow(&mut bulk.tx(), tail, tail.last_seq, tail.last_seq, 0)
        .await
        .unwrap();
    tail
}
