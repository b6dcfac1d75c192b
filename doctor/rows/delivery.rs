//! Messages that an old program had not sent, known by their ids; what became of one here holds.

use zeroclaw::model::DeliveryEntry;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::{delivery_import, delivery_queue};

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for DeliveryEntry {
    fn kind(&self) -> &'static str {
        kind::DELIVERY
    }

    fn key(&self) -> String {
        self.id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let mut found = Vec::new();
        for id in keys {
            found.extend(delivery_queue::get(conn, id).await?);
        }
        Ok(found)
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        for row in rows {
            delivery_import::insert(tx, row).await?;
        }
        Ok(())
    }
}
