//! Files that hold memories: what the file says now is what is indexed.

use zeroclaw::model::IndexedFile;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::memory_index;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for IndexedFile {
    fn kind(&self) -> &'static str {
        kind::INDEXED_FILE
    }

    fn key(&self) -> String {
        self.path.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let mut found = Vec::new();
        for path in keys {
            found.extend(memory_index::get(conn, path).await?);
        }
        Ok(found)
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            memory_index::replace(tx, row).await?;
        }
        Ok(())
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        memory_index::replace(tx, row).await
    }

    fn is_same(stored: &Self, read: &Self) -> bool {
        stored.hash == read.hash && stored.entries == read.entries
    }

    fn settled(_stored: &Self, read: &Self) -> Option<Self> {
        // The file stays and is the truth; the index follows it.
        Some(read.clone())
    }
}
