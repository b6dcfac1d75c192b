//! Steps of runtimes in sessions: keeping, listing.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{
    AgentId, MAX_APPEND_BYTES, MAX_APPEND_EVENTS, Page, PageLimit, StoredSpan, TrajectoryEvent,
};
use crate::store::agent::trajectory;

impl Service {
    /// Adds steps of a runtime to a session, in order, all or none; gives their places, `None` for no steps.
    ///
    /// * `events`: JSON texts, at most [`MAX_APPEND_EVENTS`] and [`MAX_APPEND_BYTES`].
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError::Invalid`] for what cannot be taken,
    /// [`ServiceError`] when SQLite fails.
    pub async fn append_trajectory(
        &self,
        agent: &AgentId,
        session: &str,
        run_id: Option<&str>,
        events: Vec<String>,
    ) -> Result<Option<StoredSpan>, ServiceError> {
        refuse_events("trajectory", &events)?;
        let session = self.find_session(Some(agent), session).await?;
        let db = self.agent(&session.agent_id).await?;
        let (now_ms, run_id) = (self.clock().now_ms(), run_id.map(str::to_owned));
        db.write(move |tx| {
            Box::pin(async move {
                let id = &session.session_id;
                let run_id = run_id.as_deref();
                Ok(trajectory::append(tx, id, run_id, &events, now_ms).await?)
            })
        })
        .await
    }

    /// Lists steps of a session, or of one run of it, in order.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError`] for a foreign cursor or when SQLite
    /// fails.
    pub async fn list_trajectory(
        &self,
        agent: Option<&AgentId>,
        session: &str,
        run_id: Option<&str>,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<TrajectoryEvent>, ServiceError> {
        let session = self.find_session(agent, session).await?;
        let db = self.agent(&session.agent_id).await?;
        if db.version() < trajectory::SINCE_SCHEMA {
            return Ok(Page {
                items: Vec::new(),
                next: None,
            });
        }
        let mut conn = db.read().await?;
        trajectory::list(&mut conn, &session.session_id, run_id, after, limit)
            .await
            .in_db(&db)
    }
}

/// Refuses a batch that is too large or holds what is no JSON.
pub(super) fn refuse_events(what: &'static str, events: &[String]) -> Result<(), ServiceError> {
    let bytes: usize = events.iter().map(String::len).sum();
    let reason = if events.len() > MAX_APPEND_EVENTS || bytes > MAX_APPEND_BYTES {
        format!("takes {MAX_APPEND_EVENTS} events and {MAX_APPEND_BYTES} bytes at a time")
    } else {
        let is_json = |text: &String| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let Some(place) = events.iter().position(|text| !is_json(text)) else {
            return Ok(());
        };
        format!("has an event that is not JSON: number {}", place + 1)
    };
    Err(ServiceError::Invalid { what, reason })
}
