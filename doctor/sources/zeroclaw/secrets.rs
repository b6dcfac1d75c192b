//! Values that the old program encrypted inside its configuration.
//!
//! Written by: `secrets.rs` of every release. A field marked secret is in one of four forms, several of
//! them in one file:
//!
//! - `enc2:` and the hex of a 12-byte nonce, the ciphertext and a 16-byte tag: ChaCha20-Poly1305;
//! - `enc:` and the hex of bytes that are the text XORed with the key, again and again: not
//!   authenticated, so a wrong key gives bytes that are no text, or another text;
//! - `op://…`, a reference into a password manager, which only the old program can follow;
//! - the plain text.
//!
//! The key is 64 hex digits in `.secret_key`. It and every plain text are wiped after use, and no error
//! here repeats a value.

use std::io::Read as _;
use std::path::Path;

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit};
use zeroize::Zeroizing;

/// More than a key file holds, bytes.
const MAX_KEY_BYTES: u64 = 1024;
const NONCE_BYTES: usize = 12;

/// The key of an install.
pub(crate) struct SecretKey(Zeroizing<[u8; 32]>);

impl SecretKey {
    /// Reads a key file, or says why there is no key.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let meta = std::fs::symlink_metadata(path).map_err(|_| "its .secret_key is missing")?;
        if !meta.is_file() {
            // The old program refuses a link there too.
            return Err("its .secret_key is no plain file".to_owned());
        }
        let mut text = Zeroizing::new(Vec::with_capacity(128));
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_KEY_BYTES).read_to_end(&mut text))
            .map_err(|error| format!("its .secret_key cannot be read: {}", error.kind()))?;
        let bytes = unhex(text.trim_ascii()).and_then(|bytes| {
            let mut key = Zeroizing::new([0; 32]);
            (bytes.len() == key.len()).then(|| key.copy_from_slice(&bytes))?;
            Some(key)
        });
        Ok(Self(bytes.ok_or("its .secret_key is not 64 hex digits")?))
    }
}

/// The plain text of a value in any form, or why it cannot be had.
pub(crate) fn open(
    value: &str,
    key: &Result<SecretKey, String>,
) -> Result<Zeroizing<String>, String> {
    let bytes = if let Some(sealed) = value.strip_prefix("enc2:") {
        unseal(sealed, key.as_ref().map_err(Clone::clone)?)?
    } else if let Some(hidden) = value.strip_prefix("enc:") {
        unmask(hidden, key.as_ref().map_err(Clone::clone)?)?
    } else if value.starts_with("op://") {
        return Err("it is a reference into a password manager".to_owned());
    } else {
        Zeroizing::new(value.as_bytes().to_vec())
    };
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| "its .secret_key is not the one it was written with")?;
    Ok(Zeroizing::new(text.to_owned()))
}

fn unseal(sealed: &str, key: &SecretKey) -> Result<Zeroizing<Vec<u8>>, String> {
    let bytes = unhex(sealed.as_bytes()).ok_or("it is cut off or not hex")?;
    let (nonce, ciphertext) = bytes
        .split_first_chunk::<NONCE_BYTES>()
        .ok_or("it is cut off or not hex")?;
    let cipher = ChaCha20Poly1305::new((&*key.0).into());
    let plain = cipher.decrypt(nonce.into(), ciphertext);
    let plain = plain.map_err(|_| {
        "it was changed, or its .secret_key is not the one it was written with".to_owned()
    })?;
    Ok(Zeroizing::new(plain))
}

fn unmask(hidden: &str, key: &SecretKey) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut bytes = unhex(hidden.as_bytes()).ok_or("it is cut off or not hex")?;
    for (byte, mask) in bytes.iter_mut().zip(key.0.iter().cycle()) {
        *byte ^= mask;
    }
    Ok(bytes)
}

fn unhex(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    for digits in text.chunks_exact(2) {
        let [high, low] = [digits[0], digits[1]].map(|digit| char::from(digit).to_digit(16));
        bytes.push(u8::try_from(high? * 16 + low?).ok()?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Result<SecretKey, String> {
        Ok(SecretKey(Zeroizing::new([byte; 32])))
    }

    // Sealed with 32 bytes 0x07 and the nonce 000102…0b by Python's cryptography, "zc_lantern";
    // below it the same, masked with them.
    const SEALED: &str =
        "enc2:000102030405060708090a0b5616ae4f0df5db496518668d0f4004ec62452731427cd858de0d";
    const MASKED: &str = "enc:7d64586b666973627569";

    #[test]
    fn every_form_of_a_value_is_read() {
        for value in [SEALED, MASKED, "zc_lantern"] {
            assert_eq!(*open(value, &key(7)).unwrap(), "zc_lantern", "{value}");
        }
        assert!(open("op://vault/item", &key(7)).is_err());
    }

    #[test]
    fn a_wrong_key_and_a_changed_value_give_nothing_and_repeat_nothing() {
        let changed = format!("{}00", &SEALED[..SEALED.len() - 2]);
        for (value, key) in [
            (SEALED, key(8)),
            (SEALED, Err("its .secret_key is missing".to_owned())),
            (changed.as_str(), key(7)),
            (&SEALED[..20], key(7)),
            ("enc2:", key(7)),
            ("enc2:zz", key(7)),
            ("enc:7", key(7)),
            ("enc:f9", key(7)),
        ] {
            let error = open(value, &key).unwrap_err();
            assert!(!error.contains(&value[4..]) || value.len() < 6, "{error}");
        }
    }

    #[test]
    fn a_key_file_is_a_plain_file_of_64_hex_digits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        assert!(SecretKey::load(&path).is_err());
        for text in ["", "00", &"g".repeat(64), &"0".repeat(66)] {
            std::fs::write(&path, text).unwrap();
            assert!(SecretKey::load(&path).is_err(), "{text}");
        }
        std::fs::write(&path, "07".repeat(32) + "\n").unwrap();
        assert_eq!(*SecretKey::load(&path).unwrap().0, [7; 32]);
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        assert!(SecretKey::load(&folder.path().join("link")).is_err());
    }
}
