//! What ACP children tell their parents: keeping, listing.

use super::error::InDb;
use super::trajectory::refuse_events;
use super::{Service, ServiceError};
use crate::model::{AgentId, Page, PageLimit, ParentStreamEvent, StoredSpan};
use crate::store::agent::parent_stream;

impl Service {
    /// Adds what a child told to its run, in order, all or none; gives the places, `None` for nothing.
    ///
    /// * `events`: JSON texts, bounded as those of [`Service::append_trajectory`].
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError::Invalid`] for what cannot be taken,
    /// [`ServiceError`] when SQLite fails.
    pub async fn append_parent_stream(
        &self,
        agent: &AgentId,
        session: &str,
        run_id: &str,
        events: Vec<String>,
    ) -> Result<Option<StoredSpan>, ServiceError> {
        refuse_events("parent stream", &events)?;
        let session = self.find_session(Some(agent), session).await?;
        let db = self.agent(&session.agent_id).await?;
        let (now_ms, run_id) = (self.clock().now_ms(), run_id.to_owned());
        db.write(move |tx| {
            Box::pin(async move {
                let id = &session.session_id;
                Ok(parent_stream::append(tx, id, &run_id, &events, now_ms).await?)
            })
        })
        .await
    }

    /// Lists what children told a session, by run and place; of one run, where it is given.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such session, [`ServiceError`] for a foreign cursor or when SQLite
    /// fails.
    pub async fn list_parent_stream(
        &self,
        agent: Option<&AgentId>,
        session: &str,
        run_id: Option<&str>,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<ParentStreamEvent>, ServiceError> {
        let session = self.find_session(agent, session).await?;
        let db = self.agent(&session.agent_id).await?;
        if db.version() < parent_stream::SINCE_SCHEMA {
            return Ok(Page {
                items: Vec::new(),
                next: None,
            });
        }
        let mut conn = db.read().await?;
        parent_stream::list(&mut conn, &session.session_id, run_id, after, limit)
            .await
            .in_db(&db)
    }
}
