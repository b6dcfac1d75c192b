//! Outputs of a worker's run.

use super::Worker;
use crate::model::{ArtifactInfo, NewRunArtifact, RunArtifact};
use crate::service::{ServiceError, artifact};

impl Worker {
    /// Keeps an output of this run. The same bytes again give what is there.
    ///
    /// # Errors
    ///
    /// As [`Service::put_run_artifact`](crate::service::Service::put_run_artifact).
    pub async fn put_artifact(
        &self,
        path: &str,
        kind: &str,
        metadata_json: &str,
        bytes: Vec<u8>,
    ) -> Result<ArtifactInfo, ServiceError> {
        let new = NewRunArtifact {
            run_id: self.spec.run_id.clone(),
            path: path.to_owned(),
            kind: kind.to_owned(),
            metadata_json: metadata_json.to_owned(),
            bytes,
        };
        artifact::put(&self.db, new, self.clock.now_ms()).await
    }

    /// An output of this run, its bytes proven by its digest.
    ///
    /// # Errors
    ///
    /// As [`Service::run_artifact`](crate::service::Service::run_artifact).
    pub async fn artifact(&self, path: &str) -> Result<RunArtifact, ServiceError> {
        artifact::get(&self.db, &self.spec.run_id, path).await
    }
}
