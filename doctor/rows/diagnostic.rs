//! Events of a runtime's log.

use zeroclaw::model::DiagnosticEvent;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::diagnostic;

use super::ImportRow;
use crate::doctor::record::kind;

/// The log that old traces were.
pub(crate) const RUNTIME_SCOPE: &str = "runtime";

impl ImportRow for DiagnosticEvent {
    fn kind(&self) -> &'static str {
        kind::LOG_EVENT
    }

    fn key(&self) -> String {
        self.event_key.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        diagnostic::get_many(conn, RUNTIME_SCOPE, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        diagnostic::insert_new(tx, rows).await.map(|_| ())
    }

    /// A trace that only keeps its last events is rewritten: the line an event is on is not its own.
    fn is_same(stored: &Self, read: &Self) -> bool {
        let here = Self {
            sequence: stored.sequence,
            ..read.clone()
        };
        *stored == here
    }
}
