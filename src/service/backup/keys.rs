//! Reads keys and passphrases from where they are named. They are never arguments: those are for all to see.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use age::secrecy::SecretString;
use zeroize::Zeroizing;

use super::super::ServiceError;
use crate::backup::{BackupError, Key, Seal, lines_of};
use crate::fs::{FsError, FsErrorKind};

/// Stands for standard input in place of a file.
const STDIN: &str = "-";
/// Largest file of keys or passphrase, bytes.
const MAX_BYTES: usize = 64 * 1024;

/// What a new archive is to be encrypted to.
#[derive(Clone, Debug)]
pub enum SealSource {
    /// Recipients of the form `age1…`, and files with one on each line.
    Recipients {
        /// As they were given.
        given: Vec<String>,
        /// Files, `-` for standard input.
        files: Vec<PathBuf>,
    },
    /// A file whose first line is the passphrase, `-` for standard input.
    PassphraseFile(PathBuf),
}

/// What opens an encrypted archive.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// Files of identities as `age-keygen` writes them, `-` for standard input.
    IdentityFiles(Vec<PathBuf>),
    /// A file whose first line is the passphrase, `-` for standard input.
    PassphraseFile(PathBuf),
}

impl SealSource {
    pub(in crate::service) fn load(&self) -> Result<Seal, ServiceError> {
        let (given, files) = match self {
            Self::PassphraseFile(path) => return Ok(Seal::with_passphrase(passphrase(path)?)),
            Self::Recipients { given, files } => (given, files),
        };
        let mut texts = Vec::new();
        for path in files {
            texts.push((shown(path), read(path)?));
        }
        let given = given
            .iter()
            .zip(1..)
            .map(|(text, number): (_, usize)| (format!("recipient {number}"), text.as_str()));
        let listed = texts.iter().flat_map(|(name, text)| {
            lines_of(text).map(move |(number, line)| (format!("{name}, line {number}"), line))
        });
        Ok(Seal::to_recipients(given.chain(listed))?)
    }
}

impl KeySource {
    pub(in crate::service) fn load(&self) -> Result<Key, ServiceError> {
        let files = match self {
            Self::PassphraseFile(path) => return Ok(Key::passphrase(passphrase(path)?)),
            Self::IdentityFiles(files) => files,
        };
        let mut texts = Vec::new();
        for path in files {
            texts.push((shown(path), read(path)?));
        }
        let named = texts
            .iter()
            .map(|(name, text)| (name.clone(), text.as_str()));
        Ok(Key::from_identity_files(named)?)
    }
}

/// The first line of a file, without what ends it.
fn passphrase(path: &Path) -> Result<SecretString, ServiceError> {
    let text = read(path)?;
    let line = text.split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err(bad(path, "its first line, the passphrase, is empty").into());
    }
    // Of the right size from the start: growing would leave a copy behind that nobody wipes.
    Ok(SecretString::new(Box::from(line)))
}

fn read(path: &Path) -> Result<Zeroizing<String>, ServiceError> {
    let failed = FsError::at("read", path);
    let mut bytes = Zeroizing::new(vec![0; MAX_BYTES + 1]);
    let filled = if path == Path::new(STDIN) {
        fill(std::io::stdin().lock(), &mut bytes)
    } else {
        File::open(path).and_then(|file| fill(file, &mut bytes))
    };
    let filled = filled.map_err(failed).map_err(|error| match error.kind() {
        FsErrorKind::NotFound => bad(path, "there is no such file"),
        _ => error.into(),
    })?;
    if filled > MAX_BYTES {
        return Err(bad(path, "is larger than 64 KiB").into());
    }
    match std::str::from_utf8(&bytes[..filled]) {
        Ok(text) => {
            let mut exact = Zeroizing::new(String::with_capacity(text.len()));
            exact.push_str(text);
            Ok(exact)
        }
        Err(_) => Err(bad(path, "is not UTF-8").into()),
    }
}

/// Reads into a buffer that never moves; gives how much there was.
fn fill(mut from: impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn bad(path: &Path, reason: &'static str) -> BackupError {
    BackupError::BadKey {
        place: shown(path),
        reason,
    }
}

fn shown(path: &Path) -> String {
    match path == Path::new(STDIN) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use age::secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_passphrase_is_the_first_line_without_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass");
        for (text, expected) in [
            ("one two", "one two"),
            ("one two\n", "one two"),
            ("one two\r\nrest\n", "one two"),
            (" spaces stay \n", " spaces stay "),
            ("größe\n", "größe"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(passphrase(&path).unwrap().expose_secret(), expected);
        }
    }

    #[test]
    fn what_is_no_passphrase_is_refused_without_being_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass");
        let large = "canary".repeat(20_000);
        for text in ["", "\n", "\r\ncanary\n", &large] {
            std::fs::write(&path, text).unwrap();
            let told = format!("{:?}", passphrase(&path).unwrap_err());
            assert!(told.contains("pass") && !told.contains("canary"), "{told}");
        }
        std::fs::write(&path, b"canary \xff\n").unwrap();
        let told = format!("{:?}", passphrase(&path).unwrap_err());
        assert!(told.contains("UTF-8") && !told.contains("canary"), "{told}");
    }
}
