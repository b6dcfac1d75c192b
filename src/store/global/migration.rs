//! Runs of doctor and receipts of sources: `migration_runs`, `migration_sources`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{
    KindCount, MigrationRun, MigrationStatus, PageLimit, RunPhase, SourceReceipt, SourceState,
    SourceStatus,
};
use crate::store::StoreError;
use crate::store::row::decoded;

fn read_run(row: &SqliteRow) -> Result<MigrationRun, StoreError> {
    let id: String = row.try_get("id")?;
    let status: String = row.try_get("status")?;
    let phase: String = row.try_get("phase")?;
    Ok(MigrationRun {
        status: decoded(
            MigrationStatus::parse,
            &status,
            "migration_runs",
            "status",
            &id,
        )?,
        phase: decoded(RunPhase::parse, &phase, "migration_runs", "phase", &id)?,
        started_at_ms: row.try_get("started_at_ms")?,
        finished_at_ms: row.try_get("finished_at_ms")?,
        from_path: row.try_get("from_path")?,
        backup_path: row.try_get("backup_path")?,
        app_version: row.try_get("app_version")?,
        report_json: row.try_get("report_json")?,
        id,
    })
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn read_source(row: &SqliteRow) -> Result<SourceReceipt, StoreError> {
    let source_key: String = row.try_get("source_key")?;
    let status: String = row.try_get("status")?;
    Ok(SourceReceipt {
        status: decoded(
            SourceStatus::parse,
            &status,
            "migration_sources",
            "status",
            &source_key,
        )?,
        migration_kind: row.try_get("migration_kind")?,
        source_path: row.try_get("source_path")?,
        target_table: row.try_get("target_table")?,
        source_sha256: row.try_get("source_sha256")?,
        source_size_bytes: row.try_get("source_size_bytes")?,
        total: KindCount {
            records: count(row.try_get("source_record_count")?),
            imported: count(row.try_get("imported_count")?),
            present: count(row.try_get("present_count")?),
            merged: count(row.try_get("merged_count")?),
            refused: count(row.try_get("refused_count")?),
        },
        last_run_id: row.try_get("last_run_id")?,
        imported_at_ms: row.try_get("imported_at_ms")?,
        removed_source: row.try_get::<i64, _>("removed_source")? != 0,
        retired_path: row.try_get("retired_path")?,
        report_json: row.try_get("report_json")?,
        source_key,
    })
}

/// Begins the id of a plugin's own migration: such a run brings nothing in, and is listed with its plugin alone.
pub const PLUGIN_RUN: &str = "plugin:";

/// Migrations of one plugin's own namespaces, newest first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list_plugin_runs(
    conn: &mut SqliteConnection,
    plugin_id: &str,
    limit: PageLimit,
) -> Result<Vec<MigrationRun>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM migration_runs WHERE id GLOB 'plugin:*' AND report_json ->> 'plugin_id' = ?1
         ORDER BY started_at_ms DESC, id DESC LIMIT ?2",
    )
    .bind(plugin_id)
    .bind(limit.rows())
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_run).collect()
}

/// Records a run that begins.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn insert_run(tx: &mut WriteTx<'_>, run: &MigrationRun) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO migration_runs
             (id, started_at_ms, finished_at_ms, status, phase, from_path, backup_path, app_version, report_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )
    .bind(&run.id)
    .bind(run.started_at_ms)
    .bind(run.finished_at_ms)
    .bind(run.status.as_str())
    .bind(run.phase.as_str())
    .bind(&run.from_path)
    .bind(&run.backup_path)
    .bind(&run.app_version)
    .bind(&run.report_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Brings a recorded run up to date.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn update_run(tx: &mut WriteTx<'_>, run: &MigrationRun) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE migration_runs SET finished_at_ms = ?2, status = ?3, phase = ?4, backup_path = ?5, report_json = ?6
         WHERE id = ?1",
    )
    .bind(&run.id)
    .bind(run.finished_at_ms)
    .bind(run.status.as_str())
    .bind(run.phase.as_str())
    .bind(&run.backup_path)
    .bind(&run.report_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The run of that id.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get_run(
    conn: &mut SqliteConnection,
    id: &str,
) -> Result<Option<MigrationRun>, StoreError> {
    let row = sqlx::query("SELECT * FROM migration_runs WHERE id = ?1")
        .bind(id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read_run).transpose()
}

/// The run that was cut off, if one was: its process no longer holds the root.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn unfinished_run(
    conn: &mut SqliteConnection,
) -> Result<Option<MigrationRun>, StoreError> {
    let row = sqlx::query(
        "SELECT * FROM migration_runs WHERE status = 'running' ORDER BY started_at_ms DESC LIMIT 1",
    )
    .fetch_optional(conn)
    .await?;
    row.as_ref().map(read_run).transpose()
}

/// The newest runs.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list_runs(
    conn: &mut SqliteConnection,
    limit: PageLimit,
) -> Result<Vec<MigrationRun>, StoreError> {
    let rows = sqlx::query("SELECT * FROM migration_runs WHERE id NOT GLOB 'plugin:*' ORDER BY started_at_ms DESC, id LIMIT ?1")
        .bind(limit.rows())
        .fetch_all(conn)
        .await?;
    rows.iter().map(read_run).collect()
}

/// Every run in the order in which they began, whatever the clock said; newest first.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list_runs_in_order(
    conn: &mut SqliteConnection,
) -> Result<Vec<MigrationRun>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM migration_runs WHERE id NOT GLOB 'plugin:*' ORDER BY rowid DESC",
    )
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_run).collect()
}

/// Writes a receipt, or replaces an earlier one of the same source.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or when the counts do not balance.
pub async fn upsert_source(
    tx: &mut WriteTx<'_>,
    receipt: &SourceReceipt,
) -> Result<(), StoreError> {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    sqlx::query(
        "INSERT INTO migration_sources
             (source_key, migration_kind, source_path, target_table, source_sha256, source_size_bytes,
              source_record_count, imported_count, present_count, merged_count, refused_count,
              last_run_id, status, imported_at_ms, removed_source, retired_path, report_json)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
         ON CONFLICT (source_key) DO UPDATE SET
             migration_kind = excluded.migration_kind,
             source_path = excluded.source_path,
             target_table = excluded.target_table,
             source_sha256 = excluded.source_sha256,
             source_size_bytes = excluded.source_size_bytes,
             source_record_count = excluded.source_record_count,
             imported_count = excluded.imported_count,
             present_count = excluded.present_count,
             merged_count = excluded.merged_count,
             refused_count = excluded.refused_count,
             last_run_id = excluded.last_run_id,
             status = excluded.status,
             imported_at_ms = excluded.imported_at_ms,
             removed_source = excluded.removed_source,
             retired_path = excluded.retired_path,
             report_json = excluded.report_json",
    )
    .bind(&receipt.source_key)
    .bind(&receipt.migration_kind)
    .bind(&receipt.source_path)
    .bind(&receipt.target_table)
    .bind(&receipt.source_sha256)
    .bind(receipt.source_size_bytes)
    .bind(number(receipt.total.records))
    .bind(number(receipt.total.imported))
    .bind(number(receipt.total.present))
    .bind(number(receipt.total.merged))
    .bind(number(receipt.total.refused))
    .bind(&receipt.last_run_id)
    .bind(receipt.status.as_str())
    .bind(receipt.imported_at_ms)
    .bind(i64::from(receipt.removed_source))
    .bind(&receipt.retired_path)
    .bind(&receipt.report_json)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The receipt of one source.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get_source(
    conn: &mut SqliteConnection,
    source_key: &str,
) -> Result<Option<SourceReceipt>, StoreError> {
    let row = sqlx::query("SELECT * FROM migration_sources WHERE source_key = ?1")
        .bind(source_key)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read_source).transpose()
}

/// All receipts that one run last spoke of, by path.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list_sources(
    conn: &mut SqliteConnection,
    run_id: &str,
) -> Result<Vec<SourceReceipt>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM migration_sources WHERE last_run_id = ?1 ORDER BY source_path, source_key",
    )
    .bind(run_id)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_source).collect()
}

/// Receipts of one run whose sources are proven, or copies, and not moved aside yet, by path.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list_unmoved(
    conn: &mut SqliteConnection,
    run_id: &str,
) -> Result<Vec<SourceReceipt>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM migration_sources
         WHERE last_run_id = ?1 AND (status = 'verified' OR status = 'discarded' AND removed_source = 0)
         ORDER BY source_path, source_key",
    )
    .bind(run_id)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read_source).collect()
}

/// All records of one run's sources together.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn total_of(conn: &mut SqliteConnection, run_id: &str) -> Result<KindCount, StoreError> {
    let sums: (i64, i64, i64, i64, i64) = sqlx::query_as(
        "SELECT ifnull(sum(source_record_count), 0), ifnull(sum(imported_count), 0), ifnull(sum(present_count), 0),
             ifnull(sum(merged_count), 0), ifnull(sum(refused_count), 0)
         FROM migration_sources WHERE last_run_id = ?1",
    )
    .bind(run_id)
    .fetch_one(conn)
    .await?;
    let number = |sum: i64| u64::try_from(sum).unwrap_or(0);
    Ok(KindCount {
        records: number(sums.0),
        imported: number(sums.1),
        present: number(sums.2),
        merged: number(sums.3),
        refused: number(sums.4),
    })
}

/// What every receipt says at a glance, by source key.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn source_states(
    conn: &mut SqliteConnection,
) -> Result<Vec<(String, SourceState)>, StoreError> {
    let rows: Vec<(String, String, i64, i64)> = sqlx::query_as(
        "SELECT source_key, status, refused_count, imported_at_ms FROM migration_sources ORDER BY source_key",
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|(key, status, refused, imported_at_ms)| {
            let status = decoded(
                SourceStatus::parse,
                &status,
                "migration_sources",
                "status",
                &key,
            )?;
            let refused = u64::try_from(refused).unwrap_or(0);
            let state = SourceState {
                status,
                refused,
                imported_at_ms,
            };
            Ok((key, state))
        })
        .collect()
}
