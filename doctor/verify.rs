//! Phase four: reads a source once more and finds each of its records in the committed rows.

use std::collections::{BTreeMap, HashMap};

use zeroclaw::model::{MemoryRecord, NewEvent, SessionStatus, Tier};
use zeroclaw::service::{Importer, ServiceError};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::transcript::Relation;
use zeroclaw::store::agent::{memory, session, transcript};
use zeroclaw::store::global::cron;

use super::record::{ImportSession, Item, Record};
use super::rows::Waiting;
use super::sources::{ReadError, Sink};
use super::units::{beside, message_digest};
use super::work::{history_id, says_the_same};

/// Compares what a reader gives with what is committed.
pub(crate) struct Verifier<'a> {
    importer: &'a Importer,
    sessions: BTreeMap<Tier, Found>,
    /// Records proven to be there as they were read.
    pub(crate) proven: u64,
}

/// The session that the next events belong to.
#[derive(Clone, Copy)]
struct Found {
    session_no: i64,
    /// Its messages were proven by comparing sequences.
    is_proven: bool,
}

fn service(error: StoreError) -> ReadError {
    ReadError::Sink(ServiceError::from(error))
}

fn unproven(place: impl Into<String>, reason: &str) -> ReadError {
    ReadError::Unproven {
        place: place.into(),
        reason: reason.to_owned(),
    }
}

impl<'a> Verifier<'a> {
    /// For one source.
    pub(crate) fn new(importer: &'a Importer) -> Self {
        Self {
            importer,
            sessions: BTreeMap::new(),
            proven: 0,
        }
    }

    async fn session(&mut self, tier: Tier, import: &ImportSession) -> Result<(), ReadError> {
        let mut conn = self.importer.read(&tier).await?;
        let id = &import.record.session_id;
        let place = || format!("session {}", import.record.session_key);
        let tail = session::tail(&mut conn, id).await.map_err(service)?;
        let tail = tail.ok_or_else(|| unproven(place(), "it is not there"))?;
        if import.record.status == SessionStatus::Killed {
            let agent = &import.record.agent_id;
            let stored = session::get(&mut conn, agent, id).await.map_err(service)?;
            let has_ended = stored.is_some_and(|stored| {
                stored.status == SessionStatus::Killed && stored.archived_at_ms.is_some()
            });
            if !has_ended {
                return Err(unproven(place(), "it has not ended"));
            }
        }
        let Some(sequence) = &import.sequence else {
            self.sessions.insert(
                tier,
                Found {
                    session_no: tail.session_no,
                    is_proven: false,
                },
            );
            return Ok(());
        };
        let holds = |relation| match relation {
            Relation::Contained => true,
            Relation::Continues { there } => there == sequence.len(),
            Relation::Differs => false,
        };
        let mut session_no = tail.session_no;
        if !holds(
            transcript::compare(&mut conn, session_no, sequence, message_digest)
                .await
                .map_err(service)?,
        ) {
            let beside = beside(id, sequence);
            let tail = session::tail(&mut conn, &beside).await.map_err(service)?;
            session_no = tail
                .ok_or_else(|| unproven(place(), "its messages differ"))?
                .session_no;
            if !holds(
                transcript::compare(&mut conn, session_no, sequence, message_digest)
                    .await
                    .map_err(service)?,
            ) {
                return Err(unproven(place(), "its messages differ"));
            }
        }
        self.sessions.insert(
            tier,
            Found {
                session_no,
                is_proven: true,
            },
        );
        Ok(())
    }

    async fn events(&self, tier: &Tier, events: &[&NewEvent]) -> Result<(), ReadError> {
        let found = self
            .sessions
            .get(tier)
            .copied()
            .ok_or_else(|| unproven("event", "it has no session"))?;
        if found.is_proven {
            return Ok(());
        }
        let mut conn = self.importer.read(tier).await?;
        for chunk in events.chunks(transcript::MAX_INSERT) {
            let ids: Vec<&str> = chunk.iter().map(|event| event.event_id.as_str()).collect();
            let stored = transcript::get_many(&mut conn, found.session_no, &ids)
                .await
                .map_err(service)?;
            let stored: HashMap<_, _> = stored
                .into_iter()
                .map(|event| (event.event_id.clone(), event))
                .collect();
            for event in chunk {
                let stored = stored
                    .get(&event.event_id)
                    .ok_or_else(|| unproven(&event.event_id, "it is not there"))?;
                let is_equal = stored.role == event.role
                    && stored.text == event.text
                    && stored.created_at_ms == event.created_at_ms
                    && stored.event_json == event.event_json;
                if !is_equal {
                    return Err(unproven(&event.event_id, "its content differs"));
                }
            }
        }
        Ok(())
    }

    async fn memories(&self, tier: &Tier, memories: &[&MemoryRecord]) -> Result<(), ReadError> {
        let mut conn = self.importer.read(tier).await?;
        for chunk in memories.chunks(memory::MAX_INSERT) {
            let ids: Vec<&str> = chunk
                .iter()
                .map(|memory| memory.memory_id.as_str())
                .collect();
            let stored = memory::get_many(&mut conn, &ids).await.map_err(service)?;
            let stored: HashMap<_, _> = stored
                .into_iter()
                .map(|found| (found.memory_id.clone(), found))
                .collect();
            for memory in chunk {
                if stored
                    .get(&memory.memory_id)
                    .is_some_and(|found| says_the_same(found, memory))
                {
                    continue;
                }
                let kept = memory::get_many(&mut conn, &[&history_id(memory)])
                    .await
                    .map_err(service)?;
                if !kept
                    .first()
                    .is_some_and(|found| says_the_same(found, memory))
                {
                    return Err(unproven(
                        format!("memory {}", memory.key),
                        "it is not there, or differs",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Proves a record of the control plane; says whether it is there as it was read. A job that was
    /// there before another way is merged, and proven by its being there.
    async fn global(&self, record: &Record) -> Result<bool, ReadError> {
        let mut conn = self.importer.read(&Tier::Global).await?;
        match record {
            Record::CronJob(job) => {
                let found = cron::get(&mut conn, &job.store_key, &job.job_id)
                    .await
                    .map_err(service)?;
                let found = found
                    .ok_or_else(|| unproven(format!("job {}", job.job_id), "it is not there"))?;
                Ok(found.job_json == job.job_json)
            }
            _ => Ok(true),
        }
    }

    /// Proves records of one tier and one session that came in a row.
    async fn prove(
        &mut self,
        tier: &Tier,
        events: &mut Vec<NewEvent>,
        memories: &mut Vec<MemoryRecord>,
        rows: &mut Waiting,
    ) -> Result<(), ReadError> {
        if !rows.is_empty() {
            let mut conn = self.importer.read(tier).await?;
            match rows.prove(&mut conn).await.map_err(service)? {
                Ok(proven) => self.proven += proven,
                Err((place, reason)) => return Err(unproven(place, reason)),
            }
        }
        if !events.is_empty() {
            self.events(tier, &events.iter().collect::<Vec<_>>())
                .await?;
            events.clear();
        }
        if !memories.is_empty() {
            self.memories(tier, &memories.iter().collect::<Vec<_>>())
                .await?;
            memories.clear();
        }
        Ok(())
    }
}

impl Sink for Verifier<'_> {
    async fn take(&mut self, items: Vec<Item>) -> Result<(), ReadError> {
        let (mut events, mut memories) = (Vec::new(), Vec::new());
        let mut rows = Waiting::default();
        let mut at: Option<Tier> = None;
        for item in items {
            let Item::Record { tier, record } = item else {
                continue;
            };
            self.proven += 1;
            if let Some(before) = at
                .take()
                .filter(|before| *before != tier || matches!(record, Record::Session(_)))
            {
                self.prove(&before, &mut events, &mut memories, &mut rows)
                    .await?;
            }
            match record {
                Record::Row(row) => {
                    self.proven -= 1;
                    rows.push(row);
                }
                Record::Session(session) => self.session(tier.clone(), &session).await?,
                Record::Event(event) => events.push(event),
                Record::Memory(memory) => memories.push(*memory),
                other => {
                    if !self.global(&other).await? {
                        self.proven -= 1;
                    }
                }
            }
            at = Some(tier);
        }
        if let Some(tier) = at {
            self.prove(&tier, &mut events, &mut memories, &mut rows)
                .await?;
        }
        Ok(())
    }
}
