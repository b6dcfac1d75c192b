//! Where a conversation stands in a transcript that is no plain list.

use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::branch;

use super::ImportRow;
use crate::doctor::record::kind;

/// The event that a session stands at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BranchTip {
    /// The session.
    pub(crate) session_id: String,
    /// The event.
    pub(crate) event_id: String,
}

impl ImportRow for BranchTip {
    fn kind(&self) -> &'static str {
        kind::BRANCH
    }

    fn key(&self) -> String {
        self.session_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let mut found = Vec::new();
        for session_id in keys {
            let stand = branch::stand(conn, session_id).await?;
            // One that nobody ever took back stands nowhere in particular.
            let taken_back = stand.filter(|stand| stand.leaf_seq.is_some());
            found.extend(taken_back.map(|stand| Self {
                session_id: (*session_id).to_owned(),
                event_id: stand.tail_id.unwrap_or_default(),
            }));
        }
        Ok(found)
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            let Some(stand) = branch::stand(tx, &row.session_id).await? else {
                continue;
            };
            if let Some(seq) = branch::seq_of(tx, stand.session_no, &row.event_id).await? {
                branch::set_leaf(tx, stand.session_no, seq, 0).await?;
            }
        }
        Ok(())
    }
}
