//! Sessions: listing, showing, searching.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{SearchOrder, Service, ServiceError};
use crate::model::{
    AgentId, Event, Page, PageLimit, Payloads, SearchHit, SessionRecord, TranscriptCursor,
    TranscriptOrder,
};
use crate::store::agent::search::SearchFilter;
use crate::store::agent::session::SessionFilter;
use crate::store::agent::{branch, search, session};

/// One session and a page of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTranscript {
    /// The session.
    pub session: SessionRecord,
    /// Its events, oldest first.
    pub events: Vec<Event>,
    /// Place before which the page of older events ends; `None` at the start.
    pub next_before: Option<i64>,
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
            let filter = SessionFilter {
                ownerless: self.ownerless(&mut conn, db.version()).await.in_db(&db)?,
                ..filter.clone()
            };
            let page = session::list(&mut conn, &record.agent_id, &filter, before, limit)
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

    /// The session of an id, of a key, or of the start of an id.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`], or [`ServiceError::Ambiguous`] with names that would do.
    pub async fn find_session(
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
            let ownerless = self.ownerless(&mut conn, db.version()).await.in_db(&db)?;
            let mut here = session::find(&mut conn, &record.agent_id, reference)
                .await
                .in_db(&db)?;
            here.iter_mut()
                .for_each(|session| session::settle(session, &ownerless));
            found.extend(here);
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
        session: SessionRecord,
        order: TranscriptOrder,
        cursor: TranscriptCursor,
        limit: PageLimit,
        payloads: Payloads,
    ) -> Result<SessionTranscript, ServiceError> {
        let db = self.agent(&session.agent_id).await?;
        let mut conn = db.read().await?;
        let stand = if db.version() < super::turn::SINCE_SCHEMA {
            branch::stand_of_old(&mut conn, &session.session_id).await
        } else {
            branch::stand(&mut conn, &session.session_id).await
        };
        let stand = stand.in_db(&db)?.ok_or_else(|| ServiceError::NotFound {
            what: "session",
            name: session.session_id.clone(),
        })?;
        let page = super::transcript::page(&mut conn, &stand, order, cursor, limit, payloads)
            .await
            .in_db(&db)?;
        Ok(SessionTranscript {
            session,
            events: page.events,
            next_before: page.next_before,
            next_after: page.next_after,
        })
    }

    pub(super) async fn search_sessions(
        &self,
        text: &str,
        agent: Option<&AgentId>,
        newest: bool,
        filter: &SearchFilter,
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
                search::search(&mut conn, &id, text, order, filter, limit)
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
