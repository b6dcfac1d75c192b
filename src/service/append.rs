//! Appending to transcripts.
//!
//! One transaction through the agent's writer: the session is ensured, the key looked up, the tail picked, the events
//! inserted and indexed, the session bumped. Many callers share a commit. A caller that goes away while it waits loses
//! the answer only: the events are in as a whole or not at all, and the same key asks which.

use std::sync::Arc;

use super::changes::{Change, ChangeKind};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::{Db, WriteTx};
use crate::model::{
    AgentId, Append, AppendEvent, Appended, Conversation, ConversationAddress, EventPlace,
    MAX_APPEND_BYTES, MAX_APPEND_EVENTS, NewEvent, Place, SessionHeader, SessionRecord,
    SessionTarget,
};
use crate::store::agent::branch::{self, Stand};
use crate::store::agent::transcript::{self, KEY_PART, PlacedEvent};
use crate::store::agent::{append, conversation, search, session};

/// Longest id or key, bytes.
const MAX_NAME_BYTES: usize = 512;

/// Events of others that an append indexes on the way, where an import has left some: it catches up, and stays short.
const CATCH_UP: i64 = 64;

impl Service {
    /// Appends events to a session of an agent, all or none; once this returns they are on disk.
    ///
    /// The session is made if it is not there. Events follow each other, and the first one follows what the
    /// conversation stands at in that moment: callers at the same time are put in a row, never beside each other.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the conversation stands elsewhere than expected or an event id is taken,
    /// [`ServiceError::Invalid`] for what cannot be appended, [`ServiceError::NotFound`] for an unknown agent.
    pub async fn append(&self, agent: &AgentId, append: Append) -> Result<Appended, ServiceError> {
        check(&append)?;
        let db = self.agent(agent).await?;
        let now_ms = self.clock().now_ms();
        let owner = agent.clone();
        let tell = self.changes().sender();
        let told = agent.clone();
        db.write_then(
            move |tx| Box::pin(async move { insert(tx, &owner, append, now_ms).await }),
            move |done: &Appended| {
                if let Some(last) = done.events.last().filter(|_| !done.is_repeat) {
                    tell.tell(Change {
                        agent_id: told,
                        session_id: done.session_id.clone(),
                        kind: ChangeKind::Appended { last_seq: last.seq },
                    });
                }
            },
        )
        .await
        .map_err(|error| named(error, &db))
    }
}

/// Names the database in a failure that came from inside a transaction.
pub(super) fn named(error: ServiceError, db: &Arc<Db>) -> ServiceError {
    match error {
        ServiceError::Store(error) => error.at(db.path()).into(),
        other => other,
    }
}

/// A new id: sorts by time, in the standard form of a UUID.
pub(super) fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Refuses what no row could hold or nobody could ask for again.
pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), ServiceError> {
    let reason = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "is longer than 512 bytes"
    } else if name.chars().any(char::is_control) {
        "holds a control character"
    } else {
        return Ok(());
    };
    Err(invalid(what, reason))
}

pub(super) fn invalid(what: &'static str, reason: impl Into<String>) -> ServiceError {
    ServiceError::Invalid {
        what,
        reason: reason.into(),
    }
}

pub(super) fn check(append: &Append) -> Result<(), ServiceError> {
    check_name("session", &String::from(&append.session))?;
    check_header(&append.header)?;
    if let Some(key) = &append.idempotency_key {
        check_name("idempotency key", key)?;
    }
    if append.events.is_empty() || append.events.len() > MAX_APPEND_EVENTS {
        let count = append.events.len();
        let reason = format!("holds {count} events; 1 to {MAX_APPEND_EVENTS} are taken at once");
        return Err(invalid("append", reason));
    }
    let bytes: usize = append.events.iter().map(AppendEvent::bytes).sum();
    if bytes > MAX_APPEND_BYTES {
        let reason = format!("holds {bytes} bytes; {MAX_APPEND_BYTES} are taken at once");
        return Err(invalid("append", reason));
    }
    append.events.iter().try_for_each(check_event)
}

pub(super) fn check_header(header: &SessionHeader) -> Result<(), ServiceError> {
    header
        .session_key
        .iter()
        .try_for_each(|key| check_name("session key", key))
}

pub(super) fn check_event(event: &AppendEvent) -> Result<(), ServiceError> {
    check_name("event type", &event.event_type)?;
    if let Some(id) = &event.event_id {
        check_name("event id", id)?;
    }
    if let Some(role) = &event.role {
        check_name("role", role)?;
    }
    match &event.event_json {
        Some(json) if serde_json::from_str::<serde::de::IgnoredAny>(json).is_err() => {
            Err(invalid("event_json", "is no JSON"))
        }
        _ => Ok(()),
    }
}

/// Does an append inside a transaction.
pub(super) async fn insert(
    tx: &mut WriteTx<'_>,
    agent: &AgentId,
    append: Append,
    now_ms: i64,
) -> Result<Appended, ServiceError> {
    let found = find(tx, &append.session).await?;
    let (session_id, stand, is_new_session) = match found {
        Some((id, stand)) => (id, stand, false),
        None => {
            let session_id = match &append.session {
                SessionTarget::Id(id) => id.clone(),
                SessionTarget::Key(_) => new_id(),
            };
            let stand = create(tx, agent, &session_id, &append, now_ms).await?;
            (session_id, stand, true)
        }
    };
    if let Some(key) = &append.idempotency_key
        && !is_new_session
    {
        let events = transcript::of_append(tx, stand.session_no, key).await?;
        if !events.is_empty() {
            return Ok(Appended {
                session_id,
                events,
                is_new_session,
                is_repeat: true,
            });
        }
    }
    if let Some(expected) = &append.expected_parent {
        check_parent(&session_id, &stand, expected)?;
    }
    let key = append.idempotency_key.as_deref();
    let events = insert_events(tx, &session_id, &stand, append.events, key, now_ms).await?;
    Ok(Appended {
        session_id,
        events,
        is_new_session,
        is_repeat: false,
    })
}

/// The session that is meant, if it is there.
async fn find(
    tx: &mut WriteTx<'_>,
    target: &SessionTarget,
) -> Result<Option<(String, Stand)>, ServiceError> {
    let id = match target {
        SessionTarget::Id(id) => Some(id.clone()),
        SessionTarget::Key(key) => session::routed(tx, key).await?,
    };
    let Some(id) = id else { return Ok(None) };
    Ok(branch::stand(tx, &id).await?.map(|stand| (id, stand)))
}

async fn create(
    tx: &mut WriteTx<'_>,
    agent: &AgentId,
    session_id: &str,
    append: &Append,
    now_ms: i64,
) -> Result<Stand, ServiceError> {
    let key = append.header.session_key.clone();
    let key = key.unwrap_or_else(|| String::from(&append.session));
    let times = append.events.iter().filter_map(|event| event.created_at_ms);
    // A session is never younger than what was said in it.
    let at_ms = times.min().unwrap_or(now_ms).min(now_ms);
    let session_no = create_session(tx, agent, session_id, key, &append.header, at_ms).await?;
    Ok(Stand {
        session_no,
        last_seq: 0,
        leaf_seq: None,
        tail_id: None,
    })
}

/// Makes a session with its conversation; its key leads to it, unless it leads elsewhere already.
pub(super) async fn create_session(
    tx: &mut WriteTx<'_>,
    agent: &AgentId,
    session_id: &str,
    key: String,
    header: &SessionHeader,
    at_ms: i64,
) -> Result<i64, ServiceError> {
    let address = header.conversation.as_ref();
    let record = SessionRecord {
        session_scope: header.session_scope,
        chat_type: address.map(|address| address.kind),
        channel: address.map(|address| address.channel.clone()),
        account_id: address.map(|address| address.account_id.clone()),
        display_name: header.display_name.clone(),
        model_provider: header.model_provider.clone(),
        model: header.model.clone(),
        ..SessionRecord::new(agent.clone(), session_id, key, at_ms)
    };
    let tail = session::insert(tx, &record).await?;
    if session::routed(tx, &record.session_key).await?.is_none() {
        session::set_route(tx, &record.session_key, session_id, at_ms).await?;
    }
    if let Some(address) = address {
        let id = conversation::ensure(tx, &conversation_at(address, at_ms)).await?;
        conversation::link_primary(tx, session_id, &id, at_ms, at_ms).await?;
    }
    Ok(tail.session_no)
}

fn conversation_at(address: &ConversationAddress, at_ms: i64) -> Conversation {
    Conversation {
        conversation_id: new_id(),
        channel: address.channel.clone(),
        account_id: address.account_id.clone(),
        kind: address.kind,
        peer_id: address.peer_id.clone(),
        thread_id: address.thread_id.clone(),
        created_at_ms: at_ms,
        updated_at_ms: at_ms,
    }
}

pub(super) fn check_parent(
    session_id: &str,
    stand: &Stand,
    expected: &Place,
) -> Result<(), ServiceError> {
    let expected = match expected {
        Place::Start => None,
        Place::Event(id) => Some(id.as_str()),
    };
    if stand.tail_id.as_deref() == expected {
        return Ok(());
    }
    let place = |id: Option<&str>| {
        id.map_or_else(
            || "before its first event".to_owned(),
            |id| format!("at event {id}"),
        )
    };
    Err(ServiceError::Conflict {
        what: "session",
        name: session_id.to_owned(),
        expected: place(expected),
        found: place(stand.tail_id.as_deref()),
    })
}

/// Inserts events behind where a session stands, indexes and counts them.
pub(super) async fn insert_events(
    tx: &mut WriteTx<'_>,
    session_id: &str,
    stand: &Stand,
    events: Vec<AppendEvent>,
    key: Option<&str>,
    now_ms: i64,
) -> Result<Vec<EventPlace>, ServiceError> {
    let rows = chain(stand, events, key, now_ms);
    let places = (stand.last_seq + 1..).zip(&rows);
    let done = places.clone().map(|(seq, event)| EventPlace {
        seq,
        event_id: event.event_id.clone(),
    });
    let done = done.collect();
    if let [event] = rows.as_slice() {
        let inserted = append::one(tx, stand, event).await;
        inserted.map_err(|error| taken(error, session_id))?;
        return Ok(done);
    }
    let placed: Vec<_> = places
        .map(|(seq, event)| PlacedEvent {
            session_no: stand.session_no,
            seq,
            event,
        })
        .collect();
    for placed in placed.chunks(transcript::MAX_INSERT) {
        let inserted = transcript::insert(tx, placed).await;
        inserted.map_err(|error| taken(error, session_id))?;
    }
    let count = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    let messages = rows.iter().filter(|event| event.role.is_some()).count();
    let messages = i64::try_from(messages).unwrap_or(i64::MAX);
    let newest = rows.iter().map(|event| event.created_at_ms).max();
    branch::advance(tx, stand, count, messages, newest.unwrap_or(now_ms)).await?;
    search::index_next(tx, count + CATCH_UP).await?;
    Ok(done)
}

/// Gives events their ids, parents and keys.
fn chain(stand: &Stand, events: Vec<AppendEvent>, key: Option<&str>, now_ms: i64) -> Vec<NewEvent> {
    let mut parent = stand.next_parent();
    let number = (0_usize..).zip(events);
    let chained = number.map(|(number, event)| {
        let event_id = event.event_id.unwrap_or_else(new_id);
        NewEvent {
            parent_id: parent.replace(event_id.clone()),
            event_id,
            event_type: event.event_type,
            role: event.role,
            idempotency_key: key.map(|key| match number {
                0 => key.to_owned(),
                _ => format!("{key}{KEY_PART}{number:03}"),
            }),
            created_at_ms: event.created_at_ms.unwrap_or(now_ms),
            text: event.text,
            event_json: event.event_json,
        }
    });
    chained.collect()
}

/// A row that breaks a rule here is an event whose id is taken.
fn taken(error: crate::store::StoreError, session_id: &str) -> ServiceError {
    match error {
        crate::store::StoreError::Db(error)
            if error.kind() == crate::db::DbErrorKind::Constraint =>
        {
            ServiceError::Conflict {
                what: "session",
                name: session_id.to_owned(),
                expected: "without these event ids".to_owned(),
                found: "with one of them".to_owned(),
            }
        }
        error => error.into(),
    }
}

impl Service {
    /// Hears of whatever is committed through this service from now on.
    #[must_use]
    pub fn listen(&self) -> tokio::sync::broadcast::Receiver<Change> {
        self.changes().listen()
    }

    /// Registers an agent and makes its database; says whether it was new.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when the database cannot be made, or was there and is gone.
    pub async fn add_agent(&self, agent: &AgentId) -> Result<bool, ServiceError> {
        let mut conn = self.global().read().await?;
        let known = crate::store::global::agent::get(&mut conn, agent)
            .await
            .in_db(self.global())?;
        drop(conn);
        if known.is_none() {
            self.ensure_agent(agent, crate::model::AgentStatus::Active, None)
                .await?;
        }
        Ok(known.is_none())
    }
}
