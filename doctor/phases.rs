//! A run under way: the phases in their order.
//!
//! Each step finds by the receipts what is done already and goes on, so that a run taken up after a
//! crash ends as an undisturbed one.

use std::path::Path;

use serde_json::json;
use zeroclaw::fs::{Layout, atomic};
use zeroclaw::model::{MigrationRun, MigrationStatus, RunPhase, SourceReceipt, SourceStatus};
use zeroclaw::service::{Importer, ServiceError};

use super::apply::{Applied, Applier, Transactions, commit};
use super::before;
use super::finding::{Finding, Level};
use super::names::escaped;
use super::owner::Owners;
use super::plan::{self, Action, DAMAGED, Install, Plan, PlannedSource};
use super::report::Report;
use super::run::owner;
use super::safety;
use super::scan::content;
use super::sources::ReadError;
use super::sources::openclaw::home::Home;
use super::task::{DoctorError, Task};
use super::verify::Verifier;

mod receipt;
mod settle;

use receipt::fill;

/// A run under way.
pub(crate) struct Run<'r> {
    pub(crate) task: &'r Task,
    pub(crate) importer: &'r Importer,
    pub(crate) scratch: &'r Path,
    pub(crate) tell: &'r (dyn Fn(&str) + Sync),
    pub(crate) owners: Owners,
    /// The home that is imported from, where it is another program's.
    pub(crate) home: Option<Home>,
    pub(crate) record: MigrationRun,
    /// What only the import itself could tell of records that came in.
    pub(crate) said: Vec<Finding>,
}

/// Small session files share transactions: each commit waits for the disk, and writes whole pages
/// for few rows. One by one, 10,000 files of 13 KB wrote 29 times their size.
const SHARED_SOURCES: usize = 1_000;
/// Bytes of sources that share transactions; a larger source has its own.
const SHARED_BYTES: u64 = 8 * 1024 * 1024;

/// Places of the sources that come in, in order, parted into those that share transactions.
fn batches(sources: &[PlannedSource]) -> Vec<Vec<usize>> {
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let (mut is_open, mut bytes) = (false, 0);
    for (at, planned) in sources.iter().enumerate() {
        if planned.action != Action::Import {
            continue;
        }
        let is_small = !planned.source.format.is_sqlite() && planned.source.bytes <= SHARED_BYTES;
        match batches.last_mut() {
            Some(batch)
                if is_open
                    && is_small
                    && batch.len() < SHARED_SOURCES
                    && bytes + planned.source.bytes <= SHARED_BYTES =>
            {
                batch.push(at);
                bytes += planned.source.bytes;
            }
            _ => {
                batches.push(vec![at]);
                bytes = planned.source.bytes;
            }
        }
        is_open = is_small;
    }
    batches
}

impl Run<'_> {
    /// Carries a plan out, or what is left of it.
    pub(crate) async fn carry_out(
        &mut self,
        plan: &Plan,
        report: &mut Report,
    ) -> Result<(), DoctorError> {
        self.back_up(plan).await?;
        report.backup.clone_from(&self.record.backup_path);
        report.run = Some(self.record.id.clone());
        self.enter(RunPhase::Apply).await?;
        self.make_agents(plan).await?;
        (self.tell)(&format!(
            "importing {} sources, {} bytes",
            plan.sources.len(),
            plan.import_bytes()
        ));
        let progress = &self.task.progress;
        progress.begin("apply", plan.import_bytes(), plan.import_records());
        let mut applied = Vec::new();
        for batch in batches(&plan.sources) {
            let receipts = self.import(&plan.sources, &batch, report).await?;
            applied.extend(self.put(receipts).await?);
        }
        self.enter(RunPhase::Verify).await?;
        (self.tell)("reading everything back");
        let progress = &self.task.progress;
        progress.begin("verify", plan.import_bytes(), plan.import_records());
        let mut verified = Vec::new();
        for (at, mut receipt) in applied {
            if self
                .verify(&plan.sources[at], &mut receipt, report, at)
                .await?
            {
                verified.push((at, receipt));
            }
        }
        let verified = self.put(verified).await?;
        self.enter(RunPhase::Retire).await?;
        self.retire_all(plan, verified, report).await?;
        self.record_kept(plan).await?;
        self.enter(RunPhase::Index).await?;
        (self.tell)("building the full-text indexes");
        let unindexed = self.importer.unindexed().await?;
        let progress = &self.task.progress;
        progress.begin("index", 0, unindexed.values().sum());
        for agent in unindexed.keys() {
            let count = |rows| progress.advance(0, rows);
            self.importer.index_with(agent, &count).await?;
        }
        progress.end();
        self.finish(report).await
    }

    /// Writes receipts and gives them back, each with the place of its source.
    async fn put(
        &self,
        placed: Vec<(usize, SourceReceipt)>,
    ) -> Result<Vec<(usize, SourceReceipt)>, DoctorError> {
        let (places, receipts): (Vec<_>, Vec<_>) = placed.into_iter().unzip();
        let receipts = self.importer.put_receipts(receipts).await?;
        Ok(places.into_iter().zip(receipts).collect())
    }

    fn install(&self) -> Install<'_> {
        Install {
            root: self.task.source_root(),
            owners: &self.owners,
            home: self.home.as_ref(),
            scratch: self.scratch,
            progress: &self.task.progress,
        }
    }

    async fn enter(&mut self, phase: RunPhase) -> Result<(), DoctorError> {
        if self.record.phase != phase {
            self.record.phase = phase;
            self.importer.update_run(&self.record).await?;
        }
        zeroclaw::fs::fault(match phase {
            RunPhase::Backup => "doctor-backup",
            RunPhase::Apply => "doctor-apply",
            RunPhase::Verify => "doctor-verify",
            RunPhase::Retire => "doctor-retire",
            RunPhase::Index => "doctor-index",
            RunPhase::Report => "doctor-report",
        });
        Ok(())
    }

    async fn back_up(&mut self, plan: &Plan) -> Result<(), DoctorError> {
        if self.record.backup_path.is_some() || self.record.phase != RunPhase::Backup {
            return Ok(());
        }
        self.enter(RunPhase::Backup).await?;
        self.task.progress.begin("backup", 0, 0);
        let Some(archive) =
            safety::archive(self.task, self.importer, plan, &self.record, self.tell).await?
        else {
            return Ok(());
        };
        self.record.backup_path = Some(archive);
        Ok(self.importer.update_run(&self.record).await?)
    }

    /// Makes the databases that are needed. An agent whose cannot be opened costs only the sources
    /// with records of it; they say why.
    async fn make_agents(&mut self, plan: &Plan) -> Result<(), DoctorError> {
        let layout = self.importer.service().layout();
        if let Some(from) = &self.task.from {
            // What stays a file comes along once; a file that is there is never replaced.
            let foreign = Layout::new(from.clone());
            for (theirs, ours) in [
                (foreign.config_file(), layout.config_file()),
                (foreign.secret_key_file(), layout.secret_key_file()),
            ] {
                if theirs.is_file() && !ours.exists() {
                    atomic::copy_private(&theirs, &ours)?;
                }
            }
        }
        let known = self.importer.agents().await?;
        for (id, (status, reason)) in &plan.agents {
            let is_known = known
                .iter()
                .any(|agent| agent.agent_id == *id && agent.status == *status);
            if !is_known || !layout.agent_db(id.as_str()).exists() {
                match self.importer.ensure_agent(id, *status, *reason).await {
                    Err(error @ ServiceError::Open(_)) => {
                        let place = Layout::agent_db_relative(id.as_str());
                        let finding = Finding::new(
                            "unreadable-tier",
                            Level::Error,
                            escaped(&place),
                            chain(&error),
                        );
                        self.said.push(finding);
                    }
                    made => made?,
                }
            }
        }
        Ok(())
    }

    /// Brings some sources in; gives their receipts. One that fails stays, and has none.
    async fn import(
        &mut self,
        sources: &[PlannedSource],
        batch: &[usize],
        report: &mut Report,
    ) -> Result<Vec<(usize, SourceReceipt)>, DoctorError> {
        let mut receipts = Vec::with_capacity(batch.len());
        let mut waiting = Vec::with_capacity(batch.len());
        for &at in batch {
            match self.applied_before(&sources[at]).await? {
                Some(receipt) => {
                    let (bytes, records) = sources[at].measure();
                    self.task.progress.advance(bytes, records);
                    fill(&mut report.sources[at], &receipt);
                    receipts.push((at, receipt));
                }
                None => waiting.push(at),
            }
        }
        match self.apply(sources, &waiting).await {
            Ok(applied) => {
                for (at, applied) in applied {
                    receipts.push((
                        at,
                        self.imported(&sources[at], &applied, &mut report.sources[at]),
                    ));
                }
            }
            Err(error) if waiting.len() == 1 => {
                let at = waiting[0];
                self.failed(&sources[at], &mut report.sources[at], &error)
                    .await?;
            }
            // Nothing of them remains: taken apart, only the one at fault stays.
            Err(_) => {
                for at in waiting {
                    receipts.extend(Box::pin(self.import(sources, &[at], report)).await?);
                }
            }
        }
        Ok(receipts)
    }

    /// Brings sources in, all in the same transactions.
    async fn apply(
        &self,
        sources: &[PlannedSource],
        batch: &[usize],
    ) -> Result<Vec<(usize, Applied)>, ReadError> {
        let mut open = Transactions::new();
        let mut done = Vec::with_capacity(batch.len());
        for &at in batch {
            let planned = &sources[at];
            let mut applier = Applier::new(self.importer, &self.record.id, planned, &mut open);
            let (bytes, records) = planned.measure();
            let mut counted = self.task.progress.source(bytes, records, &mut applier);
            plan::read(&planned.source, self.install(), &mut counted).await?;
            counted.finish();
            let applied = applier
                .finish(&|applied| self.receipt_of(planned, applied))
                .await?;
            done.push((at, applied));
        }
        commit(open).await?;
        Ok(done)
    }

    /// Reads a source back; says whether every record of it is proven.
    async fn verify(
        &self,
        planned: &PlannedSource,
        receipt: &mut SourceReceipt,
        report: &mut Report,
        at: usize,
    ) -> Result<bool, DoctorError> {
        if receipt.status == SourceStatus::Verified {
            return Ok(true);
        }
        let mut verifier = Verifier::new(self.importer);
        let (bytes, records) = planned.measure();
        let mut counted = self.task.progress.source(bytes, records, &mut verifier);
        let read = plan::read(&planned.source, self.install(), &mut counted).await;
        counted.finish();
        let expected = receipt.total.imported + receipt.total.present;
        let unproven = match read {
            // A source that changed under the import is not the one that was imported.
            Ok(())
                if content(
                    self.task.source_root(),
                    &planned.source.path,
                    planned.source.format,
                )?
                .1 != planned.source.sha256 =>
            {
                Some(
                    "it changed while it was imported; run `zeroclaw doctor --fix` again"
                        .to_owned(),
                )
            }
            Ok(()) if verifier.proven < expected => Some(format!(
                "{} of {expected} records could be read back",
                verifier.proven
            )),
            Ok(()) => None,
            Err(error) => Some(chain(&error)),
        };
        let Some(reason) = unproven else {
            receipt.status = SourceStatus::Verified;
            return Ok(true);
        };
        receipt.status = SourceStatus::Failed;
        self.importer.put_receipts(vec![receipt.clone()]).await?;
        let source = &mut report.sources[at];
        source.status = "failed";
        source.action = Action::Leave;
        source.reason = Some(reason);
        Ok(false)
    }

    async fn finish(&mut self, report: &mut Report) -> Result<(), DoctorError> {
        report.add_up();
        report.findings.append(&mut self.said);
        let failed = report
            .sources
            .iter()
            .any(|source| source.status == "failed");
        let left = report.sources.iter().any(|source| source.status == "left")
            || report
                .findings
                .iter()
                .any(|finding| finding.code == DAMAGED);
        for source in report
            .sources
            .iter()
            .filter(|source| source.status == "failed")
        {
            let message = format!(
                "failed and stays in place: {}",
                source.reason.as_deref().unwrap_or("unknown")
            );
            report.findings.push(
                Finding::new("failed-source", Level::Error, &source.path, message)
                    .with_remedy("set right what it names, then run `zeroclaw doctor --fix` again"),
            );
        }
        // The totals of the run, not of what this process did: a run taken up counts as one.
        let total = self.importer.total_of(&self.record.id).await?;
        self.record.status = match (failed, left || total.refused > 0) {
            (true, _) => MigrationStatus::Failed,
            (false, true) => MigrationStatus::Warning,
            (false, false) => MigrationStatus::Completed,
        };
        self.record.finished_at_ms = Some(self.task.clock.now_ms());
        let rows = self.importer.rows().await?;
        self.record.report_json = before::with_rows(&rows, json!(total), &self.record.report_json);
        self.record.phase = RunPhase::Report;
        zeroclaw::fs::fault("doctor-report");
        // With the sign of who holds the root, so that a kill after this leaves none behind.
        Ok(self.importer.finish_run(&self.record, &owner()).await?)
    }
}

/// An error with what lies behind it, once each.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
