//! Runs of procedures, their events, and proposals.

use zeroclaw::model::{FlowEvent, FlowProposal, FlowRun};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::flow;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for FlowRun {
    fn kind(&self) -> &'static str {
        kind::FLOW
    }

    fn key(&self) -> String {
        self.flow_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        flow::get_runs(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            flow::upsert_run(tx, row).await?;
        }
        Ok(())
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        flow::upsert_run(tx, row).await
    }

    /// The higher revision wins.
    fn settled(stored: &Self, read: &Self) -> Option<Self> {
        (read.revision > stored.revision).then(|| read.clone())
    }

    fn absorbs(stored: &Self, read: &Self) -> bool {
        stored.revision > read.revision
    }
}

impl ImportRow for FlowEvent {
    fn kind(&self) -> &'static str {
        kind::FLOW_EVENT
    }

    fn key(&self) -> String {
        self.event_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        flow::get_events(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        flow::insert_events(tx, rows).await
    }
}

impl ImportRow for FlowProposal {
    fn kind(&self) -> &'static str {
        kind::FLOW_PROPOSAL
    }

    fn key(&self) -> String {
        self.proposal_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        flow::get_proposals(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            flow::upsert_proposal(tx, row).await?;
        }
        Ok(())
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        flow::upsert_proposal(tx, row).await
    }

    /// The later word wins.
    fn settled(stored: &Self, read: &Self) -> Option<Self> {
        (read.updated_at_ms > stored.updated_at_ms).then(|| read.clone())
    }

    fn absorbs(stored: &Self, read: &Self) -> bool {
        stored.updated_at_ms > read.updated_at_ms
    }
}
