//! JSON objects in lines: one a line as they were meant, several after a lost line end, parts after a crash.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::lines::Line;

/// Starts of a record tried behind a broken one on the same line, at most.
const MAX_TRIED: usize = 16;

/// A part of a line.
#[derive(Debug)]
pub(crate) enum Piece<'l> {
    /// A whole JSON value.
    Whole {
        /// Where.
        place: String,
        /// Its text.
        json: &'l RawValue,
    },
    /// What is no JSON.
    Broken {
        /// Where.
        place: String,
        /// Its bytes.
        raw: &'l [u8],
        /// Why.
        reason: &'static str,
        /// Whether the file ends in the middle of it: it never was whole.
        is_tail: bool,
    },
}

/// Parts a line. Behind what is broken, a text that `is_record` knows is a record again.
pub(crate) fn pieces(line: &Line, is_record: impl Fn(&RawValue) -> bool) -> Vec<Piece<'_>> {
    let bytes = line.bytes.as_slice();
    let mut found = Vec::new();
    if line.is_too_long {
        found.push(Piece::Broken {
            place: line.place(),
            raw: bytes,
            reason: "longer than 256 MiB",
            is_tail: false,
        });
        return found;
    }
    let mut at = 0;
    loop {
        let mut values =
            serde_json::Deserializer::from_slice(&bytes[at..]).into_iter::<&RawValue>();
        let mut done = 0;
        while let Some(Ok(json)) = values.next() {
            let start = at + values.byte_offset() - json.get().len();
            found.push(Piece::Whole {
                place: place(line, start),
                json,
            });
            done = values.byte_offset();
        }
        at += done;
        at += bytes[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if at == bytes.len() {
            return found;
        }
        let next = next_record(bytes, at + 1, &is_record);
        let end = next.unwrap_or(bytes.len());
        let raw = &bytes[at..end];
        found.push(Piece::Broken {
            place: place(line, at),
            raw,
            reason: match std::str::from_utf8(raw) {
                _ if next.is_some() => "cut off; another record follows on the line",
                Ok(_) => "not JSON",
                Err(_) => "not UTF-8",
            },
            is_tail: next.is_none() && !line.is_ended,
        });
        at = end;
    }
}

/// Where the next record begins, from `from` on.
fn next_record(bytes: &[u8], from: usize, is_record: impl Fn(&RawValue) -> bool) -> Option<usize> {
    let starts = bytes.windows(2).enumerate().skip(from);
    let starts = starts.filter(|(_, window)| window == b"{\"");
    let is_start = |at: &usize| {
        let values = serde_json::Deserializer::from_slice(&bytes[*at..]).into_iter::<&RawValue>();
        values.take(1).flatten().any(&is_record)
    };
    starts.map(|(at, _)| at).take(MAX_TRIED).find(is_start)
}

fn place(line: &Line, start: usize) -> String {
    format!(
        "line {} at byte {}",
        line.number,
        line.offset + start as u64
    )
}

/// The fields of an object, taken out one by one; what is left was not asked for.
#[derive(Debug)]
pub(crate) struct ObjectFields<'l>(BTreeMap<String, &'l RawValue>);

impl<'l> ObjectFields<'l> {
    /// Of an object; `None` for other values.
    pub(crate) fn of(json: &'l RawValue) -> Option<Self> {
        serde_json::from_str(json.get()).ok().map(Self)
    }

    /// Whether there is a field of this name.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Takes a value; `null` counts as absent.
    pub(crate) fn take(&mut self, key: &str) -> Option<&'l RawValue> {
        self.0.remove(key).filter(|json| json.get() != "null")
    }

    /// Takes a text that says something; one of another type stays, as what was not asked for.
    pub(crate) fn text(&mut self, key: &str) -> Option<String> {
        let text: String = serde_json::from_str(self.0.get(key)?.get()).ok()?;
        self.0.remove(key);
        Some(text).filter(|text| !text.is_empty())
    }

    /// Puts a value back among what was not asked for.
    pub(crate) fn keep(&mut self, key: &str, json: &'l RawValue) {
        self.0.insert(key.to_owned(), json);
    }

    /// JSON text of what is left; `None` if nothing is.
    pub(crate) fn rest(&self) -> Option<String> {
        let rest = (!self.0.is_empty()).then(|| serde_json::to_string(&self.0));
        rest.and_then(Result::ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8], is_ended: bool) -> Vec<String> {
        let line = Line {
            number: 3,
            offset: 100,
            bytes: bytes.to_vec(),
            is_ended,
            is_too_long: false,
        };
        let has_id = |json: &RawValue| {
            ObjectFields::of(json).is_some_and(|mut fields| fields.text("id").is_some())
        };
        let told = |piece: &Piece<'_>| match piece {
            Piece::Whole { place, json } => format!("{place}: {}", json.get()),
            Piece::Broken {
                place,
                raw,
                reason,
                is_tail,
            } => format!("{place}: {} bytes {reason} {is_tail}", raw.len()),
        };
        pieces(&line, has_id).iter().map(told).collect()
    }

    #[test]
    fn a_lost_line_end_costs_no_record() {
        assert_eq!(
            told(br#"{"id":"a"}{"id":"b"} 7"#, true),
            [
                r#"line 3 at byte 100: {"id":"a"}"#,
                r#"line 3 at byte 110: {"id":"b"}"#,
                "line 3 at byte 121: 7",
            ]
        );
        assert!(told(b" \t", true).is_empty());
    }

    #[test]
    fn what_follows_a_torn_record_on_its_line_is_taken() {
        assert_eq!(
            told(br#"{"id":"a","x":{"y":{"id":"b"}"#, true),
            [
                "line 3 at byte 100: 19 bytes cut off; another record follows on the line false",
                r#"line 3 at byte 119: {"id":"b"}"#,
            ]
        );
    }

    #[test]
    fn only_an_unended_last_piece_is_a_tail() {
        assert_eq!(
            told(br#"{"id":"a"}{"id"#, false),
            [
                r#"line 3 at byte 100: {"id":"a"}"#,
                "line 3 at byte 110: 4 bytes not JSON true",
            ]
        );
        assert_eq!(
            told(b"{\"id\":\"\xD0", false),
            ["line 3 at byte 100: 8 bytes not UTF-8 true"]
        );
        assert_eq!(
            told(b"not one", true),
            ["line 3 at byte 100: 7 bytes not JSON false"]
        );
    }
}
