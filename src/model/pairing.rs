//! How devices come to be paired: codes, requests, and the token a device is given once.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::{TokenHash, text_enum};

/// Letters and digits of a code: none that are taken for one another (Crockford's base 32).
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// Letters and digits of a code, each 5 bits.
const CODE_LENGTH: usize = 8;

/// A text that opens something. It is shown to whom it is for, and never by accident.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Takes a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// The code of 40 random bits as people read it: `7Q2M-X9AB`.
#[must_use]
pub fn pairing_code(random: [u8; 5]) -> Secret {
    let bits = random
        .iter()
        .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let mut code = String::with_capacity(CODE_LENGTH + 1);
    for place in (0..CODE_LENGTH).rev() {
        if place + 1 == CODE_LENGTH / 2 {
            code.push('-');
        }
        code.push(char::from(ALPHABET[(bits >> (5 * place) & 31) as usize]));
    }
    Secret(code)
}

/// The digest by which a code is known, however it was typed: small letters, without the hyphen, `O` for `0`.
#[must_use]
pub fn code_hash(typed: &str) -> TokenHash {
    let mut plain: String = typed
        .chars()
        .filter(|letter| !letter.is_whitespace() && *letter != '-')
        .map(|letter| match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        })
        .collect();
    let hash = TokenHash::of(&plain);
    zeroize::Zeroize::zeroize(&mut plain);
    hash
}

/// A code that pairs one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCode {
    /// The code; told once.
    pub code: Secret,
    /// Until when it can be used.
    pub expires_at_ms: i64,
    /// Where a daemon takes it over HTTP; `None` where none is configured to.
    pub listen: Option<SocketAddr>,
}

/// What a device says of itself when it pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceIntroduction {
    /// Name for people.
    pub name: Option<String>,
    /// Its own word for what it is.
    pub device_type: Option<String>,
    /// Where it comes from; what a carrier saw, never what the device says.
    #[serde(skip)]
    pub remote_ip: Option<String>,
}

/// A device that is paired now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePaired {
    /// Its identity.
    pub device_id: String,
    /// Its bearer token; told once and kept as a digest alone.
    pub token: Secret,
}

/// Where a device's request to be paired stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairingStatus {
    /// Nobody has decided.
    Pending,
    /// The device may collect its token.
    Approved,
    /// It may not.
    Denied,
    /// It has its token.
    Collected,
}

text_enum!(PairingStatus {
    Pending => "pending",
    Approved => "approved",
    Denied => "denied",
    Collected => "collected",
});

/// A device's request to be paired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingRequest {
    /// Its identity.
    pub request_id: String,
    /// Name for people, as the device says.
    pub display_name: Option<String>,
    /// Its own word for what it is.
    pub device_type: Option<String>,
    /// Where it came from.
    pub remote_ip: Option<String>,
    /// Where it stands.
    pub status: PairingStatus,
    /// When it was made.
    pub created_at_ms: i64,
    /// Until when it can be decided and collected.
    pub expires_at_ms: i64,
    /// When it was decided.
    pub decided_at_ms: Option<i64>,
    /// The device it became.
    pub device_id: Option<String>,
}

/// What a device that asked keeps, to collect its token with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingAsked {
    /// The request, for the person who decides.
    pub request_id: String,
    /// What proves that it was this device; told once.
    pub secret: Secret,
    /// Until when it can be collected.
    pub expires_at_ms: i64,
}

/// What a device hears that comes to collect its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum PairingAnswer {
    /// Nobody has decided yet: come again.
    Pending,
    /// It may not, or its time is over.
    Denied,
    /// It is paired.
    Paired(DevicePaired),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_known_however_it_is_typed() {
        let code = pairing_code([0xff, 0, 0x12, 0x34, 0x56]);
        assert_eq!(code.expose(), "ZW01-4D2P");
        assert_eq!(pairing_code([0; 5]).expose(), "0000-0000");
        let hash = code_hash(code.expose());
        for typed in ["zw014d2p", " ZW01 4D2P\n", "zwol-4d2p"] {
            assert_eq!(code_hash(typed), hash, "{typed}");
        }
        assert_ne!(code_hash("ZW01-4D2Q"), hash);
    }

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let paired = DevicePaired {
            device_id: "d".to_owned(),
            token: Secret::new("zc_secret".to_owned()),
        };
        assert!(!format!("{paired:?}").contains("secret\""));
        assert!(!format!("{paired:?}").contains("zc_"));
    }
}
