//! One database: its writer, its readers, what looking leaves behind, copies of it while it lives.

use std::path::Path;

use zeroclaw::db::{Access, Db, Durability, Release, WriteAccess};
use zeroclaw::model::Tier;
use zeroclaw::store::StoreError;
use zeroclaw::store::global::lease::{self, Lease};

mod busy;
mod load;
mod look;
mod private;
mod snapshot;
mod write;

fn write_access(dir: &Path) -> WriteAccess {
    WriteAccess {
        durability: Durability::Full,
        release: Release {
            app_version: "0.0.0-test",
            now_ms: 0,
        },
        migrate_lock: dir.join("migrate.lock"),
    }
}

/// A control plane in `dir`, made where there is none.
async fn control_plane(dir: &Path) -> Db {
    let path = dir.join("state.sqlite");
    Db::open_or_create(&path, &Tier::Global, write_access(dir))
        .await
        .unwrap()
}

/// A row to write: a lease of this key.
fn row(key: impl Into<String>) -> Lease {
    Lease {
        scope: "test".to_owned(),
        lease_key: key.into(),
        owner: "test".to_owned(),
        ..Lease::default()
    }
}

async fn put(db: &Db, row: Lease) -> Result<(), StoreError> {
    db.write(move |tx| Box::pin(async move { lease::replace(tx, &row).await }))
        .await
}

/// Keys of all rows, sorted.
async fn keys(db: &Db) -> Vec<String> {
    let rows = lease::list(&mut db.read().await.unwrap()).await.unwrap();
    let mut keys: Vec<_> = rows.into_iter().map(|row| row.lease_key).collect();
    keys.sort();
    keys
}

async fn look_at(path: &Path, is_at_rest: bool) -> Db {
    Db::open(path, &Tier::Global, Access::Look { is_at_rest })
        .await
        .unwrap()
}
