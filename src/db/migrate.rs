//! The only code that makes or changes a schema.
//!
//! All pending migrations, `user_version`, `application_id` and the `schema_meta` row change in one
//! `BEGIN IMMEDIATE` transaction. sqlx's own migration lock does nothing on SQLite, so a file lock
//! is held round it: two starting processes would otherwise race.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection, SqlSafeStr, SqliteConnection};

use super::error::{DbError, OpenError};
use crate::model::Tier;

/// Release and instant of a change, written to `schema_meta`.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Version of this program.
    pub app_version: &'static str,
    /// Now, Unix milliseconds.
    pub now_ms: i64,
}

/// `ZCLG`: marks a control plane.
const GLOBAL_APPLICATION_ID: i64 = 0x5A43_4C47;
/// `ZCLA`: marks an agent's database.
const AGENT_APPLICATION_ID: i64 = 0x5A43_4C41;

/// File name without number, and text, in order from 1.
const GLOBAL: &[(&str, &str)] = &[
    (
        "control",
        include_str!("../../migrations/global/0001_control.sql"),
    ),
    (
        "records",
        include_str!("../../migrations/global/0002_records.sql"),
    ),
    (
        "tasks",
        include_str!("../../migrations/global/0003_tasks.sql"),
    ),
    (
        "cron",
        include_str!("../../migrations/global/0004_cron.sql"),
    ),
    (
        "task_owners",
        include_str!("../../migrations/global/0005_task_owners.sql"),
    ),
    (
        "task_records",
        include_str!("../../migrations/global/0006_task_records.sql"),
    ),
    (
        "devices",
        include_str!("../../migrations/global/0007_devices.sql"),
    ),
    (
        "acp_sessions",
        include_str!("../../migrations/global/0008_acp_sessions.sql"),
    ),
    (
        "costs",
        include_str!("../../migrations/global/0009_costs.sql"),
    ),
    (
        "diagnostics",
        include_str!("../../migrations/global/0010_diagnostics.sql"),
    ),
    (
        "flows",
        include_str!("../../migrations/global/0011_flows.sql"),
    ),
    (
        "knowledge",
        include_str!("../../migrations/global/0012_knowledge.sql"),
    ),
    (
        "audit",
        include_str!("../../migrations/global/0013_audit.sql"),
    ),
    (
        "ownership",
        include_str!("../../migrations/global/0014_ownership.sql"),
    ),
    (
        "delivery",
        include_str!("../../migrations/global/0015_delivery.sql"),
    ),
    (
        "commitments",
        include_str!("../../migrations/global/0016_commitments.sql"),
    ),
    (
        "cron_claims",
        include_str!("../../migrations/global/0017_cron_claims.sql"),
    ),
    (
        "flow_claims",
        include_str!("../../migrations/global/0018_flow_claims.sql"),
    ),
    (
        "plugins",
        include_str!("../../migrations/global/0019_plugins.sql"),
    ),
    (
        "views",
        include_str!("../../migrations/global/0020_views.sql"),
    ),
    (
        "pairing",
        include_str!("../../migrations/global/0021_pairing.sql"),
    ),
];

/// File name without number, and text, in order from 1.
const AGENT: &[(&str, &str)] = &[
    (
        "ground",
        include_str!("../../migrations/agent/0001_ground.sql"),
    ),
    (
        "sessions",
        include_str!("../../migrations/agent/0002_sessions.sql"),
    ),
    (
        "transcripts",
        include_str!("../../migrations/agent/0003_transcripts.sql"),
    ),
    (
        "memories",
        include_str!("../../migrations/agent/0004_memories.sql"),
    ),
    (
        "run_artifacts",
        include_str!("../../migrations/agent/0005_run_artifacts.sql"),
    ),
    (
        "tool_artifacts",
        include_str!("../../migrations/agent/0006_tool_artifacts.sql"),
    ),
    ("vfs", include_str!("../../migrations/agent/0007_vfs.sql")),
    (
        "memory_index",
        include_str!("../../migrations/agent/0008_memory_index.sql"),
    ),
    (
        "living_sessions",
        include_str!("../../migrations/agent/0009_living_sessions.sql"),
    ),
    (
        "runtime_streams",
        include_str!("../../migrations/agent/0010_runtime_streams.sql"),
    ),
    (
        "views",
        include_str!("../../migrations/agent/0011_views.sql"),
    ),
];

static GLOBAL_MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| migrator(GLOBAL));
static AGENT_MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| migrator(AGENT));

fn migrator(files: &'static [(&'static str, &'static str)]) -> Migrator {
    let migrations = (1..)
        .zip(files)
        .map(|(version, (name, sql))| {
            Migration::new(
                version,
                Cow::Borrowed(*name),
                MigrationType::Simple,
                sql.into_sql_str(),
                false,
            )
        })
        .collect();
    Migrator::with_migrations(migrations)
}

fn files(tier: &Tier) -> &'static [(&'static str, &'static str)] {
    match tier {
        Tier::Global => GLOBAL,
        Tier::Agent(_) => AGENT,
    }
}

pub(super) fn application_id(tier: &Tier) -> i64 {
    match tier {
        Tier::Global => GLOBAL_APPLICATION_ID,
        Tier::Agent(_) => AGENT_APPLICATION_ID,
    }
}

/// The newest schema version this release knows of a tier.
#[must_use]
pub fn known_version(tier: &Tier) -> i64 {
    i64::try_from(files(tier).len()).unwrap_or(i64::MAX)
}

/// The tables that schema version `version` of a tier promises, shadow tables left out.
pub fn tables_of(tier: &Tier, version: i64) -> impl Iterator<Item = &'static str> {
    let taken = usize::try_from(version).unwrap_or(0);
    files(tier)
        .iter()
        .take(taken)
        .flat_map(|(_, sql)| sql.lines())
        .filter_map(created_table)
}

/// The name in a line that opens a `CREATE TABLE`; our migrations write it on one line.
fn created_table(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("CREATE TABLE ")
        .or_else(|| line.strip_prefix("CREATE VIRTUAL TABLE "))?;
    rest.split([' ', '(']).next()
}

/// Brings the file behind `conn` from its version to the newest, whole or not at all.
pub(super) async fn migrate(
    conn: &mut SqliteConnection,
    path: &Path,
    tier: &Tier,
    release: Release,
) -> Result<(), OpenError> {
    migrate_to(conn, path, tier, known_version(tier), release).await
}

/// The same up to `target`; older targets serve tests of the way up.
pub(super) async fn migrate_to(
    conn: &mut SqliteConnection,
    path: &Path,
    tier: &Tier,
    target: i64,
    release: Release,
) -> Result<(), OpenError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| OpenError::Migrate {
        path: path.to_owned(),
        source,
    };
    let migrator = match tier {
        Tier::Global => &*GLOBAL_MIGRATOR,
        Tier::Agent(_) => &*AGENT_MIGRATOR,
    };
    let mut tx = conn
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(|e| DbError::from(e).at(path))?;
    migrator
        .run_direct(Some(target), &mut *tx, false)
        .await
        .map_err(|e| failed(Box::new(e)))?;
    mark(&mut tx, tier, target, release)
        .await
        .map_err(|e| failed(Box::new(e)))?;
    tx.commit().await.map_err(|e| DbError::from(e).at(path))?;
    tracing::info!(%tier, version = target, "migrated");
    Ok(())
}

async fn mark(
    conn: &mut SqliteConnection,
    tier: &Tier,
    version: i64,
    release: Release,
) -> Result<(), sqlx::Error> {
    // A pragma takes no bound values; both are numbers of our own.
    let pragmas = format!(
        "PRAGMA user_version = {version}; PRAGMA application_id = {};",
        application_id(tier)
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(pragmas))
        .execute(&mut *conn)
        .await?;
    sqlx::query(
        "INSERT INTO schema_meta (meta_key, role, schema_version, agent_id, app_version, created_at_ms, updated_at_ms)
         VALUES ('primary', ?1, ?2, ?3, ?4, ?5, ?5)
         ON CONFLICT (meta_key) DO UPDATE SET
             schema_version = excluded.schema_version,
             app_version = excluded.app_version,
             updated_at_ms = excluded.updated_at_ms",
    )
    .bind(tier.role())
    .bind(version)
    .bind(tier.agent_id().map(ToString::to_string))
    .bind(release.app_version)
    .bind(release.now_ms)
    .execute(conn)
    .await?;
    Ok(())
}
