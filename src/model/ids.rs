//! Names that identify things across both tiers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest agent id, in bytes.
const MAX_AGENT_ID_BYTES: usize = 64;

/// Name of an agent: `[a-z0-9]([a-z0-9_-]{0,62}[a-z0-9])?`.
///
/// A retired earlier generation of a re-used name carries a stamp: `<id>@<UTC stamp>`, for example
/// `atlas@20260105T101500Z`. Anything else is refused, never bent into another agent's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

/// Why a text is no agent id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no agent id: 1 to 64 of a-z, 0-9, '_' and '-', the first and last a letter or digit"
)]
pub struct IdError {
    /// The text as it was given.
    pub text: String,
}

impl AgentId {
    /// Takes a name that follows the rule.
    ///
    /// # Errors
    ///
    /// [`IdError`] when it does not.
    pub fn new(text: impl Into<String>) -> Result<Self, IdError> {
        let text = text.into();
        let (name, stamp) = match text.split_once('@') {
            Some((name, stamp)) => (name, Some(stamp)),
            None => (text.as_str(), None),
        };
        if is_plain_id(name) && stamp.is_none_or(is_stamp) {
            Ok(Self(text))
        } else {
            Err(IdError { text })
        }
    }

    /// Whether it is a retired earlier generation of a name that was used again.
    #[must_use]
    pub fn is_generation(&self) -> bool {
        self.0.contains('@')
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain_id(name: &str) -> bool {
    let bytes = name.as_bytes();
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    bytes.len() <= MAX_AGENT_ID_BYTES
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'))
}

/// `YYYYMMDDTHHMMSSZ`.
fn is_stamp(stamp: &str) -> bool {
    let bytes = stamp.as_bytes();
    bytes.len() == 16
        && bytes[8] == b'T'
        && bytes[15] == b'Z'
        && bytes
            .iter()
            .enumerate()
            .all(|(i, b)| matches!(i, 8 | 15) || b.is_ascii_digit())
}

impl TryFrom<String> for AgentId {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for AgentId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_are_taken_as_they_are() {
        for name in [
            "a",
            "atlas",
            "removed-agent",
            "a_b",
            "0",
            &"x".repeat(64),
            "atlas@20260105T101500Z",
        ] {
            assert_eq!(AgentId::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn strange_names_are_refused() {
        for name in [
            "",
            "../main",
            "MAIN",
            "агент✨",
            "-a",
            "a-",
            "a b",
            "a/b",
            ".",
            &"x".repeat(65),
            "a@",
            "a@now",
            "a@20260105T101500Z@20260105T101500Z",
            "@20260105T101500Z",
        ] {
            assert!(AgentId::new(name).is_err(), "{name:?}");
        }
    }
}
