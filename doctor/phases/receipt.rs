//! What a run writes of each source: its receipt, and the same in the report.

use serde_json::json;
use zeroclaw::model::{KindCount, SourceReceipt, SourceStatus, Tier};
use zeroclaw::service::ServiceError;
use zeroclaw::store::global::migration;

use super::{Run, chain};
use crate::doctor::apply::Applied;
use crate::doctor::plan::{self, Action, PlannedSource};
use crate::doctor::report::{SourceReport, refused};
use crate::doctor::sources::ReadError;
use crate::doctor::task::DoctorError;

impl Run<'_> {
    /// The receipt of a source that this run had brought in before it was cut off.
    pub(super) async fn applied_before(
        &self,
        planned: &PlannedSource,
    ) -> Result<Option<SourceReceipt>, DoctorError> {
        let earlier = self.receipt(planned).await?;
        Ok(earlier.filter(|receipt| {
            let is_in = matches!(
                receipt.status,
                SourceStatus::Applied | SourceStatus::Verified
            );
            is_in && receipt.last_run_id == self.record.id
        }))
    }

    pub(super) fn imported(
        &mut self,
        planned: &PlannedSource,
        applied: &Applied,
        report: &mut SourceReport,
    ) -> SourceReceipt {
        report.counts.clone_from(&applied.counts);
        report.refused = refused(&applied.survey.refused);
        report.partial_tails.clone_from(&applied.survey.tails);
        report.quarantine.clone_from(&applied.quarantine);
        report.status = "imported";
        self.said.extend(plan::noted(&report.path, &applied.said));
        self.receipt_of(planned, applied)
    }

    /// A source that failed stays as it is; the others go on, unless nothing can be written at all.
    pub(super) async fn failed(
        &self,
        planned: &PlannedSource,
        report: &mut SourceReport,
        error: &ReadError,
    ) -> Result<(), DoctorError> {
        report.status = "failed";
        report.action = Action::Leave;
        report.reason = Some(chain(error));
        report.counts.clear();
        let mut receipt = self.receipt_of(planned, &Applied::default());
        receipt.status = SourceStatus::Failed;
        receipt.report_json = json!({ "error": chain(error) }).to_string();
        self.importer.put_receipts(vec![receipt]).await?;
        Ok(())
    }

    pub(super) async fn receipt(
        &self,
        planned: &PlannedSource,
    ) -> Result<Option<SourceReceipt>, DoctorError> {
        let mut conn = self.importer.read(&Tier::Global).await?;
        Ok(migration::get_source(&mut conn, &planned.source_key)
            .await
            .map_err(ServiceError::from)?)
    }

    pub(super) fn receipt_of(&self, planned: &PlannedSource, applied: &Applied) -> SourceReceipt {
        let total = applied
            .counts
            .values()
            .fold(KindCount::default(), |mut total, count| {
                total.add(count);
                total
            });
        let named = |pairs: &[(String, String)]| -> Vec<serde_json::Value> {
            pairs
                .iter()
                .map(|(place, reason)| json!({ "place": place, "reason": reason }))
                .collect()
        };
        SourceReceipt {
            source_key: planned.source_key.clone(),
            migration_kind: format!(
                "{}.{}",
                planned.source.format.program(),
                planned.source.format.surface()
            ),
            source_path: planned.source.name(),
            target_table: planned.source.format.about().table.to_owned(),
            source_sha256: planned.source.sha256.clone(),
            source_size_bytes: i64::try_from(planned.source.bytes).unwrap_or(i64::MAX),
            total,
            last_run_id: self.record.id.clone(),
            status: SourceStatus::Applied,
            imported_at_ms: self.task.clock.now_ms(),
            removed_source: false,
            retired_path: None,
            report_json: json!({
                "counts": applied.counts,
                "refused": named(&applied.survey.refused),
                "partial_tails": applied.survey.tails,
                "damage": named(&applied.survey.damage),
                "quarantine": applied.quarantine,
                "notes": plan::noted(&planned.source.name(), &applied.said),
            })
            .to_string(),
        }
    }
}

/// Puts what a receipt says into a report.
pub(super) fn fill(report: &mut SourceReport, receipt: &SourceReceipt) {
    report.status = "imported";
    let said: serde_json::Value = serde_json::from_str(&receipt.report_json).unwrap_or_default();
    if let Ok(counts) = serde_json::from_value(said["counts"].clone()) {
        report.counts = counts;
    }
    report.quarantine = said["quarantine"].as_str().map(str::to_owned);
}
