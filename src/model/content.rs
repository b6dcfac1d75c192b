//! Bytes as JSON: readable where they are text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Bytes of a file that travel as JSON: `{"text": "…"}` or `{"base64": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// They are this text in UTF-8.
    Text(String),
    /// They are this in base 64, the standard alphabet with padding (RFC 4648, section 4).
    Base64(String),
}

impl Content {
    /// The bytes themselves.
    ///
    /// # Errors
    ///
    /// [`ContentError`] for what is no base 64.
    pub fn into_bytes(self) -> Result<Vec<u8>, ContentError> {
        match self {
            Self::Text(text) => Ok(text.into_bytes()),
            Self::Base64(text) => STANDARD.decode(text).map_err(ContentError),
        }
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Base64(STANDARD.encode(error.as_bytes())),
        }
    }
}

/// Bytes that were not written as they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no base 64")]
pub struct ContentError(#[source] base64::DecodeError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [
            &b""[..],
            b"a text",
            "\u{2028}\0é".as_bytes(),
            &[0, 159, 255],
        ] {
            let json = serde_json::to_string(&Content::from(bytes.to_vec())).unwrap();
            let read: Content = serde_json::from_str(&json).unwrap();
            assert_eq!(read.into_bytes().unwrap(), bytes, "{json}");
        }
    }

    #[test]
    fn what_is_no_base_64_is_refused() {
        let content = Content::Base64("AA=A".to_owned());
        assert_eq!(
            content.into_bytes().unwrap_err().to_string(),
            "is no base 64"
        );
    }
}
