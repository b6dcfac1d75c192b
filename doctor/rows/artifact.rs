//! Outputs of runs, by run and name.

use zeroclaw::model::RunArtifact;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::artifact;

use super::ImportRow;
use crate::doctor::record::kind;

/// Parts a key; no path has it.
const BETWEEN: char = '\0';

impl ImportRow for RunArtifact {
    fn kind(&self) -> &'static str {
        kind::ARTIFACT
    }

    fn key(&self) -> String {
        format!("{}{BETWEEN}{}", self.about.run_id, self.about.path)
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let mut found = Vec::new();
        for (run_id, path) in keys.iter().filter_map(|key| key.split_once(BETWEEN)) {
            found.extend(artifact::get(conn, run_id, path).await?);
        }
        Ok(found)
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            artifact::insert_new(tx, row).await?;
        }
        Ok(())
    }

    fn is_same(stored: &Self, read: &Self) -> bool {
        // What was said of it differs between copies; its name holds the digest of its bytes.
        stored.blob == read.blob
    }
}
