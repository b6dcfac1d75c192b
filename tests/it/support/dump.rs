//! What a database says, as text, without what may differ between two runs.

use std::fmt::Write as _;
use std::path::Path;

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row};

use super::recipe::{hex, sha256_hex};
use super::sqlite::{self, PrivateCopy};

/// Longest value written out; a longer one is shown by length and digest.
const MAX_SHOWN_BYTES: usize = 512;

/// What a dump leaves out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Skip<'a> {
    /// Tables, besides the virtual, shadow, `sqlite_` and `_sqlx_migrations` ones that never show.
    pub(crate) tables: &'a [&'a str],
    /// `(table, column)` whose values show as `<set>`; table `*` means any. NULL still shows.
    pub(crate) columns: &'a [(&'a str, &'a str)],
}

impl Skip<'_> {
    /// Leaves nothing out.
    pub(crate) const NOTHING: Self = Self {
        tables: &[],
        columns: &[],
    };

    fn blanks(&self, table: &str, column: &str) -> bool {
        self.columns
            .iter()
            .any(|(t, c)| (*t == "*" || *t == table) && *c == column)
    }
}

/// Every ordinary table's rows in primary-key order, one line a value. The file itself is not opened: a copy with its
/// log is.
///
/// A table without a primary key, or with a blanked one, is ordered by the rows' own text.
pub(crate) fn logical_dump(store: &Path, skip: Skip<'_>) -> String {
    dump_of(&PrivateCopy::of(store), skip)
}

/// As [`logical_dump`], on a copy that was already made.
pub(crate) fn dump_of(copy: &PrivateCopy, skip: Skip<'_>) -> String {
    sqlite::block_on(async {
        let mut connection = copy.open().await;
        let mut out = String::new();
        for table in ordinary_tables(&mut connection).await {
            if !skip.tables.contains(&table.as_str()) {
                dump_table(&mut connection, &table, skip, &mut out).await;
            }
        }
        out
    })
}

/// The `CREATE` text of everything, in name order: the schema as this file states it.
pub(crate) fn schema_dump(store: &Path) -> String {
    let copy = PrivateCopy::of(store);
    sqlite::block_on(async {
        let mut connection = copy.open().await;
        let rows =
            sqlx::query("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
                .fetch_all(&mut connection)
                .await
                .unwrap();
        rows.iter()
            .map(|row| row.get::<String, _>(0) + ";\n")
            .collect()
    })
}

async fn ordinary_tables(connection: &mut SqliteConnection) -> Vec<String> {
    // `table_list` knows shadow tables as such, which their names alone do not tell.
    sqlx::query_scalar(
        "SELECT name FROM pragma_table_list \
         WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> '_sqlx_migrations' \
         ORDER BY name",
    )
    .fetch_all(connection)
    .await
    .unwrap()
}

struct Column {
    name: String,
    key_position: i64,
}

async fn columns_of(connection: &mut SqliteConnection, table: &str) -> Vec<Column> {
    let rows =
        sqlx::query("SELECT name, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid")
            .bind(table)
            .fetch_all(connection)
            .await
            .unwrap();
    rows.iter()
        .map(|row| Column {
            name: row.get(0),
            key_position: row.get(1),
        })
        .collect()
}

async fn dump_table(
    connection: &mut SqliteConnection,
    table: &str,
    skip: Skip<'_>,
    out: &mut String,
) {
    let columns = columns_of(connection, table).await;
    let mut key: Vec<&Column> = columns
        .iter()
        .filter(|column| column.key_position > 0)
        .collect();
    key.sort_by_key(|column| column.key_position);
    let by_text = key.is_empty() || key.iter().any(|column| skip.blanks(table, &column.name));

    // Safe: names come from the schema of a test's own file and are quoted.
    let rows = sqlx::query(AssertSqlSafe(select(
        table,
        &columns,
        if by_text { &[] } else { &key },
    )))
    .fetch_all(connection)
    .await
    .unwrap_or_else(|error| panic!("cannot read {table}: {error}"));

    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| show_row(table, &columns, row, skip))
        .collect();
    if by_text {
        lines.sort();
    }
    writeln!(out, "== {table}: {} rows", lines.len()).unwrap();
    for line in lines {
        out.push_str(&line);
        out.push_str("--\n");
    }
}

/// Each value as its type and its bytes: SQLite's own text functions stop at a NUL.
fn select(table: &str, columns: &[Column], key: &[&Column]) -> String {
    let mut sql = String::from("SELECT ");
    for (index, column) in columns.iter().enumerate() {
        let name = quoted(&column.name);
        let comma = if index == 0 { "" } else { ", " };
        write!(
            sql,
            "{comma}typeof({name}), \
             CASE WHEN typeof({name}) IN ('text', 'blob') THEN CAST({name} AS BLOB) ELSE CAST(quote({name}) AS BLOB) END"
        )
        .unwrap();
    }
    write!(sql, " FROM {}", quoted(table)).unwrap();
    for (index, column) in key.iter().enumerate() {
        let word = if index == 0 { " ORDER BY " } else { ", " };
        write!(sql, "{word}{}", quoted(&column.name)).unwrap();
    }
    sql
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn show_row(
    table: &str,
    columns: &[Column],
    row: &sqlx::sqlite::SqliteRow,
    skip: Skip<'_>,
) -> String {
    let mut line = String::new();
    for (index, column) in columns.iter().enumerate() {
        let kind: String = row.get(index * 2);
        let shown = if kind != "null" && skip.blanks(table, &column.name) {
            "<set>".to_owned()
        } else {
            show_value(&kind, &row.get::<Vec<u8>, _>(index * 2 + 1))
        };
        writeln!(line, "{} = {shown}", column.name).unwrap();
    }
    line
}

fn show_value(kind: &str, bytes: &[u8]) -> String {
    if bytes.len() > MAX_SHOWN_BYTES {
        return format!(
            "{kind} of {} bytes, sha256 {}",
            bytes.len(),
            sha256_hex(bytes)
        );
    }
    match (kind, std::str::from_utf8(bytes)) {
        ("null", _) => "null".to_owned(),
        ("text", Ok(text)) => format!("text {text:?}"),
        ("text", Err(_)) => format!("text that is not UTF-8 {}", hex(bytes)),
        ("blob", _) => format!("blob {}", hex(bytes)),
        (_, Ok(number)) => format!("{kind} {number}"),
        (_, Err(_)) => format!("{kind} {}", hex(bytes)),
    }
}
