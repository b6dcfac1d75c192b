//! `memory/brain.db`: memories of all agents, since 0.1; `memory/discord.db`: messages of a channel.
//!
//! `memories` grew columns up to 0.8.3 and is read by name. Owner: `agent_id` through the table
//! `agents`; before 0.8 there was neither and everything is `default`'s. Times carry the local offset
//! of their machine; the text is kept. `kind` is JSON text, quotes included. `embedding` is raw
//! little-endian 32-bit floats; provider and model stand in `memory_meta`, if anywhere.
//! `superseded_by` holds the key of the newer memory more often than its id. `discord.db` has the same
//! shape, category `discord` and keys `discord_<message id>`; it belongs to the agent of that channel.
//!
//! Known faults: a full-text index that is stale (never imported), content that is no text, NULL
//! keys, two rows of one key where an older table did not forbid it.

use std::collections::HashMap;

use zeroclaw::model::{AgentId, MemoryRecord, Tier};

use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, stable_uuid};

pub(super) const MEMORY: [&str; 15] = [
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

/// Whose the rows of a store are.
pub(crate) enum Whose {
    /// Each says so itself.
    Rows,
    /// All are this agent's.
    One(AgentId),
}

/// What holds for all rows of a store.
pub(super) struct Store {
    pub(super) whose: Whose,
    pub(super) aliases: HashMap<String, String>,
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
}

/// Streams the messages a channel's archive holds, all to the agent of that channel.
pub(crate) async fn read_channel<S: Sink>(
    db: &mut LegacyDb,
    channel: &str,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let owner = owners
        .of_channel_archive(channel)
        .map_err(|reason| ReadError::Format { reason })?;
    if owner.is_fallback {
        let note = Item::Note {
            code: "owner-by-rule",
            place: "table memories".to_owned(),
            message: format!("no agent answers on {channel}; given to {}", owner.agent),
        };
        sink.take(vec![note]).await?;
    }
    read(db, Whose::One(owner.agent), owners, sink).await
}

/// Streams a store's memories, by key, so that rows of one key follow one another.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    whose: Whose,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("memories").await?;
    if !columns.iter().any(|column| column == "content") {
        return Err(ReadError::Format {
            reason: "it has no table memories".to_owned(),
        });
    }
    let has_agents = columns.iter().any(|column| column == "agent_id");
    // Rows of one key and one agent must follow one another.
    let order = match &whose {
        Whose::Rows if has_agents => "agent_id, key",
        _ => "key",
    };
    let store = read_store(db, whose).await?;
    let mut successors = Successors {
        db: db.again().await?,
        has_agents,
    };
    let mut out = Batcher::new(sink);
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
        let successor = match values.hint(10) {
            Some(word) => Some(successors.find(&word, values.hint(11)).await?),
            None => None,
        };
        for item in items(values, &store, owners, successor) {
            out.push(item, bytes).await?;
        }
        Ok(())
    });
    let damage = damage.await?;
    successors.db.close().await;
    cached_vectors(db, &mut out).await?;
    if let Some(reason) = damage {
        let place = "table memories".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    out.flush().await
}

/// Counts the cache of vectors, which is not taken: it names neither its provider nor its model, and
/// its texts by eight bytes of a digest alone. What it saves is computed again when it is needed.
async fn cached_vectors<S: Sink>(
    db: &mut LegacyDb,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    if db.columns("embedding_cache").await?.is_empty() {
        return Ok(());
    }
    let count = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM embedding_cache")
        .fetch_one(&mut db.conn)
        .await
        .map_err(ReadError::from);
    let count = match count {
        Ok(count) => u64::try_from(count).unwrap_or(0),
        // A cache that cannot be counted is no loss.
        Err(ReadError::Damaged { .. }) => 0,
        Err(error) => return Err(error),
    };
    if count > 0 {
        let kind = kind::CACHED_VECTOR;
        out.push(Item::Merged { kind, count }, 0).await?;
        let note = Item::Note {
            code: "cache-not-taken",
            place: "table embedding_cache".to_owned(),
            message: format!(
                "{count} cached vectors are left: they do not say which model made them"
            ),
        };
        out.push(note, 0).await?;
    }
    Ok(())
}

/// What `superseded_by` means.
#[derive(Debug)]
pub(super) enum Successor {
    /// The memory of this id.
    Memory(String),
    /// One that is not there; its key or id as it stands.
    Gone(String),
}

/// Finds the memories that others were replaced by.
struct Successors {
    db: LegacyDb,
    has_agents: bool,
}

impl Successors {
    /// By key within the same agent, then by id.
    async fn find(&mut self, word: &str, agent: Option<String>) -> Result<Successor, ReadError> {
        let same_agent = if self.has_agents {
            "AND agent_id IS ?2"
        } else {
            "AND (?2 IS NULL OR 1)"
        };
        let sql = format!(
            "SELECT CAST(id AS TEXT) FROM memories WHERE key = ?1 {same_agent} AND id IS NOT NULL
             UNION ALL SELECT CAST(id AS TEXT) FROM memories WHERE id = ?1 LIMIT 1"
        );
        let found = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .bind(word)
            .bind(agent)
            .fetch_optional(&mut self.db.conn)
            .await
            .map_err(ReadError::from);
        match found {
            Ok(Some(id)) => Ok(Successor::Memory(id)),
            // A damaged page is told of where rows are read.
            Ok(None) | Err(ReadError::Damaged { .. }) => Ok(Successor::Gone(word.to_owned())),
            Err(error) => Err(error),
        }
    }
}

async fn read_store(db: &mut LegacyDb, whose: Whose) -> Result<Store, ReadError> {
    let mut store = Store {
        whose,
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

pub(super) fn items(
    mut values: Values,
    store: &Store,
    owners: &Owners,
    successor: Option<Successor>,
) -> Vec<Item> {
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
    let alias = match (&store.whose, values.hint(11)) {
        (Whose::One(agent), _) => agent.to_string(),
        (Whose::Rows, None) => FIRST_AGENT.to_owned(),
        (Whose::Rows, Some(id)) => store.aliases.get(&id).cloned().unwrap_or_else(|| {
            note("unknown-agent", "its agent is in no list; given to default");
            FIRST_AGENT.to_owned()
        }),
    };
    let agent = match &store.whose {
        Whose::One(agent) => agent.clone(),
        Whose::Rows => match owners.named(&alias) {
            Ok(agent) => agent,
            Err(reason) => return refuse(&values, reason),
        },
    };
    let superseded_by = match successor {
        None => None,
        // One that replaced itself holds.
        Some(Successor::Memory(id)) => Some(id).filter(|id| values.hint(0).as_ref() != Some(id)),
        Some(Successor::Gone(word)) => {
            note(
                "successor-gone",
                "was replaced by a memory that is not there",
            );
            Some(word)
        }
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
    let (tenant_id, importance) = (values.hint(14), values.real(9));
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
