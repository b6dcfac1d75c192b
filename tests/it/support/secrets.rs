//! Values as the old program encrypted them, by keys that anyone can see are made up.

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit};
use sha2::{Digest, Sha256};

use super::recipe::{hex, sha256_hex};

/// The key that [`super::legacy::LegacyInstall::secret_key`] writes.
pub(crate) const KEY: &str = "f00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeedf00dfeed";

fn bytes_of(key: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap();
    }
    bytes
}

/// `enc2:` and so on. The nonce follows from the text, so that a recipe makes the same file again.
pub(crate) fn enc2(text: &str) -> String {
    let nonce: [u8; 12] = Sha256::digest(text)[..12].try_into().unwrap();
    let cipher = ChaCha20Poly1305::new(&bytes_of(KEY).into());
    let sealed = cipher.encrypt(&nonce.into(), text.as_bytes()).unwrap();
    format!("enc2:{}{}", hex(&nonce), hex(&sealed))
}

/// `enc:` and so on, as the oldest releases wrote it.
pub(crate) fn enc(text: &str) -> String {
    let key = bytes_of(KEY);
    let masked: Vec<u8> = text
        .bytes()
        .zip(key.iter().cycle())
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    format!("enc:{}", hex(&masked))
}

/// A list entry as current releases write it: the digest of the token, encrypted.
pub(crate) fn sealed_hash(token: &str) -> String {
    enc2(&sha256_hex(token.as_bytes()))
}
