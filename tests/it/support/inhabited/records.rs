//! Rows that are known by a key alone.

use zeroclaw::db::WriteTx;
use zeroclaw::model::{PairedDevice, TokenHash, TokenStatus};
use zeroclaw::store::global::device;

use super::{HOSTILE, START_MS};

pub(super) async fn fill(tx: &mut WriteTx<'_>) {
    device::insert(tx, &[tablet()]).await.unwrap();
}

fn tablet() -> PairedDevice {
    PairedDevice {
        device_id: "device-1".to_owned(),
        display_name: Some(HOSTILE.to_owned()),
        device_type: Some("tablet".to_owned()),
        remote_ip: Some("192.0.2.10".to_owned()),
        capabilities_json: Some("[\"screen\"]".to_owned()),
        paired_at_ms: Some(START_MS),
        last_seen_at_ms: Some(START_MS),
        token: TokenHash::of("zc_made-up"),
        status: TokenStatus::Active,
        status_reason: None,
        revoked_at_ms: None,
    }
}
