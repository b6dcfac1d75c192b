//! Values of an old row, taken as far as they can be read.
//!
//! For columns whose loss must not cost the record: what is odd about one is noted, and the rest comes in.

use super::sqlite::Values;
use crate::doctor::units::LegacyTime;

/// A row under reading.
pub(crate) struct Lenient<'v> {
    values: &'v Values,
    names: &'v [&'v str],
    /// What is odd about it, by column.
    pub(crate) odd: Vec<String>,
}

impl<'v> Lenient<'v> {
    /// Of a row read as the columns `names`.
    pub(crate) fn of(values: &'v Values, names: &'v [&'v str]) -> Self {
        Self {
            values,
            names,
            odd: Vec::new(),
        }
    }

    /// The value as text, NULL and nothing as `None`; bytes that are no text are replaced.
    pub(crate) fn text(&mut self, column: usize) -> Option<String> {
        let bytes = self
            .values
            .bytes(column)
            .filter(|bytes| !bytes.is_empty())?;
        let text = String::from_utf8_lossy(bytes);
        if self.values.text(column).is_err() {
            let name = self.names[column];
            self.odd
                .push(format!("{name} is not UTF-8; its odd bytes are replaced"));
        }
        Some(text.into_owned())
    }

    /// The value as an instant, Unix milliseconds.
    pub(crate) fn time(&mut self, column: usize) -> Option<i64> {
        let bytes = self
            .values
            .bytes(column)
            .filter(|bytes| !bytes.is_empty())?;
        let time = std::str::from_utf8(bytes).ok().and_then(LegacyTime::parse);
        if time.is_none() {
            let name = self.names[column];
            self.odd.push(format!("{name} is no time; left out"));
        }
        time.map(LegacyTime::ms)
    }
}

/// Columns that this release does not know, kept as JSON beside what it does.
pub(crate) mod sidecar {
    use super::Values;

    /// The known columns, and behind them those the table has besides.
    pub(crate) fn with_unknown<'c>(known: &[&'c str], present: &'c [String]) -> Vec<&'c str> {
        let unknown = present.iter().map(String::as_str);
        let unknown = unknown.filter(|column| !known.contains(column));
        known.iter().copied().chain(unknown).collect()
    }

    /// What stands in the unknown columns of a row read as `wanted`, the first `known` of them known.
    pub(crate) fn of(values: &Values, wanted: &[&str], known: usize) -> Option<String> {
        let is_set = (known..wanted.len()).any(|column| values.bytes(column).is_some());
        is_set.then(|| values.json(wanted, &wanted[..known]))
    }
}
