//! Paired devices, known by their tokens.

use zeroclaw::model::{PairedDevice, TokenHash, TokenStatus};
use zeroclaw::service::{Connection, WriteTx};
use zeroclaw::store::StoreError;
use zeroclaw::store::global::device;

use super::ImportRow;
use crate::doctor::record::kind;

/// What a device is called and where it came from, without whether it opens.
fn description(device: &PairedDevice) -> PairedDevice {
    PairedDevice {
        status: TokenStatus::Active,
        status_reason: None,
        revoked_at_ms: None,
        ..device.clone()
    }
}

/// Whether `read` describes the device better: it was seen since, or nothing was known of it.
fn tells_more(stored: &PairedDevice, read: &PairedDevice) -> bool {
    !read.is_bare() && (stored.is_bare() || read.last_seen_at_ms > stored.last_seen_at_ms)
}

/// What nobody could tell before may be told now; what is active or revoked stays so.
fn decides(stored: &PairedDevice, read: &PairedDevice) -> bool {
    stored.status == TokenStatus::Unverified && read.status != TokenStatus::Unverified
}

impl ImportRow for PairedDevice {
    fn kind(&self) -> &'static str {
        kind::DEVICE
    }

    fn key(&self) -> String {
        self.token.to_hex()
    }

    async fn find(conn: &mut Connection, keys: &[&str]) -> Result<Vec<Self>, StoreError> {
        let tokens: Vec<TokenHash> = keys.iter().copied().filter_map(TokenHash::parse).collect();
        device::get_many(conn, &tokens).await
    }

    async fn insert(tx: &mut WriteTx<'_>, rows: &[Self]) -> Result<(), StoreError> {
        device::insert(tx, rows).await
    }

    async fn update(tx: &mut WriteTx<'_>, row: &Self) -> Result<(), StoreError> {
        device::update(tx, row).await
    }

    fn is_same(stored: &Self, read: &Self) -> bool {
        // A token alone says nothing that a described device contradicts.
        let is_described = read.is_bare() || description(stored) == description(read);
        is_described && stored.status == read.status
    }

    fn settled(stored: &Self, read: &Self) -> Option<Self> {
        let mut both = stored.clone();
        if tells_more(stored, read) {
            both = Self {
                status: stored.status,
                status_reason: stored.status_reason.clone(),
                revoked_at_ms: stored.revoked_at_ms,
                ..read.clone()
            };
        }
        if decides(stored, read) {
            both.status = read.status;
            both.status_reason.clone_from(&read.status_reason);
        }
        (both != *stored).then_some(both)
    }

    fn absorbs(stored: &Self, read: &Self) -> bool {
        let is_described = read.is_bare()
            || description(stored) == description(read)
            || (stored.device_id == read.device_id
                && stored.last_seen_at_ms >= read.last_seen_at_ms);
        let stands = stored.status == read.status || read.status == TokenStatus::Unverified;
        is_described && stands
    }
}
