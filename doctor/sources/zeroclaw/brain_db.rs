//! `memory/brain.db`: memories of all agents, since 0.1.
//!
//! `memories` grew columns up to 0.8.3 and is read by name. Owner: `agent_id` through the table
//! `agents`; before 0.8 there was neither and everything is `default`'s. Times carry the local offset
//! of their machine; the text is kept. `kind` is JSON text, quotes included. `embedding` is raw
//! little-endian 32-bit floats; provider and model stand in `memory_meta`, if anywhere.
//!
//! Known faults: a full-text index that is stale (never imported), content that is no text, NULL
//! keys, two rows of one key where an older table did not forbid it.

use std::collections::HashMap;

use zeroclaw::model::{MemoryRecord, Tier};

use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, stable_uuid};

const MEMORY: [&str; 15] = [
    "id",
    "key",
    "content",
    "category",
    "embedding",
    "created_at",
    "updated_at",
    "session_id",
    "namespace",
    "importance",
    "superseded_by",
    "agent_id",
    "kind",
    "pinned",
    "tenant_id",
];

/// Owner of rows written before there were agents.
const FIRST_AGENT: &str = "default";

/// Notes the old program wrote by itself, and later declared untrusted.
const UNTRUSTED_KEYS: &str = "assistant_resp";

/// What holds for all rows of a store.
struct Store {
    aliases: HashMap<String, String>,
    provider: Option<String>,
    model: Option<String>,
}

/// Streams a store's memories, by key, so that rows of one key follow one another.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("memories").await?;
    if !columns.iter().any(|column| column == "content") {
        return Err(ReadError::Format {
            reason: "it has no table memories".to_owned(),
        });
    }
    let store = read_store(db).await?;
    let mut out = Batcher::new(sink);
    let order = if columns.iter().any(|column| column == "agent_id") {
        "agent_id, key"
    } else {
        "key"
    };
    let table = Table {
        name: "memories",
        wanted: &MEMORY,
        order,
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::MEMORY, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let length = |column| values.bytes(column).map_or(0, <[u8]>::len);
        let bytes = length(2) + length(4);
        for item in items(values, &store, owners) {
            out.push(item, bytes).await?;
        }
        Ok(())
    });
    if let Some(reason) = damage.await? {
        let place = "table memories".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    out.flush().await
}

async fn read_store(db: &mut LegacyDb) -> Result<Store, ReadError> {
    let mut store = Store {
        aliases: HashMap::new(),
        provider: None,
        model: None,
    };
    if !db.columns("agents").await?.is_empty() {
        let rows: Vec<(String, String)> =
            sqlx::query_as("SELECT CAST(id AS TEXT), CAST(alias AS TEXT) FROM agents WHERE id IS NOT NULL AND alias IS NOT NULL")
                .fetch_all(&mut db.conn)
                .await?;
        store.aliases.extend(rows);
    }
    if !db.columns("memory_meta").await?.is_empty() {
        let rows: Vec<(String, String)> =
            sqlx::query_as("SELECT CAST(key AS TEXT), CAST(value AS TEXT) FROM memory_meta WHERE value IS NOT NULL")
                .fetch_all(&mut db.conn)
                .await?;
        for (key, value) in rows {
            match key.as_str() {
                "embedding_provider" => store.provider = Some(value),
                "embedding_model" => store.model = Some(value),
                _ => {}
            }
        }
    }
    Ok(store)
}

fn items(mut values: Values, store: &Store, owners: &Owners) -> Vec<Item> {
    let place = format!("table memories, row {}", values.rowid);
    let refuse = |values: &Values, reason: String| {
        let raw = values.json(&MEMORY, &["embedding"]).into_bytes();
        vec![Item::Refused(Refusal {
            kind: kind::MEMORY,
            place: place.clone(),
            reason,
            raw,
        })]
    };
    let text = |column| values.text(column).ok().flatten().map(str::to_owned);
    let Some(key) = text(1) else {
        return refuse(&values, "its key is missing or not UTF-8".to_owned());
    };
    let Some(content) = text(2) else {
        return refuse(&values, "its content is missing or not UTF-8".to_owned());
    };
    let mut notes = Vec::new();
    let mut note = |code: &'static str, message: &str| {
        notes.push(Item::Note {
            code,
            place: place.clone(),
            message: message.to_owned(),
        });
    };
    let alias = match values.hint(11) {
        None => FIRST_AGENT.to_owned(),
        Some(id) => store.aliases.get(&id).cloned().unwrap_or_else(|| {
            note("unknown-agent", "its agent is in no list; given to default");
            FIRST_AGENT.to_owned()
        }),
    };
    let agent = match owners.named(&alias) {
        Ok(agent) => agent,
        Err(reason) => return refuse(&values, reason),
    };
    let time = |column| {
        values
            .hint(column)
            .and_then(|text| LegacyTime::parse(&text))
            .map(LegacyTime::ms)
    };
    let created_at_ms = time(5).or_else(|| time(6));
    if created_at_ms.is_none() {
        note("unreadable-time", "its time cannot be read; 1970 stands in");
    }
    let (created_at_text, updated_at_text) = (values.hint(5), values.hint(6));
    let created_at_ms = created_at_ms.unwrap_or(0);
    let updated_at_ms = time(6).unwrap_or(created_at_ms);
    let kind_json =
        values.hint(12).map(
            |kind| match serde_json::from_str::<serde_json::Value>(&kind) {
                Ok(_) => kind,
                Err(_) => serde_json::Value::from(kind).to_string(),
            },
        );
    let (category, namespace, hint) = (values.hint(3), values.hint(8), values.hint(7));
    let (superseded_by, tenant_id, importance) = (values.hint(10), values.hint(14), values.real(9));
    let pinned = values.integer(13).unwrap_or(0) != 0;
    let memory_id = values.hint(0).unwrap_or_else(|| {
        stable_uuid(&[
            b"memory",
            alias.as_bytes(),
            key.as_bytes(),
            content.as_bytes(),
        ])
    });
    let is_vector = values.is_blob(4);
    let embedding = values.take(4).filter(|bytes| {
        let is_whole = is_vector && !bytes.is_empty() && bytes.len() % 4 == 0;
        if !is_whole {
            note(
                "broken-vector",
                "its vector is no row of 32-bit floats; left out",
            );
        }
        is_whole
    });
    let has_vector = embedding.is_some();
    let memory = MemoryRecord {
        memory_id,
        is_trusted: !key.starts_with(UNTRUSTED_KEYS),
        key,
        category: category.unwrap_or_else(|| "core".to_owned()),
        namespace: namespace.unwrap_or_else(|| "default".to_owned()),
        kind_json,
        importance,
        pinned,
        session_hint: hint,
        tenant_id,
        superseded_by,
        embedding_provider: store.provider.clone().filter(|_| has_vector),
        embedding_model: store.model.clone().filter(|_| has_vector),
        created_at_ms,
        updated_at_ms,
        created_at_text,
        updated_at_text,
        expires_at_ms: None,
        content,
        embedding,
    };
    let mut items = vec![Item::Record {
        tier: Tier::Agent(agent),
        record: Record::Memory(Box::new(memory)),
    }];
    items.append(&mut notes);
    items
}
