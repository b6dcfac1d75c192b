//! What was done to memories.

use zeroclaw::model::AuditEvent;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::audit;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for AuditEvent {
    fn kind(&self) -> &'static str {
        kind::AUDIT_EVENT
    }

    fn key(&self) -> String {
        self.event_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        audit::get_many(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        audit::insert(tx, rows).await
    }
}
