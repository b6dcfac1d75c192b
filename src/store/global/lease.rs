//! Leases of the control plane: `state_leases`.
//!
//! A lease names its holder twice: in words, and as a process of which others can tell whether it lives. Whether a holder
//! still counts is not for rows to say: [`acquire`] asks its caller. Each holder gets a fencing token that is higher than
//! all given before, whatever was released meanwhile, so that who lost a lease without knowing is found out by the number.

use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::ProcessIdentity;
use crate::store::StoreError;

/// Scope of the one row that is no lease: the last fencing token given.
const FENCING: &str = "fencing";

/// Who holds what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Kind of thing held.
    pub scope: String,
    /// The thing.
    pub lease_key: String,
    /// The holder, for people.
    pub owner: String,
    /// The holder's process; `None` where it did not say.
    pub process: Option<ProcessIdentity>,
    /// When it lapses, where nobody can tell whether the holder lives; `None` for never.
    pub expires_at_ms: Option<i64>,
    /// When the holder last said that it lives.
    pub heartbeat_at_ms: Option<i64>,
    /// JSON text: what the holder keeps beside it.
    pub payload_json: Option<String>,
    /// Higher than that of every holder before; 0 for one that asked for none.
    pub fencing_token: i64,
    /// Since when.
    pub created_at_ms: i64,
}

fn read(row: &SqliteRow) -> Result<Lease, StoreError> {
    let pid: Option<i64> = row.try_get("owner_pid")?;
    let start: Option<String> = row.try_get("owner_start_identity")?;
    let boot: Option<String> = row.try_get("owner_boot_id")?;
    Ok(Lease {
        scope: row.try_get("scope")?,
        lease_key: row.try_get("lease_key")?,
        owner: row.try_get("owner")?,
        process: pid
            .and_then(|pid| ProcessIdentity::from_columns(pid, start.as_deref(), boot.as_deref())),
        expires_at_ms: row.try_get("expires_at_ms")?,
        heartbeat_at_ms: row.try_get("heartbeat_at_ms")?,
        payload_json: row.try_get("payload_json")?,
        fencing_token: row.try_get("fencing_token")?,
        created_at_ms: row.try_get("created_at_ms")?,
    })
}

/// Takes a lease unless a holder that counts has it; gives it with its new fencing token, or who has it.
///
/// * `lease`: what is wanted; its fencing token is not looked at, its start is its first heartbeat.
/// * `is_void`: whether the holder that is found counts no more.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn acquire(
    tx: &mut WriteTx<'_>,
    lease: &Lease,
    is_void: impl FnOnce(&Lease) -> bool + Send,
) -> Result<Result<Lease, Lease>, StoreError> {
    if let Some(held) = get(tx, &lease.scope, &lease.lease_key).await?
        && !is_void(&held)
    {
        return Ok(Err(held));
    }
    let taken = Lease {
        fencing_token: next_token(tx, lease.created_at_ms).await?,
        heartbeat_at_ms: Some(lease.created_at_ms),
        ..lease.clone()
    };
    replace(tx, &taken).await?;
    Ok(Ok(taken))
}

/// A token higher than all before. Restores may bring an older last one back: then the time is higher.
async fn next_token(tx: &mut WriteTx<'_>, now_ms: i64) -> Result<i64, StoreError> {
    let token = sqlx::query_scalar(
        "INSERT INTO state_leases (scope, lease_key, owner, created_at_ms, updated_at_ms, fencing_token)
         VALUES (?1, 'last', '', ?2, ?2, max(?2, 1))
         ON CONFLICT (scope, lease_key) DO UPDATE SET
             fencing_token = max(fencing_token + 1, excluded.fencing_token),
             updated_at_ms = excluded.updated_at_ms
         RETURNING fencing_token",
    );
    Ok(token
        .bind(FENCING)
        .bind(now_ms)
        .fetch_one(&mut **tx)
        .await?)
}

/// Takes a lease whose former holder is proven gone, because the caller holds the root's lock.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn replace(tx: &mut WriteTx<'_>, lease: &Lease) -> Result<(), StoreError> {
    let process = lease.process.as_ref();
    sqlx::query(
        "INSERT INTO state_leases
             (scope, lease_key, owner, expires_at_ms, heartbeat_at_ms, payload_json, created_at_ms, updated_at_ms,
              owner_pid, owner_start_identity, owner_boot_id, fencing_token)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (scope, lease_key) DO UPDATE SET
             owner = excluded.owner,
             expires_at_ms = excluded.expires_at_ms,
             heartbeat_at_ms = excluded.heartbeat_at_ms,
             payload_json = excluded.payload_json,
             created_at_ms = excluded.created_at_ms,
             updated_at_ms = excluded.updated_at_ms,
             owner_pid = excluded.owner_pid,
             owner_start_identity = excluded.owner_start_identity,
             owner_boot_id = excluded.owner_boot_id,
             fencing_token = excluded.fencing_token",
    )
    .bind(&lease.scope)
    .bind(&lease.lease_key)
    .bind(&lease.owner)
    .bind(lease.expires_at_ms)
    .bind(lease.heartbeat_at_ms)
    .bind(&lease.payload_json)
    .bind(lease.created_at_ms)
    .bind(process.map(ProcessIdentity::pid_column))
    .bind(process.and_then(ProcessIdentity::start_column))
    .bind(process.and_then(|process| process.boot_id.clone()))
    .bind(lease.fencing_token)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Notes that the holder of this token lives, and how long it may be silent; says whether it still holds.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn beat(
    tx: &mut WriteTx<'_>,
    lease: &Lease,
    at_ms: i64,
    expires_at_ms: Option<i64>,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE state_leases SET heartbeat_at_ms = ?4, expires_at_ms = ?5, updated_at_ms = ?4
         WHERE scope = ?1 AND lease_key = ?2 AND fencing_token = ?3",
    )
    .bind(&lease.scope)
    .bind(&lease.lease_key)
    .bind(lease.fencing_token)
    .bind(at_ms)
    .bind(expires_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Whether the holder of this token still holds: asked within the transaction that writes what the lease guards.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn is_current(conn: &mut SqliteConnection, lease: &Lease) -> Result<bool, StoreError> {
    let found = get(conn, &lease.scope, &lease.lease_key).await?;
    Ok(found.is_some_and(|found| found.fencing_token == lease.fencing_token))
}

/// Gives a lease back, if it is still that of this token. Says whether it was.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn give_back(tx: &mut WriteTx<'_>, lease: &Lease) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "DELETE FROM state_leases WHERE scope = ?1 AND lease_key = ?2 AND fencing_token = ?3",
    );
    let done = done
        .bind(&lease.scope)
        .bind(&lease.lease_key)
        .bind(lease.fencing_token)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Gives a lease back by the name of its holder; another holder's stays. Says whether there was one.
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

/// Who holds a thing, whether or not that counts.
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

/// All leases, oldest first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list(conn: &mut SqliteConnection) -> Result<Vec<Lease>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM state_leases WHERE scope <> ?1 ORDER BY created_at_ms, scope, lease_key",
    );
    let rows = rows.bind(FENCING).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}
