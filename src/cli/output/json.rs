//! JSON that is safe to look at.
//!
//! `serde_json` escapes what JSON demands. A terminal obeys more than that: the C1 controls, and
//! marks that turn the direction of writing. They are escaped too, which changes no value.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use super::text::is_hazard;
use crate::cli::{CliError, Exit};

/// Turns a value into JSON text.
///
/// # Errors
///
/// [`CliError`] when the value has no JSON form, which is a defect.
pub(super) fn render<T: Serialize + ?Sized>(
    value: &T,
    is_pretty: bool,
) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let done = if is_pretty {
        value.serialize(&mut Serializer::with_formatter(
            &mut bytes,
            Visible(PrettyFormatter::new()),
        ))
    } else {
        value.serialize(&mut Serializer::with_formatter(
            &mut bytes,
            Visible(CompactFormatter),
        ))
    };
    done.map_err(|error| {
        CliError::new(Exit::Internal, "the answer has no JSON form").because(&error)
    })?;
    Ok(bytes)
}

/// Writes as the formatter inside, but for texts.
struct Visible<F>(F);

macro_rules! as_inside {
    ($($name:ident($($arg:ident: $kind:ty),*);)+) => {
        $(fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W $(, $arg: $kind)*) -> io::Result<()> {
            self.0.$name(writer $(, $arg)*)
        })+
    };
}

impl<F: Formatter> Formatter for Visible<F> {
    as_inside! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_hazard) {
            let (safe, hazard) = rest.split_at(at);
            writer.write_all(safe.as_bytes())?;
            let mut chars = hazard.chars();
            // Every hazard lies in the basic plane, so one unit says it.
            let hazard = chars.next().map_or(0, u32::from);
            write!(writer, "\\u{hazard:04x}")?;
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were_and_hold_no_control_character() {
        let text = "a\u{9b}31m\u{7f}\u{202e}b\n\x1b[2J — ünïcode 🦀";

        for is_pretty in [false, true] {
            let bytes = render(&serde_json::json!({ "t": [text] }), is_pretty).unwrap();

            let shown = String::from_utf8(bytes).unwrap();
            assert!(
                !shown.chars().any(|c| c != '\n' && is_hazard(c)),
                "{shown:?}"
            );
            let back: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(back["t"][0], text);
        }
    }
}
