//! The text files a legacy install is made from, and the few marks they may hold.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::rng::Rng;
use super::secrets;

/// `tests/fixtures/legacy/zeroclaw`.
pub(crate) fn legacy_fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/legacy/zeroclaw")
}

/// The schema text of one historic variant, e.g. `brain_v0_8_3.sql`.
pub(crate) fn ddl(file: &str) -> String {
    let path = legacy_fixtures().join("ddl").join(file);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
}

/// The `CREATE TRIGGER` statements of a schema text: the only ones in it that end with `END;`.
pub(crate) fn triggers(ddl_file: &str) -> Vec<String> {
    let ddl = ddl(ddl_file);
    ddl.split_inclusive("END;")
        .filter_map(|part| {
            part.find("CREATE TRIGGER")
                .map(|start| part[start..].to_owned())
        })
        .collect()
}

/// SHA-256 as lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
}

/// The vector that `@vec(dims, words)` stands for.
pub(crate) fn vector_of(words: &str, dims: usize) -> Vec<u8> {
    Rng::of_text(words).vector(dims)
}

/// A folder of recipe files.
#[derive(Debug, Clone)]
pub(crate) struct Recipe(PathBuf);

impl Recipe {
    /// The recipe of that name beside the fixtures, e.g. `sample.recipe`.
    pub(crate) fn named(name: &str) -> Self {
        Self(legacy_fixtures().join(name))
    }

    /// A file's bytes.
    pub(crate) fn bytes(&self, file: &str) -> Vec<u8> {
        let path = self.0.join(file);
        fs::read(&path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()))
    }

    /// A file's text.
    pub(crate) fn text(&self, file: &str) -> String {
        String::from_utf8(self.bytes(file)).unwrap()
    }

    /// A text file in which `@sealed(token)` stands for the digest of a token, encrypted.
    pub(crate) fn sealed(&self, file: &str) -> String {
        replace_marks(&self.text(file), "@sealed(", secrets::sealed_hash)
    }

    /// A SQL file with its marks replaced.
    pub(crate) fn sql(&self, file: &str) -> String {
        let text = replace_marks(&self.text(file), "@vec(", |inside| {
            let (dims, words) = inside.split_once(", ").expect("@vec(dims, words)");
            format!("X'{}'", hex(&vector_of(words, dims.parse().unwrap())))
        });
        let text = replace_marks(&text, "@digest(", |text| sha256_hex(text.as_bytes()));
        let text = replace_marks(&text, "@sha256(", |name| sha256_hex(&self.bytes(name)));
        replace_marks(&text, "@len(", |name| self.bytes(name).len().to_string())
    }
}

/// Replaces every `open…)` in `text` by what `value` makes of its inside.
fn replace_marks(text: &str, open: &str, value: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        let (inside, tail) = after.split_once(')').expect("a mark ends with )");
        out.push_str(before);
        out.push_str(&value(inside));
        rest = tail;
    }
    out + rest
}

/// Cuts `text` inside its last character of more than one byte, as a crash leaves a file.
pub(crate) fn torn_inside_last_char(text: &str) -> Vec<u8> {
    let (at, _) = text
        .char_indices()
        .rfind(|(_, c)| c.len_utf8() > 1)
        .expect("a wide character to cut");
    text.as_bytes()[..=at].to_vec()
}
