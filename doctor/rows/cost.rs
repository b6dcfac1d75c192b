//! What calls of models cost.

use zeroclaw::model::UsageCost;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::cost;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for UsageCost {
    fn kind(&self) -> &'static str {
        kind::COST
    }

    fn key(&self) -> String {
        self.cost_id.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        cost::get_many(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        cost::insert_new(tx, rows).await.map(|_| ())
    }
}
