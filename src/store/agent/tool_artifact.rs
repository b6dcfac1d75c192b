//! Payloads of tools: `tool_artifacts`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{Page, PageLimit, ToolArtifact, ToolArtifactKind};
use crate::store::StoreError;
use crate::store::row::{decoded, values_sql};

const COLUMNS: &str =
    "run_id, artifact_id, session_id, kind, metadata_json, sha256, size_bytes, created_at_ms";

fn read(row: &SqliteRow, blob: Vec<u8>) -> Result<ToolArtifact, StoreError> {
    let id: String = row.try_get("artifact_id")?;
    let kind: String = row.try_get("kind")?;
    Ok(ToolArtifact {
        run_id: row.try_get("run_id")?,
        session_id: row.try_get("session_id")?,
        kind: decoded(
            ToolArtifactKind::parse,
            &kind,
            "tool_artifacts",
            "kind",
            &id,
        )?,
        metadata_json: row.try_get("metadata_json")?,
        sha256: row.try_get("sha256")?,
        size_bytes: row.try_get("size_bytes")?,
        created_at_ms: row.try_get("created_at_ms")?,
        artifact_id: id,
        blob,
    })
}

/// Inserts artifacts, at most 500.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails or one of them exists.
pub async fn insert(tx: &mut WriteTx<'_>, artifacts: &[ToolArtifact]) -> Result<(), StoreError> {
    if artifacts.is_empty() {
        return Ok(());
    }
    let sql = values_sql(
        "INSERT INTO tool_artifacts (run_id, artifact_id, session_id, kind, metadata_json, sha256, size_bytes,
             created_at_ms, blob) VALUES",
        9,
        artifacts.len(),
        "",
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for artifact in artifacts {
        query = query
            .bind(&artifact.run_id)
            .bind(&artifact.artifact_id)
            .bind(&artifact.session_id)
            .bind(artifact.kind.as_str())
            .bind(&artifact.metadata_json)
            .bind(&artifact.sha256)
            .bind(artifact.size_bytes)
            .bind(artifact.created_at_ms)
            .bind(&artifact.blob);
    }
    query.execute(&mut **tx).await?;
    Ok(())
}

/// The artifacts of these ids, bytes included, of all runs, in no order; unknown ids are left out.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn of_ids(
    conn: &mut SqliteConnection,
    artifact_ids: &[(&str, &str)],
) -> Result<Vec<ToolArtifact>, StoreError> {
    if artifact_ids.is_empty() {
        return Ok(Vec::new());
    }
    let marks = vec!["(?,?)"; artifact_ids.len()].join(",");
    let sql = format!(
        "SELECT {COLUMNS}, blob FROM tool_artifacts WHERE (run_id, artifact_id) IN (VALUES {marks})"
    );
    // Safe: constants and placeholders only.
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
    for (run, artifact) in artifact_ids {
        query = query.bind(*run).bind(*artifact);
    }
    let rows = query.fetch_all(conn).await?;
    rows.iter()
        .map(|row| read(row, row.try_get("blob")?))
        .collect()
}

/// Lists a session's artifacts, oldest first, without their bytes.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn of_session(
    conn: &mut SqliteConnection,
    session_id: &str,
) -> Result<Vec<ToolArtifact>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tool_artifacts WHERE session_id = ?1 ORDER BY created_at_ms, artifact_id"
    );
    // Safe: constants only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(session_id)
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| read(row, Vec::new())).collect()
}

/// One artifact of a session, bytes included.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    session_id: &str,
    artifact_id: &str,
) -> Result<Option<ToolArtifact>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, blob FROM tool_artifacts WHERE session_id = ?1 AND artifact_id = ?2"
    );
    // Safe: constants only.
    let row = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(session_id)
        .bind(artifact_id)
        .fetch_optional(conn)
        .await?;
    row.map(|row| read(&row, row.try_get("blob")?)).transpose()
}

/// Lists a run's artifacts by id, without their bytes.
///
/// * `after`: id of the last one of an earlier page; `None` starts at the first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn of_run(
    conn: &mut SqliteConnection,
    run_id: &str,
    after: Option<&str>,
    limit: PageLimit,
) -> Result<Page<ToolArtifact>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM tool_artifacts WHERE run_id = ?1 AND (?2 IS NULL OR artifact_id > ?2)
         ORDER BY artifact_id LIMIT ?3"
    );
    // Safe: constants only.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(run_id)
        .bind(after)
        .bind(i64::from(limit.rows()) + 1)
        .fetch_all(conn)
        .await?;
    let items = rows
        .iter()
        .map(|row| read(row, Vec::new()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Page::cut(items, limit, |one| one.artifact_id.clone()))
}
