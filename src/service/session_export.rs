//! A session as a file: lossless lines and back, Markdown for reading, one page for a browser.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::transcript::no_session;
use super::{Service, ServiceError};
use crate::db::Db;
use crate::fs::FsError;
use crate::model::{AgentId, Event, PageLimit, SessionStatus, TranscriptOrder};
use crate::store::agent::branch::Run;
use crate::store::agent::session_copy::{self, SessionRow};
use crate::store::agent::{snapshot, transcript};

mod html;
mod jsonl;
mod markdown;
mod parts;
mod read;

pub use read::Imported;

/// Events of one page of an export; a page is bounded in bytes too.
const PAGE: u32 = 500;
/// Checkpoints of one export.
const MAX_SNAPSHOTS: u32 = 1_000;

/// Form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// One JSON object a line: all there is, and the way back.
    Jsonl,
    /// Text for reading: the branch the conversation is on.
    Markdown,
    /// One page for a browser: the same.
    Html,
}

impl ExportFormat {
    /// The form of a word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "jsonl" => Some(Self::Jsonl),
            "markdown" => Some(Self::Markdown),
            "html" => Some(Self::Html),
            _ => None,
        }
    }
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exported {
    /// Owner of the session.
    pub agent_id: AgentId,
    /// The session.
    pub session_id: String,
    /// Events in it.
    pub events: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// Where an export goes: it counts, and says which file failed.
pub(super) struct Sink<'w> {
    out: &'w mut (dyn Write + Send),
    path: &'w Path,
    bytes: u64,
}

impl Sink<'_> {
    fn put(&mut self, text: &str) -> Result<(), ServiceError> {
        self.bytes += text.len() as u64;
        let written = self.out.write_all(text.as_bytes());
        written.map_err(|error| FsError::at("write", self.path)(error).into())
    }
}

impl Service {
    /// Writes a session to `out`; a transcript of any length passes in bounded memory.
    ///
    /// * `path`: what `out` is, for messages.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError::Fs`] when `out` fails.
    pub async fn export_session(
        &self,
        agent: &AgentId,
        session_id: &str,
        format: ExportFormat,
        out: &mut (dyn Write + Send),
        path: &Path,
    ) -> Result<Exported, ServiceError> {
        let mut sink = Sink {
            out,
            path,
            bytes: 0,
        };
        let db = self.agent(agent).await?;
        if db.version() < super::turn::SINCE_SCHEMA {
            return Err(super::append::invalid(
                "the agent's schema",
                "is older than exports; any command that writes migrates it",
            ));
        }
        let mut conn = db.read().await?;
        let found = session_copy::row(&mut conn, session_id).await.in_db(&db)?;
        let (session_no, mut row) = found.ok_or_else(|| no_session(session_id))?;
        if row.status == SessionStatus::Running {
            let dead = self.ownerless(&mut conn, db.version()).await.in_db(&db)?;
            if dead.contains(session_id) {
                row.status = SessionStatus::Interrupted;
            }
        }
        drop(conn);
        let events = match format {
            ExportFormat::Jsonl => self.lines(&db, agent, session_no, row, &mut sink).await?,
            ExportFormat::Markdown => {
                sink.put(&markdown::head(agent, &row))?;
                let events = self
                    .each(agent, session_id, &mut sink, markdown::event)
                    .await?;
                sink.put(markdown::END)?;
                events
            }
            ExportFormat::Html => {
                sink.put(&html::head(agent, &row))?;
                let events = self.each(agent, session_id, &mut sink, html::event).await?;
                sink.put(html::END)?;
                events
            }
        };
        let flushed = sink.out.flush();
        flushed.map_err(|error| FsError::at("write", path)(error))?;
        Ok(Exported {
            agent_id: agent.clone(),
            session_id: session_id.to_owned(),
            events,
            bytes: sink.bytes,
        })
    }

    async fn each(
        &self,
        agent: &AgentId,
        session_id: &str,
        sink: &mut Sink<'_>,
        write: fn(&Event) -> String,
    ) -> Result<u64, ServiceError> {
        let order = TranscriptOrder::Branch;
        let mut stream = self.stream_transcript(agent, session_id, order).await?;
        let mut count = 0;
        while let Some(events) = stream.next().await? {
            for event in events {
                sink.put(&write(&event))?;
                count += 1;
            }
        }
        Ok(count)
    }

    async fn lines(
        &self,
        db: &Db,
        agent: &AgentId,
        session_no: i64,
        row: SessionRow,
        sink: &mut Sink<'_>,
    ) -> Result<u64, ServiceError> {
        let mut conn = db.read().await?;
        let id = row.session_id.clone();
        let limit = PageLimit::from(MAX_SNAPSHOTS);
        let last = row.last_seq;
        let head = jsonl::Head {
            format: jsonl::FORMAT,
            agent_id: agent.clone(),
            session: row,
            routes: session_copy::routes(&mut conn, &id).await.in_db(db)?,
            entries: session_copy::entries(&mut conn, &id).await.in_db(db)?,
            conversations: session_copy::conversations(&mut conn, &id)
                .await
                .in_db(db)?,
            snapshots: snapshot::list(&mut conn, &id, limit).await.in_db(db)?,
        };
        sink.put(&jsonl::line(&jsonl::Line::Session(Box::new(head))))?;
        let (mut count, mut first) = (0, 1);
        loop {
            let run = Run { first, last };
            let page = transcript::page_of(&mut conn, session_no, run, PageLimit::from(PAGE));
            let page = page.await.in_db(db)?;
            let Some(end) = page.last().map(|event| event.seq) else {
                break;
            };
            let part = Run { first, last: end };
            let keys = session_copy::keys(&mut conn, session_no, part)
                .await
                .in_db(db)?;
            let mut keys = keys.into_iter().peekable();
            for event in page {
                let key = keys.next_if(|(seq, _)| *seq == event.seq);
                let line =
                    jsonl::Line::Event(jsonl::EventLine::new(event, key.map(|(_, key)| key)));
                sink.put(&jsonl::line(&line))?;
                count += 1;
            }
            first = end + 1;
        }
        sink.put(&jsonl::line(&jsonl::Line::End { events: count }))?;
        Ok(count)
    }
}
