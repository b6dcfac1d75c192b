//! A session back from its lines. The file is a stranger's until it is proved: bounded, whole, of a known form.

use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::jsonl::{FORMAT, Head, Line};
use crate::db::WriteTx;
use crate::fs::FsError;
use crate::model::{AgentId, NewEvent, SessionStatus};
use crate::service::append::{check_name, invalid};
use crate::service::changes::ChangeKind;
use crate::service::{Service, ServiceError};
use crate::store::agent::transcript::{self, PlacedEvent};
use crate::store::agent::{search, session, session_copy, snapshot};

/// Longest line, bytes: the largest append, twice as long for what JSON escapes.
const MAX_LINE_BYTES: u64 = 1024 * 1024 * 1024;
/// Bytes of events that wait to be inserted together.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Owner of the session.
    pub agent_id: AgentId,
    /// The session.
    pub session_id: String,
    /// Events in it.
    pub events: u64,
    /// Keys that led to it and lead to another one here.
    pub lost_routes: Vec<String>,
}

struct Lines<'r> {
    from: &'r mut (dyn BufRead + Send),
    path: &'r Path,
    number: u64,
}

impl Lines<'_> {
    fn fault(&self, reason: impl std::fmt::Display) -> ServiceError {
        invalid(
            "file",
            format!("{}: line {}: {reason}", self.path.display(), self.number),
        )
    }

    fn next(&mut self) -> Result<Option<Line>, ServiceError> {
        let mut bytes = Vec::new();
        self.number += 1;
        let mut bounded = std::io::Read::take(&mut *self.from, MAX_LINE_BYTES + 1);
        let read = std::io::BufRead::read_until(&mut bounded, b'\n', &mut bytes);
        let read = read.map_err(|error| FsError::at("read", self.path)(error))?;
        if read == 0 {
            return Ok(None);
        }
        if read as u64 > MAX_LINE_BYTES {
            return Err(self.fault("is longer than 1 GiB"));
        }
        if bytes.last() != Some(&b'\n') {
            return Err(self.fault("is cut"));
        }
        // Its message names a place and never repeats what stands there.
        let line = serde_json::from_slice(&bytes);
        line.map(Some).map_err(|error| {
            self.fault(format!(
                "column {} is not what an export has there",
                error.column()
            ))
        })
    }
}

impl Service {
    /// Takes in a session that [`Service::export_session`] wrote as lines, whole or not at all.
    ///
    /// A turn that was under way is interrupted. Keys that lead elsewhere here go on doing so.
    ///
    /// * `agent`: who it shall belong to; `None` for who it belonged to.
    /// * `path`: what `from` is, for messages.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] names the line that is wrong, [`ServiceError::Conflict`] when the session is here.
    pub async fn import_session(
        &self,
        agent: Option<&AgentId>,
        from: &mut (dyn BufRead + Send),
        path: &Path,
    ) -> Result<Imported, ServiceError> {
        let mut lines = Lines {
            from,
            path,
            number: 0,
        };
        let Some(Line::Session(head)) = lines.next()? else {
            return Err(lines.fault("is not the start of an exported session"));
        };
        let head = checked(*head, &lines)?;
        let agent = agent.unwrap_or(&head.agent_id).clone();
        let db = self.agent(&agent).await?;
        let mut bulk = db.begin_bulk().await?;
        let imported = take(&mut bulk.tx(), &agent, &head, &mut lines).await;
        let imported = imported.map_err(|error| super::super::append::named(error, &db))?;
        bulk.commit().await?;
        self.teller(&agent, &imported.session_id, ChangeKind::Changed)();
        Ok(imported)
    }
}

fn checked(head: Head, lines: &Lines<'_>) -> Result<Head, ServiceError> {
    if head.format != FORMAT {
        return Err(lines.fault(format!("form {} is not known to this release", head.format)));
    }
    check_name("session", &head.session.session_id)?;
    check_name("session key", &head.session.session_key)?;
    Ok(head)
}

async fn take(
    tx: &mut WriteTx<'_>,
    agent: &AgentId,
    head: &Head,
    lines: &mut Lines<'_>,
) -> Result<Imported, ServiceError> {
    let id = &head.session.session_id;
    if session::tail(tx, id).await?.is_some() {
        return Err(ServiceError::Conflict {
            what: "session",
            name: id.clone(),
            expected: "not to be here".to_owned(),
            found: "here already".to_owned(),
        });
    }
    let mut row = head.session.clone();
    if row.status == SessionStatus::Running {
        row.status = SessionStatus::Interrupted;
    }
    let session_no = session_copy::insert_row(tx, &row).await?;
    let lost_routes = belongings(tx, head, session_no).await?;
    let events = events(tx, session_no, row.last_seq, lines).await?;
    session_copy::set_counts(tx, session_no).await?;
    let count = i64::try_from(events).unwrap_or(i64::MAX);
    search::index_next(tx, count).await?;
    Ok(Imported {
        agent_id: agent.clone(),
        session_id: id.clone(),
        events,
        lost_routes,
    })
}

/// Conversations, entries, checkpoints and keys; gives the keys that lead elsewhere.
async fn belongings(
    tx: &mut WriteTx<'_>,
    head: &Head,
    session_no: i64,
) -> Result<Vec<String>, ServiceError> {
    let id = &head.session.session_id;
    for row in &head.conversations {
        let held = session_copy::insert_conversation(tx, id, row).await?;
        if head.session.primary_conversation_id.as_ref() == Some(&row.conversation_id) {
            session_copy::set_conversation(tx, session_no, &held).await?;
        }
    }
    for entry in &head.entries {
        let (key, json) = (&entry.session_key, &entry.entry_json);
        session::upsert_entry(tx, key, id, json, entry.updated_at_ms).await?;
    }
    for taken in &head.snapshots {
        snapshot::insert(tx, id, taken).await?;
    }
    let mut lost = Vec::new();
    for (key, at_ms) in &head.routes {
        if session::routed(tx, key).await?.is_some() {
            lost.push(key.clone());
        } else {
            session::set_route(tx, key, id, *at_ms).await?;
        }
    }
    Ok(lost)
}

async fn events(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    last_seq: i64,
    lines: &mut Lines<'_>,
) -> Result<u64, ServiceError> {
    let mut batch: Vec<(i64, NewEvent)> = Vec::new();
    let (mut bytes, mut count, mut last) = (0, 0, 0);
    loop {
        match lines.next()? {
            Some(Line::Event(line)) => {
                if line.seq <= last || line.seq > last_seq {
                    return Err(lines.fault("its place is out of order"));
                }
                let (seq, event) = line.into_event();
                bytes += event.text.len() + event.event_json.as_ref().map_or(0, String::len);
                last = seq;
                count += 1;
                batch.push((seq, event));
                if batch.len() == transcript::MAX_INSERT || bytes >= BATCH_BYTES {
                    insert(tx, session_no, &batch, lines).await?;
                    batch.clear();
                    bytes = 0;
                }
            }
            Some(Line::End { events }) if events == count => break,
            Some(Line::End { events }) => {
                return Err(lines.fault(format!("tells of {events} events, and {count} are there")));
            }
            Some(Line::Session(_)) => return Err(lines.fault("begins a second session")),
            None => return Err(lines.fault("the end is missing: the file was cut")),
        }
    }
    insert(tx, session_no, &batch, lines).await?;
    match lines.next()? {
        None => Ok(count),
        Some(_) => Err(lines.fault("stands behind the end")),
    }
}

async fn insert(
    tx: &mut WriteTx<'_>,
    session_no: i64,
    batch: &[(i64, NewEvent)],
    lines: &mut Lines<'_>,
) -> Result<(), ServiceError> {
    let placed: Vec<_> = batch
        .iter()
        .map(|(seq, event)| PlacedEvent {
            session_no,
            seq: *seq,
            event,
        })
        .collect();
    let inserted = transcript::insert(tx, &placed).await;
    inserted.map_err(|error| match error {
        crate::store::StoreError::Db(error)
            if error.kind() == crate::db::DbErrorKind::Constraint =>
        {
            lines.fault("or one shortly before it has an id or a key that is taken")
        }
        error => error.into(),
    })
}
