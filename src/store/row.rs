//! Reading typed values from rows, cursors, and the text of multi-row inserts.

use crate::model::AgentId;

use super::StoreError;

/// Longest part of an unreadable value that an error shows, characters.
const SHOWN: usize = 40;

/// Takes a stored text through `parse`, or names the place that cannot be read.
pub(super) fn decoded<T>(
    parse: impl Fn(&str) -> Option<T>,
    text: &str,
    table: &'static str,
    column: &'static str,
    row: &str,
) -> Result<T, StoreError> {
    parse(text).ok_or_else(|| StoreError::Corrupt {
        table,
        column,
        row: row.to_owned(),
        found: text.chars().take(SHOWN).collect(),
    })
}

/// The same for a column that may be NULL.
pub(super) fn decoded_opt<T>(
    parse: impl Fn(&str) -> Option<T>,
    text: Option<String>,
    table: &'static str,
    column: &'static str,
    row: &str,
) -> Result<Option<T>, StoreError> {
    text.map(|text| decoded(parse, &text, table, column, row))
        .transpose()
}

/// Reads an agent id.
pub(super) fn agent_id(text: &str) -> Option<AgentId> {
    AgentId::new(text).ok()
}

/// Keys as the JSON array that `json_each` takes apart: any number of them in a fixed statement.
pub(super) fn keys_json(keys: &[&str]) -> String {
    serde_json::Value::from(keys).to_string()
}

/// A keyset cursor of a time and an id, `<ms>:<id>`.
pub(super) fn time_cursor(at_ms: i64, id: &str) -> String {
    format!("{at_ms}:{id}")
}

/// Takes such a cursor apart.
pub(super) fn parse_time_cursor(cursor: &str) -> Result<(i64, String), StoreError> {
    cursor
        .split_once(':')
        .and_then(|(at_ms, id)| Some((at_ms.parse().ok()?, id.to_owned())))
        .ok_or_else(|| StoreError::Cursor {
            text: cursor.to_owned(),
        })
}

/// `head (?, …), (?, …) tail` for `rows` rows of `columns` values.
///
/// Safe as SQL: both texts are constants of the caller, the rest are placeholders.
pub(super) fn values_sql(
    head: &'static str,
    columns: usize,
    rows: usize,
    tail: &'static str,
) -> String {
    let mut tuple = String::with_capacity(2 + 2 * columns);
    tuple.push('(');
    for column in 0..columns {
        tuple.push_str(if column == 0 { "?" } else { ",?" });
    }
    tuple.push(')');
    let mut sql = String::with_capacity(head.len() + tail.len() + rows * (tuple.len() + 1) + 2);
    sql.push_str(head);
    for row in 0..rows {
        sql.push_str(if row == 0 { " " } else { "," });
        sql.push_str(&tuple);
    }
    sql.push(' ');
    sql.push_str(tail);
    sql
}
