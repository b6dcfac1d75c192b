//! The statements of tables that are known by a key alone, run against the schema as it is.

use zeroclaw::model::{Tier, TokenStatus};
use zeroclaw::store::global::device;

use super::statements::filled;
use crate::support::sqlite::block_on;

#[test]
fn of_devices() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let devices = device::list(&mut tx).await.unwrap();
        let ids: Vec<_> = devices.iter().map(|it| it.device_id.as_str()).collect();
        assert_eq!(ids, ["device-1", "device-1", "device-3", "device-2"]);
        let tokens: Vec<_> = devices.iter().map(|it| it.token).collect();
        let mut again = device::get_many(&mut tx, &tokens).await.unwrap();
        again.sort_by_key(|it| tokens.iter().position(|token| *token == it.token));
        assert_eq!(again, devices);

        // Described at last: the device that only its token was known of goes.
        let mut found = devices[3].clone();
        found.device_id = "device-4".to_owned();
        found.device_type = Some("phone".to_owned());
        found.status = TokenStatus::Active;
        found.status_reason = None;
        device::update(&mut tx, &found).await.unwrap();
        let stored = device::get_many(&mut tx, &[found.token]).await.unwrap();
        assert_eq!(stored, [found]);
        let of_tablet = device::revoke(&mut tx, "device-1", "lost", 7).await;
        assert_eq!(of_tablet.unwrap(), 1);
        assert_eq!(
            device::revoke(&mut tx, "device-1", "lost", 8)
                .await
                .unwrap(),
            0
        );
        assert!(device::insert(&mut tx, &devices[..1]).await.is_err());
    });
}
