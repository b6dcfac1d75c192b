//! Candidates of a recall: by words and by vector, among the memories that may be seen.

use sqlx::{Row, SqliteConnection};

use super::{COLUMNS, read_hit};
use crate::model::{AgentId, Direction, MemoryHit};
use crate::store::StoreError;
use crate::store::agent::search::{match_expression, needs_substring};

/// Rows of vectors read in one piece: 400 KB of 768 dimensions, which stay in the processor's cache until compared.
const VECTOR_PAGE: u32 = 128;

/// What a reader may see of one agent's memories, and wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecallScope {
    /// Only of these categories; `None` for all.
    pub categories: Option<Vec<String>>,
    /// Only of this namespace.
    pub namespace: Option<String>,
    /// What has expired by now is not seen, unless it is pinned.
    pub now_ms: i64,
}

/// Which rows a scope holds. Every query of a recall has this and nothing else, so that none can see more.
const VISIBLE: &str = "m.superseded_by IS NULL AND m.is_trusted = 1
    AND (m.pinned = 1 OR m.expires_at_ms IS NULL OR m.expires_at_ms > ?1)
    AND (?2 IS NULL OR m.namespace = ?2)
    AND (?3 IS NULL OR m.category IN (SELECT value FROM json_each(?3)))";

impl RecallScope {
    /// The categories as a JSON array.
    fn category_list(&self) -> Option<String> {
        let list = self.categories.as_ref()?;
        Some(serde_json::Value::from(list.as_slice()).to_string())
    }
}

/// Keys of the memories that hold all words of a text, best first.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn by_words(
    conn: &mut SqliteConnection,
    scope: &RecallScope,
    text: &str,
    limit: u32,
) -> Result<Vec<i64>, StoreError> {
    let Some(expression) = match_expression(text) else {
        return Ok(Vec::new());
    };
    let (sql, needle) = if needs_substring(text) {
        let sql = format!(
            "SELECT m.memory_no FROM memories m
             WHERE {VISIBLE} AND (instr(m.content, ?4) > 0 OR instr(m.key, ?4) > 0)
             ORDER BY m.updated_at_ms DESC LIMIT ?5"
        );
        (sql, text.trim().to_owned())
    } else {
        let sql = format!(
            "SELECT m.memory_no FROM memories_fts f JOIN memories m ON m.memory_no = f.rowid
             WHERE memories_fts MATCH ?4 AND {VISIBLE} ORDER BY f.rank LIMIT ?5"
        );
        (sql, expression)
    };
    // Safe: constants and placeholders only.
    Ok(sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
        .bind(scope.now_ms)
        .bind(&scope.namespace)
        .bind(scope.category_list())
        .bind(needle)
        .bind(limit)
        .fetch_all(conn)
        .await?)
}

/// Keys and cosines of the memories nearest to a vector, nearest first.
///
/// Every vector of the scope is compared. They come in pages, packed into one value: a row of its own for each would
/// cost more than the comparison.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn by_vector(
    conn: &mut SqliteConnection,
    scope: &RecallScope,
    vector: &[f32],
    limit: usize,
) -> Result<Vec<(i64, f64)>, StoreError> {
    let stride = size_of_val(vector);
    if stride == 0 {
        return Ok(Vec::new());
    }
    // The bytes of a BLOB go into a group as they are; the cast takes the mark of text away again.
    let sql = format!(
        "SELECT max(memory_no), group_concat(memory_no), CAST(group_concat(embedding, '') AS BLOB)
         FROM (SELECT m.memory_no, m.embedding FROM memories m
               WHERE {VISIBLE} AND m.memory_no > ?4 AND length(m.embedding) = ?5
               ORDER BY m.memory_no LIMIT ?6)"
    );
    let wanted = Direction::of(vector);
    let mut nearest: Vec<(i64, f64)> = Vec::new();
    let mut stored = Vec::with_capacity(vector.len());
    let mut after = 0_i64;
    loop {
        // Safe: constants and placeholders only.
        let row = sqlx::query(sqlx::AssertSqlSafe(sql.as_str()))
            .bind(scope.now_ms)
            .bind(&scope.namespace)
            .bind(scope.category_list())
            .bind(after)
            .bind(i64::try_from(stride).unwrap_or(i64::MAX))
            .bind(VECTOR_PAGE)
            .fetch_one(&mut *conn)
            .await?;
        let Some(last) = row.try_get::<Option<i64>, _>(0)? else {
            return Ok(nearest);
        };
        let numbers: &str = row.try_get(1)?;
        let packed: &[u8] = row.try_get(2)?;
        let numbers = numbers.split(',').filter_map(|number| number.parse().ok());
        for (memory_no, bytes) in numbers.zip(packed.chunks_exact(stride)) {
            stored.clear();
            stored.extend(floats(bytes));
            // What points away is not near, however few there are.
            if let Some(similarity) = wanted.cosine(&stored).filter(|cosine| *cosine > 0.0) {
                nearest.push((memory_no, similarity));
            }
        }
        nearest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        nearest.truncate(limit);
        after = last;
    }
}

/// Little-endian 32-bit floats.
fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|part| f32::from_le_bytes(*part))
}

/// The memories of these keys, as far as the scope holds them, in no order.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn hits(
    conn: &mut SqliteConnection,
    agent_id: &AgentId,
    scope: &RecallScope,
    numbers: &[i64],
) -> Result<Vec<(i64, MemoryHit)>, StoreError> {
    let sql = format!(
        "SELECT m.memory_no, {COLUMNS}, length(m.embedding) / 4 AS embedding_dims, NULL AS rank FROM memories m
         WHERE {VISIBLE} AND m.memory_no IN (SELECT value FROM json_each(?4))"
    );
    // Safe: constants and placeholders only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(scope.now_ms)
        .bind(&scope.namespace)
        .bind(scope.category_list())
        .bind(serde_json::Value::from(numbers).to_string())
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| Ok((row.try_get("memory_no")?, read_hit(row, agent_id)?)))
        .collect()
}
