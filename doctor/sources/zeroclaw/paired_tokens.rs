//! `gateway.paired_tokens` of `config.toml`: who is paired.
//!
//! Written by: pairing, every release with a gateway. A list of secrets, each the lower-case hex SHA-256
//! of a token (64 digits), encrypted as a rule; any other text is a token itself, from before tokens were
//! hashed, and is hashed here at once. The list decides, and `devices.db` only describes: a device
//! that is not in the list is revoked, a token without a device is one all the same. The file is a
//! person's and stays; what counts of it is the list alone, so that other changes bring nothing in again.
//!
//! Known faults: values that cannot be opened because `.secret_key` was lost or is another one.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest, Sha256};
use toml::de::{DeTable, DeValue};
use zeroclaw::fs::{FsError, Layout};
use zeroclaw::model::{PairedDevice, Tier, TokenHash, TokenStatus};
use zeroize::Zeroizing;

use super::super::{Batcher, ReadError, Sink};
use super::secrets::{self, SecretKey};
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::units::{hex, stable_uuid};

/// As [`zeroclaw::config`] bounds it, bytes.
const MAX_CONFIG_BYTES: u64 = 8 * 1024 * 1024;

/// One entry of the list.
enum Entry {
    /// Digest of a token.
    Token(TokenHash),
    /// It cannot be read, and why.
    Sealed {
        reason: String,
        /// Of the value as it stands, so that another one counts as a change.
        digest: [u8; 32],
    },
}

/// The list, or what there is of it.
#[derive(Default)]
pub(crate) struct PairedTokens {
    entries: Vec<Entry>,
    /// Whether there is a configuration whose list could be found: if not, nobody knows who is paired.
    is_known: bool,
}

impl PairedTokens {
    /// Reads the list of the install at `root`. A configuration that is no TOML says nothing.
    pub(crate) fn load(root: &Path) -> Result<Self, FsError> {
        let layout = Layout::new(root.to_owned());
        let path = layout.config_file();
        let mut bytes = Zeroizing::new(Vec::new());
        let read = std::fs::File::open(&path)
            .and_then(|file| file.take(MAX_CONFIG_BYTES).read_to_end(&mut bytes));
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(FsError::at("read", &path)(error)),
        }
        let key = || SecretKey::load(&layout.secret_key_file());
        Ok(
            std::str::from_utf8(&bytes)
                .map_or_else(|_| Self::default(), |text| Self::of(text, key)),
        )
    }

    /// Values borrow from `text`, so that no copy of a plain token outlives it.
    fn of(text: &str, key: impl FnOnce() -> Result<SecretKey, String>) -> Self {
        let Ok(file) = DeTable::parse(text) else {
            return Self::default();
        };
        let nothing = Self {
            entries: Vec::new(),
            is_known: true,
        };
        let Some(gateway) = file.get_ref().get("gateway") else {
            return nothing;
        };
        let DeValue::Table(gateway) = gateway.get_ref() else {
            return Self::default();
        };
        match gateway.get("paired_tokens").map(|list| list.get_ref()) {
            None => nothing,
            Some(DeValue::Array(list)) if list.is_empty() => nothing,
            Some(DeValue::Array(list)) => {
                let key = key();
                let entries = list.iter().map(|value| match value.get_ref() {
                    DeValue::String(text) => entry(text, &key),
                    _ => Entry::Sealed {
                        reason: "it is not a text".to_owned(),
                        digest: [0; 32],
                    },
                });
                Self {
                    entries: entries.collect(),
                    is_known: true,
                }
            }
            Some(_) => Self::default(),
        }
    }

    fn tokens(&self) -> BTreeSet<TokenHash> {
        let token = |entry: &Entry| match entry {
            Entry::Token(hash) => Some(*hash),
            Entry::Sealed { .. } => None,
        };
        self.entries.iter().filter_map(token).collect()
    }

    /// Why entries cannot be read, each reason once, and how many they are.
    pub(crate) fn sealed(&self) -> Option<(usize, String)> {
        let reasons: Vec<&str> = self
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Token(_) => None,
                Entry::Sealed { reason, .. } => Some(reason.as_str()),
            })
            .collect();
        let told: BTreeSet<&str> = reasons.iter().copied().collect();
        let told: Vec<&str> = told.into_iter().collect();
        (!reasons.is_empty()).then(|| (reasons.len(), told.join("; ")))
    }

    /// Whether there is a list, be it empty or unreadable.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Entries in all.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Size and digest of the list, whatever else is in the file and however it is encrypted.
    pub(crate) fn content(&self) -> (u64, String) {
        let mut lines: Vec<String> = self
            .entries
            .iter()
            .map(|entry| match entry {
                Entry::Token(hash) => hash.to_hex(),
                Entry::Sealed { digest, .. } => format!("sealed {}", hex(digest)),
            })
            .collect();
        lines.sort();
        let text = lines.join("\n");
        (text.len() as u64, hex(&Sha256::digest(&text)))
    }

    /// Who is paired, for who describes them.
    pub(crate) fn pairing(&self) -> Pairing {
        Pairing {
            paired: self.tokens(),
            is_whole: self.is_known && self.sealed().is_none(),
        }
    }
}

fn entry(text: &str, key: &Result<SecretKey, String>) -> Entry {
    let sealed = |reason: String| Entry::Sealed {
        reason,
        digest: Sha256::digest(text.as_bytes()).into(),
    };
    match secrets::open(text, key) {
        Ok(plain) if plain.trim().is_empty() => sealed("it is empty".to_owned()),
        Ok(plain) => {
            Entry::Token(TokenHash::parse(&plain).unwrap_or_else(|| TokenHash::of(&plain)))
        }
        Err(reason) => sealed(reason),
    }
}

/// What the list says of a token.
pub(crate) struct Pairing {
    paired: BTreeSet<TokenHash>,
    is_whole: bool,
}

impl Pairing {
    /// Whether a token opens, and why not.
    pub(crate) fn standing(&self, token: &TokenHash) -> (TokenStatus, Option<String>) {
        if self.paired.contains(token) {
            (TokenStatus::Active, None)
        } else if self.is_whole {
            let reason = "not among gateway.paired_tokens of the configuration";
            (TokenStatus::Revoked, Some(reason.to_owned()))
        } else {
            let reason = "gateway.paired_tokens of the configuration could not be read";
            (TokenStatus::Unverified, Some(reason.to_owned()))
        }
    }
}

/// Streams the tokens of the install at `root`.
pub(crate) async fn read<S: Sink>(root: &Path, sink: &mut S) -> Result<(), ReadError> {
    let list = PairedTokens::load(root)?;
    let mut out = Batcher::new(sink);
    for (number, entry) in (1..).zip(&list.entries) {
        let item = match entry {
            Entry::Token(token) => Item::Record {
                tier: Tier::Global,
                record: bare(*token).into(),
            },
            // Its bytes stay where they are: a token is not to lie in a second place.
            Entry::Sealed { reason, .. } => Item::Refused(Refusal {
                kind: kind::DEVICE,
                place: format!("gateway.paired_tokens, entry {number}"),
                reason: reason.clone(),
                raw: Vec::new(),
            }),
        };
        out.push(item, 64).await?;
    }
    out.flush().await
}

/// A device of which nothing but its token is known.
fn bare(token: TokenHash) -> PairedDevice {
    PairedDevice {
        device_id: stable_uuid(&[b"paired token", token.to_hex().as_bytes()]),
        display_name: None,
        device_type: Some(PairedDevice::LEGACY.to_owned()),
        remote_ip: None,
        capabilities_json: None,
        paired_at_ms: None,
        last_seen_at_ms: None,
        token,
        status: TokenStatus::Active,
        status_reason: None,
        revoked_at_ms: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> PairedTokens {
        PairedTokens::of(text, || Err("no key".to_owned()))
    }

    #[test]
    fn the_digest_is_of_the_list_alone() {
        let hash = TokenHash::of("zc_one").to_hex();
        let plain = list("[gateway]\npaired_tokens = ['zc_one', 'zc_two']");
        let hashed = format!("a = 1\n[gateway]\nport = 2\npaired_tokens = ['zc_two', '{hash}']");

        assert_eq!(plain.content(), list(&hashed).content());
        assert_ne!(
            plain.content(),
            list("[gateway]\npaired_tokens = ['zc_one']").content()
        );
        assert_eq!(list("[gateway]\npaired_tokens = []").content().0, 0);
    }

    #[test]
    fn a_token_not_in_the_list_is_revoked_and_one_nobody_can_tell_is_unverified() {
        let token = TokenHash::of("zc_one");
        for (text, status) in [
            ("[gateway]\npaired_tokens = ['zc_one']", TokenStatus::Active),
            (
                "[gateway]\npaired_tokens = ['zc_two']",
                TokenStatus::Revoked,
            ),
            ("[gateway]\npaired_tokens = []", TokenStatus::Revoked),
            ("[other]", TokenStatus::Revoked),
            (
                "[gateway]\npaired_tokens = ['enc2:00']",
                TokenStatus::Unverified,
            ),
            ("[gateway]\npaired_tokens = [3]", TokenStatus::Unverified),
            (
                "[gateway]\npaired_tokens = 'zc_one'",
                TokenStatus::Unverified,
            ),
            ("gateway = 1", TokenStatus::Unverified),
            ("no toml", TokenStatus::Unverified),
        ] {
            assert_eq!(list(text).pairing().standing(&token).0, status, "{text}");
        }
    }
}
