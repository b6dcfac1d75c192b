//! Paired devices: who they are, whether a token still opens, and taking one back.

use serde::{Deserialize, Serialize};

use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{PairedDevice, TokenHash, TokenStatus};
use crate::store::global::device;

/// What became of a device's tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// The device.
    pub device_id: String,
    /// Its tokens that opened, or might have.
    pub revoked: u64,
}

/// Why a token that a person took back does not open.
const REVOKED_HERE: &str = "revoked by hand";

impl Service {
    pub(super) async fn list_devices(&self) -> Result<Vec<PairedDevice>, ServiceError> {
        let mut conn = self.global().read().await?;
        device::list(&mut conn).await.in_db(self.global())
    }

    /// The device whose active token this is; `None` for any other token.
    ///
    /// The token is hashed at once and kept nowhere. The row is found by its digest, which who presents a token cannot
    /// steer, and the digests are compared in constant time.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn verify_device(&self, token: &str) -> Result<Option<PairedDevice>, ServiceError> {
        let presented = TokenHash::of(token);
        let mut conn = self.global().read().await?;
        let found = device::get_many(&mut conn, &[presented])
            .await
            .in_db(self.global())?;
        Ok(found.into_iter().find(|device| {
            device.token.matches(&presented) && device.status == TokenStatus::Active
        }))
    }

    /// Takes back every token of a device; gives how many still opened, or might have.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when no device has that id, [`ServiceError`] when SQLite fails.
    pub async fn revoke_device(&self, device_id: &str) -> Result<u64, ServiceError> {
        let is_known = self.list_devices().await?;
        if !is_known.iter().any(|known| known.device_id == device_id) {
            return Err(ServiceError::NotFound {
                what: "device",
                name: device_id.to_owned(),
            });
        }
        let (device_id, now_ms) = (device_id.to_owned(), self.clock().now_ms());
        self.global()
            .write(move |tx| {
                Box::pin(
                    async move { Ok(device::revoke(tx, &device_id, REVOKED_HERE, now_ms).await?) },
                )
            })
            .await
    }
}
