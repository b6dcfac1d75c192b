//! What a file says of itself, proved before it is used: tier, owner, schema version, tables.
//!
//! Read through handles that cannot write, so that a refused file stays as it was.

use std::path::Path;
use std::time::Duration;

use sqlx::{Connection, Row, SqliteConnection};

use super::SQLITE_FLOOR;
use super::error::{DbError, DbErrorKind, OpenError};
use super::look::{self, Look};
use super::migrate::{application_id, known_version, tables_of};
use super::options::look_options;
use crate::model::Tier;

/// How often a file is looked at again that changes while it is looked at, and the pause between:
/// together longer than the making of a schema (30 ms), which is what one meets.
const INSPECT_TRIES: u32 = 20;
const INSPECT_PAUSE: Duration = Duration::from_millis(25);

/// What a file says of itself.
pub(super) struct Identity {
    /// Its schema version; 0 for a file without a schema.
    pub(super) version: i64,
}

/// Reads what a file says of itself without leaving a trace, also beside a writer.
///
/// A file without a log is read as one that nobody writes, because any other connection would make
/// a log beside it. Where somebody wrote it meanwhile, what was read may be half of one state and half
/// of another, and look like damage: it is read again.
pub(super) async fn inspect(path: &Path, tier: &Tier) -> Result<(Look, Identity), OpenError> {
    for _ in 0..INSPECT_TRIES {
        let before = look::stamp(path);
        let look = look::choose(path)?;
        let may_be_torn = !matches!(look, Look::Shared);
        let seen = inspect_or_copy(path, tier, look).await;
        if !may_be_torn || look::stamp(path) == before {
            return seen;
        }
        tokio::time::sleep(INSPECT_PAUSE).await;
    }
    // Somebody writes it all the time: from here on only SQLite's locks help.
    inspect_or_copy(path, tier, Look::Shared).await
}

/// Looks in this way, or at a private copy where the log's index cannot be shared.
pub(super) async fn inspect_or_copy(
    path: &Path,
    tier: &Tier,
    look: Look,
) -> Result<(Look, Identity), OpenError> {
    match inspect_as(path, tier, &look).await {
        // A writer keeps it closed for longer than a look waits: a copy would be half of its work.
        Err(OpenError::Db(error)) if error.kind() == DbErrorKind::Busy => Err(error.into()),
        Err(OpenError::Db(_)) if matches!(look, Look::Shared) => {
            // A read-only medium cannot share the log's index, and a journal that a killed writer left can only be
            // rolled back by one that writes: read a private copy.
            let look = look::copy(path)?;
            let identity = inspect_as(path, tier, &look).await?;
            Ok((look, identity))
        }
        seen => seen.map(|identity| (look, identity)),
    }
}

pub(super) fn is_empty(path: &Path, tier: &Tier) -> OpenError {
    OpenError::Empty {
        path: path.to_owned(),
        expected: tier.to_string(),
    }
}

async fn inspect_as(path: &Path, tier: &Tier, look: &Look) -> Result<Identity, OpenError> {
    let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(path));
    if std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0) && matches!(look, Look::Immutable)
    {
        return Ok(Identity { version: 0 });
    }
    let mut conn = SqliteConnection::connect_with(&look_options(path, look))
        .await
        .map_err(named)?;
    let identity = identify(&mut conn, path, tier).await;
    conn.close().await.map_err(named)?;
    identity
}

/// Reads what a file says of itself, and refuses it where that is not `tier` or newer than known.
pub(super) async fn identify(
    conn: &mut SqliteConnection,
    path: &Path,
    tier: &Tier,
) -> Result<Identity, OpenError> {
    let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(path));
    let wrong = |found: String| OpenError::WrongFile {
        path: path.to_owned(),
        expected: tier.to_string(),
        found,
    };
    check_sqlite(conn, path).await?;
    let row = sqlx::query(
        "SELECT (SELECT user_version FROM pragma_user_version),
                (SELECT application_id FROM pragma_application_id),
                (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(&mut *conn)
    .await
    .map_err(named)?;
    let (version, application, objects): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    if version == 0 && application == 0 && objects == 0 {
        return Ok(Identity { version: 0 });
    }
    if application != application_id(tier) {
        return Err(wrong(format!("its application id is {application:#010x}")));
    }
    if version > known_version(tier) {
        // A courtesy: a later schema may keep this elsewhere.
        let writer =
            sqlx::query_scalar("SELECT app_version FROM schema_meta WHERE meta_key = 'primary'")
                .fetch_optional(&mut *conn)
                .await;
        return Err(OpenError::TooNew {
            path: path.to_owned(),
            found: version,
            known: known_version(tier),
            writer: writer.ok().flatten(),
        });
    }
    check_tables(conn, path, tier, version).await?;
    let (role, agent): (String, Option<String>) =
        sqlx::query_as("SELECT role, agent_id FROM schema_meta WHERE meta_key = 'primary'")
            .fetch_optional(conn)
            .await
            .map_err(named)?
            .ok_or_else(|| wrong("it does not say whose it is".to_owned()))?;
    if role != tier.role() || agent.as_deref() != tier.agent_id().map(|id| id.as_str()) {
        return Err(wrong(format!(
            "it says {role} {}",
            agent.unwrap_or_default()
        )));
    }
    Ok(Identity { version })
}

/// Proves that all tables are there that the file's own version promises.
async fn check_tables(
    conn: &mut SqliteConnection,
    path: &Path,
    tier: &Tier,
    version: i64,
) -> Result<(), OpenError> {
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT name FROM sqlite_schema WHERE type = 'table'")
            .fetch_all(conn)
            .await
            .map_err(|error| DbError::from(error).at(path))?;
    for table in tables_of(tier, version) {
        if !tables.iter().any(|name| name == table) {
            return Err(OpenError::MissingTable {
                path: path.to_owned(),
                table: table.to_owned(),
                version,
            });
        }
    }
    Ok(())
}

/// Asks the library that runs, not the one compiled against: a host program may link another.
pub(super) async fn check_sqlite(
    conn: &mut SqliteConnection,
    path: &Path,
) -> Result<(), OpenError> {
    let found: String = sqlx::query_scalar("SELECT sqlite_version()")
        .fetch_one(conn)
        .await
        .map_err(|error| DbError::from(error).at(path))?;
    if is_old(&found) {
        return Err(OpenError::OldSqlite { found });
    }
    Ok(())
}

/// Whether a version is below the floor; one that cannot be read is.
fn is_old(version: &str) -> bool {
    let parts: Vec<u32> = version.split('.').filter_map(|p| p.parse().ok()).collect();
    parts[..] < SQLITE_FLOOR[..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_below_the_floor_is_old() {
        for old in ["3.51.2", "3.50.9", "2.99.99", "3.51", "", "x"] {
            assert!(is_old(old), "{old}");
        }
        for new in ["3.51.3", "3.51.10", "3.52.0", "4.0.0", "3.51.3.1"] {
            assert!(!is_old(new), "{new}");
        }
    }
}
