//! A control plane that comes back because an import was undone.

use sqlx::Connection;

use super::copy::DbCopy;
use super::error::DbError;
use crate::model::MigrationRun;

impl DbCopy {
    /// Makes a copied control plane, taken when a run had begun, the one of before it; the run stays as history.
    ///
    /// Leases go: they name processes that have ended.
    ///
    /// # Errors
    ///
    /// [`DbError`] when SQLite fails; nothing is changed then.
    pub async fn mark_undone(&mut self, run: &MigrationRun) -> Result<(), DbError> {
        let mut tx = self.connection().begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("DELETE FROM state_leases")
            .execute(&mut *tx)
            .await?;
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
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(())
    }
}
