//! Files and folders of an agent: `vfs_entries`, `vfs_chunks`, `vfs_entries_fts`.
//!
//! Rows only: that folders above a file exist, and what may replace what, is for the use case. Everything below a
//! folder is one range of the index, from `folder/` to `folder0`, the character behind `/`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{MAX_VFS_PATH_BYTES, Page, PageLimit, VfsEntry, VfsKind, VfsPath, VfsTree};
use crate::store::StoreError;
use crate::store::row::decoded;

pub mod content;
pub mod search;

/// Namespace of uploads under way: no name of a tree is empty.
const STAGING: &str = "";

const COLUMNS: &str =
    "entry_no, namespace, path, kind, size_bytes, chunk_bytes, is_executable, is_opaque,
    created_at_ms, updated_at_ms";

/// An entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRow {
    /// Key of its chunks.
    pub entry_no: i64,
    /// Size of each chunk but the last; `None` where the bytes are in the row.
    pub chunk_bytes: Option<i64>,
    /// Whether this folder of a layer hides all of the folder it lies over.
    pub is_opaque: bool,
    /// What it is.
    pub entry: VfsEntry,
}

/// What a new entry is.
#[derive(Clone, Debug)]
pub struct NewEntry<'a> {
    /// Its tree.
    pub namespace: &'a str,
    /// Its place.
    pub path: &'a VfsPath,
    /// What it is.
    pub kind: VfsKind,
    /// Whether a disk should let it be started.
    pub is_executable: bool,
    /// Whether this folder of a layer hides all of the folder it lies over.
    pub is_opaque: bool,
    /// When it was made.
    pub created_at_ms: i64,
    /// When its bytes last changed.
    pub updated_at_ms: i64,
}

/// First and end of the paths that begin with a text.
///
/// Paths compare by bytes of UTF-8, which is the order of code points.
fn range_of(prefix: &str) -> (String, String) {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        let next = match last {
            char::MAX => continue,
            '\u{d7ff}' => '\u{e000}',
            other => char::from_u32(u32::from(other) + 1).unwrap_or(char::MAX),
        };
        end.push(next);
        return (prefix.to_owned(), end);
    }
    // Behind every path there can be: an open end would keep SQLite from stopping at it.
    let last = char::MAX.to_string();
    (
        prefix.to_owned(),
        last.repeat(MAX_VFS_PATH_BYTES / last.len() + 1),
    )
}

/// The text that everything below a folder begins with.
fn below(folder: &VfsPath) -> String {
    if folder.is_top() {
        String::new()
    } else {
        format!("{folder}/")
    }
}

pub(super) fn read(row: &SqliteRow) -> Result<EntryRow, StoreError> {
    let text: &str = row.try_get("path")?;
    let path = decoded(
        |text| VfsPath::new(text).ok(),
        text,
        "vfs_entries",
        "path",
        text,
    )?;
    let kind = decoded(
        VfsKind::parse,
        row.try_get("kind")?,
        "vfs_entries",
        "kind",
        text,
    )?;
    Ok(EntryRow {
        entry_no: row.try_get("entry_no")?,
        chunk_bytes: row.try_get("chunk_bytes")?,
        is_opaque: row.try_get::<i64, _>("is_opaque")? != 0,
        entry: VfsEntry {
            namespace: row.try_get("namespace")?,
            path,
            kind,
            size_bytes: row.try_get("size_bytes")?,
            is_executable: row.try_get::<i64, _>("is_executable")? != 0,
            created_at_ms: row.try_get("created_at_ms")?,
            updated_at_ms: row.try_get("updated_at_ms")?,
        },
    })
}

/// What stands at a path.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    namespace: &str,
    path: &VfsPath,
) -> Result<Option<EntryRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM vfs_entries WHERE namespace = ?1 AND path = ?2");
    // Safe: constants and placeholders only.
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(namespace)
        .bind(path.as_str())
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Lists what stands in one folder, by path; `after` is the last path of an earlier page.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    namespace: &str,
    folder: &VfsPath,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<VfsEntry>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM vfs_entries WHERE namespace = ?1 AND parent = ?2 AND path > ?3
         ORDER BY path LIMIT ?4"
    );
    // Safe: constants and placeholders only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(namespace)
        .bind(folder.as_str())
        .bind(after.unwrap_or_default())
        .bind(limit.rows() + 1)
        .fetch_all(conn)
        .await?;
    page(&rows, limit)
}

/// Lists what begins with a text, by path, folders before what is in them.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list_prefix(
    conn: &mut SqliteConnection,
    namespace: &str,
    prefix: &str,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<VfsEntry>, StoreError> {
    let (first, end) = range_of(prefix);
    let (start, is_behind) = match after {
        Some(after) if after >= first.as_str() => (after, ">"),
        _ => (first.as_str(), ">="),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM vfs_entries WHERE namespace = ?1 AND path {is_behind} ?2 AND path < ?3
         ORDER BY path LIMIT ?4"
    );
    // Safe: constants and placeholders only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(namespace)
        .bind(start)
        .bind(end)
        .bind(limit.rows() + 1)
        .fetch_all(conn)
        .await?;
    page(&rows, limit)
}

/// The same for everything below a folder.
///
/// # Errors
///
/// As [`list_prefix`].
pub async fn list_below(
    conn: &mut SqliteConnection,
    namespace: &str,
    folder: &VfsPath,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<VfsEntry>, StoreError> {
    list_prefix(conn, namespace, &below(folder), after, limit).await
}

fn page(rows: &[SqliteRow], limit: PageLimit) -> Result<Page<VfsEntry>, StoreError> {
    let entries = rows.iter().map(|row| Ok(read(row)?.entry));
    let entries = entries.collect::<Result<Vec<_>, StoreError>>()?;
    Ok(Page::cut(entries, limit, |entry| entry.path.to_string()))
}

/// How much lies below a folder: entries, and the longest path in bytes.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn measure(
    conn: &mut SqliteConnection,
    namespace: &str,
    folder: &VfsPath,
) -> Result<(i64, i64), StoreError> {
    let (first, end) = range_of(&below(folder));
    Ok(sqlx::query_as(
        "SELECT count(*), ifnull(max(octet_length(path)), 0) FROM vfs_entries
         WHERE namespace = ?1 AND path >= ?2 AND path < ?3",
    )
    .bind(namespace)
    .bind(first)
    .bind(end)
    .fetch_one(conn)
    .await?)
}

/// The trees there are, by name.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn trees(conn: &mut SqliteConnection) -> Result<Vec<VfsTree>, StoreError> {
    let rows: Vec<(String, i64, i64, i64)> = sqlx::query_as(
        "SELECT namespace, sum(kind = 'file'), sum(size_bytes), max(updated_at_ms) FROM vfs_entries
         WHERE namespace <> '' GROUP BY namespace ORDER BY namespace",
    )
    .fetch_all(conn)
    .await?;
    let trees = rows
        .into_iter()
        .map(|(namespace, files, size_bytes, updated_at_ms)| VfsTree {
            namespace,
            files,
            size_bytes,
            updated_at_ms,
        });
    Ok(trees.collect())
}

/// Inserts an entry without bytes and takes it into the word index; gives its key.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or something stands there.
pub async fn insert(tx: &mut WriteTx<'_>, new: &NewEntry<'_>) -> Result<i64, StoreError> {
    let blob: Option<&[u8]> = (new.kind == VfsKind::File).then_some(&[]);
    let entry_no = insert_row(tx, new, blob, None).await?;
    search::index(tx, entry_no).await?;
    Ok(entry_no)
}

/// Inserts the row of an upload under way; [`land`] gives it its place.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn stage(
    tx: &mut WriteTx<'_>,
    upload: &VfsPath,
    chunk_bytes: i64,
    now_ms: i64,
) -> Result<i64, StoreError> {
    let new = NewEntry {
        namespace: STAGING,
        path: upload,
        kind: VfsKind::File,
        is_executable: false,
        is_opaque: false,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
    };
    insert_row(tx, &new, None, Some(chunk_bytes)).await
}

async fn insert_row(
    tx: &mut WriteTx<'_>,
    new: &NewEntry<'_>,
    blob: Option<&[u8]>,
    chunk_bytes: Option<i64>,
) -> Result<i64, StoreError> {
    let done = sqlx::query(
        "INSERT INTO vfs_entries (namespace, path, parent, kind, is_executable, created_at_ms, updated_at_ms,
             content_blob, chunk_bytes, is_opaque)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )
    .bind(new.namespace)
    .bind(new.path.as_str())
    .bind(new.path.parent().unwrap_or_default().as_str())
    .bind(new.kind.as_str())
    .bind(i64::from(new.is_executable))
    .bind(new.created_at_ms)
    .bind(new.updated_at_ms)
    .bind(blob)
    .bind(chunk_bytes)
    .bind(i64::from(new.is_opaque))
    .execute(&mut **tx)
    .await?;
    Ok(done.last_insert_rowid())
}

/// The row of an upload under way; `None` when it was swept.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn staged(
    conn: &mut SqliteConnection,
    entry_no: i64,
) -> Result<Option<EntryRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM vfs_entries WHERE entry_no = ?1 AND namespace = ''");
    // Safe: constants and placeholders only.
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(entry_no)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Gives a finished upload its place, where nothing may stand.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or something stands there.
pub async fn land(
    tx: &mut WriteTx<'_>,
    entry_no: i64,
    new: &NewEntry<'_>,
) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE vfs_entries SET namespace = ?2, path = ?3, parent = ?4, is_executable = ?5, created_at_ms = ?6,
             updated_at_ms = ?7
         WHERE entry_no = ?1 AND namespace = ''",
    )
    .bind(entry_no)
    .bind(new.namespace)
    .bind(new.path.as_str())
    .bind(new.path.parent().unwrap_or_default().as_str())
    .bind(i64::from(new.is_executable))
    .bind(new.created_at_ms)
    .bind(new.updated_at_ms)
    .execute(&mut **tx)
    .await?;
    search::index(tx, entry_no).await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes uploads that were begun before an instant and never landed.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn sweep(tx: &mut WriteTx<'_>, before_ms: i64) -> Result<u64, StoreError> {
    let done = sqlx::query("DELETE FROM vfs_entries WHERE namespace = '' AND updated_at_ms < ?1")
        .bind(before_ms)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected())
}

/// Deletes an entry by its key, with its bytes.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(tx: &mut WriteTx<'_>, entry_no: i64) -> Result<(), StoreError> {
    search::forget(tx, entry_no).await?;
    sqlx::query("DELETE FROM vfs_entries WHERE entry_no = ?1")
        .bind(entry_no)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Deletes everything below a folder; gives how many entries went. The folder itself stays.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete_below(
    tx: &mut WriteTx<'_>,
    namespace: &str,
    folder: &VfsPath,
) -> Result<u64, StoreError> {
    let (first, end) = range_of(&below(folder));
    search::forget_range(tx, namespace, &first, &end).await?;
    let done =
        sqlx::query("DELETE FROM vfs_entries WHERE namespace = ?1 AND path >= ?2 AND path < ?3")
            .bind(namespace)
            .bind(first)
            .bind(end)
            .execute(&mut **tx)
            .await?;
    Ok(done.rows_affected())
}

/// Gives an entry, and all below it, another place, where nothing may stand.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or something stands there.
pub async fn rename(tx: &mut WriteTx<'_>, from: &EntryRow, to: &VfsPath) -> Result<(), StoreError> {
    let old = &from.entry.path;
    search::forget(tx, from.entry_no).await?;
    sqlx::query("UPDATE vfs_entries SET path = ?2, parent = ?3 WHERE entry_no = ?1")
        .bind(from.entry_no)
        .bind(to.as_str())
        .bind(to.parent().unwrap_or_default().as_str())
        .execute(&mut **tx)
        .await?;
    search::index(tx, from.entry_no).await?;
    if from.entry.kind == VfsKind::Folder {
        // Names below do not change, so the word index need not hear of it.
        let (first, end) = range_of(&below(old));
        sqlx::query(
            "UPDATE vfs_entries SET path = ?4 || substr(path, length(?5) + 1),
                 parent = ?4 || substr(parent, length(?5) + 1)
             WHERE namespace = ?1 AND path >= ?2 AND path < ?3",
        )
        .bind(&from.entry.namespace)
        .bind(first)
        .bind(end)
        .bind(to.as_str())
        .bind(old.as_str())
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Says whether a disk should let a file be started.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn set_executable(
    tx: &mut WriteTx<'_>,
    entry_no: i64,
    is_executable: bool,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE vfs_entries SET is_executable = ?2 WHERE entry_no = ?1")
        .bind(entry_no)
        .bind(i64::from(is_executable))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// How many files and folders there are.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn count(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT count(*) FROM vfs_entries WHERE namespace <> ''")
            .fetch_one(conn)
            .await?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_begins_with_its_text_and_nothing_else() {
        let holds = |prefix: &str, path: &str| {
            let (first, end) = range_of(prefix);
            path >= first.as_str() && path < end.as_str()
        };
        for path in ["a/", "a/b", "a/\u{10ffff}", "a/b/c"] {
            assert!(holds("a/", path), "{path}");
        }
        for path in ["a", "a0", "a-b", "b/", "A/b"] {
            assert!(!holds("a/", path), "{path}");
        }
        assert!(holds("", "anything"));
        assert!(holds("\u{d7ff}", "\u{d7ff}x") && !holds("\u{d7ff}", "\u{e000}"));
        assert!(holds("\u{10ffff}", "\u{10ffff}\u{10ffff}"));
    }
}
