//! Outputs of runs, and what both kinds of artifacts share: a digest taken at put and checked at every read.

use sha2::{Digest, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::Db;
use crate::model::{
    AgentId, ArtifactInfo, KeptArtifact, MAX_ARTIFACT_BYTES, NewRunArtifact, Page, PageLimit,
    RunArtifact,
};
use crate::store::agent::artifact;

impl Service {
    /// Keeps an output of a run. The same bytes again give what is there.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Conflict`] when the run has other bytes at that path, [`ServiceError::Invalid`] for what cannot be
    /// taken, [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] when SQLite fails.
    pub async fn put_run_artifact(
        &self,
        agent: &AgentId,
        new: NewRunArtifact,
    ) -> Result<ArtifactInfo, ServiceError> {
        let db = self.agent(agent).await?;
        put(&db, new, self.clock().now_ms()).await
    }

    /// An output of a run, its bytes proven by its digest.
    ///
    /// # Errors
    ///
    /// [`ServiceError::DamagedArtifact`] when the bytes are not those that were put, [`ServiceError::NotFound`] when there
    /// is none.
    pub async fn run_artifact(
        &self,
        agent: &AgentId,
        run_id: &str,
        path: &str,
    ) -> Result<RunArtifact, ServiceError> {
        get(&*self.agent(agent).await?, run_id, path).await
    }

    /// Copies an output of a run to a sink; gives what is known of it.
    ///
    /// Not one byte leaves before all are proven by the digest, so the memory is that of one artifact: at most
    /// [`MAX_ARTIFACT_BYTES`] for one that was put.
    ///
    /// # Errors
    ///
    /// As [`Service::run_artifact`], and [`ServiceError::Sink`] when the sink fails.
    pub async fn copy_run_artifact(
        &self,
        agent: &AgentId,
        run_id: &str,
        path: &str,
        sink: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<ArtifactInfo, ServiceError> {
        let found = self.run_artifact(agent, run_id, path).await?;
        pour(&found.about.path, &found.blob, sink).await?;
        Ok(found.about)
    }

    /// Lists outputs of an agent's runs by run and path, of one run where it is given, without their bytes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when there is no such agent, [`ServiceError`] for a foreign cursor or when SQLite fails.
    pub async fn list_run_artifacts(
        &self,
        agent: &AgentId,
        run_id: Option<&str>,
        after: Option<&str>,
        limit: PageLimit,
    ) -> Result<Page<KeptArtifact>, ServiceError> {
        let db = self.agent(agent).await?;
        let mut conn = db.read().await?;
        let page = artifact::page(&mut conn, run_id, after, limit)
            .await
            .in_db(&db)?;
        let kept = page.items.into_iter().map(|about| KeptArtifact {
            agent_id: agent.clone(),
            about,
        });
        Ok(Page {
            items: kept.collect(),
            next: page.next,
        })
    }
}

/// Keeps an output in an agent's database.
pub(super) async fn put(
    db: &Db,
    new: NewRunArtifact,
    now_ms: i64,
) -> Result<ArtifactInfo, ServiceError> {
    refuse(&new.path, &new.metadata_json, &new.bytes)?;
    let artifact = RunArtifact {
        about: ArtifactInfo {
            run_id: new.run_id,
            path: new.path,
            kind: new.kind,
            metadata_json: new.metadata_json,
            sha256: digest(&new.bytes),
            size_bytes: size(&new.bytes),
            created_at_ms: now_ms,
        },
        blob: new.bytes,
    };
    db.write(move |tx| {
        Box::pin(async move {
            if artifact::insert_new(tx, &artifact).await? {
                return Ok(artifact.about);
            }
            let about = artifact.about;
            let there = artifact::get(tx, &about.run_id, &about.path).await?;
            match there {
                Some(there) if there.about.sha256 == about.sha256 => Ok(there.about),
                there => Err(taken(
                    &about.path,
                    &about.sha256,
                    there.map(|there| there.about.sha256),
                )),
            }
        })
    })
    .await
}

/// An output from an agent's database, proven.
pub(super) async fn get(db: &Db, run_id: &str, path: &str) -> Result<RunArtifact, ServiceError> {
    let mut conn = db.read().await?;
    let found = artifact::get(&mut conn, run_id, path).await.in_db(db)?;
    let found = found.ok_or_else(|| ServiceError::NotFound {
        what: "artifact",
        name: format!("{run_id}/{path}"),
    })?;
    prove(run_id, &found.about.path, &found.about.sha256, &found.blob)?;
    Ok(found)
}

/// Fails unless the bytes of an artifact are those that were put.
pub(super) fn prove(
    run_id: &str,
    artifact: &str,
    recorded: &str,
    bytes: &[u8],
) -> Result<(), ServiceError> {
    let found = digest(bytes);
    if found.eq_ignore_ascii_case(recorded) {
        return Ok(());
    }
    Err(ServiceError::DamagedArtifact {
        run_id: run_id.to_owned(),
        artifact: artifact.to_owned(),
        recorded: recorded.to_owned(),
        found,
    })
}

/// Writes proven bytes to a sink.
pub(super) async fn pour(
    artifact: &str,
    bytes: &[u8],
    sink: &mut (impl AsyncWrite + Unpin + Send),
) -> Result<(), ServiceError> {
    let failed = |source| ServiceError::Sink {
        artifact: artifact.to_owned(),
        source,
    };
    sink.write_all(bytes).await.map_err(failed)?;
    sink.flush().await.map_err(failed)
}

/// Refuses what no artifact can be.
pub(super) fn refuse(name: &str, metadata_json: &str, bytes: &[u8]) -> Result<(), ServiceError> {
    let reason = if name.is_empty() {
        "needs a name".to_owned()
    } else if bytes.len() > MAX_ARTIFACT_BYTES {
        format!("{name:?} has more than {MAX_ARTIFACT_BYTES} bytes: store it as a file")
    } else if serde_json::from_str::<serde::de::IgnoredAny>(metadata_json).is_err() {
        format!("{name:?} has metadata that is not JSON")
    } else {
        return Ok(());
    };
    Err(ServiceError::Invalid {
        what: "artifact",
        reason,
    })
}

/// The name is held by other bytes.
pub(super) fn taken(name: &str, expected: &str, found: Option<String>) -> ServiceError {
    ServiceError::Conflict {
        what: "artifact",
        name: name.to_owned(),
        expected: format!("to have SHA-256 {expected}"),
        found: found.unwrap_or_else(|| "gone".to_owned()),
    }
}

pub(super) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

pub(super) fn size(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}
