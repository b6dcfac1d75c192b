//! Who may write to an agent through a channel, and who asks to.

use serde::{Deserialize, Serialize};

/// Somebody on a channel, in its own terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelPeer {
    /// Channel type, for example `telegram`.
    pub channel: String,
    /// Account on that channel, for example `main`.
    pub account_id: String,
    /// Who, in the channel's own terms.
    pub peer_id: String,
}

/// A stranger's request to be let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelPairingRequest {
    /// Who asks.
    #[serde(flatten)]
    pub peer: ChannelPeer,
    /// What they were told to show to the owner. It opens nothing by itself.
    pub code: String,
    /// When they first wrote.
    pub created_at_ms: i64,
    /// When they last wrote.
    pub last_seen_at_ms: i64,
    /// Until when it can be approved.
    pub expires_at_ms: i64,
    /// What the channel knows of them, JSON.
    pub meta_json: Option<String>,
}

/// Somebody who may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelAllowEntry {
    /// Who.
    #[serde(flatten)]
    pub peer: ChannelPeer,
    /// Place in the list of its channel and account.
    pub sort_order: i64,
    /// When they were let in, or last named.
    pub updated_at_ms: i64,
}

/// What a channel does with somebody who writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum ChannelStanding {
    /// They may write.
    Allowed,
    /// They may not yet: this code is to be shown to the owner.
    Asked(ChannelPairingRequest),
    /// They may not, and too many strangers wait already: say nothing.
    Refused,
}
