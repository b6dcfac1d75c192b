//! Who may write to agents through channels. Nobody may whom the owner has not let in.

use super::append::{check_name, invalid};
use super::error::InDb;
use super::{Service, ServiceError};
use crate::model::{
    ChannelAllowEntry, ChannelPairingRequest, ChannelPeer, ChannelStanding, pairing_code,
};
use crate::store::global::channel_pairing;

/// How long a stranger's request waits for the owner.
const REQUEST_LIFE_MS: i64 = 60 * 60 * 1_000;
/// Strangers who wait at once in one account of a channel; the next hears nothing.
const MAX_WAITING: i64 = 32;
/// Goes at a code that nobody has.
const MAX_GOES: usize = 8;

impl Service {
    /// What a channel does with somebody who writes: a stranger is given a code to show to the owner.
    ///
    /// A stranger who writes again within an hour has the same code.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for names that nobody has.
    pub async fn channel_standing(
        &self,
        peer: ChannelPeer,
        meta_json: Option<String>,
    ) -> Result<ChannelStanding, ServiceError> {
        check_peer(&peer)?;
        if let Some(meta) = &meta_json
            && serde_json::from_str::<serde::de::IgnoredAny>(meta).is_err()
        {
            return Err(invalid("meta_json", "is no JSON"));
        }
        let mut conn = self.global().read().await?;
        let is_allowed = channel_pairing::is_allowed(&mut conn, &peer).await;
        drop(conn);
        if is_allowed.in_db(self.global())? {
            return Ok(ChannelStanding::Allowed);
        }
        let now_ms = self.clock().now_ms();
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    if channel_pairing::is_allowed(tx, &peer).await? {
                        return Ok(ChannelStanding::Allowed);
                    }
                    if let Some(asked) = channel_pairing::seen(tx, &peer, now_ms).await? {
                        return Ok(ChannelStanding::Asked(asked));
                    }
                    channel_pairing::sweep(tx, now_ms).await?;
                    let waiting =
                        channel_pairing::waiting(tx, &peer.channel, &peer.account_id).await?;
                    if waiting >= MAX_WAITING {
                        return Ok(ChannelStanding::Refused);
                    }
                    for _ in 0..MAX_GOES {
                        let request = ChannelPairingRequest {
                            peer: peer.clone(),
                            code: new_code(),
                            created_at_ms: now_ms,
                            last_seen_at_ms: now_ms,
                            expires_at_ms: now_ms + REQUEST_LIFE_MS,
                            meta_json: meta_json.clone(),
                        };
                        if channel_pairing::insert_request(tx, &request).await? {
                            return Ok(ChannelStanding::Asked(request));
                        }
                    }
                    Ok(ChannelStanding::Refused)
                })
            })
            .await
    }

    /// Strangers who wait for the owner's word, oldest first.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn list_channel_requests(
        &self,
        channel: Option<&str>,
    ) -> Result<Vec<ChannelPairingRequest>, ServiceError> {
        if self.global().version() < channel_pairing::SINCE_SCHEMA {
            return Ok(Vec::new());
        }
        let now_ms = self.clock().now_ms();
        let mut conn = self.global().read().await?;
        channel_pairing::list_requests(&mut conn, channel, now_ms)
            .await
            .in_db(self.global())
    }

    /// Those who may write.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn list_allowed(
        &self,
        channel: Option<&str>,
    ) -> Result<Vec<ChannelAllowEntry>, ServiceError> {
        if self.global().version() < channel_pairing::SINCE_SCHEMA {
            return Ok(Vec::new());
        }
        let mut conn = self.global().read().await?;
        channel_pairing::list_allowed(&mut conn, channel)
            .await
            .in_db(self.global())
    }

    /// Lets a stranger in by their code, or turns them away; gives what they had asked.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when no open request has the code.
    pub async fn decide_channel_request(
        &self,
        channel: &str,
        code: &str,
        is_approved: bool,
    ) -> Result<ChannelPairingRequest, ServiceError> {
        let (channel, code) = (channel.to_owned(), code.trim().to_ascii_uppercase());
        let now_ms = self.clock().now_ms();
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    let found = channel_pairing::take_by_code(tx, &channel, &code, now_ms).await?;
                    let request = found.ok_or(ServiceError::NotFound {
                        what: "request with code",
                        name: code,
                    })?;
                    if is_approved {
                        channel_pairing::allow(tx, &request.peer, now_ms).await?;
                    }
                    Ok(request)
                })
            })
            .await
    }

    /// Lets somebody in without their asking; says whether they were not in yet.
    ///
    /// # Errors
    ///
    /// [`ServiceError::Invalid`] for names that nobody has, and for a wildcard.
    pub async fn allow_on_channel(&self, peer: ChannelPeer) -> Result<bool, ServiceError> {
        check_peer(&peer)?;
        let now_ms = self.clock().now_ms();
        self.global()
            .write(move |tx| {
                Box::pin(async move { Ok(channel_pairing::allow(tx, &peer, now_ms).await?) })
            })
            .await
    }

    /// Shuts somebody out.
    ///
    /// # Errors
    ///
    /// [`ServiceError::NotFound`] when they were not in.
    pub async fn shut_out_of_channel(&self, peer: ChannelPeer) -> Result<(), ServiceError> {
        self.global()
            .write(move |tx| {
                Box::pin(async move {
                    if channel_pairing::disallow(tx, &peer).await? {
                        return Ok(());
                    }
                    Err(ServiceError::NotFound {
                        what: "allowed peer",
                        name: peer.peer_id,
                    })
                })
            })
            .await
    }
}

fn check_peer(peer: &ChannelPeer) -> Result<(), ServiceError> {
    check_name("channel", &peer.channel)?;
    check_name("account", &peer.account_id)?;
    check_name("peer", &peer.peer_id)?;
    match peer.peer_id.trim() {
        "*" | "" => Err(invalid("peer", "names nobody; everybody is never let in")),
        _ => Ok(()),
    }
}

fn new_code() -> String {
    let mut random = [0; 5];
    random.copy_from_slice(&uuid::Uuid::new_v4().as_bytes()[..5]);
    pairing_code(random).expose().replace('-', "")
}
