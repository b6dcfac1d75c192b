//! Takes out of a copy what must not travel, so that no byte of it remains.
//!
//! A deleted row leaves its bytes in free pages, its words in the full-text index until SQLite merges them away, and
//! samples of its keys in the planner's statistics. So an erasure ends with a new compact file in place of the copy.
//! `VACUUM` in place was left out: its temporary file lies outside of the private folder.

use std::path::PathBuf;

use sqlx::{Connection, Row, SqliteConnection};

use super::DbCopy;
use crate::db::check::FULL_TEXT_INDEXES;
use crate::db::error::{DbError, OpenError};
use crate::fs::{FsError, atomic};
use crate::model::Tier;

/// What is taken out of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erase {
    /// The table.
    pub table: &'static str,
    /// Only rows in which this column holds this text; `None` for all.
    pub only: Option<(&'static str, &'static str)>,
    /// Whole rows, or columns of them.
    pub what: Erased,
}

/// How much of a row is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erased {
    /// All of it.
    Row,
    /// This column: `NULL` where the schema lets it be, else the emptiest value of its type.
    Column(&'static str),
}

impl DbCopy {
    /// Takes rows and values out, in one transaction; gives how many each step changed.
    ///
    /// A table or column that this copy's schema version does not have counts none. [`DbCopy::rewrite`] must follow:
    /// the bytes are still in the file.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails, or a rule of the schema forbids the empty value; nothing is changed then.
    pub async fn erase(&mut self, steps: &[Erase]) -> Result<Vec<u64>, DbError> {
        let mut tx = self.conn.begin_with("BEGIN IMMEDIATE").await?;
        let mut counts = Vec::with_capacity(steps.len());
        for step in steps {
            let Some(filter) = Filter::of(&mut tx, step).await? else {
                counts.push(0);
                continue;
            };
            let table = step.table;
            let rows = filter.rows;
            let sql = match &filter.blank {
                None => format!("DELETE FROM \"{table}\" WHERE {rows}"),
                Some((column, blank)) => format!(
                    "UPDATE \"{table}\" SET \"{column}\" = {blank}
                     WHERE {rows} AND \"{column}\" IS NOT {blank}"
                ),
            };
            let changed = run(&mut tx, sql, step.only).await?;
            if changed > 0 {
                rebuild_index_of(&mut tx, table).await?;
            }
            counts.push(changed);
        }
        tx.commit().await?;
        Ok(counts)
    }

    /// Counts what [`DbCopy::erase`] should have taken out and is still there.
    ///
    /// # Errors
    ///
    /// [`DbError`] when it cannot be read.
    pub async fn remains(&mut self, steps: &[Erase]) -> Result<Vec<i64>, DbError> {
        let mut counts = Vec::with_capacity(steps.len());
        for step in steps {
            let Some(filter) = Filter::of(&mut self.conn, step).await? else {
                counts.push(0);
                continue;
            };
            let still = match &filter.blank {
                None => filter.rows,
                Some((column, blank)) => {
                    format!("{} AND \"{column}\" IS NOT {blank}", filter.rows)
                }
            };
            let sql = format!("SELECT count(*) FROM \"{}\" WHERE {still}", step.table);
            // Names are constants of this program, the value is bound.
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
            let query = match step.only {
                Some((_, value)) => query.bind(value),
                None => query,
            };
            counts.push(query.fetch_one(&mut self.conn).await?);
        }
        Ok(counts)
    }

    /// Takes out what deleted rows left behind: their words in full-text indexes, samples of their keys in
    /// statistics. Says whether there may have been any; [`DbCopy::rewrite`] must follow then.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails.
    pub async fn forget_deleted(&mut self) -> Result<bool, DbError> {
        let mut found = false;
        for index in FULL_TEXT_INDEXES {
            if has_table(&mut self.conn, index).await?
                && may_remember(&mut self.conn, index).await?
            {
                // Merges all parts into one, which is the only place where deleted words are dropped.
                command(&mut self.conn, index, "optimize").await?;
                found = true;
            }
        }
        if has_table(&mut self.conn, "sqlite_stat4").await? {
            let samples = sqlx::query("DELETE FROM sqlite_stat4")
                .execute(&mut self.conn)
                .await?;
            found |= samples.rows_affected() > 0;
        }
        Ok(found)
    }

    /// Writes the copy anew without free pages, in place of the old file, and opens it again.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it cannot be written; the old file is still there then.
    pub async fn rewrite(mut self, tier: &Tier) -> Result<Self, OpenError> {
        let path = self.path.clone();
        let named = |error: sqlx::Error| OpenError::Db(DbError::from(error).at(&path));
        let mut fresh = path.clone().into_os_string();
        fresh.push(".fresh");
        let fresh = PathBuf::from(fresh);
        // Pre-created: SQLite would make it 0644 under a common umask.
        atomic::precreate_private(&fresh)?;
        let into = fresh.to_str().map(str::to_owned);
        let into =
            into.ok_or_else(|| named(sqlx::Error::Configuration("the path is not UTF-8".into())))?;
        sqlx::query("VACUUM main INTO ?1")
            .bind(into)
            .execute(&mut self.conn)
            .await
            .map_err(named)?;
        self.close().await?;
        std::fs::rename(&fresh, &path).map_err(FsError::at("replace", &path))?;
        Self::open(&path, tier).await
    }
}

/// Which rows a step means, and what its column becomes.
struct Filter {
    rows: String,
    blank: Option<(&'static str, &'static str)>,
}

impl Filter {
    /// `None` when the schema has no such table or column.
    async fn of(conn: &mut SqliteConnection, step: &Erase) -> Result<Option<Self>, DbError> {
        let columns = sqlx::query("SELECT name, type, \"notnull\" FROM pragma_table_info(?1)")
            .bind(step.table)
            .fetch_all(conn)
            .await?;
        let column = |name: &str| {
            columns
                .iter()
                .find(|row| row.get::<&str, _>("name") == name)
        };
        if columns.is_empty() || step.only.is_some_and(|(name, _)| column(name).is_none()) {
            return Ok(None);
        }
        let blank = match step.what {
            Erased::Row => None,
            Erased::Column(name) => {
                let Some(row) = column(name) else {
                    return Ok(None);
                };
                let is_required: bool = row.get("notnull");
                Some((name, blank_of(name, row.get("type"), is_required)))
            }
        };
        let rows = match step.only {
            Some((name, _)) => format!("\"{name}\" = ?1"),
            None => "1".to_owned(),
        };
        Ok(Some(Self { rows, blank }))
    }
}

/// The emptiest value that a column may hold, as SQL.
fn blank_of(name: &str, kind: &str, is_required: bool) -> &'static str {
    match kind {
        _ if !is_required => "NULL",
        "INTEGER" | "REAL" => "0",
        "BLOB" => "x''",
        _ if name.ends_with("_json") => "'{}'",
        _ => "''",
    }
}

/// Runs a statement of constant names with the value of `only`; gives the rows it changed.
async fn run(
    conn: &mut SqliteConnection,
    sql: String,
    only: Option<(&'static str, &'static str)>,
) -> Result<u64, DbError> {
    // Names are constants of this program, the value is bound.
    let query = sqlx::query(sqlx::AssertSqlSafe(sql));
    let query = match only {
        Some((_, value)) => query.bind(value),
        None => query,
    };
    Ok(query.execute(conn).await?.rows_affected())
}

/// An index over changed rows would keep their old words.
async fn rebuild_index_of(conn: &mut SqliteConnection, table: &str) -> Result<(), DbError> {
    let index = FULL_TEXT_INDEXES
        .iter()
        .find(|index| index.strip_suffix("_fts") == Some(table));
    match index {
        Some(index) => command(conn, index, "rebuild").await,
        None => Ok(()),
    }
}

async fn has_table(conn: &mut SqliteConnection, name: &str) -> Result<bool, DbError> {
    let found = sqlx::query_scalar("SELECT count(*) > 0 FROM sqlite_schema WHERE name = ?1")
        .bind(name)
        .fetch_one(conn)
        .await?;
    Ok(found)
}

/// Whether an index may hold words of deleted rows: it is in several parts, and nothing made it drop them at once.
async fn may_remember(conn: &mut SqliteConnection, index: &str) -> Result<bool, DbError> {
    let sql = format!(
        "SELECT (SELECT count(DISTINCT segid) FROM \"{index}_idx\") > 1
             AND NOT EXISTS (SELECT 1 FROM \"{index}_config\" WHERE k = 'secure-delete' AND v = 1)"
    );
    // A constant of this program.
    let found = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .fetch_one(conn)
        .await?;
    Ok(found)
}

/// Gives a full-text index one of FTS5's commands.
async fn command(conn: &mut SqliteConnection, index: &str, word: &str) -> Result<(), DbError> {
    let sql = format!("INSERT INTO \"{index}\" (\"{index}\") VALUES (?1)");
    // A constant of this program.
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(word)
        .execute(conn)
        .await?;
    Ok(())
}
