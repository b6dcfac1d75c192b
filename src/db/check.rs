//! What SQLite can prove about a file.

use sqlx::{Row, SqliteConnection};

use super::error::DbError;
use crate::model::CheckOutcome;

/// Lines kept of one check's findings.
const MAX_LINES: usize = 20;

/// The full-text indexes of an agent's tier, each an external-content FTS5 table.
pub const FULL_TEXT_INDEXES: [&str; 4] = [
    "transcript_events_fts",
    "memories_fts",
    "vfs_entries_fts",
    "memory_index_chunks_fts",
];

/// Runs `PRAGMA integrity_check`.
///
/// # Errors
///
/// [`DbError`] when the check itself cannot run; damage it finds is an outcome.
pub async fn check_connection(conn: &mut SqliteConnection) -> Result<CheckOutcome, DbError> {
    let lines: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(20)")
        .fetch_all(conn)
        .await?;
    if lines.len() == 1 && lines[0] == "ok" {
        return Ok(CheckOutcome::Ok);
    }
    Ok(CheckOutcome::Failed { lines })
}

/// Runs `PRAGMA foreign_key_check`.
///
/// # Errors
///
/// [`DbError`] when the check itself cannot run.
pub async fn check_relations(conn: &mut SqliteConnection) -> Result<CheckOutcome, DbError> {
    let rows = sqlx::query("PRAGMA foreign_key_check")
        .fetch_all(conn)
        .await?;
    let lines: Vec<String> = rows
        .iter()
        .take(MAX_LINES)
        .map(|row| {
            let (table, rowid, parent): (String, Option<i64>, String) =
                (row.get(0), row.get(1), row.get(2));
            let row = rowid.map_or_else(|| "?".to_owned(), |rowid| rowid.to_string());
            format!("{table} row {row} has no {parent}")
        })
        .collect();
    if lines.is_empty() {
        Ok(CheckOutcome::Ok)
    } else {
        Ok(CheckOutcome::Failed { lines })
    }
}

/// Runs FTS5's own integrity check at rank 1 on every index in `indexes` that exists.
///
/// Only rank 1 compares an external-content index with its rows; `integrity_check` and the plain
/// FTS check call a stale index sound. The command is an insert, so `conn` must be able to write,
/// though it changes nothing: give it a private copy where the original may not be touched.
///
/// # Errors
///
/// [`DbError`] when the check itself cannot run.
pub async fn check_full_text(
    conn: &mut SqliteConnection,
    indexes: &[&str],
) -> Result<CheckOutcome, DbError> {
    let mut lines = Vec::new();
    for index in indexes {
        let exists: bool =
            sqlx::query_scalar("SELECT count(*) > 0 FROM sqlite_schema WHERE name = ?1")
                .bind(*index)
                .fetch_one(&mut *conn)
                .await?;
        if !exists {
            continue;
        }
        // A table name cannot be bound; these are constants of this program.
        let sql =
            format!("INSERT INTO \"{index}\" (\"{index}\", rank) VALUES ('integrity-check', 1)");
        match sqlx::query(sqlx::AssertSqlSafe(sql))
            .execute(&mut *conn)
            .await
        {
            Ok(_) => {}
            Err(error) => {
                let error = DbError::from(error);
                if error.kind() != super::DbErrorKind::Corrupt {
                    return Err(error);
                }
                lines.push(format!("{index} does not agree with its rows"));
            }
        }
    }
    lines.truncate(MAX_LINES);
    if lines.is_empty() {
        Ok(CheckOutcome::Ok)
    } else {
        Ok(CheckOutcome::Failed { lines })
    }
}
