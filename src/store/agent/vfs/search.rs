//! Word search over files: `vfs_entries_fts`, over the view `vfs_words`.

use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{PageLimit, VfsHit};
use crate::store::StoreError;
use crate::store::agent::search::{match_expression, needs_substring};

/// Takes an entry into the index; staged uploads and whiteouts stay out by the view.
pub(super) async fn index(tx: &mut WriteTx<'_>, entry_no: i64) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO vfs_entries_fts (rowid, name, text)
         SELECT entry_no, name, text FROM vfs_words WHERE entry_no = ?1",
    )
    .bind(entry_no)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Takes an entry out of the index; its row must still be as it was taken in.
pub(super) async fn forget(tx: &mut WriteTx<'_>, entry_no: i64) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO vfs_entries_fts (vfs_entries_fts, rowid, name, text)
         SELECT 'delete', entry_no, name, text FROM vfs_words WHERE entry_no = ?1",
    )
    .bind(entry_no)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The same for a range of paths.
pub(super) async fn forget_range(
    tx: &mut WriteTx<'_>,
    namespace: &str,
    first: &str,
    end: &str,
) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO vfs_entries_fts (vfs_entries_fts, rowid, name, text)
         SELECT 'delete', w.entry_no, w.name, w.text
         FROM vfs_entries e JOIN vfs_words w ON w.entry_no = e.entry_no
         WHERE e.namespace = ?1 AND e.path >= ?2 AND e.path < ?3",
    )
    .bind(namespace)
    .bind(first)
    .bind(end)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Finds files and folders whose name or text hold all words, best match first.
///
/// The text of a file that is chunked is not searched, its name is.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn search(
    conn: &mut SqliteConnection,
    namespace: Option<&str>,
    text: &str,
    limit: PageLimit,
) -> Result<Vec<VfsHit>, StoreError> {
    let Some(expression) = match_expression(text) else {
        return Ok(Vec::new());
    };
    let columns = super::COLUMNS;
    let (sql, needle) = if needs_substring(text) {
        // A script without spaces between words: a part of the text is looked for instead.
        let sql = format!(
            "SELECT {columns}, 0.0 AS rank, '' AS snippet FROM vfs_entries
             WHERE namespace <> '' AND kind <> 'whiteout' AND (?2 IS NULL OR namespace = ?2)
                 AND (instr(path, ?1) > 0 OR (is_text = 1 AND instr(CAST(content_blob AS TEXT), ?1) > 0))
             ORDER BY updated_at_ms DESC, path LIMIT ?3"
        );
        (sql, text.trim().to_owned())
    } else {
        let columns = columns.replace("entry_no", "e.entry_no");
        let sql = format!(
            "SELECT {columns}, f.rank AS rank, snippet(vfs_entries_fts, 1, '[', ']', '…', 12) AS snippet
             FROM vfs_entries_fts f JOIN vfs_entries e ON e.entry_no = f.rowid
             WHERE vfs_entries_fts MATCH ?1 AND (?2 IS NULL OR namespace = ?2) ORDER BY f.rank LIMIT ?3"
        );
        (sql, expression)
    };
    // Safe: constants and placeholders only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(needle)
        .bind(namespace)
        .bind(limit.rows())
        .fetch_all(conn)
        .await?;
    let hits = rows.iter().map(|row| {
        Ok(VfsHit {
            rank: row.try_get("rank")?,
            snippet: row.try_get("snippet")?,
            entry: super::read(row)?.entry,
        })
    });
    hits.collect()
}
