//! The index over files that hold memories: `memory_index_sources`, `memory_index_chunks` and their words.
//!
//! All of it is derived: the files are the truth, and indexing them again gives the same rows.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use super::search::{match_expression, needs_substring};
use crate::db::WriteTx;
use crate::model::{AgentId, IndexedEntry, IndexedFile, IndexedHit, PageLimit};
use crate::store::StoreError;

/// Schema version that brought the tables; older ones index nothing.
pub const SINCE_SCHEMA: i64 = 8;

const ENTRY: &str = "c.id, c.start_line, c.end_line, c.category, c.key, c.text";

fn entry(row: &SqliteRow) -> Result<IndexedEntry, StoreError> {
    Ok(IndexedEntry {
        id: row.try_get("id")?,
        start_line: row.try_get("start_line")?,
        end_line: row.try_get("end_line")?,
        category: row.try_get("category")?,
        key: row.try_get("key")?,
        text: row.try_get("text")?,
    })
}

/// Indexes a file: its entries take the place of those it had before.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn replace(tx: &mut WriteTx<'_>, file: &IndexedFile) -> Result<(), StoreError> {
    delete(tx, &file.path).await?;
    let source_no = sqlx::query(
        "INSERT INTO memory_index_sources (path, hash, mtime_ms, size_bytes) VALUES (?1, ?2, ?3, ?4)",
    )
    .bind(&file.path)
    .bind(&file.hash)
    .bind(file.mtime_ms)
    .bind(file.size_bytes)
    .execute(&mut **tx)
    .await?
    .last_insert_rowid();
    for entry in &file.entries {
        sqlx::query(
            "INSERT INTO memory_index_chunks (source_no, id, start_line, end_line, category, key, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .bind(source_no)
        .bind(&entry.id)
        .bind(entry.start_line)
        .bind(entry.end_line)
        .bind(&entry.category)
        .bind(&entry.key)
        .bind(&entry.text)
        .execute(&mut **tx)
        .await?;
    }
    sqlx::query(
        "INSERT INTO memory_index_chunks_fts (rowid, key, text)
         SELECT chunk_no, key, text FROM memory_index_chunks WHERE source_no = ?1",
    )
    .bind(source_no)
    .execute(&mut **tx)
    .await?;
    bump(tx).await
}

/// Deletes a file with its entries and words.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn remove(tx: &mut WriteTx<'_>, path: &str) -> Result<(), StoreError> {
    delete(tx, path).await?;
    bump(tx).await
}

async fn delete(tx: &mut WriteTx<'_>, path: &str) -> Result<(), StoreError> {
    // An index of external content must be told the old words before they go.
    sqlx::query(
        "INSERT INTO memory_index_chunks_fts (memory_index_chunks_fts, rowid, key, text)
         SELECT 'delete', c.chunk_no, c.key, c.text FROM memory_index_chunks c
         JOIN memory_index_sources s USING (source_no) WHERE s.path = ?1",
    )
    .bind(path)
    .execute(&mut **tx)
    .await?;
    sqlx::query("DELETE FROM memory_index_sources WHERE path = ?1")
        .bind(path)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

async fn bump(tx: &mut WriteTx<'_>) -> Result<(), StoreError> {
    sqlx::query("UPDATE memory_index_state SET revision = revision + 1")
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The hash under which a file is indexed.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn hash_of(
    conn: &mut SqliteConnection,
    path: &str,
) -> Result<Option<String>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT hash FROM memory_index_sources WHERE path = ?1")
            .bind(path)
            .fetch_optional(conn)
            .await?,
    )
}

/// All files that are indexed, in order.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn paths(conn: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT path FROM memory_index_sources ORDER BY path")
            .fetch_all(conn)
            .await?,
    )
}

/// Proves that the word index says what the entries say.
///
/// # Errors
///
/// [`StoreError`] of SQLite's kind `Corrupt` when it does not, or what else went wrong.
pub async fn check_words(tx: &mut WriteTx<'_>) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO memory_index_chunks_fts (memory_index_chunks_fts, rank) VALUES ('integrity-check', 1)",
    )
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The indexed file at a path, with its entries.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    path: &str,
) -> Result<Option<IndexedFile>, StoreError> {
    let found = sqlx::query(
        "SELECT source_no, hash, mtime_ms, size_bytes FROM memory_index_sources WHERE path = ?1",
    )
    .bind(path)
    .fetch_optional(&mut *conn)
    .await?;
    let Some(found) = found else {
        return Ok(None);
    };
    let sql = format!(
        "SELECT {ENTRY} FROM memory_index_chunks c WHERE c.source_no = ?1 ORDER BY c.chunk_no"
    );
    // Safe: constants only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(found.try_get::<i64, _>("source_no")?)
        .fetch_all(conn)
        .await?;
    Ok(Some(IndexedFile {
        path: path.to_owned(),
        hash: found.try_get("hash")?,
        mtime_ms: found.try_get("mtime_ms")?,
        size_bytes: found.try_get("size_bytes")?,
        entries: rows.iter().map(entry).collect::<Result<_, _>>()?,
    }))
}

/// Lists entries by file and line, or those that hold all words of `text`, best match first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn find(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    text: &str,
    limit: PageLimit,
) -> Result<Vec<IndexedHit>, StoreError> {
    let from = "FROM memory_index_chunks c JOIN memory_index_sources s USING (source_no)";
    let (sql, needle) = match match_expression(text) {
        None => (
            format!(
                "SELECT {ENTRY}, s.path, NULL AS rank {from}
                 WHERE ?1 = ?1 ORDER BY s.path, c.start_line, c.chunk_no LIMIT ?2"
            ),
            String::new(),
        ),
        Some(_) if needs_substring(text) => (
            format!(
                "SELECT {ENTRY}, s.path, NULL AS rank {from}
                 WHERE instr(c.text, ?1) > 0 OR instr(c.key, ?1) > 0
                 ORDER BY s.path, c.start_line, c.chunk_no LIMIT ?2"
            ),
            text.trim().to_owned(),
        ),
        Some(expression) => (
            format!(
                "SELECT {ENTRY}, s.path, f.rank AS rank FROM memory_index_chunks_fts f
                 JOIN memory_index_chunks c ON c.chunk_no = f.rowid
                 JOIN memory_index_sources s USING (source_no)
                 WHERE memory_index_chunks_fts MATCH ?1 ORDER BY f.rank LIMIT ?2"
            ),
            expression,
        ),
    };
    // Safe: constants only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(needle)
        .bind(limit.rows())
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(IndexedHit {
                agent_id: agent_id.clone(),
                path: row.try_get("path")?,
                rank: row.try_get("rank")?,
                entry: entry(row)?,
            })
        })
        .collect()
}

/// Drops the word index's content and builds it from the entries.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn rebuild(tx: &mut WriteTx<'_>) -> Result<(), StoreError> {
    sqlx::query("INSERT INTO memory_index_chunks_fts (memory_index_chunks_fts) VALUES ('rebuild')")
        .execute(&mut **tx)
        .await?;
    Ok(())
}
