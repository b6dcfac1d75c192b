//! The bytes of files: in their row when they are few, else in chunks of equal size.

use sqlx::SqliteConnection;

use super::{EntryRow, search};
use crate::db::WriteTx;
use crate::store::StoreError;

/// Most bytes in a row; larger files are chunked. An append rewrites what it touches, and the word index reads it anew,
/// so this bounds what a small append costs.
pub const INLINE_BYTES: usize = 64 * 1024;

/// Bytes of one chunk of a file written now. Older files keep the size they were written with.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// [`CHUNK_BYTES`] as its column holds it.
const CHUNK_COLUMN: i64 = 64 * 1024;

/// Size of a new file's chunks, as its row says it.
#[must_use]
pub fn chunk_bytes() -> i64 {
    CHUNK_COLUMN
}

/// Replaces the bytes of a file, however many.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn replace(
    tx: &mut WriteTx<'_>,
    entry_no: i64,
    bytes: &[u8],
    updated_at_ms: i64,
) -> Result<(), StoreError> {
    search::forget(tx, entry_no).await?;
    sqlx::query("DELETE FROM vfs_chunks WHERE entry_no = ?1")
        .bind(entry_no)
        .execute(&mut **tx)
        .await?;
    let is_inline = bytes.len() <= INLINE_BYTES;
    let inline = is_inline.then_some(bytes);
    sqlx::query(
        "UPDATE vfs_entries SET content_blob = ?2, size_bytes = ?3, chunk_bytes = ?4, is_text = ?5, updated_at_ms = ?6
         WHERE entry_no = ?1",
    )
    .bind(entry_no)
    .bind(inline)
    .bind(length(bytes))
    .bind((!is_inline).then_some(CHUNK_COLUMN))
    .bind(i64::from(inline.is_some_and(is_text)))
    .bind(updated_at_ms)
    .execute(&mut **tx)
    .await?;
    if !is_inline {
        insert_chunks(tx, entry_no, 0, bytes, CHUNK_BYTES).await?;
    }
    search::index(tx, entry_no).await
}

/// Adds bytes at the end of a file.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or a chunk is missing.
pub async fn append(
    tx: &mut WriteTx<'_>,
    row: &EntryRow,
    bytes: &[u8],
    updated_at_ms: i64,
) -> Result<(), StoreError> {
    if row.chunk_bytes.is_none() {
        let mut whole = read(tx, row, 0, INLINE_BYTES).await?;
        whole.extend_from_slice(bytes);
        return replace(tx, row.entry_no, &whole, updated_at_ms).await;
    }
    extend(tx, row, bytes).await?;
    sqlx::query("UPDATE vfs_entries SET updated_at_ms = ?2 WHERE entry_no = ?1")
        .bind(row.entry_no)
        .bind(updated_at_ms)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Adds bytes at the end of a chunked file: fills the last chunk, then makes new ones.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or a chunk is missing.
pub async fn extend(tx: &mut WriteTx<'_>, row: &EntryRow, bytes: &[u8]) -> Result<(), StoreError> {
    let chunk = usize_of(row.chunk_bytes.unwrap_or(CHUNK_COLUMN)).max(1);
    let size = usize_of(row.entry.size_bytes);
    let (full, tail) = (size / chunk, size % chunk);
    let mut rest = bytes;
    let mut next = full;
    if tail > 0 {
        let (fill, behind) = bytes.split_at(bytes.len().min(chunk - tail));
        let mut last = read_chunk(tx, row, full, 0, tail).await?;
        last.extend_from_slice(fill);
        sqlx::query(
            "UPDATE vfs_chunks SET content_blob = ?3 WHERE entry_no = ?1 AND chunk_no = ?2",
        )
        .bind(row.entry_no)
        .bind(i64_of(full))
        .bind(last)
        .execute(&mut **tx)
        .await?;
        rest = behind;
        next += 1;
    }
    insert_chunks(tx, row.entry_no, next, rest, chunk).await?;
    sqlx::query("UPDATE vfs_entries SET size_bytes = size_bytes + ?2 WHERE entry_no = ?1")
        .bind(row.entry_no)
        .bind(length(bytes))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

async fn insert_chunks(
    tx: &mut WriteTx<'_>,
    entry_no: i64,
    first: usize,
    bytes: &[u8],
    chunk: usize,
) -> Result<(), StoreError> {
    for (chunk_no, part) in (first..).zip(bytes.chunks(chunk)) {
        sqlx::query(
            "INSERT INTO vfs_chunks (entry_no, chunk_no, content_blob) VALUES (?1, ?2, ?3)",
        )
        .bind(entry_no)
        .bind(i64_of(chunk_no))
        .bind(part)
        .execute(&mut **tx)
        .await?;
    }
    Ok(())
}

/// Reads up to `most` bytes from `offset` on; fewer at the end of the file, none behind it.
///
/// # Errors
///
/// [`StoreError::Corrupt`] when a chunk is missing or short, [`StoreError`] when SQLite fails.
pub async fn read(
    conn: &mut SqliteConnection,
    row: &EntryRow,
    offset: u64,
    most: usize,
) -> Result<Vec<u8>, StoreError> {
    let size = usize_of(row.entry.size_bytes);
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(size);
    let end = start.saturating_add(most).min(size);
    if start == end {
        return Ok(Vec::new());
    }
    let Some(chunk) = row.chunk_bytes.map(usize_of).filter(|&chunk| chunk > 0) else {
        let part: Option<Vec<u8>> = sqlx::query_scalar(
            "SELECT substr(content_blob, ?2, ?3) FROM vfs_entries WHERE entry_no = ?1",
        )
        .bind(row.entry_no)
        .bind(i64_of(start + 1))
        .bind(i64_of(end - start))
        .fetch_optional(conn)
        .await?
        .flatten();
        return whole(part, end - start, row);
    };
    let mut bytes = Vec::with_capacity(end - start);
    let mut at = start;
    while at < end {
        let (chunk_no, skip) = (at / chunk, at % chunk);
        let take = (chunk - skip).min(end - at);
        bytes.append(&mut read_chunk(conn, row, chunk_no, skip, take).await?);
        at += take;
    }
    Ok(bytes)
}

async fn read_chunk(
    conn: &mut SqliteConnection,
    row: &EntryRow,
    chunk_no: usize,
    skip: usize,
    take: usize,
) -> Result<Vec<u8>, StoreError> {
    let part: Option<Vec<u8>> = sqlx::query_scalar(
        "SELECT substr(content_blob, ?3, ?4) FROM vfs_chunks WHERE entry_no = ?1 AND chunk_no = ?2",
    )
    .bind(row.entry_no)
    .bind(i64_of(chunk_no))
    .bind(i64_of(skip + 1))
    .bind(i64_of(take))
    .fetch_optional(conn)
    .await?;
    whole(part, take, row)
}

/// What the sizes promise must be there.
fn whole(part: Option<Vec<u8>>, wanted: usize, row: &EntryRow) -> Result<Vec<u8>, StoreError> {
    match part {
        Some(part) if part.len() == wanted => Ok(part),
        found => Err(StoreError::Corrupt {
            table: "vfs_entries",
            column: "content_blob",
            row: row.entry.path.to_string(),
            found: format!(
                "{} bytes where {wanted} should be",
                found.map_or(0, |part| part.len())
            ),
        }),
    }
}

/// Whether bytes are text that a person could read.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

fn length(bytes: &[u8]) -> i64 {
    i64_of(bytes.len())
}

fn i64_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn usize_of(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0)
}
