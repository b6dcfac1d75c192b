//! How many rows the tables of a database hold, and how many are younger than an instant.

use std::collections::BTreeMap;

use sqlx::SqliteConnection;

use super::error::DbError;
use super::open::Db;

/// Columns that say when a row came to be, or last changed.
const TIMES: [&str; 2] = ["created_at_ms", "updated_at_ms"];

/// What a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableRows {
    /// Rows.
    pub rows: i64,
    /// Rows made or changed after the instant asked for; 0 for a table that keeps no times.
    pub younger: i64,
}

impl Db {
    /// Rows of each ordinary table; virtual ones, their shadows and SQLite's own are left out.
    ///
    /// # Errors
    ///
    /// [`DbError`] when a table cannot be read.
    pub async fn rows(&self) -> Result<BTreeMap<String, i64>, DbError> {
        let mut conn = self.read().await?;
        count(&mut conn)
            .await
            .map_err(|error| error.at(self.path()))
    }

    /// The same, with the rows that were made or changed after `since_ms`.
    ///
    /// # Errors
    ///
    /// As [`rows`](Self::rows).
    pub async fn rows_since(&self, since_ms: i64) -> Result<BTreeMap<String, TableRows>, DbError> {
        let mut conn = self.read().await?;
        count_since(&mut conn, since_ms)
            .await
            .map_err(|error| error.at(self.path()))
    }
}

/// Names of the ordinary tables.
async fn tables(conn: &mut SqliteConnection) -> Result<Vec<String>, DbError> {
    // `table_list` knows shadow tables as such, which their names alone do not tell.
    let tables = sqlx::query_scalar(
        "SELECT name FROM pragma_table_list
         WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    );
    Ok(tables.fetch_all(conn).await?)
}

pub(super) async fn count(conn: &mut SqliteConnection) -> Result<BTreeMap<String, i64>, DbError> {
    let mut rows = BTreeMap::new();
    for table in tables(conn).await? {
        // A table name cannot be bound; quoted, it can name nothing else.
        let sql = format!("SELECT count(*) FROM {}", quoted(&table));
        let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut *conn)
            .await?;
        rows.insert(table, count);
    }
    Ok(rows)
}

async fn count_since(
    conn: &mut SqliteConnection,
    since_ms: i64,
) -> Result<BTreeMap<String, TableRows>, DbError> {
    let mut found = BTreeMap::new();
    for table in tables(conn).await? {
        let columns: Vec<String> = sqlx::query_scalar("SELECT name FROM pragma_table_info(?1)")
            .bind(&table)
            .fetch_all(&mut *conn)
            .await?;
        let times = TIMES
            .iter()
            .filter(|time| columns.iter().any(|column| column == *time));
        let is_younger: Vec<String> = times.map(|time| format!("{time} > ?1")).collect();
        let younger = match is_younger.is_empty() {
            true => "0".to_owned(),
            false => format!("coalesce(sum({}), 0)", is_younger.join(" OR ")),
        };
        // Names of tables as above; columns are of the list above.
        let sql = format!("SELECT count(*), {younger} FROM {}", quoted(&table));
        let (rows, younger): (i64, i64) = sqlx::query_as(sqlx::AssertSqlSafe(sql))
            .bind(since_ms)
            .fetch_one(&mut *conn)
            .await?;
        found.insert(table, TableRows { rows, younger });
    }
    Ok(found)
}

fn quoted(table: &str) -> String {
    format!("\"{}\"", table.replace('"', "\"\""))
}
