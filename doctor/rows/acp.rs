//! Sessions of ACP clients: an ended one stays ended, the latest activity holds.

use zeroclaw::model::{AcpSession, AcpState, AgentId};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::acp;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for AcpSession {
    fn kind(&self) -> &'static str {
        kind::ACP_SESSION
    }

    fn key(&self) -> String {
        format!("{}/{}", self.agent_id, self.session_id)
    }

    fn agent(&self) -> Option<&AgentId> {
        Some(&self.agent_id)
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let parts = keys.iter().filter_map(|key| key.split_once('/'));
        let ids: Vec<&str> = parts.map(|(_, session)| session).collect();
        acp::of_ids(conn, &ids).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        acp::insert(tx, rows).await
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        acp::update(tx, row).await
    }

    fn settled(stored: &Self, read: &Self) -> Option<Self> {
        let ends = stored.state == AcpState::Open && read.state == AcpState::Ended;
        let is_later = read.last_activity_at_ms > stored.last_activity_at_ms;
        if !ends && !is_later {
            return None;
        }
        let mut both = stored.clone();
        if ends {
            both.state = AcpState::Ended;
            both.ended_at_ms = read.ended_at_ms;
        }
        if is_later {
            both.last_activity_at_ms = read.last_activity_at_ms;
            both.token_count = stored.token_count.max(read.token_count);
        }
        Some(both)
    }
}
