//! Payloads of tools kept beside a session: keeping, listing, showing.

use tokio::io::AsyncWrite;

use super::artifact::{digest, pour, prove, refuse, size, taken};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{AgentId, NewToolArtifact, Page, PageLimit, ToolArtifact};
use crate::store::agent::tool_artifact;

impl Service {
    /// Keeps a payload of a tool. The same bytes under the same id give what is there.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the run has other bytes under that id, [`ServiceError::Invalid`] for what cannot be
    /// taken, [`ServiceError::NotFound`] when there is no such agent or session, [`ServiceError`] when SQLite fails.
    pub async fn put_tool_artifact(
        &self,
        agent: &AgentId,
        new: NewToolArtifact,
    ) -> Result<ToolArtifact, ServiceError> {
        refuse(&new.artifact_id, &new.metadata_json, &new.bytes)?;
        let session_id = match &new.session_id {
            Some(session) => Some(self.find_session(Some(agent), session).await?.session_id),
            None => None,
        };
        let db = self.agent(agent).await?;
        let artifact = ToolArtifact {
            run_id: new.run_id,
            artifact_id: new.artifact_id,
            session_id,
            kind: new.kind,
            metadata_json: new.metadata_json,
            sha256: digest(&new.bytes),
            size_bytes: size(&new.bytes),
            created_at_ms: self.clock().now_ms(),
            blob: new.bytes,
        };
        db.write(move |tx| {
            Box::pin(async move {
                let key = (artifact.run_id.as_str(), artifact.artifact_id.as_str());
                let there = tool_artifact::of_ids(tx, &[key]).await?.pop();
                match there {
                    Some(mut there) if there.sha256 == artifact.sha256 => {
                        there.blob = Vec::new();
                        Ok(there)
                    }
                    Some(there) => Err(taken(
                        &artifact.artifact_id,
                        &artifact.sha256,
                        Some(there.sha256),
                    )),
                    None => {
                        tool_artifact::insert(tx, std::slice::from_ref(&artifact)).await?;
                        Ok(ToolArtifact {
                            blob: Vec::new(),
                            ..artifact
                        })
                    }
                }
            })
        })
        .await
    }

    /// Lists the payloads of a run by id, without their bytes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn list_tool_artifacts(
        &self,
        agent: &AgentId,
        run_id: &str,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<ToolArtifact>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        tool_artifact::of_run(&mut conn, run_id, after, limit)
            .await
            .in_db(&db)
    }

    /// A payload of a run, its bytes proven by its digest.
    ///
    /// # Errors
    ///
    /// [`ServiceError::DamagedArtifact`] when the bytes are not those that were put, [`ServiceError::NotFound`] when there
    /// is none.
    pub async fn tool_artifact(
        &self,
        agent: &AgentId,
        run_id: &str,
        artifact_id: &str,
    ) -> Result<ToolArtifact, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let found = tool_artifact::of_ids(&mut conn, &[(run_id, artifact_id)]).await;
        proven(found.in_db(&db)?.pop(), artifact_id)
    }

    /// Copies a payload of a run to a sink; gives what is known of it. As [`Service::copy_run_artifact`].
    ///
    /// # Errors
    ///
    /// As [`Service::tool_artifact`], and [`ServiceError::Sink`] when the sink fails.
    pub async fn copy_tool_artifact(
        &self,
        agent: &AgentId,
        run_id: &str,
        artifact_id: &str,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<ToolArtifact, ServiceError> {
        let mut found = self.tool_artifact(agent, run_id, artifact_id).await?;
        pour(artifact_id, &found.blob, sink).await?;
        found.blob = Vec::new();
        Ok(found)
    }

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
        proven(found, artifact_id)
    }
}

fn proven(found: Option<ToolArtifact>, artifact_id: &str) -> Result<ToolArtifact, ServiceError> {
    let found = found.ok_or_else(|| ServiceError::NotFound {
        what: "artifact",
        name: artifact_id.to_owned(),
    })?;
    prove(&found.run_id, artifact_id, &found.sha256, &found.blob)?;
    Ok(found)
}
