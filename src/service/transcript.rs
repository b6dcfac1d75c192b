//! Reading transcripts: pages from either end, a whole one in bounded memory, and what is appended as it comes.

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::changes::{Change, ChangeKind};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::Connection;
use crate::model::{AgentId, Event, PageLimit, Payloads, TranscriptCursor, TranscriptOrder};
use crate::store::StoreError;
use crate::store::agent::branch::{self, Reach, Run, Stand};
use crate::store::agent::transcript::{self, PAGE_BYTES};

/// Events of one page of a stream; a page is bounded in bytes too.
const STREAM_PAGE: u32 = 500;

/// Some events of a transcript, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptPage {
    /// The events.
    pub events: Vec<Event>,
    /// Cursor of the events before them; `None` at the start.
    pub next_before: Option<i64>,
    /// Cursor of the events behind them; `None` at the end.
    pub next_after: Option<i64>,
}

/// What a tail saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TailEvent {
    /// New events, in the order of acceptance.
    Events(Vec<Event>),
    /// The conversation stands elsewhere now, or lost events: read again what matters.
    Moved,
    /// The session is gone; nothing comes any more.
    Gone,
}

/// A transcript, page by page.
#[derive(Debug)]
pub struct TranscriptStream<'s> {
    service: &'s Service,
    agent: AgentId,
    session_no: i64,
    runs: Vec<Run>,
    after: i64,
}

/// Follows a session.
#[derive(Debug)]
pub struct Tail<'s> {
    service: &'s Service,
    agent: AgentId,
    session_id: String,
    ear: Receiver<Change>,
    after: i64,
    is_gone: bool,
}

impl Service {
    /// Reads a page of a session's events, oldest first: at most `limit` and about 4 MiB of them, but always one.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session.
    pub async fn transcript(
        &self,
        agent: &AgentId,
        session_id: &str,
        order: TranscriptOrder,
        cursor: TranscriptCursor,
        limit: PageLimit,
    ) -> Result<TranscriptPage, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let stand = branch::stand(&mut conn, session_id).await.in_db(&db)?;
        let stand = stand.ok_or_else(|| no_session(session_id))?;
        page(&mut conn, &stand, order, cursor, limit, Payloads::Whole)
            .await
            .in_db(&db)
    }

    /// One event, whole.
    ///
    /// * `event`: its place, or its id.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session or event.
    pub async fn event(
        &self,
        agent: &AgentId,
        session_id: &str,
        event: &str,
    ) -> Result<Event, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let session_no = if db.version() < super::turn::SINCE_SCHEMA {
            branch::stand_of_old(&mut conn, session_id).await
        } else {
            branch::stand(&mut conn, session_id).await
        };
        let session_no = session_no
            .in_db(&db)?
            .ok_or_else(|| no_session(session_id))?
            .session_no;
        // An id may look like a place; it is what its owner named it.
        let by_id = transcript::seq_of(&mut conn, session_no, event).await;
        let seq = by_id.in_db(&db)?.or_else(|| event.parse().ok());
        let found = match seq {
            Some(seq) => {
                let here = Run {
                    first: seq,
                    last: seq,
                };
                let found = transcript::page_of(&mut conn, session_no, here, PageLimit::from(1));
                found.await.in_db(&db)?.pop()
            }
            None => None,
        };
        found.ok_or_else(|| ServiceError::NotFound {
            what: "event",
            name: event.to_owned(),
        })
    }

    /// Reads a whole transcript as it is now, in bounded memory.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session.
    pub async fn stream_transcript(
        &self,
        agent: &AgentId,
        session_id: &str,
        order: TranscriptOrder,
    ) -> Result<TranscriptStream<'_>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let stand = branch::stand(&mut conn, session_id).await.in_db(&db)?;
        let stand = stand.ok_or_else(|| no_session(session_id))?;
        let cursor = TranscriptCursor::After(0);
        let limit = PageLimit::default();
        let runs = runs(&mut conn, &stand, order, cursor, limit).await;
        let newest = Run {
            first: 1,
            last: stand.last_seq,
        };
        let runs = runs.in_db(&db)?.into_iter();
        Ok(TranscriptStream {
            service: self,
            agent: agent.clone(),
            session_no: stand.session_no,
            // What comes meanwhile is not part of it: the stream ends.
            runs: runs.filter_map(|run| both(run, newest)).collect(),
            after: 0,
        })
    }

    /// Follows a session: first what it holds behind `after`, then what is appended through this service.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session.
    pub async fn tail(
        &self,
        agent: &AgentId,
        session_id: &str,
        after: i64,
    ) -> Result<Tail<'_>, ServiceError> {
        // Listening begins before the first look, or what comes between the two would be missed.
        let ear = self.listen();
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let stand = branch::stand(&mut conn, session_id).await.in_db(&db)?;
        stand.ok_or_else(|| no_session(session_id))?;
        Ok(Tail {
            service: self,
            agent: agent.clone(),
            session_id: session_id.to_owned(),
            ear,
            after,
            is_gone: false,
        })
    }
}

pub(super) fn no_session(session_id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "session",
        name: session_id.to_owned(),
    }
}

impl TranscriptStream<'_> {
    /// The next events; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when they cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, ServiceError> {
        let db = self.service.agent(&self.agent).await?;
        let mut conn = db.read().await?;
        let limit = PageLimit::from(STREAM_PAGE);
        let whole = Payloads::Whole;
        let events = forward(
            &mut conn,
            self.session_no,
            &self.runs,
            self.after,
            limit,
            whole,
        )
        .await;
        let events = events.in_db(&db)?;
        let Some(last) = events.last() else {
            return Ok(None);
        };
        self.after = last.seq;
        Ok(Some(events))
    }
}

impl Tail<'_> {
    /// Waits for what comes next. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when events cannot be read.
    pub async fn next(&mut self) -> Result<TailEvent, ServiceError> {
        loop {
            if self.is_gone {
                return Ok(TailEvent::Gone);
            }
            let order = TranscriptOrder::Accepted;
            let cursor = TranscriptCursor::After(self.after);
            let limit = PageLimit::from(STREAM_PAGE);
            let page = self
                .service
                .transcript(&self.agent, &self.session_id, order, cursor, limit)
                .await;
            match page {
                Err(ServiceError::NotFound { .. }) => {
                    self.is_gone = true;
                    continue;
                }
                page => {
                    let events = page?.events;
                    if let Some(last) = events.last() {
                        self.after = last.seq;
                        return Ok(TailEvent::Events(events));
                    }
                }
            }
            if self.heard_of_a_move().await {
                return Ok(TailEvent::Moved);
            }
        }
    }

    /// Waits for news of the session; whether it is that it moved, and not that there are events.
    async fn heard_of_a_move(&mut self) -> bool {
        loop {
            match self.ear.recv().await {
                Ok(change) if change.agent_id != self.agent => {}
                Ok(change) if change.session_id != self.session_id => {}
                Ok(change) => match change.kind {
                    ChangeKind::Moved => return true,
                    ChangeKind::Changed => {}
                    ChangeKind::Appended { .. } | ChangeKind::Deleted => return false,
                },
                // Too slow to hear everything: looking tells what there is, but not whether it moved.
                Err(RecvError::Lagged(_)) => return true,
                // The service itself holds the other end.
                Err(RecvError::Closed) => return false,
            }
        }
    }
}

/// A page from a cursor.
pub(super) async fn page(
    conn: &mut Connection,
    stand: &Stand,
    order: TranscriptOrder,
    cursor: TranscriptCursor,
    limit: PageLimit,
    payloads: Payloads,
) -> Result<TranscriptPage, StoreError> {
    let session_no = stand.session_no;
    let runs = runs(conn, stand, order, cursor, limit).await?;
    let events = match cursor {
        TranscriptCursor::After(after) => {
            forward(conn, session_no, &runs, after, limit, payloads).await?
        }
        TranscriptCursor::Before(before) => {
            let last = before.saturating_sub(1);
            backward(conn, session_no, &runs, last, limit, payloads).await?
        }
        TranscriptCursor::Newest => {
            backward(conn, session_no, &runs, i64::MAX, limit, payloads).await?
        }
    };
    let (Some(first), Some(last)) = (events.first(), events.last()) else {
        return Ok(TranscriptPage {
            events,
            next_before: None,
            next_after: None,
        });
    };
    let (first, last) = (first.seq, last.seq);
    let has_older = has_any(conn, session_no, &runs, (1, first - 1)).await?;
    // A cursor behind which the branch was not walked: it goes on there if it does not end here.
    let end = match (order, stand.leaf_seq) {
        (TranscriptOrder::Branch, Some(leaf)) => leaf,
        _ => branch::newest_seq(conn, session_no).await?,
    };
    Ok(TranscriptPage {
        events,
        next_before: has_older.then_some(first),
        next_after: (last < end).then_some(last),
    })
}

/// The places that an order consists of, as far as a page from the cursor may need them.
async fn runs(
    conn: &mut Connection,
    stand: &Stand,
    order: TranscriptOrder,
    cursor: TranscriptCursor,
    limit: PageLimit,
) -> Result<Vec<Run>, StoreError> {
    let leaf = match (order, stand.leaf_seq) {
        (TranscriptOrder::Branch, Some(0)) => return Ok(Vec::new()),
        (TranscriptOrder::Branch, Some(leaf)) => leaf,
        _ => return Ok(vec![Run::ALL]),
    };
    // One more than the page holds says whether there is an older one, and the cursor's own event is one too.
    let near = Reach {
        above: 0,
        events: i64::from(limit.rows()) + 2,
    };
    let session_no = stand.session_no;
    match cursor {
        TranscriptCursor::Newest => branch::runs(conn, session_no, leaf, near).await,
        TranscriptCursor::After(after) => {
            let above = Reach {
                above: after.max(0),
                events: i64::MAX,
            };
            branch::runs(conn, session_no, leaf, above).await
        }
        TranscriptCursor::Before(before) => {
            let runs = branch::runs(conn, session_no, before, near).await?;
            // No event there: find the branch's own places below.
            if runs.is_empty() {
                return branch::runs(conn, session_no, leaf, Reach::START).await;
            }
            Ok(runs)
        }
    }
}

fn both(a: Run, b: Run) -> Option<Run> {
    let run = Run {
        first: a.first.max(b.first),
        last: a.last.min(b.last),
    };
    (run.first <= run.last).then_some(run)
}

/// The first events behind a place.
async fn forward(
    conn: &mut Connection,
    session_no: i64,
    runs: &[Run],
    after: i64,
    limit: PageLimit,
    payloads: Payloads,
) -> Result<Vec<Event>, StoreError> {
    let behind = Run {
        first: after.saturating_add(1),
        last: i64::MAX,
    };
    let mut events: Vec<Event> = Vec::new();
    let mut bytes = 0;
    for run in runs.iter().filter_map(|run| both(*run, behind)) {
        let left = limit.rows() as usize - events.len();
        let left = PageLimit::from(u32::try_from(left).unwrap_or(u32::MAX));
        let more = events_of(conn, session_no, run, left, payloads).await?;
        bytes += more.iter().map(bytes_of).sum::<i64>();
        events.extend(more);
        if events.len() >= limit.rows() as usize || bytes >= PAGE_BYTES {
            break;
        }
    }
    Ok(events)
}

async fn events_of(
    conn: &mut Connection,
    session_no: i64,
    run: Run,
    limit: PageLimit,
    payloads: Payloads,
) -> Result<Vec<Event>, StoreError> {
    match payloads {
        Payloads::Bounded => transcript::bounded_page_of(conn, session_no, run, limit).await,
        Payloads::Whole => transcript::page_of(conn, session_no, run, limit).await,
    }
}

fn bytes_of(event: &Event) -> i64 {
    let bytes = event.text.len() + event.event_json.as_ref().map_or(0, String::len);
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The last events up to a place.
async fn backward(
    conn: &mut Connection,
    session_no: i64,
    runs: &[Run],
    last: i64,
    limit: PageLimit,
    payloads: Payloads,
) -> Result<Vec<Event>, StoreError> {
    let until = Run { first: 1, last };
    let mut parts = Vec::new();
    let (mut left, mut bytes) = (i64::from(limit.rows()), 0);
    for run in runs.iter().rev().filter_map(|run| both(*run, until)) {
        let rows = PageLimit::from(u32::try_from(left).unwrap_or(u32::MAX));
        let Some(part) = transcript::end_of(conn, session_no, run, rows, payloads).await? else {
            continue;
        };
        parts.push(Run {
            first: part.first,
            last: run.last,
        });
        left -= part.events;
        bytes += part.bytes;
        if left <= 0 || bytes >= PAGE_BYTES {
            break;
        }
    }
    let mut events: Vec<Event> = Vec::new();
    for mut part in parts.into_iter().rev() {
        // A page that begins with a large event ends with it: go on behind.
        loop {
            let more = events_of(conn, session_no, part, limit, payloads).await?;
            let Some(last) = more.last() else { break };
            part.first = last.seq + 1;
            events.extend(more);
            if part.first > part.last {
                break;
            }
        }
    }
    Ok(events)
}

async fn has_any(
    conn: &mut Connection,
    session_no: i64,
    runs: &[Run],
    (first, last): (i64, i64),
) -> Result<bool, StoreError> {
    let one = PageLimit::from(1);
    for run in runs
        .iter()
        .filter_map(|run| both(*run, Run { first, last }))
    {
        if transcript::end_of(conn, session_no, run, one, Payloads::Bounded)
            .await?
            .is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
