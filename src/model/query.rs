//! An answer to a statement somebody wrote, and what bounds it.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Most rows that can be asked for at once.
pub const MAX_QUERY_ROWS: u32 = 1_000_000;
/// Longest time a query can be given.
pub const MAX_QUERY_TIME: Duration = Duration::from_secs(3_600);

/// Rows unless asked otherwise.
const ROWS: u32 = 1_000;
/// Time unless asked otherwise: longer than a scan of a large database, shorter than a person's patience.
const TIME: Duration = Duration::from_secs(10);
/// Bytes of all cells together.
const BYTES: usize = 64 << 20;
/// Characters of one cell; longer ones are cut.
const CELL_CHARS: usize = 1 << 20;

/// What bounds an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Most rows.
    pub rows: u32,
    /// Longest time.
    pub time: Duration,
    /// Most bytes of all cells together.
    pub bytes: usize,
    /// Most characters of a text, or bytes of a blob.
    pub cell_chars: usize,
    /// Most bytes that SQLite may hold, in the whole process and from then on: for processes that end with their query.
    pub heap_bytes: Option<i64>,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            rows: ROWS,
            time: TIME,
            bytes: BYTES,
            cell_chars: CELL_CHARS,
            heap_bytes: None,
        }
    }
}

/// A value as SQLite has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Text; what is no UTF-8 in it is replaced.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Cell {
    /// Bytes it takes up.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) => 8,
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }
}

/// The digits of bytes.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl std::fmt::Display for Cell {
    /// `NULL`, numbers in full, text as it is, and bytes as SQL has them: `x'00ff'`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => write!(f, "{number:?}"),
            Self::Text(text) => f.write_str(text),
            Self::Blob(bytes) => write!(f, "x'{}'", hex(bytes)),
        }
    }
}

impl Serialize for Cell {
    /// JSON's own kinds where it has them; `{"blob": "00ff"}` for bytes, `{"real": "inf"}` for numbers JSON lacks.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = |name: &str, value: String, serializer: S| {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry(name, &value)?;
            map.end()
        };
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Real(number) if number.is_finite() => serializer.serialize_f64(*number),
            Self::Real(number) => object("real", number.to_string(), serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blob(bytes) => object("blob", hex(bytes), serializer),
        }
    }
}

/// Why an answer ends before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryCut {
    /// There are more rows than were wanted.
    Rows,
    /// The rows hold more bytes than an answer may.
    Bytes,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryAnswer {
    /// `global` or `agent <id>`.
    pub tier: String,
    /// Names of the columns, in order; a name may come twice.
    pub columns: Vec<String>,
    /// Rows, a cell a column.
    pub rows: Vec<Vec<Cell>>,
    /// Why there are no more rows; `None` when these are all.
    pub cut: Option<QueryCut>,
    /// Cells that were cut to the limit of one.
    pub cut_cells: u64,
}

impl QueryAnswer {
    /// Whether everything that was asked for is in it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.cut.is_none() && self.cut_cells == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_json_of_its_own_kind_where_json_has_it() {
        for (cell, json) in [
            (Cell::Null, "null"),
            (Cell::Integer(i64::MIN), "-9223372036854775808"),
            (Cell::Real(0.5), "0.5"),
            (Cell::Real(f64::NEG_INFINITY), r#"{"real":"-inf"}"#),
            (Cell::Text("a\"b".to_owned()), r#""a\"b""#),
            (Cell::Blob(vec![0, 255, 16]), r#"{"blob":"00ff10"}"#),
        ] {
            assert_eq!(serde_json::to_string(&cell).unwrap(), json);
        }
    }
}
