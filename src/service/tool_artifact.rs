//! Payloads of tools kept beside a session: listing, showing.

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, ToolArtifact};
use crate::store::agent::tool_artifact;

impl Service {
    pub(super) async fn list_artifacts(
        &self,
        agent: Option<&AgentId>,
        session: &str,
    ) -> Result<Vec<ToolArtifact>, ServiceError> {
        let session = self.find_session(agent, session).await?;
        let db = self.agent(&session.agent_id).await?;
        let mut conn = db.read().await?;
        tool_artifact::of_session(&mut conn, &session.session_id)
            .await
            .in_db(&db)
    }

    pub(super) async fn show_artifact(
        &self,
        agent: Option<&AgentId>,
        session: &str,
        artifact_id: &str,
    ) -> Result<ToolArtifact, ServiceError> {
        let session = self.find_session(agent, session).await?;
        let db = self.agent(&session.agent_id).await?;
        let mut conn = db.read().await?;
        let found = tool_artifact::get(&mut conn, &session.session_id, artifact_id)
            .await
            .in_db(&db)?;
        found.ok_or_else(|| ServiceError::NotFound {
            what: "artifact",
            name: artifact_id.to_owned(),
        })
    }
}
