//! Leases of one agent's things: `state_leases`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::store::StoreError;

/// Who holds what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Kind of thing held.
    pub scope: String,
    /// The thing.
    pub lease_key: String,
    /// The holder, for people.
    pub owner: String,
    /// The holder, for programs: JSON text.
    pub payload_json: String,
    /// When somebody asked the holder to stop.
    pub cancel_requested_at_ms: Option<i64>,
    /// When the holder last said that it lives.
    pub heartbeat_at_ms: i64,
    /// Since when.
    pub created_at_ms: i64,
}

fn read(row: &SqliteRow) -> Result<Lease, StoreError> {
    Ok(Lease {
        scope: row.try_get("scope")?,
        lease_key: row.try_get("lease_key")?,
        owner: row.try_get("owner")?,
        payload_json: row.try_get("payload_json")?,
        cancel_requested_at_ms: row.try_get("cancel_requested_at_ms")?,
        heartbeat_at_ms: row.try_get("heartbeat_at_ms")?,
        created_at_ms: row.try_get("created_at_ms")?,
    })
}

/// Takes a lease that nobody holds; says whether it did.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn take(tx: &mut WriteTx<'_>, lease: &Lease) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO state_leases
             (scope, lease_key, owner, payload_json, cancel_requested_at_ms, heartbeat_at_ms, created_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT DO NOTHING",
    )
    .bind(&lease.scope)
    .bind(&lease.lease_key)
    .bind(&lease.owner)
    .bind(&lease.payload_json)
    .bind(lease.cancel_requested_at_ms)
    .bind(lease.heartbeat_at_ms)
    .bind(lease.created_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Ends a lease of this very holder; says whether it was still held.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn release(
    tx: &mut WriteTx<'_>,
    scope: &str,
    key: &str,
    payload_json: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "DELETE FROM state_leases WHERE scope = ?1 AND lease_key = ?2 AND payload_json = ?3",
    )
    .bind(scope)
    .bind(key)
    .bind(payload_json)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Notes that this very holder lives; says whether it still holds.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn beat(
    tx: &mut WriteTx<'_>,
    scope: &str,
    key: &str,
    payload_json: &str,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE state_leases SET heartbeat_at_ms = max(heartbeat_at_ms, ?4)
         WHERE scope = ?1 AND lease_key = ?2 AND payload_json = ?3",
    )
    .bind(scope)
    .bind(key)
    .bind(payload_json)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Asks whoever holds a lease to stop; says whether anybody does.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn request_cancel(
    tx: &mut WriteTx<'_>,
    scope: &str,
    key: &str,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE state_leases SET cancel_requested_at_ms = ifnull(cancel_requested_at_ms, ?3)
         WHERE scope = ?1 AND lease_key = ?2",
    )
    .bind(scope)
    .bind(key)
    .bind(at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Who holds a thing.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn get(
    conn: &mut SqliteConnection,
    scope: &str,
    key: &str,
) -> Result<Option<Lease>, StoreError> {
    let row = sqlx::query("SELECT * FROM state_leases WHERE scope = ?1 AND lease_key = ?2")
        .bind(scope)
        .bind(key)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// All leases of a kind.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(conn: &mut SqliteConnection, scope: &str) -> Result<Vec<Lease>, StoreError> {
    let rows = sqlx::query("SELECT * FROM state_leases WHERE scope = ?1 ORDER BY lease_key")
        .bind(scope)
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}
