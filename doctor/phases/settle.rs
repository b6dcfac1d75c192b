//! The end of a run's sources: moved aside or kept, each with its receipt.

use serde_json::json;
use sha2::{Digest, Sha256};
use zeroclaw::model::{KindCount, SourceReceipt, SourceStatus};

use super::Run;
use crate::doctor::apply::Applied;
use crate::doctor::names::{escaped, unescaped};
use crate::doctor::plan::{Action, Plan, PlannedSource};
use crate::doctor::report::Report;
use crate::doctor::retire;
use crate::doctor::scan::{self, LONE_SIDECAR, Other, Source};
use crate::doctor::sources::zeroclaw::surfaces::{Fate, Format};
use crate::doctor::task::DoctorError;
use crate::doctor::units::hex;

impl Run<'_> {
    /// Moves proven sources aside, or keeps those of a foreign root, and settles their receipts.
    pub(super) async fn retire_all(
        &self,
        plan: &Plan,
        verified: Vec<(usize, SourceReceipt)>,
        report: &mut Report,
    ) -> Result<(), DoctorError> {
        let moves = |planned: &PlannedSource| planned.action == Action::Archive;
        let copies = plan.sources.iter().filter(|planned| moves(planned)).count();
        let progress = &self.task.progress;
        progress.begin("retire", 0, (copies + verified.len()) as u64);
        // Copies go before the store they repeat: without it they would pass for the only ones.
        let mut settled = self.retire_copies(plan, report).await?;
        for (at, mut receipt) in verified {
            // A damaged source stays: it may hold more than could be read.
            let planned = &plan.sources[at];
            let stays = planned.source.stays() || !planned.survey.damage.is_empty();
            if self.task.from.is_some() || stays {
                receipt.status = SourceStatus::Kept;
            } else {
                let now_at = self.move_aside(&planned.source, &mut receipt)?;
                receipt.status = SourceStatus::Retired;
                report.sources[at].now_at = now_at;
            }
            progress.advance(0, 1);
            settled.push(receipt);
        }
        self.importer.put_receipts(settled).await?;
        let left = self.finish_cut_off().await?;
        self.importer.put_receipts(left).await?;
        // A log that a cut-off run had left behind has followed its database.
        let root = self.task.source_root();
        report.findings.retain(|finding| {
            finding.code != LONE_SIDECAR || root.join(unescaped(&finding.place)).exists()
        });
        Ok(())
    }

    /// Puts on record what stays a file: by its place alone, since people go on changing it.
    pub(super) async fn record_kept(&self, plan: &Plan) -> Result<(), DoctorError> {
        let kept = plan
            .others
            .iter()
            .filter(|other| other.fate != Fate::Ignored);
        let program = if self.home.is_some() {
            "openclaw"
        } else {
            "zeroclaw"
        };
        let receipt = |other: &Other| {
            let path = escaped(&other.relative);
            // Of its size and place, not of its bytes: keys are among these files.
            let told = format!(
                "{}\0{path}\0{}\0{}",
                other.surface, other.files, other.bytes
            );
            let (word, status) = match other.fate {
                Fate::Discarded => ("discarded", SourceStatus::Discarded),
                Fate::Kept | Fate::Ignored => ("kept", SourceStatus::Kept),
            };
            SourceReceipt {
                source_key: format!("{}:{word}:{}:{path}", self.task.tag(), other.surface),
                migration_kind: format!("{program}.{word}"),
                source_path: path,
                target_table: "none".to_owned(),
                source_sha256: hex(&Sha256::digest(told)),
                source_size_bytes: i64::try_from(other.bytes).unwrap_or(i64::MAX),
                total: KindCount::default(),
                last_run_id: self.record.id.clone(),
                status,
                imported_at_ms: self.task.clock.now_ms(),
                removed_source: false,
                retired_path: None,
                report_json: json!({
                    "surface": other.surface, "files": other.files, "reason": other.reason,
                })
                .to_string(),
            }
        };
        self.importer
            .put_receipts(kept.map(receipt).collect())
            .await?;
        Ok(())
    }

    /// Moves aside what repeats another source or was imported before; gives receipts to settle.
    async fn retire_copies(
        &self,
        plan: &Plan,
        report: &mut Report,
    ) -> Result<Vec<SourceReceipt>, DoctorError> {
        let copies = |(_, planned): &(usize, &PlannedSource)| planned.action == Action::Archive;
        let copies: Vec<_> = plan.sources.iter().enumerate().filter(copies).collect();
        let mut new = Vec::new();
        for (_, planned) in &copies {
            if self.receipt(planned).await?.is_none() {
                let applied = Applied::of_survey(&planned.survey);
                let mut receipt = self.receipt_of(planned, &applied);
                receipt.status = SourceStatus::Discarded;
                receipt.report_json =
                    json!({ "reason": planned.reason, "counts": applied.counts }).to_string();
                new.push(receipt);
            }
        }
        // Before the first move, so that a kill between moves leaves none without its receipt.
        self.importer.put_receipts(new).await?;
        let mut settled = Vec::new();
        for (at, planned) in copies {
            let receipt = self.receipt(planned).await?;
            let mut receipt =
                receipt.unwrap_or_else(|| self.receipt_of(planned, &Applied::default()));
            report.sources[at].now_at = self.move_aside(&planned.source, &mut receipt)?;
            report.sources[at].status = "archived";
            self.task.progress.advance(0, 1);
            if receipt.last_run_id == self.record.id {
                settled.push(receipt);
            }
        }
        Ok(settled)
    }

    /// Moves one source aside and says so in its receipt; gives where it is now, below the root.
    fn move_aside(
        &self,
        source: &Source,
        receipt: &mut SourceReceipt,
    ) -> Result<String, DoctorError> {
        let service = self.importer.service();
        let aside = service.layout().migrated_run_dir(&self.record.id);
        let target = retire::retire(self.task.source_root(), source, &aside)?;
        let now_at = target.strip_prefix(service.root()).unwrap_or(&target);
        let now_at = escaped(now_at);
        receipt.removed_source = true;
        receipt.retired_path = Some(now_at.clone());
        Ok(now_at)
    }

    /// Moves what a cut-off run had proven and begun to move: a log may be left of it.
    async fn finish_cut_off(&self) -> Result<Vec<SourceReceipt>, DoctorError> {
        let mut found = Vec::new();
        for mut receipt in self.importer.unmoved(&self.record.id).await? {
            let stays = Format::all().any(|format| {
                format.about().stays
                    && receipt.migration_kind
                        == format!("{}.{}", format.program(), format.surface())
            }) || receipt.source_path.starts_with('/');
            if self.task.from.is_some() {
                continue;
            }
            if stays {
                // What named its place may be gone by now, and it is not found again.
                if receipt.status == SourceStatus::Verified {
                    receipt.status = SourceStatus::Kept;
                    found.push(receipt);
                }
                continue;
            }
            let source = scan::moved(self.task.source_root(), &receipt.source_path);
            self.move_aside(&source, &mut receipt)?;
            if receipt.status == SourceStatus::Verified {
                receipt.status = SourceStatus::Retired;
            }
            found.push(receipt);
        }
        Ok(found)
    }
}
