//! Devices that are, or were, paired, and the tokens by which they are known.

use std::fmt;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::text_enum;

/// Digits of a digest that are ever shown.
const SHOWN_DIGITS: usize = 8;

/// SHA-256 of a bearer token: all that is ever kept of one.
///
/// It is no secret like the token, but neither is it told: text and JSON show its start alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Of a whole token, as its bearer presents it.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Takes 64 hex digits; `None` for anything else.
    #[must_use]
    pub fn parse(hex: &str) -> Option<Self> {
        if hex.len() != 64 || !hex.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let [high, low] = [digits[0], digits[1]].map(|digit| char::from(digit).to_digit(16));
            *byte = u8::try_from(high? * 16 + low?).ok()?;
        }
        Some(Self(bytes))
    }

    /// 64 lower-case hex digits: the form of the column.
    #[must_use]
    pub fn to_hex(self) -> String {
        use fmt::Write as _;
        self.0
            .iter()
            .fold(String::with_capacity(64), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            })
    }

    /// Whether both are the same, in a time that does not tell how much of them is.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", &self.to_hex()[..SHOWN_DIGITS])
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHash({self})")
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a token opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenStatus {
    /// It does.
    Active,
    /// It was taken back.
    Revoked,
    /// Nobody could tell whether it was still paired; it opens nothing.
    Unverified,
}

text_enum!(TokenStatus {
    Active => "active",
    Revoked => "revoked",
    Unverified => "unverified",
});

/// A device and one token of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PairedDevice {
    /// Identity of the device.
    pub device_id: String,
    /// Name for people.
    pub display_name: Option<String>,
    /// Its own word for what it is; [`PairedDevice::LEGACY`] where only its token is known.
    pub device_type: Option<String>,
    /// Where it last came from.
    pub remote_ip: Option<String>,
    /// What it can do, JSON as it said.
    pub capabilities_json: Option<String>,
    /// When it was paired.
    pub paired_at_ms: Option<i64>,
    /// When it last came.
    pub last_seen_at_ms: Option<i64>,
    /// Digest of its token.
    pub token: TokenHash,
    /// Whether the token opens.
    pub status: TokenStatus,
    /// Why it does not; `None` while it does.
    pub status_reason: Option<String>,
    /// When it was revoked, where that is known.
    pub revoked_at_ms: Option<i64>,
}

impl PairedDevice {
    /// Type of a device of which only a token is known.
    pub const LEGACY: &'static str = "legacy";

    /// Whether only its token is known.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.device_type.as_deref() == Some(Self::LEGACY) && self.paired_at_ms.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_its_own_hex_in_either_case_and_nothing_else() {
        let hash = TokenHash::of("zc_one");

        assert_eq!(TokenHash::parse(&hash.to_hex()), Some(hash));
        assert_eq!(TokenHash::parse(&hash.to_hex().to_uppercase()), Some(hash));
        assert!(hash.matches(&TokenHash::of("zc_one")));
        assert!(!hash.matches(&TokenHash::of("zc_two")));
        for wrong in [
            "",
            "zc_one",
            &hash.to_hex()[1..],
            &"g".repeat(64),
            &"é".repeat(32),
        ] {
            assert_eq!(TokenHash::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn no_way_of_showing_a_digest_shows_more_than_its_start() {
        let hash = TokenHash::of("zc_one");

        for shown in [
            format!("{hash}"),
            format!("{hash:?}"),
            serde_json::to_string(&hash).unwrap(),
        ] {
            assert!(shown.contains(&hash.to_hex()[..8]), "{shown}");
            assert!(!shown.contains(&hash.to_hex()[..9]), "{shown}");
        }
    }
}
