//! Who may write on a channel, and who asks to: `channel_pairing_requests`, `channel_pairing_allow_entries`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{ChannelAllowEntry, ChannelPairingRequest, ChannelPeer};
use crate::store::StoreError;

/// Tables of this concept came with this version of the control plane.
pub const SINCE_SCHEMA: i64 = 21;

fn read_request(row: &SqliteRow) -> Result<ChannelPairingRequest, StoreError> {
    Ok(ChannelPairingRequest {
        peer: ChannelPeer {
            channel: row.try_get("channel_key")?,
            account_id: row.try_get("account_id")?,
            peer_id: row.try_get("request_id")?,
        },
        code: row.try_get("code")?,
        created_at_ms: row.try_get("created_at_ms")?,
        last_seen_at_ms: row.try_get("last_seen_at_ms")?,
        expires_at_ms: row.try_get("expires_at_ms")?,
        meta_json: row.try_get("meta_json")?,
    })
}

fn read_entry(row: &SqliteRow) -> Result<ChannelAllowEntry, StoreError> {
    Ok(ChannelAllowEntry {
        peer: ChannelPeer {
            channel: row.try_get("channel_key")?,
            account_id: row.try_get("account_id")?,
            peer_id: row.try_get("entry")?,
        },
        sort_order: row.try_get("sort_order")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
    })
}

/// Whether somebody may write.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn is_allowed(
    conn: &mut SqliteConnection,
    peer: &ChannelPeer,
) -> Result<bool, StoreError> {
    let found: Option<i64> = sqlx::query_scalar(
        "SELECT 1 FROM channel_pairing_allow_entries WHERE channel_key = ?1 AND account_id = ?2 AND entry = ?3",
    )
    .bind(&peer.channel)
    .bind(&peer.account_id)
    .bind(&peer.peer_id)
    .fetch_optional(conn)
    .await?;
    Ok(found.is_some())
}

/// Those who may write, by channel and in their order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list_allowed(
    conn: &mut SqliteConnection,
    channel: Option<&str>,
) -> Result<Vec<ChannelAllowEntry>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM channel_pairing_allow_entries WHERE ?1 IS NULL OR channel_key = ?1
         ORDER BY channel_key, account_id, sort_order, entry",
    )
    .bind(channel)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_entry).collect()
}

/// Lets somebody in, at the end of the list; says whether they were not in it.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn allow(
    tx: &mut WriteTx<'_>,
    peer: &ChannelPeer,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO channel_pairing_allow_entries (channel_key, account_id, entry, sort_order, updated_at_ms)
         VALUES (?1, ?2, ?3,
             (SELECT ifnull(max(sort_order) + 1, 0) FROM channel_pairing_allow_entries WHERE channel_key = ?1 AND account_id = ?2),
             ?4)
         ON CONFLICT (channel_key, account_id, entry) DO NOTHING",
    )
    .bind(&peer.channel)
    .bind(&peer.account_id)
    .bind(&peer.peer_id)
    .bind(now_ms)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Shuts somebody out; says whether they were in.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn disallow(tx: &mut WriteTx<'_>, peer: &ChannelPeer) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "DELETE FROM channel_pairing_allow_entries WHERE channel_key = ?1 AND account_id = ?2 AND entry = ?3",
    )
    .bind(&peer.channel)
    .bind(&peer.account_id)
    .bind(&peer.peer_id)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Requests whose time is not over, oldest first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn list_requests(
    conn: &mut SqliteConnection,
    channel: Option<&str>,
    now_ms: i64,
) -> Result<Vec<ChannelPairingRequest>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM channel_pairing_requests WHERE (?1 IS NULL OR channel_key = ?1) AND expires_at_ms > ?2
         ORDER BY created_at_ms, channel_key, request_id",
    )
    .bind(channel)
    .bind(now_ms)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_request).collect()
}

/// Notes that somebody who asked wrote again; `None` when they have no request whose time is not over.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn seen(
    tx: &mut WriteTx<'_>,
    peer: &ChannelPeer,
    now_ms: i64,
) -> Result<Option<ChannelPairingRequest>, StoreError> {
    let row = sqlx::query(
        "UPDATE channel_pairing_requests SET last_seen_at_ms = ?4
         WHERE channel_key = ?1 AND account_id = ?2 AND request_id = ?3 AND expires_at_ms > ?4 RETURNING *",
    )
    .bind(&peer.channel)
    .bind(&peer.account_id)
    .bind(&peer.peer_id)
    .bind(now_ms)
    .fetch_optional(&mut **tx)
    .await?;
    row.as_ref().map(read_request).transpose()
}

/// Stores a new request; says whether its code was free in its channel.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or that somebody has one.
pub async fn insert_request(
    tx: &mut WriteTx<'_>,
    request: &ChannelPairingRequest,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "INSERT INTO channel_pairing_requests
             (channel_key, account_id, request_id, code, created_at_ms, last_seen_at_ms, expires_at_ms, meta_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
         ON CONFLICT (channel_key, code) DO NOTHING",
    )
    .bind(&request.peer.channel)
    .bind(&request.peer.account_id)
    .bind(&request.peer.peer_id)
    .bind(&request.code)
    .bind(request.created_at_ms)
    .bind(request.last_seen_at_ms)
    .bind(request.expires_at_ms)
    .bind(&request.meta_json)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// How many wait in an account of a channel.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn waiting(
    tx: &mut WriteTx<'_>,
    channel: &str,
    account_id: &str,
) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM channel_pairing_requests WHERE channel_key = ?1 AND account_id = ?2",
    )
    .bind(channel)
    .bind(account_id)
    .fetch_one(&mut **tx)
    .await?)
}

/// Takes a request away by its code; gives it if its time is not over.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn take_by_code(
    tx: &mut WriteTx<'_>,
    channel: &str,
    code: &str,
    now_ms: i64,
) -> Result<Option<ChannelPairingRequest>, StoreError> {
    let row = sqlx::query(
        "DELETE FROM channel_pairing_requests WHERE channel_key = ?1 AND code = ?2 AND expires_at_ms > ?3 RETURNING *",
    )
    .bind(channel)
    .bind(code)
    .bind(now_ms)
    .fetch_optional(&mut **tx)
    .await?;
    row.as_ref().map(read_request).transpose()
}

/// Deletes requests whose time is over; gives how many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn sweep(tx: &mut WriteTx<'_>, now_ms: i64) -> Result<u64, StoreError> {
    let done = sqlx::query("DELETE FROM channel_pairing_requests WHERE expires_at_ms <= ?1")
        .bind(now_ms)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected())
}
