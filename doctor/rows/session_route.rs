//! Which session a key leads to, with the entry it came with. A key that leads somewhere already stays so.

use zeroclaw::model::SessionRoute;
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::agent::route;

use super::ImportRow;
use crate::doctor::record::kind;

impl ImportRow for SessionRoute {
    fn kind(&self) -> &'static str {
        kind::SESSION_ROUTE
    }

    fn key(&self) -> String {
        self.session_key.clone()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        route::get_many(conn, keys).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        route::insert(tx, rows).await
    }
}
