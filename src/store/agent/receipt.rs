//! This tier's shares of receipts: `migration_sources`.

use std::collections::BTreeMap;

use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{KindCount, TierReceipt};
use crate::store::StoreError;

/// Writes a share, or replaces an earlier one of the same source.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn upsert(tx: &mut WriteTx<'_>, receipt: &TierReceipt) -> Result<(), StoreError> {
    let counts = serde_json::to_string(&receipt.counts).unwrap_or_else(|_| "{}".to_owned());
    sqlx::query(
        "INSERT INTO migration_sources (source_key, source_sha256, last_run_id, imported_at_ms, report_json)
         VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (source_key) DO UPDATE SET
             source_sha256 = excluded.source_sha256,
             last_run_id = excluded.last_run_id,
             imported_at_ms = excluded.imported_at_ms,
             report_json = excluded.report_json",
    )
    .bind(&receipt.source_key)
    .bind(&receipt.source_sha256)
    .bind(&receipt.run_id)
    .bind(receipt.imported_at_ms)
    .bind(counts)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The share of one source.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    source_key: &str,
) -> Result<Option<TierReceipt>, StoreError> {
    let row = sqlx::query(
        "SELECT source_sha256, last_run_id, imported_at_ms, report_json FROM migration_sources WHERE source_key = ?1",
    )
    .bind(source_key)
    .fetch_optional(conn)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let json: String = row.try_get(3)?;
    let counts: BTreeMap<String, KindCount> =
        serde_json::from_str(&json).map_err(|_| StoreError::Corrupt {
            table: "migration_sources",
            column: "report_json",
            row: source_key.to_owned(),
            found: json.chars().take(40).collect(),
        })?;
    Ok(Some(TierReceipt {
        source_key: source_key.to_owned(),
        source_sha256: row.try_get(0)?,
        run_id: row.try_get(1)?,
        imported_at_ms: row.try_get(2)?,
        counts,
    }))
}
