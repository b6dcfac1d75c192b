//! Payloads of tools.

use zeroclaw::model::ToolArtifact;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::tool_artifact;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for ToolArtifact {
    fn kind(&self) -> &'static str {
        kind::TOOL_ARTIFACT
    }

    fn key(&self) -> String {
        // The second half is a digest of ours and has no slash.
        format!("{}/{}", self.run_id, self.artifact_id)
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let ids: Vec<_> = keys.iter().filter_map(|key| key.rsplit_once('/')).collect();
        tool_artifact::of_ids(conn, &ids).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        tool_artifact::insert(tx, rows).await
    }
}
