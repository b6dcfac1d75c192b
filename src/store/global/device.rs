//! Paired devices: `device_identities` and `device_auth_tokens`.

use sea_query::{Expr, ExprTrait, Iden, Order, Query, SelectStatement};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::{WriteTx, bound};
use crate::model::{PairedDevice, TokenHash, TokenStatus};
use crate::store::StoreError;
use crate::store::row::decoded;

#[derive(Iden)]
enum DeviceIdentities {
    Table,
    DeviceId,
    DisplayName,
    DeviceType,
    RemoteIp,
    CapabilitiesJson,
    PairedAtMs,
    LastSeenAtMs,
}

#[derive(Iden)]
enum DeviceAuthTokens {
    Table,
    TokenSha256,
    DeviceId,
    Status,
    StatusReason,
    RevokedAtMs,
}

fn read(row: &SqliteRow) -> Result<PairedDevice, StoreError> {
    let device_id: String = row.try_get("device_id")?;
    let token: String = row.try_get("token_sha256")?;
    let status: String = row.try_get("status")?;
    let of = |column, text: &str| {
        decoded(
            TokenStatus::parse,
            text,
            "device_auth_tokens",
            column,
            &device_id,
        )
    };
    Ok(PairedDevice {
        display_name: row.try_get("display_name")?,
        device_type: row.try_get("device_type")?,
        remote_ip: row.try_get("remote_ip")?,
        capabilities_json: row.try_get("capabilities_json")?,
        paired_at_ms: row.try_get("paired_at_ms")?,
        last_seen_at_ms: row.try_get("last_seen_at_ms")?,
        // A digest is not shown, not even one that cannot be read.
        token: TokenHash::parse(&token).ok_or_else(|| StoreError::Corrupt {
            table: "device_auth_tokens",
            column: "token_sha256",
            row: device_id.clone(),
            found: String::new(),
        })?,
        status: of("status", &status)?,
        status_reason: row.try_get("status_reason")?,
        revoked_at_ms: row.try_get("revoked_at_ms")?,
        device_id,
    })
}

/// Tokens with their devices, those never seen last.
fn select() -> SelectStatement {
    let of_token = || (DeviceAuthTokens::Table, DeviceAuthTokens::DeviceId);
    let of_device = (DeviceIdentities::Table, DeviceIdentities::DeviceId);
    Query::select()
        .column(of_token())
        .columns([
            DeviceAuthTokens::TokenSha256,
            DeviceAuthTokens::Status,
            DeviceAuthTokens::StatusReason,
            DeviceAuthTokens::RevokedAtMs,
        ])
        .columns([
            DeviceIdentities::DisplayName,
            DeviceIdentities::DeviceType,
            DeviceIdentities::RemoteIp,
            DeviceIdentities::CapabilitiesJson,
            DeviceIdentities::PairedAtMs,
            DeviceIdentities::LastSeenAtMs,
        ])
        .from(DeviceAuthTokens::Table)
        .left_join(
            DeviceIdentities::Table,
            Expr::col(of_device).equals(of_token()),
        )
        .order_by(DeviceIdentities::LastSeenAtMs, Order::Desc)
        .order_by(DeviceAuthTokens::TokenSha256, Order::Asc)
        .take()
}

/// All tokens with their devices, last seen first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list(conn: &mut SqliteConnection) -> Result<Vec<PairedDevice>, StoreError> {
    let rows = bound(&select()).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Those of these digests, in no order; unknown ones are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get_many(
    conn: &mut SqliteConnection,
    tokens: &[TokenHash],
) -> Result<Vec<PairedDevice>, StoreError> {
    let mut select = select();
    let hex = tokens.iter().map(|token| token.to_hex());
    select.and_where(Expr::col(DeviceAuthTokens::TokenSha256).is_in(hex));
    let rows = bound(&select).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Inserts tokens that are new, with their devices. A device that is there is described anew if it was seen since.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or a token is there already.
pub async fn insert(tx: &mut WriteTx<'_>, devices: &[PairedDevice]) -> Result<(), StoreError> {
    for device in devices {
        upsert_identity(tx, device).await?;
        sqlx::query(
            "INSERT INTO device_auth_tokens (token_sha256, device_id, status, status_reason, revoked_at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .bind(device.token.to_hex())
        .bind(&device.device_id)
        .bind(device.status.as_str())
        .bind(&device.status_reason)
        .bind(device.revoked_at_ms)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Writes a token that is there and its device anew; a device that no token names any longer goes.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn update(tx: &mut WriteTx<'_>, device: &PairedDevice) -> Result<(), StoreError> {
    upsert_identity(tx, device).await?;
    sqlx::query(
        "UPDATE device_auth_tokens SET device_id = ?2, status = ?3, status_reason = ?4, revoked_at_ms = ?5
         WHERE token_sha256 = ?1",
    )
    .bind(device.token.to_hex())
    .bind(&device.device_id)
    .bind(device.status.as_str())
    .bind(&device.status_reason)
    .bind(device.revoked_at_ms)
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "DELETE FROM device_identities WHERE device_type = ?1
         AND NOT EXISTS (SELECT 1 FROM device_auth_tokens t WHERE t.device_id = device_identities.device_id)",
    )
    .bind(PairedDevice::LEGACY)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

async fn upsert_identity(tx: &mut WriteTx<'_>, device: &PairedDevice) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO device_identities
             (device_id, display_name, device_type, remote_ip, capabilities_json, paired_at_ms, last_seen_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT (device_id) DO UPDATE SET
             display_name = excluded.display_name, device_type = excluded.device_type,
             remote_ip = excluded.remote_ip, capabilities_json = excluded.capabilities_json,
             paired_at_ms = excluded.paired_at_ms, last_seen_at_ms = excluded.last_seen_at_ms
         WHERE excluded.last_seen_at_ms > ifnull(device_identities.last_seen_at_ms, -9223372036854775808)",
    )
    .bind(&device.device_id)
    .bind(&device.display_name)
    .bind(&device.device_type)
    .bind(&device.remote_ip)
    .bind(&device.capabilities_json)
    .bind(device.paired_at_ms)
    .bind(device.last_seen_at_ms)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Takes back every active or unverified token of a device; gives how many it were.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn revoke(
    tx: &mut WriteTx<'_>,
    device_id: &str,
    reason: &str,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "UPDATE device_auth_tokens SET status = 'revoked', status_reason = ?2, revoked_at_ms = ?3
         WHERE device_id = ?1 AND status <> 'revoked'",
    )
    .bind(device_id)
    .bind(reason)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}
