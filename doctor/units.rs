//! Times and texts as old programs wrote them.

use chrono::{DateTime, NaiveDateTime};
use sha2::{Digest, Sha256};

/// A time as RFC 3339 text: UTC or with the writer's local offset, 0 to 9 fraction digits.
///
/// Text order lies across offsets; only the instant counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LegacyTime(i64);

impl LegacyTime {
    /// Takes the text apart; also `YYYY-MM-DD HH:MM:SS`, as SQLite's own functions write it (UTC).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Some(Self(time.timestamp_millis()));
        }
        let plain = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
            .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f"));
        plain
            .ok()
            .map(|time| Self(time.and_utc().timestamp_millis()))
    }

    /// Unix milliseconds, UTC.
    pub(crate) fn ms(self) -> i64 {
        self.0
    }
}

/// Hex of a digest.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A name that the same content always gets: 32 hex digits over parts that cannot run together.
pub(crate) fn stable_id(parts: &[&[u8]]) -> String {
    hex(&digest(parts)[..16])
}

/// The same for an event, which is one among those of its session: 16 characters of base 32, 80 bits.
///
/// An event's id is stored three times, beside texts that are often shorter than that: of 32 digits, a fifth of all
/// bytes written by an import were ids. Among a million events two share one with a chance of 1 to 10¹².
pub(crate) fn event_id(parts: &[&[u8]]) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = digest(parts);
    let number = digest[..10]
        .iter()
        .fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let digit = |place: u32| char::from(DIGITS[(number >> (5 * place)) as usize % DIGITS.len()]);
    (0..16).rev().map(digit).collect()
}

/// SHA-256 over parts that cannot run together.
fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The same in the form of a UUID (version 8: made by a rule of our own).
pub(crate) fn stable_uuid(parts: &[&[u8]]) -> String {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest(parts)[..16]);
    uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string()
}

/// What stands for one message when sequences are compared.
pub(crate) type MessageDigest = [u8; 16];

/// Digest of role and text of a message.
pub(crate) fn message_digest(role: &str, text: &str) -> MessageDigest {
    let mut hasher = Sha256::new();
    hasher.update((role.len() as u64).to_le_bytes());
    hasher.update(role);
    hasher.update(text);
    let mut digest = [0; 16];
    digest.copy_from_slice(&hasher.finalize()[..16]);
    digest
}

/// Id of the session kept beside one it differs from; the same content always gets the same.
pub(crate) fn beside(session_id: &str, sequence: &[MessageDigest]) -> String {
    let all: Vec<u8> = sequence.iter().flatten().copied().collect();
    stable_uuid(&[b"beside", session_id.as_bytes(), &all])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_forms_of_a_time_are_one_instant() {
        let utc = LegacyTime::parse("2026-08-22T21:44:00.123456789+00:00").unwrap();

        assert_eq!(
            LegacyTime::parse("2026-08-22T23:44:00.123+02:00"),
            Some(utc)
        );
        assert_eq!(LegacyTime::parse("2026-08-22T21:44:00.123Z"), Some(utc));
        assert_eq!(LegacyTime::parse("2026-08-22 21:44:00.123"), Some(utc));
        assert!(LegacyTime::parse("9999-12-31T23:59:59Z").is_some());
        assert_eq!(LegacyTime::parse("yesterday"), None);
    }

    #[test]
    fn text_order_of_times_lies_and_is_not_used() {
        let early = LegacyTime::parse("2026-01-02T00:30:00+02:00").unwrap();
        let late = LegacyTime::parse("2026-01-01T23:00:00+00:00").unwrap();

        assert!(early < late);
    }

    #[test]
    fn parts_of_an_id_cannot_run_together() {
        assert_ne!(stable_id(&[b"ab", b"c"]), stable_id(&[b"a", b"bc"]));
        assert_ne!(event_id(&[b"ab", b"c"]), event_id(&[b"a", b"bc"]));
    }

    #[test]
    fn an_events_id_is_the_first_80_bits_of_its_digest() {
        // By coreutils: printf '\1\0\0\0\0\0\0\0a' | sha256sum | cut -c-20 | xxd -r -p | base32 | tr A-Z a-z
        assert_eq!(event_id(&[b"a"]), "vzqsdseluvk7mtb5");
    }
}
