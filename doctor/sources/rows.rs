//! Rows of an old table in order, past damaged pages too.
//!
//! A damaged page ends a scan at its first row. What lies behind it can still be read row by row,
//! where an index tells the numbers of rows; else what can be reached from the table's end.

use futures_util::TryStreamExt;

use super::ReadError;
use super::sqlite::{LegacyDb, Values, select};

/// What `PRAGMA quick_check` may say at most, lines.
const MAX_TOLD: u32 = 5;

/// A table to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table<'t> {
    /// Its name.
    pub(crate) name: &'t str,
    /// Columns to read; a missing one reads as NULL.
    pub(crate) wanted: &'t [&'t str],
    /// Columns to order by.
    pub(crate) order: &'t str,
}

/// One row, or what is known of it.
pub(crate) enum Found {
    /// The row.
    Row(Values),
    /// There is one of this number, on a damaged page.
    Lost {
        /// The table's own row number.
        rowid: i64,
    },
}

/// Gives each row of `table` to `take`, in order; says what of it is damaged, if anything.
pub(crate) async fn each_row(
    db: &mut LegacyDb,
    table: Table<'_>,
    mut take: impl AsyncFnMut(Found) -> Result<(), ReadError>,
) -> Result<Option<String>, ReadError> {
    let columns = db.columns(table.name).await?;
    let tail = format!("ORDER BY {}, rowid", table.order);
    let sql = select(table.name, table.wanted, &columns, &tail);
    let mut given = 0;
    let mut rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch(&mut db.conn);
    let reason = loop {
        match rows.try_next().await.map_err(ReadError::from) {
            Ok(Some(row)) => take(Found::Row(Values::of(&row, table.wanted.len())?)).await?,
            Ok(None) => return Ok(None),
            Err(ReadError::Damaged { reason }) => break reason,
            Err(error) => return Err(error),
        }
        given += 1;
    };
    drop(rows);
    let (ids, has_gap) = row_numbers(db, table).await?;
    let sql = select(table.name, table.wanted, &columns, "WHERE rowid = ?1");
    let mut lost = 0_u64;
    for rowid in ids.into_iter().skip(given) {
        let row = sqlx::query(sqlx::AssertSqlSafe(sql.as_str()))
            .bind(rowid)
            .fetch_optional(&mut db.conn)
            .await
            .map_err(ReadError::from);
        let found = match row {
            Ok(Some(row)) => Found::Row(Values::of(&row, table.wanted.len())?),
            Ok(None) | Err(ReadError::Damaged { .. }) => {
                lost += 1;
                Found::Lost { rowid }
            }
            Err(error) => return Err(error),
        };
        take(found).await?;
    }
    let more = if has_gap {
        ", and rows whose numbers cannot be told"
    } else {
        ""
    };
    let told = check(db).await.unwrap_or(reason);
    Ok(Some(format!(
        "{lost} rows{more} are on damaged pages: {told}"
    )))
}

/// Numbers of a table's rows in order, and whether some in the middle are missing.
async fn row_numbers(db: &mut LegacyDb, table: Table<'_>) -> Result<(Vec<i64>, bool), ReadError> {
    let (mut ids, is_whole) = listed(db, table, "ASC").await?;
    if is_whole {
        return Ok((ids, false));
    }
    let (from_end, _) = listed(db, table, "DESC").await?;
    ids.extend(from_end.into_iter().rev());
    Ok((ids, true))
}

/// Numbers of rows in one direction up to damage; whether there was none.
async fn listed(
    db: &mut LegacyDb,
    table: Table<'_>,
    direction: &str,
) -> Result<(Vec<i64>, bool), ReadError> {
    let order: Vec<String> = table
        .order
        .split(", ")
        .chain(["rowid"])
        .map(|column| format!("{column} {direction}"))
        .collect();
    let sql = format!(
        "SELECT rowid FROM \"{}\" ORDER BY {}",
        table.name,
        order.join(", ")
    );
    let mut ids = Vec::new();
    let mut rows = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch(&mut db.conn);
    loop {
        match rows.try_next().await.map_err(ReadError::from) {
            Ok(Some(rowid)) => ids.push(rowid),
            Ok(None) => return Ok((ids, true)),
            Err(ReadError::Damaged { .. }) => return Ok((ids, false)),
            Err(error) => return Err(error),
        }
    }
}

/// What SQLite itself says is wrong, page by page; `None` when it cannot even do that.
async fn check(db: &mut LegacyDb) -> Option<String> {
    let sql = format!("PRAGMA quick_check({MAX_TOLD})");
    let mut rows = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).fetch(&mut db.conn);
    let mut told: Vec<String> = Vec::new();
    // Damage may stop the check itself: what it said until then stands.
    while let Ok(Some(line)) = rows.try_next().await {
        told.push(line);
    }
    told.retain(|line| line != "ok");
    Some(told.join("; ").replace('\n', "; ")).filter(|told| !told.is_empty())
}
