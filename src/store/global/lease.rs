//! Leases of the control plane: `state_leases`.

use serde::{Deserialize, Serialize};
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::store::StoreError;

/// Who holds what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Kind of thing held.
    pub scope: String,
    /// The thing.
    pub lease_key: String,
    /// The holder.
    pub owner: String,
    /// When it lapses; `None` for never.
    pub expires_at_ms: Option<i64>,
    /// JSON text: pid, start time and boot id of the holder.
    pub payload_json: Option<String>,
    /// Since when.
    pub created_at_ms: i64,
}

/// Takes a lease whose former holder is proven gone, because the caller holds the root's lock.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn replace(tx: &mut WriteTx<'_>, lease: &Lease) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO state_leases
             (scope, lease_key, owner, expires_at_ms, heartbeat_at_ms, payload_json, created_at_ms, updated_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?5, ?5)
         ON CONFLICT (scope, lease_key) DO UPDATE SET
             owner = excluded.owner,
             expires_at_ms = excluded.expires_at_ms,
             heartbeat_at_ms = excluded.heartbeat_at_ms,
             payload_json = excluded.payload_json,
             created_at_ms = excluded.created_at_ms,
             updated_at_ms = excluded.updated_at_ms",
    )
    .bind(&lease.scope)
    .bind(&lease.lease_key)
    .bind(&lease.owner)
    .bind(lease.expires_at_ms)
    .bind(lease.created_at_ms)
    .bind(&lease.payload_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Gives a lease back; another holder's stays. Says whether there was one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn release(
    tx: &mut WriteTx<'_>,
    scope: &str,
    key: &str,
    owner: &str,
) -> Result<bool, StoreError> {
    let done =
        sqlx::query("DELETE FROM state_leases WHERE scope = ?1 AND lease_key = ?2 AND owner = ?3")
            .bind(scope)
            .bind(key)
            .bind(owner)
            .execute(&mut **tx)
            .await?;
    Ok(done.rows_affected() > 0)
}

/// All leases, oldest first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(conn: &mut SqliteConnection) -> Result<Vec<Lease>, StoreError> {
    let rows = sqlx::query(
        "SELECT scope, lease_key, owner, expires_at_ms, payload_json, created_at_ms
         FROM state_leases ORDER BY created_at_ms, scope, lease_key",
    )
    .fetch_all(conn)
    .await?;
    rows.iter()
        .map(|row| {
            Ok(Lease {
                scope: row.try_get(0)?,
                lease_key: row.try_get(1)?,
                owner: row.try_get(2)?,
                expires_at_ms: row.try_get(3)?,
                payload_json: row.try_get(4)?,
                created_at_ms: row.try_get(5)?,
            })
        })
        .collect()
}
