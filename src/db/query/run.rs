//! Runs a statement that was found to read, within its limits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{
    Column, Connection, Executor, Row, SqlSafeStr, SqliteConnection, Statement as _, TypeInfo,
    ValueRef,
};

use super::super::open::Db;
use super::words::Statement;
use super::{QueryError, Sealed, program, words};
use crate::model::{Cell, QueryAnswer, QueryCut, QueryLimits};

/// Instructions between two looks at the clock: 1,000 cost 1 % and stop within 2 ms.
const STEPS: i32 = 1_000;
/// Time for one instruction to end that does not look at the clock.
const GRACE: Duration = Duration::from_secs(1);
/// Each column is asked for twice, and SQLite gives 2,000.
const MAX_COLUMNS: usize = 1_000;
/// Characters of the cells of one row together; few rows are under way at once.
const ROW_CHARS: usize = 8 << 20;

impl Db {
    /// Answers a statement that somebody wrote, if it only reads.
    ///
    /// * `sealed`: what it may not read.
    ///
    /// # Errors
    ///
    /// [`QueryError`]: it would do more than read, is not understood, or goes beyond what memory or time allow. Too many
    /// rows or bytes are no error: the answer says that it was cut.
    pub async fn query(
        &self,
        sql: &str,
        limits: &QueryLimits,
        sealed: &[Sealed],
    ) -> Result<QueryAnswer, QueryError> {
        let statement = words::read(sql)?;
        let options = self.reader_options();
        let answer = Self::run(options, statement, limits, sealed);
        let answer = match tokio::time::timeout(limits.time + GRACE, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(QueryError::TooSlow { limit: limits.time }),
        };
        match answer {
            Ok(mut answer) => {
                answer.tier = self.tier().to_string();
                Ok(answer)
            }
            Err(QueryError::Db(error)) => Err(QueryError::Db(error.at(self.path()))),
            Err(error) => Err(error),
        }
    }

    async fn run(
        options: SqliteConnectOptions,
        statement: Statement,
        limits: &QueryLimits,
        sealed: &[Sealed],
    ) -> Result<QueryAnswer, QueryError> {
        let named = |error| QueryError::of(error, limits.time);
        // A buffer of rows would hold as many cells of the largest size.
        let options = options.row_buffer_size(1);
        let mut conn = SqliteConnection::connect_with(&options)
            .await
            .map_err(named)?;
        if let Some(bytes) = limits.heap_bytes {
            // A pragma takes no bound values; this is a number.
            let pragma = format!("PRAGMA hard_heap_limit = {bytes}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(pragma))
                .execute(&mut conn)
                .await
                .map_err(named)?;
        }
        let deadline = Instant::now() + limits.time;
        conn.lock_handle()
            .await
            .map_err(named)?
            .set_progress_handler(STEPS, move || Instant::now() < deadline);
        // One instant, and one schema, for the look at the program and for its run.
        sqlx::raw_sql("BEGIN")
            .execute(&mut conn)
            .await
            .map_err(named)?;
        let answer = answer(&mut conn, statement, limits, sealed).await?;
        conn.close().await.map_err(named)?;
        Ok(answer)
    }
}

async fn answer(
    conn: &mut SqliteConnection,
    statement: Statement,
    limits: &QueryLimits,
    sealed: &[Sealed],
) -> Result<QueryAnswer, QueryError> {
    let named = |error| QueryError::of(error, limits.time);
    let (sql, is_plan) = match statement {
        Statement::Query(sql) => (sql, false),
        Statement::Plan(sql) => (sql, true),
    };
    let names = columns(conn, &sql).await.map_err(named)?;
    if names.len() > MAX_COLUMNS {
        return Err(QueryError::refused(format!(
            "the query gives {} columns, {MAX_COLUMNS} are the most",
            names.len()
        )));
    }
    let bounded = bounded(&sql, names.len(), limits);
    program::check(conn, &bounded, sealed)
        .await
        .map_err(named)??;
    if is_plan {
        return plan(conn, &sql, limits).await.map_err(named);
    }
    let mut answer = QueryAnswer {
        tier: String::new(),
        columns: names,
        rows: Vec::new(),
        cut: None,
        cut_cells: 0,
    };
    let mut bytes = 0;
    // The statement has been read word by word, and what SQLite makes of it instruction by instruction.
    let mut rows = sqlx::query(sqlx::AssertSqlSafe(bounded))
        .persistent(false)
        .fetch(conn);
    while let Some(row) = rows.try_next().await.map_err(named)? {
        if answer.rows.len() >= limits.rows as usize {
            answer.cut = Some(QueryCut::Rows);
            break;
        }
        let cells: Vec<Cell> = (0..answer.columns.len())
            .map(|at| cell(&row, 2 * at))
            .collect();
        bytes += cells.iter().map(Cell::bytes).sum::<usize>();
        if bytes > limits.bytes {
            answer.cut = Some(QueryCut::Bytes);
            break;
        }
        let is_cut = |at: &usize| matches!(cell(&row, 2 * at + 1), Cell::Integer(1));
        answer.cut_cells += (0..answer.columns.len()).filter(is_cut).count() as u64;
        answer.rows.push(cells);
    }
    Ok(answer)
}

/// The names of a query's columns; nothing is run.
async fn columns(conn: &mut SqliteConnection, sql: &str) -> Result<Vec<String>, sqlx::Error> {
    let prepared = conn
        .prepare(sqlx::AssertSqlSafe(sql.to_owned()).into_sql_str())
        .await?;
    let names = prepared.columns().iter();
    Ok(names.map(|column| column.name().to_owned()).collect())
}

/// The query between parentheses, with cells cut where they are made: a value of 1 GB never leaves SQLite.
///
/// Both limits keep SQLite from merging the two, which would work out each column three times.
fn bounded(sql: &str, columns: usize, limits: &QueryLimits) -> String {
    let chars = limits.cell_chars.min(ROW_CHARS / columns.max(1));
    let rows = u64::from(limits.rows) + 1;
    let names: Vec<String> = (0..columns).map(|at| format!("c{at}")).collect();
    let cells: Vec<String> = names
        .iter()
        .map(|c| {
            format!(
                "CASE WHEN octet_length({c}) > {chars} THEN substr({c}, 1, {chars}) ELSE {c} END,
                 octet_length({c}) > {chars} AND length({c}) > {chars}"
            )
        })
        .collect();
    // A line of its own: the text may end in a comment.
    format!(
        "WITH answer ({}) AS (SELECT * FROM (\n{sql}\n) LIMIT {rows}) SELECT {} FROM answer LIMIT {rows}",
        names.join(", "),
        cells.join(", ")
    )
}

/// SQLite's plan, a line a row.
async fn plan(
    conn: &mut SqliteConnection,
    sql: &str,
    limits: &QueryLimits,
) -> Result<QueryAnswer, sqlx::Error> {
    let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
    let mut rows = sqlx::query(explain)
        .persistent(false)
        .fetch_all(conn)
        .await?;
    let is_more = rows.len() > limits.rows as usize;
    rows.truncate(limits.rows as usize);
    let columns = ["id", "parent", "notused", "detail"];
    Ok(QueryAnswer {
        tier: String::new(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows
            .iter()
            .map(|row| (0..columns.len()).map(|at| cell(row, at)).collect())
            .collect(),
        cut: is_more.then_some(QueryCut::Rows),
        cut_cells: 0,
    })
}

fn cell(row: &SqliteRow, at: usize) -> Cell {
    let kind = match row.try_get_raw(at) {
        Ok(value) if value.is_null() => return Cell::Null,
        Ok(value) => value.type_info().name().to_owned(),
        Err(_) => return Cell::Null,
    };
    match kind.as_str() {
        "INTEGER" => Cell::Integer(row.get_unchecked(at)),
        "REAL" => Cell::Real(row.get_unchecked(at)),
        "TEXT" => {
            let bytes: &[u8] = row.get_unchecked(at);
            Cell::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => Cell::Blob(row.get_unchecked(at)),
    }
}

impl Db {
    /// How its readers connect.
    fn reader_options(&self) -> SqliteConnectOptions {
        Arc::unwrap_or_clone(self.readers().connect_options())
    }
}
