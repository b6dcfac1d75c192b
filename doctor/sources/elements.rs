//! The elements of a JSON array that fills a file, one at a time.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use zeroclaw::fs::FsError;

/// Longest element taken, bytes.
const MAX_ELEMENT_BYTES: usize = 256 * 1024 * 1024;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// The text of an element, still to be parsed.
    Text(Vec<u8>),
    /// The file ends before its array does; what there is of the last element.
    Torn(Vec<u8>),
    /// The file holds no array.
    NoArray,
}

/// Reads such a file.
#[derive(Debug)]
pub(crate) struct Elements {
    bytes: std::io::Bytes<BufReader<File>>,
    path: PathBuf,
    has_begun: bool,
    has_ended: bool,
}

impl Elements {
    /// Opens it.
    pub(crate) fn open(path: &Path) -> Result<Self, FsError> {
        let file = File::open(path).map_err(FsError::at("open", path))?;
        Ok(Self {
            bytes: BufReader::with_capacity(256 * 1024, file).bytes(),
            path: path.to_owned(),
            has_begun: false,
            has_ended: false,
        })
    }

    /// The next element; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<Element>, FsError> {
        if self.has_ended {
            return Ok(None);
        }
        if !self.has_begun {
            self.has_begun = true;
            loop {
                match self.byte()? {
                    Some(b'[') => break,
                    Some(byte) if byte.is_ascii_whitespace() => {}
                    _ => {
                        self.has_ended = true;
                        return Ok(Some(Element::NoArray));
                    }
                }
            }
        }
        self.element()
    }

    /// Up to the comma or bracket that ends it; commas and brackets in texts and deeper down do not.
    fn element(&mut self) -> Result<Option<Element>, FsError> {
        let mut text = Vec::new();
        let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
        loop {
            let Some(byte) = self.byte()?.filter(|_| text.len() < MAX_ELEMENT_BYTES) else {
                self.has_ended = true;
                return Ok(Some(Element::Torn(text)));
            };
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_text => is_escaped = true,
                b'"' => in_text = !in_text,
                _ if in_text => {}
                b'[' | b'{' => depth += 1,
                b']' if depth == 0 => {
                    self.has_ended = true;
                    let is_blank = text.iter().all(u8::is_ascii_whitespace);
                    return Ok((!is_blank).then_some(Element::Text(text)));
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                b',' if depth == 0 => return Ok(Some(Element::Text(text))),
                _ => {}
            }
            text.push(byte);
        }
    }

    fn byte(&mut self) -> Result<Option<u8>, FsError> {
        self.bytes
            .next()
            .transpose()
            .map_err(FsError::at("read", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Element> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut elements = Elements::open(file.path()).unwrap();
        std::iter::from_fn(|| elements.next().unwrap()).collect()
    }

    #[test]
    fn elements_end_at_their_own_comma() {
        let text = |text: &str| Element::Text(text.as_bytes().to_vec());

        assert_eq!(all(" [ ] "), []);
        assert_eq!(
            all(r#"[{"a":"x,]}\"\\"},[1,2],3]"#),
            [text(r#"{"a":"x,]}\"\\"}"#), text("[1,2]"), text("3")]
        );
    }

    #[test]
    fn a_torn_file_gives_what_is_whole_and_says_so() {
        assert_eq!(all("{}"), [Element::NoArray]);
        assert_eq!(all(""), [Element::NoArray]);
        assert_eq!(
            all(r#"[1,{"a":"#),
            [
                Element::Text(b"1".to_vec()),
                Element::Torn(br#"{"a":"#.to_vec())
            ]
        );
    }
}
