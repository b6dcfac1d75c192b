//! The schema: what people read is what the migrations make, and what was released stays.

use std::path::{Path, PathBuf};

use sqlx::{Connection, SqliteConnection};
use zeroclaw::db::{Access, Db, Durability, Release, WriteAccess};
use zeroclaw::model::{AgentId, Tier};

use crate::support::sqlite::{block_on, run};
use structure::{Structure, differences, structure};

mod agents;
mod frozen;
mod race;
mod refused;
mod structure;
mod text;
pub(crate) mod upgrade;

const RELEASE: Release = Release {
    app_version: "0.0.0-test",
    now_ms: 1_796_000_000_000,
};

fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Both tiers, with the name of their files.
fn tiers() -> [(&'static str, Tier); 2] {
    let owner = AgentId::new("atlas").unwrap();
    [("global", Tier::Global), ("agent", Tier::Agent(owner))]
}

/// Write access to a database in `dir`, as the service would ask for it.
fn write_access(dir: &Path) -> WriteAccess {
    WriteAccess {
        durability: Durability::Full,
        release: RELEASE,
        migrate_lock: dir.join("migrate.lock"),
    }
}

async fn open_for_writing(path: &Path, tier: &Tier) -> Result<Db, zeroclaw::db::OpenError> {
    let access = Access::Write(write_access(path.parent().unwrap()));
    Db::open(path, tier, access).await
}

/// What the migrations make of an empty file.
fn migrated(tier: &Tier) -> Structure {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new.sqlite");
    block_on(async {
        let db = Db::create(&path, tier, write_access(dir.path()))
            .await
            .unwrap();
        let found = structure(&mut db.read().await.unwrap()).await;
        db.close().await;
        found
    })
}

/// What a text makes of an empty database.
fn written(sql: &str) -> Structure {
    block_on(async {
        let mut conn = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        run(&mut conn, sql).await;
        structure(&mut conn).await
    })
}

#[test]
fn what_people_read_is_what_the_migrations_make() {
    for (name, tier) in tiers() {
        let sql = std::fs::read_to_string(package(&format!("schema/{name}.sql"))).unwrap();

        let found = differences(&written(&sql), &migrated(&tier));

        assert!(
            found.is_empty(),
            "schema/{name}.sql and migrations/{name} differ:\n{}",
            found.join("\n")
        );
    }
}
