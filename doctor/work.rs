//! One tier's transaction while a source comes in: batches, sessions that exist, keys that clash.

use std::collections::{BTreeMap, HashSet};

use zeroclaw::model::{KindCount, MemoryRecord, NewEvent, SessionStatus, Tier};
use zeroclaw::service::{ImportTx, ServiceError};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::session::{self, SessionTail};
use zeroclaw::store::agent::transcript::Relation;
use zeroclaw::store::agent::{conversation, memory, transcript};
use zeroclaw::store::global::cron;

use super::record::{ImportSession, Record, event_kind, kind};
use super::rows::Waiting;
use super::sources::ReadError;
use super::survey::{Notes, note};
use super::units::{beside, message_digest};

mod memories;

pub(crate) use memories::{history_id, says_the_same};

/// A tier's open transaction and what waits to be written.
pub(crate) struct TierWork {
    tx: ImportTx,
    counts: BTreeMap<String, KindCount>,
    notes: Notes,
    session: Option<CurrentSession>,
    events: Vec<NewEvent>,
    memories: Vec<MemoryRecord>,
    had_memories: bool,
    // Key, id and time of the last living memory: rows of one key follow one another.
    living: Option<(String, String, i64)>,
    rows: Waiting,
}

/// The session that events belong to.
struct CurrentSession {
    tail: SessionTail,
    /// It was there before: events may be there too.
    existed: bool,
    /// First messages that are there already, by comparison of sequences.
    skip: usize,
    /// Whether those came from this very kind of source.
    skip_is_present: Option<bool>,
    /// What the next event follows, where the reader cannot know.
    parent: Option<String>,
}

/// What a finished tier leaves.
pub(crate) struct Finished {
    pub(crate) tx: ImportTx,
    pub(crate) counts: BTreeMap<String, KindCount>,
    pub(crate) notes: Notes,
}

fn service(error: StoreError) -> ReadError {
    ReadError::Sink(ServiceError::from(error))
}

impl TierWork {
    /// Begins work in a transaction on `tier`.
    pub(crate) async fn begin(mut tx: ImportTx, tier: Tier) -> Result<Self, ReadError> {
        let had_memories = match tier {
            Tier::Agent(_) => memory::count(&mut tx.tx()).await.map_err(service)? > 0,
            Tier::Global => false,
        };
        Ok(Self {
            tx,
            counts: BTreeMap::new(),
            notes: Notes::new(),
            session: None,
            events: Vec::new(),
            memories: Vec::new(),
            had_memories,
            living: None,
            rows: Waiting::default(),
        })
    }

    fn count(&mut self, kind: &'static str) -> &mut KindCount {
        self.counts.entry(kind.to_owned()).or_default()
    }

    /// Takes a record.
    pub(crate) async fn record(&mut self, record: Record) -> Result<(), ReadError> {
        self.count(record.kind()).records += 1;
        match record {
            Record::Session(session) => self.session(*session).await,
            Record::Event(event) => self.event(event).await,
            Record::Memory(memory) => self.memory(*memory).await,
            Record::CronJob(job) => {
                let existing = cron::get(&mut self.tx.tx(), &job.store_key, &job.job_id)
                    .await
                    .map_err(service)?;
                match existing {
                    None => {
                        cron::insert_new(&mut self.tx.tx(), &job)
                            .await
                            .map_err(service)?;
                        self.count(kind::CRON_JOB).imported += 1;
                    }
                    Some(found) if found.job_json == job.job_json => {
                        self.count(kind::CRON_JOB).present += 1
                    }
                    Some(_) => self.count(kind::CRON_JOB).merged += 1,
                }
                Ok(())
            }
            Record::Row(row) => {
                self.rows.push(row);
                Ok(())
            }
        }
    }

    /// Writes what waits.
    pub(crate) async fn flush(&mut self) -> Result<(), ReadError> {
        self.flush_events().await?;
        self.flush_memories().await?;
        for (kind, taken) in self.rows.write(&mut self.tx.tx()).await.map_err(service)? {
            self.count(kind).add(&taken);
        }
        Ok(())
    }

    /// Ends the work; the transaction is still to be committed.
    pub(crate) async fn finish(mut self) -> Result<Finished, ReadError> {
        self.flush().await?;
        Ok(Finished {
            tx: self.tx,
            counts: self.counts,
            notes: self.notes,
        })
    }

    async fn session(&mut self, import: ImportSession) -> Result<(), ReadError> {
        self.flush_events().await?;
        let mut record = import.record;
        let mut takes_route = import.takes_route;
        let mut found = session::tail(&mut self.tx.tx(), &record.session_id)
            .await
            .map_err(service)?;
        let mut skip = 0;
        if let (Some(tail), Some(sequence)) = (found, &import.sequence) {
            match transcript::compare(&mut self.tx.tx(), tail.session_no, sequence, message_digest)
                .await
                .map_err(service)?
            {
                Relation::Continues { there } => skip = there,
                Relation::Contained => skip = sequence.len(),
                Relation::Differs => {
                    let place = format!("session {}", record.session_key);
                    let message = "says something else than the session of that key; kept as a session beside it";
                    note(
                        &mut self.notes,
                        "conflicting-session",
                        place,
                        message.to_owned(),
                    );
                    record.session_id = beside(&record.session_id, sequence);
                    takes_route = false;
                    found = session::tail(&mut self.tx.tx(), &record.session_id)
                        .await
                        .map_err(service)?;
                    skip = if found.is_some() { sequence.len() } else { 0 };
                }
            }
        }
        let existed = found.is_some();
        let tail = match found {
            Some(tail) => {
                self.count(kind::SESSION).present += 1;
                tail
            }
            None => {
                let tail = session::insert(&mut self.tx.tx(), &record)
                    .await
                    .map_err(service)?;
                self.count(kind::SESSION).imported += 1;
                if takes_route
                    && session::routed(&mut self.tx.tx(), &record.session_key)
                        .await
                        .map_err(service)?
                        .is_none()
                {
                    session::set_route(
                        &mut self.tx.tx(),
                        &record.session_key,
                        &record.session_id,
                        record.updated_at_ms,
                    )
                    .await
                    .map_err(service)?;
                }
                if let Some(entry) = &import.entry_json {
                    session::upsert_entry(
                        &mut self.tx.tx(),
                        &record.session_key,
                        &record.session_id,
                        entry,
                        record.updated_at_ms,
                    )
                    .await
                    .map_err(service)?;
                }
                if let Some(found) = &import.conversation {
                    let id = conversation::ensure(&mut self.tx.tx(), found)
                        .await
                        .map_err(service)?;
                    let (first, last) = (record.created_at_ms, record.updated_at_ms);
                    conversation::link_primary(
                        &mut self.tx.tx(),
                        &record.session_id,
                        &id,
                        first,
                        last,
                    )
                    .await
                    .map_err(service)?;
                }
                tail
            }
        };
        if let (SessionStatus::Killed, Some(at_ms)) = (record.status, record.archived_at_ms) {
            // Also one that was alive when it came in: what has ended stays so.
            session::end(&mut self.tx.tx(), &record.session_id, record.status, at_ms)
                .await
                .map_err(service)?;
        }
        self.session = Some(CurrentSession {
            tail,
            existed,
            skip,
            skip_is_present: None,
            parent: None,
        });
        Ok(())
    }

    async fn event(&mut self, mut event: NewEvent) -> Result<(), ReadError> {
        let Some(current) = self.session.as_mut() else {
            return Err(ReadError::Format {
                reason: format!("event {} before its session", event.event_id),
            });
        };
        if current.skip > 0 {
            current.skip -= 1;
            if current.skip_is_present.is_none() {
                let ids = [event.event_id.as_str()];
                let found = transcript::get_many(&mut self.tx.tx(), current.tail.session_no, &ids)
                    .await
                    .map_err(service)?;
                current.skip_is_present = Some(!found.is_empty());
            }
            if current.skip == 0 {
                current.parent =
                    transcript::last_event_id(&mut self.tx.tx(), current.tail.session_no)
                        .await
                        .map_err(service)?;
            }
            let is_present = current.skip_is_present == Some(true);
            let count = self.count(event_kind(&event));
            if is_present {
                count.present += 1
            } else {
                count.merged += 1
            }
            return Ok(());
        }
        if let Some(parent) = current.parent.take() {
            event.parent_id = Some(parent);
        }
        self.events.push(event);
        if self.events.len() >= transcript::MAX_INSERT {
            self.flush_events().await?;
        }
        Ok(())
    }

    /// Writes the waiting events, all of the current session.
    async fn flush_events(&mut self) -> Result<(), ReadError> {
        let mut events = std::mem::take(&mut self.events);
        let Some(current) = self.session.as_mut().filter(|_| !events.is_empty()) else {
            return Ok(());
        };
        let session_no = current.tail.session_no;
        let mut read: BTreeMap<&'static str, u64> = BTreeMap::new();
        for event in &events {
            *read.entry(event_kind(event)).or_default() += 1;
        }
        if current.existed {
            let ids: Vec<&str> = events.iter().map(|event| event.event_id.as_str()).collect();
            let found = transcript::get_many(&mut self.tx.tx(), session_no, &ids)
                .await
                .map_err(service)?;
            let found: HashSet<String> = found.into_iter().map(|event| event.event_id).collect();
            events.retain(|event| !found.contains(&event.event_id));
        }
        // One source cannot hold the same event twice, but a damaged index can show it twice.
        let mut seen = HashSet::new();
        events.retain(|event| seen.insert(event.event_id.clone()));
        let placed: Vec<_> = (current.tail.last_seq + 1..)
            .zip(&events)
            .map(|(seq, event)| transcript::PlacedEvent {
                session_no,
                seq,
                event,
            })
            .collect();
        transcript::insert(&mut self.tx.tx(), &placed)
            .await
            .map_err(service)?;
        let new = placed.len();
        current.tail.last_seq += i64::try_from(new).unwrap_or(0);
        let messages = events.iter().filter(|event| event.role.is_some()).count();
        let last = events.iter().map(|event| event.created_at_ms).max();
        if let Some(last) = last {
            let (new, messages) = (
                i64::try_from(new).unwrap_or(0),
                i64::try_from(messages).unwrap_or(0),
            );
            session::grow(&mut self.tx.tx(), current.tail, new, messages, last)
                .await
                .map_err(service)?;
        }
        for (kind, read) in read {
            let new = events.iter().filter(|event| event_kind(event) == kind);
            let new = new.count() as u64;
            let count = self.count(kind);
            count.imported += new;
            count.present += read - new;
        }
        Ok(())
    }
}
