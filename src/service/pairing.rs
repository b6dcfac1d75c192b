//! Pairing devices: by a one-time code, or by a request that a person approves.
//!
//! Codes, secrets and tokens are told once and kept as digests. Wrong codes count against every open code, so that who
//! guesses has a handful of tries in all, whatever they try and however often they come back. All of it fails closed:
//! what is over, used, denied or unknown opens nothing.

use super::append::{check_name, invalid};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::db::WriteTx;
use crate::model::{
    DeviceIntroduction, DevicePaired, IssuedCode, PairedDevice, PairingAnswer, PairingAsked,
    PairingRequest, PairingStatus, Secret, TokenHash, TokenStatus, code_hash, pairing_code,
};
use crate::store::global::{device, pairing};

/// How long a code opens, unless told otherwise.
const CODE_LIFE_MS: i64 = 10 * 60 * 1_000;
/// How long it opens at most.
const MAX_CODE_LIFE_MS: i64 = 24 * 60 * 60 * 1_000;
/// Wrong codes after which those that are open open no more.
const MAX_WRONG_CODES: i64 = 5;
/// Codes that are open at once: each makes guessing easier.
const MAX_CODES: i64 = 8;
/// How long a request waits to be decided and collected.
const REQUEST_LIFE_MS: i64 = 10 * 60 * 1_000;
/// Requests that wait at once; the next is refused.
const MAX_REQUESTS: i64 = 16;
/// How long codes and requests that are over stay to be seen.
const SEEN_MS: i64 = 24 * 60 * 60 * 1_000;

impl Service {
    /// Makes a code that pairs one device.
    ///
    /// * `name`: what the device shall be called; `None` for what it says.
    /// * `life_ms`: how long it opens, 1 to a day; `None` for ten minutes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for a life out of range, or when there are too many open codes.
    pub async fn issue_pairing_code(
        &self,
        name: Option<String>,
        life_ms: Option<i64>,
    ) -> Result<IssuedCode, ServiceError> {
        let life_ms = life_ms.unwrap_or(CODE_LIFE_MS);
        if !(1..=MAX_CODE_LIFE_MS).contains(&life_ms) {
            return Err(invalid("life of a code", "is 1 ms to 24 hours"));
        }
        if let Some(name) = &name {
            check_name("name of a device", name)?;
        }
        let mut random = [0; 5];
        // All of these are random in a version 4 UUID.
        random.copy_from_slice(&uuid::Uuid::new_v4().as_bytes()[..5]);
        let code = pairing_code(random);
        let hash = code_hash(code.expose());
        let now_ms = self.clock().now_ms();
        let done = self.global().write(move |tx| {
            Box::pin(async move {
                if pairing::open_codes(tx, now_ms).await? >= MAX_CODES {
                    let reason = format!("are {MAX_CODES} already that nobody has used");
                    return Err(invalid("pairing codes", reason));
                }
                pairing::insert_code(tx, hash, name.as_deref(), now_ms, now_ms + life_ms).await?;
                Ok(())
            })
        });
        done.await?;
        Ok(IssuedCode {
            code,
            expires_at_ms: now_ms + life_ms,
            listen: self.config().http.map(|http| http.listen),
        })
    }

    /// Pairs a device that presents a code. A code pairs once.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotPaired`] for a code that is wrong, used, over or voided; nothing tells which.
    pub async fn pair_device(
        &self,
        code: &str,
        who: DeviceIntroduction,
    ) -> Result<DevicePaired, ServiceError> {
        check_introduction(&who)?;
        let (hash, now_ms) = (code_hash(code), self.clock().now_ms());
        let done = self.global().write(move |tx| {
            Box::pin(async move {
                let device_id = new_device_id();
                match pairing::use_code(tx, hash, &device_id, now_ms).await? {
                    Some(name) => {
                        let name = name.or(who.name.clone());
                        let who = DeviceIntroduction { name, ..who };
                        Ok(Some(give_token(tx, device_id, who, now_ms).await?))
                    }
                    // Committed with the refusal: else nothing would be counted.
                    None => {
                        pairing::count_wrong_code(tx, MAX_WRONG_CODES, now_ms).await?;
                        Ok::<_, ServiceError>(None)
                    }
                }
            })
        });
        done.await?.ok_or(ServiceError::NotPaired)
    }

    /// Notes that a device asks to be paired; a person decides.
    ///
    /// # Errors
    ///
    /// [`ServiceError::TooMany`] when too many wait already.
    pub async fn ask_to_pair(&self, who: DeviceIntroduction) -> Result<PairingAsked, ServiceError> {
        check_introduction(&who)?;
        let now_ms = self.clock().now_ms();
        let request = PairingRequest {
            request_id: short_id(),
            display_name: who.name,
            device_type: who.device_type,
            remote_ip: who.remote_ip,
            status: PairingStatus::Pending,
            created_at_ms: now_ms,
            expires_at_ms: now_ms + REQUEST_LIFE_MS,
            decided_at_ms: None,
            device_id: None,
        };
        let secret = random_token("zcr_");
        let asked = PairingAsked {
            request_id: request.request_id.clone(),
            expires_at_ms: request.expires_at_ms,
            secret,
        };
        let hash = TokenHash::of(asked.secret.expose());
        let done = self.global().write(move |tx| {
            Box::pin(async move {
                if pairing::waiting(tx, now_ms).await? >= MAX_REQUESTS {
                    return Err(ServiceError::TooMany {
                        what: "requests to be paired",
                    });
                }
                pairing::insert_request(tx, &request, hash).await?;
                Ok(())
            })
        });
        done.await?;
        Ok(asked)
    }

    /// Requests to be paired, newest first; those that are over stay for a day.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn list_pairing_requests(&self) -> Result<Vec<PairingRequest>, ServiceError> {
        if self.global().version() < pairing::SINCE_SCHEMA {
            return Ok(Vec::new());
        }
        let mut conn = self.global().read().await?;
        pairing::list(&mut conn).await.in_db(self.global())
    }

    /// Says yes or no to a device's request.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] for an unknown request, [`ServiceError::Conflict`] for one that was decided or is over.
    pub async fn decide_pairing(
        &self,
        request_id: &str,
        is_approved: bool,
    ) -> Result<PairingRequest, ServiceError> {
        let (id, now_ms) = (request_id.to_owned(), self.clock().now_ms());
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    let (request, _) = pairing::get(tx, &id)
                        .await?
                        .ok_or_else(|| no_request(&id))?;
                    let to = match is_approved {
                        true => PairingStatus::Approved,
                        false => PairingStatus::Denied,
                    };
                    let from = PairingStatus::Pending;
                    if !pairing::move_on(tx, &id, from, to, None, now_ms).await? {
                        let found = match request.status {
                            PairingStatus::Pending => "over".to_owned(),
                            status => status.to_string(),
                        };
                        return Err(ServiceError::Conflict {
                            what: "request",
                            name: id,
                            expected: "to be pending".to_owned(),
                            found,
                        });
                    }
                    let decided = pairing::get(tx, &id).await?;
                    Ok(decided.ok_or_else(|| no_request(&id))?.0)
                })
            })
            .await
    }

    /// What a device that asked to be paired hears: its token, once, after a person said yes.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotPaired`] when there is no such request, or the secret is not its own.
    pub async fn collect_pairing(
        &self,
        request_id: &str,
        secret: &str,
    ) -> Result<PairingAnswer, ServiceError> {
        let (id, presented) = (request_id.to_owned(), TokenHash::of(secret));
        let now_ms = self.clock().now_ms();
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    let found = pairing::get(tx, &id).await?;
                    let own = found.filter(|(_, secret)| secret.matches(&presented));
                    let (request, _) = own.ok_or(ServiceError::NotPaired)?;
                    match request.status {
                        _ if request.expires_at_ms <= now_ms => Ok(PairingAnswer::Denied),
                        PairingStatus::Pending => Ok(PairingAnswer::Pending),
                        PairingStatus::Denied | PairingStatus::Collected => {
                            Ok(PairingAnswer::Denied)
                        }
                        PairingStatus::Approved => {
                            let device_id = new_device_id();
                            let (from, to) = (PairingStatus::Approved, PairingStatus::Collected);
                            let is_first =
                                pairing::move_on(tx, &id, from, to, Some(&device_id), now_ms);
                            if !is_first.await? {
                                return Ok(PairingAnswer::Denied);
                            }
                            let who = DeviceIntroduction {
                                name: request.display_name,
                                device_type: request.device_type,
                                remote_ip: request.remote_ip,
                            };
                            let paired = give_token(tx, device_id, who, now_ms).await?;
                            Ok(PairingAnswer::Paired(paired))
                        }
                    }
                })
            })
            .await
    }

    /// Forgets codes and requests that have been over for a day; gives how many.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn sweep_pairing(&self) -> Result<u64, ServiceError> {
        let now_ms = self.clock().now_ms();
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    let channels = crate::store::global::channel_pairing::sweep(tx, now_ms).await?;
                    Ok(channels + pairing::sweep(tx, now_ms - SEEN_MS).await?)
                })
            })
            .await
    }
}

async fn give_token(
    tx: &mut WriteTx<'_>,
    device_id: String,
    who: DeviceIntroduction,
    now_ms: i64,
) -> Result<DevicePaired, ServiceError> {
    let token = random_token("zc_");
    let device = PairedDevice {
        device_id: device_id.clone(),
        display_name: who.name,
        device_type: who.device_type,
        remote_ip: who.remote_ip,
        capabilities_json: None,
        paired_at_ms: Some(now_ms),
        last_seen_at_ms: Some(now_ms),
        token: TokenHash::of(token.expose()),
        status: TokenStatus::Active,
        status_reason: None,
        revoked_at_ms: None,
    };
    device::insert(tx, &[device]).await?;
    Ok(DevicePaired { device_id, token })
}

fn check_introduction(who: &DeviceIntroduction) -> Result<(), ServiceError> {
    if let Some(name) = &who.name {
        check_name("name of a device", name)?;
    }
    match &who.device_type {
        Some(kind) if kind == PairedDevice::LEGACY => Err(invalid(
            "type of a device",
            "is taken for devices of before",
        )),
        Some(kind) => check_name("type of a device", kind),
        None => Ok(()),
    }
}

fn new_device_id() -> String {
    format!("device-{}", uuid::Uuid::new_v4().simple())
}

/// Eight hex digits: what a person types. Nothing hangs on nobody guessing it.
fn short_id() -> String {
    let mut id = uuid::Uuid::new_v4().simple().to_string();
    id.truncate(8);
    id
}

/// 244 random bits.
fn random_token(prefix: &str) -> Secret {
    let (a, b) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    Secret::new(format!("{prefix}{}{}", a.simple(), b.simple()))
}

fn no_request(id: &str) -> ServiceError {
    ServiceError::NotFound {
        what: "request",
        name: id.to_owned(),
    }
}
