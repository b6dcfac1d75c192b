//! JSON as people and other programs wrote it: JSON5 where a person edits, escapes that are half a character.
//!
//! The old program read its configuration, its session index and its jobs as JSON5, all else as strict JSON.

use serde_json::Value;

/// Largest file read as a whole, bytes: a configuration or a list of jobs, never a transcript.
pub(crate) const MAX_WHOLE_BYTES: u64 = 64 * 1024 * 1024;

/// Reads JSON, or JSON5 where that fails; the error is of the strict reading.
pub(crate) fn value(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let strict = serde_json::from_str(text);
    strict.or_else(|error| {
        let plain = without_half_characters(&to_json(text).ok_or_else(|| error.to_string())?);
        serde_json::from_str(&plain).map_err(|_| error.to_string())
    })
}

/// Reads a file as [`value`] does.
pub(crate) fn file(path: &std::path::Path) -> Result<Value, String> {
    let size = std::fs::metadata(path).map_or(0, |meta| meta.len());
    if size > MAX_WHOLE_BYTES {
        return Err(format!("{size} bytes are more than such a file can have"));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    value(&text)
}

/// Replaces escapes that stand for half a character by U+FFFD: legal in JSON, and no text.
pub(crate) fn without_half_characters(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut kept) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let unit = unit_at(bytes, at);
        match unit {
            Some(0xD800..=0xDBFF) if matches!(unit_at(bytes, at + 6), Some(0xDC00..=0xDFFF)) => {
                at += 12;
            }
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[kept..at]);
                out.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    out.push_str(&text[kept..]);
    out
}

/// The UTF-16 unit that `\uXXXX` at this place stands for.
fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// JSON of JSON5 text; `None` where a quote or a comment is open at its end.
fn to_json(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' => quoted(c, &mut chars, &mut out)?,
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().find(|c| *c == '\n');
            }
            '/' if chars.peek() == Some(&'*') => {
                chars.next();
                let mut last = ' ';
                chars.by_ref().find(|c| {
                    let is_end = last == '*' && *c == '/';
                    last = *c;
                    is_end
                })?;
            }
            '}' | ']' => {
                // A comma before the end of a list is none.
                let len = out.trim_end().len();
                if out[..len].ends_with(',') {
                    out.truncate(len - 1);
                }
                out.push(c);
            }
            '+' => {}
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                let mut word = c.to_string();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
                {
                    word.push(c);
                }
                // `1e5` is a number; a name stands for itself in quotes.
                let is_exponent = out.ends_with(|c: char| c.is_ascii_digit() || c == '.');
                match word.as_str() {
                    "true" | "false" | "null" => out.push_str(&word),
                    "NaN" | "Infinity" | "undefined" => out.push_str("null"),
                    _ if is_exponent => out.push_str(&word),
                    _ => {
                        out.push('"');
                        out.push_str(&word);
                        out.push('"');
                    }
                }
            }
            '\u{FEFF}' | '\u{A0}' => out.push(' '),
            c => out.push(c),
        }
    }
    Some(out)
}

fn quoted(
    quote: char,
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    out: &mut String,
) -> Option<()> {
    out.push('"');
    loop {
        match chars.next()? {
            c if c == quote => break,
            '"' => out.push_str("\\\""),
            '\\' => match chars.next()? {
                '\n' => {}
                '\'' => out.push('\''),
                c => out.extend(['\\', c]),
            },
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_person_may_write_is_read_and_what_is_cut_is_not() {
        let text =
            "\u{FEFF}{ // why\n a: 'it\\'s \"so\"', /* x */ \"b\": [1, 2,], c: +1.5e3, d: true,\n}";

        assert_eq!(
            value(text).unwrap(),
            json!({"a": "it's \"so\"", "b": [1, 2], "c": 1500.0, "d": true})
        );
        assert!(value("{\"a\": {\"b\": 1").is_err());
        assert!(value("").is_err());
        assert_eq!(
            value("{\"x\":\"// no comment\"}").unwrap(),
            json!({"x": "// no comment"})
        );
    }

    #[test]
    fn half_a_character_is_replaced_and_a_whole_one_is_not() {
        assert_eq!(
            without_half_characters(r#"a\ud83d \ud83d\ude00 \\ud83d \n"#),
            r#"a\ufffd \ud83d\ude00 \\ud83d \n"#
        );
    }
}
