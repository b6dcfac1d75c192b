//! Encrypted archives: the whole `.tar.gz` in the age format, as <https://age-encryption.org/v1> has it.
//!
//! The format was taken for its tools: `age -d` opens an archive without us. Of its keys there are X25519 ones and
//! passphrases; plugins and SSH keys were left out, `age` itself takes those. Secrets live in values that are wiped and
//! never shown: no message here holds a line of a key file, not even a wrong one.

use std::fmt;
use std::io::{BufRead, Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;

use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, EncryptError, Encryptor, scrypt, stream, x25519};
use serde::Serialize;

use super::BackupError;
use crate::fs::FsError;

/// How an encrypted archive begins.
const MAGIC: &[u8] = b"age-encryption.org/";
/// Where the header of an encrypted archive ends.
const HEADER_END: &[u8] = b"\n--- ";
/// Largest header, bytes: its parser begins anew at each line, and collects it whole.
const MAX_HEADER_BYTES: u64 = 64 * 1024;
/// Most recipients of an archive; each takes about 150 bytes of the header.
const MAX_RECIPIENTS: usize = 100;
/// Work of a passphrase, as a power of two: 256 MiB and about a second, what `age` takes too.
const WORK: u8 = 18;
/// Most work that is done for an archive: 1 GiB and some seconds. Whoever wrote it chose its number.
const MAX_WORK: u8 = 20;
/// Item that a fault of the encryption is reported for.
const HEADER_NAME: &str = "age header";

/// How an archive is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encryption {
    /// To keys: who has the identity of one of them opens it.
    Recipients,
    /// With a passphrase.
    Passphrase,
}

impl Encryption {
    /// The word for people and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recipients => "recipients",
            Self::Passphrase => "passphrase",
        }
    }
}

/// What a new archive is encrypted to.
#[derive(Clone)]
pub struct Seal(Arc<SealKind>);

enum SealKind {
    Recipients(Vec<x25519::Recipient>),
    Passphrase(SecretString),
}

/// What opens an encrypted archive.
#[derive(Clone)]
pub struct Key(Arc<KeyKind>);

enum KeyKind {
    Identities(Vec<x25519::Identity>),
    Passphrase(SecretString),
}

/// Tells how many keys, never which.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            SealKind::Recipients(recipients) => write!(f, "Seal({} recipients)", recipients.len()),
            SealKind::Passphrase(_) => write!(f, "Seal(a passphrase)"),
        }
    }
}

/// Tells how many keys, never which.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            KeyKind::Identities(identities) => write!(f, "Key({} identities)", identities.len()),
            KeyKind::Passphrase(_) => write!(f, "Key(a passphrase)"),
        }
    }
}

impl Seal {
    /// Encrypts to these keys, in the form `age1…`.
    ///
    /// * `recipients`: each with the place it was given at, which is all that a message says of it.
    ///
    /// # Errors
    ///
    /// [`BackupError::BadKey`] when one is none, when there are none or too many.
    pub fn to_recipients<'a>(
        recipients: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<Self, BackupError> {
        let mut parsed = Vec::new();
        for (place, text) in recipients {
            let recipient = text.trim().parse::<x25519::Recipient>();
            parsed.push(recipient.map_err(|_| BackupError::BadKey {
                place,
                reason: match looks_like_identity(text) {
                    true => "is an identity, which is secret; a recipient begins with age1",
                    false => "is no recipient of the form age1…",
                },
            })?);
        }
        let reason = match parsed.len() {
            0 => "there are none",
            1..=MAX_RECIPIENTS => return Ok(Self(Arc::new(SealKind::Recipients(parsed)))),
            _ => "there are more than 100",
        };
        Err(BackupError::BadKey {
            place: "recipients".to_owned(),
            reason,
        })
    }

    /// Encrypts with a passphrase.
    #[must_use]
    pub fn with_passphrase(passphrase: SecretString) -> Self {
        Self(Arc::new(SealKind::Passphrase(passphrase)))
    }

    /// Which kind it is.
    #[must_use]
    pub fn encryption(&self) -> Encryption {
        match &*self.0 {
            SealKind::Recipients(_) => Encryption::Recipients,
            SealKind::Passphrase(_) => Encryption::Passphrase,
        }
    }

    /// What opens it again; `None` where only somebody else has that.
    pub(super) fn key(&self) -> Option<Key> {
        match &*self.0 {
            SealKind::Recipients(_) => None,
            SealKind::Passphrase(passphrase) => Some(Key::passphrase(passphrase.clone())),
        }
    }

    /// Writes the header to `sink`, and encrypts what is written to the result until it is finished.
    pub(super) fn wrap<W: Write>(&self, sink: W) -> std::io::Result<stream::StreamWriter<W>> {
        let encryptor = match &*self.0 {
            SealKind::Recipients(recipients) => {
                Encryptor::with_recipients(recipients.iter().map(|it| it as &dyn age::Recipient))
            }
            SealKind::Passphrase(passphrase) => {
                let mut recipient = scrypt::Recipient::new(passphrase.clone());
                recipient.set_work_factor(WORK);
                Encryptor::with_recipients(std::iter::once(&recipient as &dyn age::Recipient))
            }
        };
        let encryptor = encryptor.map_err(|error| match error {
            EncryptError::Io(error) => error,
            other => std::io::Error::other(other.to_string()),
        })?;
        encryptor.wrap_output(sink)
    }
}

impl Key {
    /// Opens with these identities: a file as `age-keygen` writes it.
    ///
    /// * `files`: each file's text with the name a message may give it.
    ///
    /// # Errors
    ///
    /// [`BackupError::BadKey`] when a line is no identity, or a file holds none.
    pub fn from_identity_files<'a>(
        files: impl IntoIterator<Item = (String, &'a str)>,
    ) -> Result<Self, BackupError> {
        let mut identities = Vec::new();
        for (place, text) in files {
            let before = identities.len();
            if text.as_bytes().starts_with(MAGIC) {
                let reason = "is encrypted itself: decrypt it with `age -d` first";
                return Err(BackupError::BadKey { place, reason });
            }
            for (number, line) in lines_of(text) {
                let identity = line.parse::<x25519::Identity>();
                identities.push(identity.map_err(|_| BackupError::BadKey {
                    place: format!("{place}, line {number}"),
                    reason: "is no identity of the form AGE-SECRET-KEY-1…",
                })?);
            }
            if identities.len() == before {
                let reason = "holds no identity";
                return Err(BackupError::BadKey { place, reason });
            }
        }
        Ok(Self(Arc::new(KeyKind::Identities(identities))))
    }

    /// Opens with a passphrase.
    #[must_use]
    pub fn passphrase(passphrase: SecretString) -> Self {
        Self(Arc::new(KeyKind::Passphrase(passphrase)))
    }
}

/// Lines of a file of keys that are neither empty nor comments, with their numbers.
pub fn lines_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(str::trim).zip(1..);
    lines
        .filter(|(line, _)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, number)| (number, line))
}

fn looks_like_identity(text: &str) -> bool {
    text.trim()
        .get(..15)
        .is_some_and(|start| start.eq_ignore_ascii_case("AGE-SECRET-KEY-"))
}

/// The content of an archive, whether it is encrypted or not.
pub(super) struct Unsealed {
    /// What comes out.
    pub(super) content: Box<dyn BufRead + Send>,
    /// How it was encrypted; `None` when it was not.
    pub(super) encryption: Option<Encryption>,
}

/// Finds out whether an archive is encrypted, and opens it if so.
///
/// # Errors
///
/// [`BackupError::Encrypted`] without a key of its kind, [`BackupError::WrongKey`] with another's,
/// [`BackupError::Damaged`] when its header is not whole.
pub(super) fn unseal(
    mut input: impl BufRead + Send + 'static,
    archive: &Path,
    key: Option<&Key>,
) -> Result<Unsealed, BackupError> {
    let mut head = Vec::new();
    let read = input.by_ref().take(MAX_HEADER_BYTES).read_to_end(&mut head);
    read.map_err(FsError::at("read", archive))?;
    let is_sealed = head.starts_with(MAGIC);
    let is_bounded = head
        .windows(HEADER_END.len())
        .any(|part| part == HEADER_END);
    let whole = Cursor::new(head).chain(input);
    if !is_sealed {
        return Ok(Unsealed {
            content: Box::new(whole),
            encryption: None,
        });
    }
    if !is_bounded {
        return Err(damaged(archive, "is cut short or too long"));
    }
    let decryptor = Decryptor::new_buffered(whole).map_err(|error| fault(archive, error))?;
    let encryption = match decryptor.is_scrypt() {
        true => Encryption::Passphrase,
        false => Encryption::Recipients,
    };
    let content = match (encryption, key.map(|key| &*key.0)) {
        (Encryption::Recipients, Some(KeyKind::Identities(identities))) => {
            decryptor.decrypt(identities.iter().map(|it| it as &dyn age::Identity))
        }
        (Encryption::Passphrase, Some(KeyKind::Passphrase(passphrase))) => {
            let mut identity = scrypt::Identity::new(passphrase.clone());
            identity.set_max_work_factor(MAX_WORK);
            decryptor.decrypt(std::iter::once(&identity as &dyn age::Identity))
        }
        _ => {
            return Err(BackupError::Encrypted {
                archive: archive.to_owned(),
                encryption,
            });
        }
    };
    let content = content.map_err(|error| fault(archive, error))?;
    Ok(Unsealed {
        content: Box::new(std::io::BufReader::new(content)),
        encryption: Some(encryption),
    })
}

fn fault(archive: &Path, error: DecryptError) -> BackupError {
    match error {
        DecryptError::NoMatchingKeys
        | DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed => BackupError::WrongKey {
            archive: archive.to_owned(),
        },
        DecryptError::ExcessiveWork { .. } => {
            damaged(archive, "asks for more work than any passphrase needs")
        }
        DecryptError::InvalidMac => damaged(archive, "does not match its own sum"),
        DecryptError::UnknownFormat => damaged(archive, "is of a version that nobody here knows"),
        DecryptError::Io(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            FsError::at("read", archive)(error).into()
        }
        DecryptError::Io(_) => damaged(archive, "is cut short"),
        _ => damaged(archive, "is broken"),
    }
}

fn damaged(archive: &Path, reason: &str) -> BackupError {
    BackupError::Damaged {
        archive: archive.to_owned(),
        member: HEADER_NAME.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
