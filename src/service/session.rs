//! Sessions: listing, showing, searching.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{SearchOrder, Service, ServiceError};
use crate::model::{AgentId, Event, Page, PageLimit, SearchHit, SessionRecord};
use crate::store::agent::session::SessionFilter;
use crate::store::agent::{search, session, transcript};

/// One session and a page of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTranscript {
    /// The session.
    pub session: SessionRecord,
    /// Its events, oldest first.
    pub events: Vec<Event>,
    /// Place behind which the next page begins; `None` at the end.
    pub next_after: Option<i64>,
}

/// Hits, and whether the index could know all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchAnswer {
    /// The hits, best or newest first.
    pub hits: Vec<SearchHit>,
    /// Agents whose index is still being built, with the events it lacks.
    pub incomplete: Vec<(AgentId, i64)>,
    /// Agents whose database could not be read, and why.
    pub unreadable: Vec<(AgentId, String)>,
}

impl Service {
    pub(super) async fn list_sessions(
        &self,
        agent: Option<&AgentId>,
        filter: &SessionFilter,
        before: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<SessionRecord>, ServiceError> {
        let mut items = Vec::new();
        let mut more = false;
        for record in self.agents_or(agent).await? {
            let Some(db) = self
                .agent_unless_broken(&record.agent_id, agent.is_some())
                .await?
            else {
                continue;
            };
            let mut conn = db.read().await?;
            let page = session::list(&mut conn, &record.agent_id, filter, before, limit)
                .await
                .in_db(&db)?;
            more |= page.next.is_some();
            items.extend(page.items);
        }
        items.sort_by(|a, b| {
            b.updated_at_ms
                .cmp(&a.updated_at_ms)
                .then_with(|| a.session_id.cmp(&b.session_id))
        });
        let keep = limit.rows() as usize;
        more |= items.len() > keep;
        items.truncate(keep);
        let last = items
            .last()
            .map(|session| format!("{}:{}", session.updated_at_ms, session.session_id));
        Ok(Page {
            items,
            next: last.filter(|_| more),
        })
    }

    pub(super) async fn find_session(
        &self,
        agent: Option<&AgentId>,
        reference: &str,
    ) -> Result<SessionRecord, ServiceError> {
        let mut found = Vec::new();
        for record in self.agents_or(agent).await? {
            let Some(db) = self
                .agent_unless_broken(&record.agent_id, agent.is_some())
                .await?
            else {
                continue;
            };
            let mut conn = db.read().await?;
            found.extend(
                session::find(&mut conn, &record.agent_id, reference)
                    .await
                    .in_db(&db)?,
            );
        }
        let exact = found
            .iter()
            .position(|session| session.session_id == reference);
        let unarchived: Vec<usize> = (0..found.len())
            .filter(|&i| found[i].archived_at_ms.is_none())
            .collect();
        match (exact, found.len(), unarchived.as_slice()) {
            (Some(at), ..) => Ok(found.swap_remove(at)),
            (None, 0, _) => Err(ServiceError::NotFound {
                what: "session",
                name: reference.to_owned(),
            }),
            (None, 1, _) => Ok(found.swap_remove(0)),
            // One live session among archived ones of the same key is what was meant.
            (None, _, [at]) => Ok(found.swap_remove(*at)),
            _ => Err(ServiceError::Ambiguous {
                what: "sessions",
                name: reference.to_owned(),
                candidates: found
                    .iter()
                    .take(5)
                    .map(|s| format!("{} of {}", s.session_id, s.agent_id))
                    .collect(),
            }),
        }
    }

    pub(super) async fn show_session(
        &self,
        agent: Option<&AgentId>,
        reference: &str,
        after: i64,
        limit: PageLimit,
    ) -> Result<SessionTranscript, ServiceError> {
        let session = self.find_session(agent, reference).await?;
        let db = self.agent(&session.agent_id).await?;
        let mut conn = db.read().await?;
        let tail = session::tail(&mut conn, &session.session_id)
            .await
            .in_db(&db)?;
        let tail = tail.ok_or_else(|| ServiceError::NotFound {
            what: "session",
            name: reference.to_owned(),
        })?;
        let events = transcript::page(&mut conn, tail.session_no, after, limit)
            .await
            .in_db(&db)?;
        let last = events.last().map(|event| event.seq);
        let next_after = last.filter(|&seq| seq < tail.last_seq);
        Ok(SessionTranscript {
            session,
            events,
            next_after,
        })
    }

    pub(super) async fn search_sessions(
        &self,
        text: &str,
        agent: Option<&AgentId>,
        newest: bool,
        limit: PageLimit,
    ) -> Result<SearchAnswer, ServiceError> {
        let order = if newest {
            SearchOrder::Newest
        } else {
            SearchOrder::Rank
        };
        let mut answer = SearchAnswer {
            hits: Vec::new(),
            incomplete: Vec::new(),
            unreadable: Vec::new(),
        };
        for record in self.agents_or(agent).await? {
            let id = record.agent_id;
            let db = match self.agent(&id).await {
                Ok(db) => db,
                Err(error @ ServiceError::Open(_)) if agent.is_none() => {
                    answer.unreadable.push((id, error.to_string()));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut conn = db.read().await?;
            answer.hits.extend(
                search::search(&mut conn, &id, text, order, limit)
                    .await
                    .in_db(&db)?,
            );
            let pending = search::pending(&mut conn).await.in_db(&db)?;
            if pending > 0 {
                answer.incomplete.push((id, pending));
            }
        }
        match order {
            SearchOrder::Newest => answer
                .hits
                .sort_by_key(|hit| std::cmp::Reverse(hit.created_at_ms)),
            SearchOrder::Rank => answer.hits.sort_by(|a, b| a.rank.total_cmp(&b.rank)),
        }
        answer.hits.truncate(limit.rows() as usize);
        Ok(answer)
    }
}
