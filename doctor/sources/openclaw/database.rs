//! Databases of a home: what they are by their own word, and rows by the columns that are known.
//!
//! A table or a column that is not there reads as empty; one that this release does not know is named, never passed
//! over in silence.

use futures_util::TryStreamExt;

use super::super::sqlite::{LegacyDb, Values, select};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::record::Item;

/// Newest schemas whose tables are known.
const KNOWN: [(&str, i64); 2] = [("global", 18), ("agent", 23)];

/// A table that is read, with the columns that matter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) table: &'static str,
    pub(super) columns: &'static [&'static str],
    /// How its rows are ordered.
    pub(super) order: &'static str,
}

/// Checks that a database is of a role, and tells of a version that is newer than what is known.
pub(super) async fn open<S: Sink>(
    db: &mut LegacyDb,
    role: &'static str,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let meta = Read {
        table: "schema_meta",
        columns: &["role", "schema_version"],
        order: "rowid",
    };
    let mut said = None;
    each(db, meta, "", &[], async |values| {
        said = said
            .take()
            .or_else(|| Some((values.hint(0)?, values.integer(1).unwrap_or(0))));
        Ok(())
    })
    .await?;
    let Some((found, version)) = said else {
        let reason = "it has no table schema_meta that says what it is".to_owned();
        return Err(ReadError::Format { reason });
    };
    let is_it = found == role || (role == "global" && found == "state");
    if !is_it {
        let reason = format!("it says that it is of role {found:?}, not {role}");
        return Err(ReadError::Format { reason });
    }
    let known = KNOWN
        .iter()
        .find(|(name, _)| *name == role)
        .map_or(0, |(_, known)| *known);
    if version > known {
        let place = "schema_meta".to_owned();
        let message = format!(
            "schema {version} is newer than {known}, which this release knows; read where its columns are known"
        );
        out.push(
            Item::Note {
                code: "newer-schema",
                place,
                message,
            },
            0,
        )
        .await?;
    }
    Ok(())
}

/// Gives each row of a table to `take`; a table that is not there has none.
///
/// * `filter`: behind WHERE, with the values of `bound` as text; empty for all rows.
pub(super) async fn each(
    db: &mut LegacyDb,
    read: Read,
    filter: &str,
    bound: &[&str],
    mut take: impl AsyncFnMut(Values) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let columns = db.columns(read.table).await?;
    if columns.is_empty() {
        return Ok(());
    }
    let filter = if filter.is_empty() {
        String::new()
    } else {
        format!("WHERE {filter} ")
    };
    let tail = format!("{filter}ORDER BY {}", read.order);
    let sql = select(read.table, read.columns, &columns, &tail);
    // Safe: names of this release's own tables and columns, and placeholders.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for value in bound {
        query = query.bind(*value);
    }
    let mut rows = query.fetch(&mut db.conn);
    while let Some(row) = rows.try_next().await? {
        take(Values::of(&row, read.columns.len())?).await?;
    }
    Ok(())
}

/// All rows of a table that is small.
pub(super) async fn all(db: &mut LegacyDb, read: Read) -> Result<Vec<Values>, ReadError> {
    let mut found = Vec::new();
    each(db, read, "", &[], async |values| {
        found.push(values);
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Names tables with rows that nobody reads: with the reason where the table is known.
pub(super) async fn tell_others<S: Sink>(
    db: &mut LegacyDb,
    read: &[Read],
    known: &[(&'static str, &'static str)],
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let names: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut db.conn).await?;
    for name in names {
        if name.contains('"') || read.iter().any(|read| read.table == name) {
            continue;
        }
        // Safe: a name of the file's own, without quotes in it. A virtual table's module may be missing.
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT count(*) FROM \"{name}\""
        )));
        let rows: i64 = count.fetch_one(&mut db.conn).await.unwrap_or(0);
        if rows == 0 {
            continue;
        }
        let fits = |pattern: &str| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        let reason = known
            .iter()
            .find(|(pattern, _)| fits(pattern))
            .map(|(_, reason)| *reason);
        let code = if reason.is_some() {
            "table-left"
        } else {
            "unknown-table"
        };
        let reason = reason.unwrap_or("no table that this release knows");
        let message = format!("{rows} rows do not come along: {reason}");
        let place = format!("table {name}");
        out.push(
            Item::Note {
                code,
                place,
                message,
            },
            0,
        )
        .await?;
    }
    Ok(())
}

/// Names columns of the tables read that this release does not know.
pub(super) async fn tell_columns<S: Sink>(
    db: &mut LegacyDb,
    read: &[Read],
    ignored: &[&str],
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    for read in read {
        let present = db.columns(read.table).await?;
        let unknown = present.iter().map(String::as_str);
        let unknown =
            unknown.filter(|column| !read.columns.contains(column) && !ignored.contains(column));
        let unknown: Vec<&str> = unknown.collect();
        if !unknown.is_empty() {
            let place = format!("table {}", read.table);
            let message = format!("columns that do not come along: {}", unknown.join(", "));
            out.push(
                Item::Note {
                    code: "column-left",
                    place,
                    message,
                },
                0,
            )
            .await?;
        }
    }
    Ok(())
}
