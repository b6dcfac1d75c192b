//! Databases and rows, the same for both sides.

use std::path::{Path, PathBuf};

use zeroclaw::db::{Access, Db, Durability, Release, WriteAccess};
use zeroclaw::model::{AgentId, NewEvent, SessionRecord, SessionScope, SessionStatus, Tier};

const TEMPLATE: &str = "template.sqlite";

pub(crate) fn agent() -> AgentId {
    AgentId::new("bench").unwrap()
}

fn access(dir: &Path, durability: Durability) -> WriteAccess {
    WriteAccess {
        durability,
        release: Release {
            app_version: "bench",
            now_ms: 0,
        },
        migrate_lock: dir.join("migrate.lock"),
    }
}

/// Makes the empty agent's database that all others are copies of.
pub(crate) async fn make_template(dir: &Path) {
    let tier = Tier::Agent(agent());
    let access = access(dir, Durability::Full);
    let db = Db::create(&dir.join(TEMPLATE), &tier, access)
        .await
        .unwrap();
    db.close().await;
}

/// A new empty database of this name.
pub(crate) fn fresh(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(format!("{name}.sqlite"));
    for suffix in ["", "-wal", "-shm"] {
        // From an earlier turn, where there was one.
        let _ = std::fs::remove_file(dir.join(format!("{name}.sqlite{suffix}")));
    }
    std::fs::copy(dir.join(TEMPLATE), &path).unwrap();
    path
}

pub(crate) async fn open(path: &Path, durability: Durability) -> Db {
    let access = access(path.parent().unwrap(), durability);
    Db::open(path, &Tier::Agent(agent()), Access::Write(access))
        .await
        .unwrap()
}

pub(crate) fn session(number: usize) -> SessionRecord {
    let number = i64::try_from(number).unwrap();
    SessionRecord {
        agent_id: agent(),
        session_id: format!("01890000-0000-7000-8000-{number:012}"),
        session_key: format!("telegram:main:{number}"),
        session_scope: SessionScope::Conversation,
        status: SessionStatus::Idle,
        chat_type: None,
        channel: Some("telegram".to_owned()),
        account_id: Some("main".to_owned()),
        primary_conversation_id: None,
        display_name: Some(format!("Conversation {number}")),
        model_provider: None,
        model: None,
        event_count: 0,
        message_count: 0,
        created_at_ms: number,
        updated_at_ms: number / 3,
        archived_at_ms: None,
        has_synthetic_times: false,
        revision: 0,
        pinned_at_ms: None,
        forked_from: None,
    }
}

/// Event `number`: about 400 bytes of made-up words, `common` in every tenth, `rare7` in one of 20,000.
pub(crate) fn event(number: usize) -> NewEvent {
    const WORDS: [&str; 16] = [
        "lantern", "garden", "kiln", "tide", "pump", "сад", "well", "orchard", "ember", "slate",
        "willow", "copper", "harbour", "ledger", "quarry", "meadow",
    ];
    let mut state = number as u64 * 0x9E37_79B9 + 1;
    let mut text = String::with_capacity(420);
    while text.len() < 400 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(WORDS[(state >> 60) as usize]);
        text.push_str(&(state >> 52 & 0xff).to_string());
        text.push(' ');
    }
    if number.is_multiple_of(10) {
        text.push_str("common");
    }
    if number % 20_000 == 77 {
        text.push_str(" rare7");
    }
    NewEvent {
        event_id: format!("01890000-0000-7000-9000-{number:012}"),
        event_type: "message".to_owned(),
        role: Some(
            if number.is_multiple_of(2) {
                "user"
            } else {
                "assistant"
            }
            .to_owned(),
        ),
        parent_id: number
            .checked_sub(1)
            .map(|before| format!("01890000-0000-7000-9000-{before:012}")),
        idempotency_key: None,
        created_at_ms: i64::try_from(number).unwrap(),
        text,
        event_json: None,
    }
}

pub(crate) fn events(count: usize) -> Vec<NewEvent> {
    (0..count).map(event).collect()
}
