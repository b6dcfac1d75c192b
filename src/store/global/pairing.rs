//! Codes and requests by which devices come to be paired: `device_bootstrap_tokens`, `device_pairing_requests`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{PairingRequest, PairingStatus, TokenHash};
use crate::store::StoreError;
use crate::store::row::decoded;

const REQUESTS: &str = "device_pairing_requests";

/// Tables of this concept came with this version of the control plane.
pub const SINCE_SCHEMA: i64 = 21;

/// Stores a new code.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_code(
    tx: &mut WriteTx<'_>,
    code: TokenHash,
    name: Option<&str>,
    issued_at_ms: i64,
    expires_at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO device_bootstrap_tokens (token_key, display_name, issued_at_ms, expires_at_ms)
         VALUES (?1, ?2, ?3, ?4)",
    )
    .bind(code.to_hex())
    .bind(name)
    .bind(issued_at_ms)
    .bind(expires_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// How many codes are open.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn open_codes(tx: &mut WriteTx<'_>, now_ms: i64) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM device_bootstrap_tokens WHERE expires_at_ms > ?1 AND closed_at_ms IS NULL",
    )
    .bind(now_ms)
    .fetch_one(&mut **tx)
    .await?)
}

/// Uses an open code for a device; `None` when there is none of that digest, else the name it was given.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn use_code(
    tx: &mut WriteTx<'_>,
    code: TokenHash,
    device_id: &str,
    now_ms: i64,
) -> Result<Option<Option<String>>, StoreError> {
    let used = sqlx::query_scalar(
        "UPDATE device_bootstrap_tokens SET closed_at_ms = ?2, device_id = ?3
         WHERE token_key = ?1 AND expires_at_ms > ?2 AND closed_at_ms IS NULL RETURNING display_name",
    )
    .bind(code.to_hex())
    .bind(now_ms)
    .bind(device_id)
    .fetch_optional(&mut **tx)
    .await?;
    Ok(used)
}

/// Counts a wrong code against all that are open, and voids those that had `most`; gives how many are open then.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count_wrong_code(
    tx: &mut WriteTx<'_>,
    most: i64,
    now_ms: i64,
) -> Result<i64, StoreError> {
    sqlx::query(
        "UPDATE device_bootstrap_tokens
         SET failed_attempts = failed_attempts + 1, closed_at_ms = iif(failed_attempts + 1 >= ?2, ?1, NULL)
         WHERE expires_at_ms > ?1 AND closed_at_ms IS NULL",
    )
    .bind(now_ms)
    .bind(most)
    .execute(&mut **tx)
    .await?;
    open_codes(tx, now_ms).await
}

fn read(row: &SqliteRow) -> Result<PairingRequest, StoreError> {
    let request_id: String = row.try_get("request_id")?;
    let status: String = row.try_get("status")?;
    Ok(PairingRequest {
        status: decoded(
            PairingStatus::parse,
            &status,
            REQUESTS,
            "status",
            &request_id,
        )?,
        display_name: row.try_get("display_name")?,
        device_type: row.try_get("device_type")?,
        remote_ip: row.try_get("remote_ip")?,
        created_at_ms: row.try_get("created_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        decided_at_ms: row.try_get("decided_at_ms")?,
        device_id: row.try_get("device_id")?,
        request_id,
    })
}

/// Stores a new request that waits.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or its id is taken.
pub async fn insert_request(
    tx: &mut WriteTx<'_>,
    request: &PairingRequest,
    secret: TokenHash,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO device_pairing_requests
             (request_id, secret_sha256, display_name, device_type, remote_ip, status, created_at_ms, expires_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?7)",
    )
    .bind(&request.request_id)
    .bind(secret.to_hex())
    .bind(&request.display_name)
    .bind(&request.device_type)
    .bind(&request.remote_ip)
    .bind(request.created_at_ms)
    .bind(request.expires_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// How many requests wait for a decision.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn waiting(tx: &mut WriteTx<'_>, now_ms: i64) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM device_pairing_requests WHERE status = 'pending' AND expires_at_ms > ?1",
    )
    .bind(now_ms)
    .fetch_one(&mut **tx)
    .await?)
}

/// Requests, newest first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list(conn: &mut SqliteConnection) -> Result<Vec<PairingRequest>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM device_pairing_requests ORDER BY created_at_ms DESC, request_id DESC",
    )
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}

/// One request with the digest of its secret.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    request_id: &str,
) -> Result<Option<(PairingRequest, TokenHash)>, StoreError> {
    let row = sqlx::query("SELECT * FROM device_pairing_requests WHERE request_id = ?1")
        .bind(request_id)
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let secret: String = row.try_get("secret_sha256")?;
    let secret = decoded(
        TokenHash::parse,
        &secret,
        REQUESTS,
        "secret_sha256",
        request_id,
    )?;
    Ok(Some((read(&row)?, secret)))
}

/// Moves a request on, if it still stands as `from` and its time is not over.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn move_on(
    tx: &mut WriteTx<'_>,
    request_id: &str,
    from: PairingStatus,
    to: PairingStatus,
    device_id: Option<&str>,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE device_pairing_requests
         SET status = ?3, decided_at_ms = ifnull(decided_at_ms, ?5), device_id = ?4
         WHERE request_id = ?1 AND status = ?2 AND expires_at_ms > ?5",
    )
    .bind(request_id)
    .bind(from.as_str())
    .bind(to.as_str())
    .bind(device_id)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes codes and requests that were over before a time; gives how many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn sweep(tx: &mut WriteTx<'_>, before_ms: i64) -> Result<u64, StoreError> {
    let mut gone = 0;
    for sql in [
        "DELETE FROM device_bootstrap_tokens WHERE expires_at_ms < ?1",
        "DELETE FROM device_pairing_requests WHERE expires_at_ms < ?1",
    ] {
        let done = sqlx::query(sql).bind(before_ms).execute(&mut **tx).await?;
        gone += done.rows_affected();
    }
    Ok(gone)
}
