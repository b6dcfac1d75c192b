//! The phases in their order, for a look and for a run.
//!
//! A run that was cut off is taken up under its own id by the next one: each step finds what is done
//! by the receipts and goes on, so that the end is that of an undisturbed run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use zeroclaw::clock::Clock;
use zeroclaw::config::{Config, ConfigError};
use zeroclaw::fs::{FsError, Layout, atomic};
use zeroclaw::model::{
    CheckOutcome, ErrorKind, KindCount, MigrationRun, MigrationStatus, RunPhase, SourceReceipt,
    SourceStatus, Tier,
};
use zeroclaw::service::{HolderKind, Importer, Service, ServiceError};
use zeroclaw::store::global::migration;

use super::apply::{Applied, Applier};
use super::finding::{Finding, Level};
use super::owner::Owners;
use super::plan::{self, Action, Earlier, Plan, PlannedSource};
use super::preflight::{self, PreflightError};
use super::report::{Report, SourceReport, refused};
use super::scan::{digest, root_tag, scan};
use super::sources::ReadError;
use super::verify::Verifier;
use super::{retire, safety};

/// What to look at, and how.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// The root that is imported into.
    pub(crate) root: PathBuf,
    /// A foreign root that is imported from.
    pub(crate) from: Option<PathBuf>,
    /// Only these surfaces; empty for all.
    pub(crate) only: Vec<String>,
    /// Old alias to new name.
    pub(crate) agent_map: BTreeMap<String, String>,
    /// The time.
    pub(crate) clock: Clock,
}

/// Why a look or a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoctorError {
    /// The service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The configuration of the sources cannot be read, so their owners are unknown.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file system failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A run must not begin.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The foreign root is no folder.
    #[error("{} is no folder", .path.display())]
    NoSuchRoot {
        /// The path given.
        path: PathBuf,
    },
}

impl Task {
    fn source_root(&self) -> &Path {
        self.from.as_deref().unwrap_or(&self.root)
    }

    fn tag(&self) -> String {
        root_tag(self.from.as_deref())
    }

    fn check(&self) -> Result<(), DoctorError> {
        match &self.from {
            Some(path) if !path.is_dir() => Err(DoctorError::NoSuchRoot { path: path.clone() }),
            _ => Ok(()),
        }
    }

    fn owners(&self) -> Result<Owners, DoctorError> {
        let layout = Layout::new(self.source_root().to_owned());
        let config = Config::load(&layout.config_file())?.unwrap_or_default();
        Ok(Owners::new(config, self.agent_map.clone()))
    }

    async fn plan(&self, earlier: &Earlier, scratch: &Path) -> Result<Plan, DoctorError> {
        let mut found = scan(self.source_root(), scratch).await?;
        if !self.only.is_empty() {
            found
                .sources
                .retain(|source| self.only.iter().any(|only| only == source.format.surface()));
        }
        let owners = self.owners()?;
        Ok(plan::plan(
            found,
            &owners,
            earlier,
            &self.tag(),
            self.from.is_some(),
            scratch,
        )
        .await)
    }
}

/// What the target's own databases say, without touching them.
struct Target {
    earlier: Earlier,
    unfinished: Option<MigrationRun>,
    findings: Vec<Finding>,
    /// Agents whose index must be built or rebuilt.
    has_index_work: bool,
    /// Some tier has an older schema.
    is_older: bool,
}

async fn look_at_target(task: &Task) -> Result<Target, DoctorError> {
    let mut target = Target {
        earlier: Earlier::new(),
        unfinished: None,
        findings: Vec::new(),
        has_index_work: false,
        is_older: false,
    };
    let service = match Service::look(&task.root, task.clock.clone()).await {
        Ok(service) => service,
        Err(ServiceError::NotInitialised { .. }) => return Ok(target),
        Err(error) => return Err(error.into()),
    };
    let status = service.status().await?;
    for tier in &status.tiers {
        target.is_older |= tier
            .schema_version
            .is_some_and(|version| version < tier.known_schema_version);
        if let Some(error) = &tier.error {
            target.findings.push(Finding::new(
                "unreadable-tier",
                Level::Error,
                &tier.path,
                error,
            ));
        } else if tier.unindexed.unwrap_or(0) > 0 {
            target.has_index_work = true;
            let finding = Finding::new(
                "incomplete-index",
                Level::Warning,
                &tier.path,
                "its full-text index lacks rows",
            );
            target
                .findings
                .push(finding.with_remedy("run `zeroclaw doctor --fix`"));
        }
    }
    for check in service.check(None).await? {
        let mut failed = |code, what: &str, outcome: &CheckOutcome, remedy: &str| {
            if let CheckOutcome::Failed { lines } = outcome {
                let message = format!("{what}: {}", lines.join("; "));
                target.findings.push(
                    Finding::new(code, Level::Error, &check.path, message).with_remedy(remedy),
                );
            }
        };
        let restore = "restore it from a backup: `zeroclaw backup list`";
        failed(
            "damaged-database",
            "integrity check failed",
            &check.integrity,
            restore,
        );
        failed(
            "broken-relation",
            "foreign key check failed",
            &check.foreign_keys,
            restore,
        );
        failed(
            "stale-index",
            "full-text index does not agree with its rows",
            &check.full_text,
            "run `zeroclaw doctor --fix`",
        );
        target.has_index_work |= !check.full_text.is_ok();
    }
    target.earlier = service.receipt_states().await?;
    target.unfinished = service.unfinished_run().await?;
    service.close().await;
    if let Some(run) = &target.unfinished {
        let finding = Finding::new(
            "unfinished-run",
            Level::Warning,
            &run.id,
            "an import run was cut off",
        );
        target
            .findings
            .push(finding.with_remedy("run `zeroclaw doctor --fix`: it goes on where it stopped"));
    }
    if target.is_older {
        let finding = Finding::new(
            "older-schema",
            Level::Warning,
            "state",
            "a database has an older schema",
        );
        target
            .findings
            .push(finding.with_remedy("run `zeroclaw doctor --fix`: it migrates it"));
    }
    Ok(target)
}

fn private_folder() -> Result<TempDir, FsError> {
    let made = tempfile::Builder::new()
        .prefix("zeroclaw-doctor-")
        .tempdir();
    made.map_err(FsError::at(
        "making a private folder",
        &std::env::temp_dir(),
    ))
}

/// Looks and changes nothing.
pub(crate) async fn look(task: &Task) -> Result<Report, DoctorError> {
    task.check()?;
    let target = look_at_target(task).await?;
    let scratch = private_folder()?;
    let plan = task.plan(&target.earlier, scratch.path()).await?;
    let mut report = Report::planned(&task.root, task.from.as_deref(), &plan);
    report.findings.extend(target.findings);
    Ok(report)
}

/// Carries out what a look shows.
///
/// * `tell`: hears what is going on, for a person who waits.
pub(crate) async fn fix(task: &Task, tell: &(dyn Fn(&str) + Sync)) -> Result<Report, DoctorError> {
    task.check()?;
    let target = look_at_target(task).await?;
    let scratch = private_folder()?;
    let plan = task.plan(&target.earlier, scratch.path()).await?;
    let has_own_work = target.has_index_work || target.is_older || target.unfinished.is_some();
    if !plan.has_work() && !has_own_work {
        let mut report = Report::planned(&task.root, task.from.as_deref(), &plan);
        report.mode = "fix";
        report.findings.extend(target.findings);
        return Ok(report);
    }
    preflight::old_daemon(task.source_root())?;
    preflight::room(
        &task.root,
        plan.import_bytes(),
        safety::estimate(task, &plan),
    )?;
    let service = match Service::init(&task.root, task.clock.clone(), HolderKind::Doctor).await {
        Ok((service, _)) => service,
        Err(error) => return Err(error.into()),
    };
    let importer = Importer::new(service);
    let owner = owner();
    importer.show_owner(&owner).await?;
    let done = run(task, &importer, scratch.path(), tell).await;
    importer.hide_owner(&owner).await?;
    importer.close().await;
    done
}

/// How this process shows itself in the control plane.
fn owner() -> String {
    format!("doctor (pid {})", std::process::id())
}

/// A run under way.
struct Run<'r> {
    task: &'r Task,
    importer: &'r Importer,
    scratch: &'r Path,
    tell: &'r (dyn Fn(&str) + Sync),
    owners: Owners,
    record: MigrationRun,
}

async fn run(
    task: &Task,
    importer: &Importer,
    scratch: &Path,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Report, DoctorError> {
    // Once more under the lock: what was looked at may have changed since.
    let earlier = importer.service().receipt_states().await?;
    let plan = task.plan(&earlier, scratch).await?;
    let unfinished = importer.service().unfinished_run().await?;
    let mut report = Report::planned(&task.root, task.from.as_deref(), &plan);
    report.mode = "fix";
    report.changed = true;
    if plan.has_work() || unfinished.is_some() {
        let owners = task.owners()?;
        let record = take_up(task, importer, unfinished).await?;
        let mut run = Run {
            task,
            importer,
            scratch,
            tell,
            owners,
            record,
        };
        run.carry_out(&plan, &mut report).await?;
    }
    rebuild_stale_indexes(importer, tell).await?;
    Ok(report)
}

/// Goes on with the run that was cut off, if it was of the same sources; else begins one.
async fn take_up(
    task: &Task,
    importer: &Importer,
    unfinished: Option<MigrationRun>,
) -> Result<MigrationRun, DoctorError> {
    let now_ms = task.clock.now_ms();
    let from_path = task.from.as_ref().map(|path| path.display().to_string());
    match unfinished {
        Some(run) if run.from_path == from_path => return Ok(run),
        Some(mut other) => {
            other.status = MigrationStatus::Failed;
            other.finished_at_ms = Some(now_ms);
            other.report_json =
                json!({ "note": "cut off; its sources are taken up again when asked for" })
                    .to_string();
            importer.update_run(&other).await?;
        }
        None => {}
    }
    let run = MigrationRun {
        id: format!(
            "{}-{}",
            zeroclaw::clock::utc_stamp(now_ms),
            &uuid::Uuid::new_v4().simple().to_string()[..8]
        ),
        started_at_ms: now_ms,
        finished_at_ms: None,
        status: MigrationStatus::Running,
        phase: RunPhase::Backup,
        from_path,
        backup_path: None,
        app_version: env!("CARGO_PKG_VERSION").to_owned(),
        report_json: "{}".to_owned(),
    };
    importer.insert_run(&run).await?;
    Ok(run)
}

/// Receipts written at once: each commit waits for the disk.
const RECEIPTS: usize = 100;

impl Run<'_> {
    async fn carry_out(&mut self, plan: &Plan, report: &mut Report) -> Result<(), DoctorError> {
        self.back_up(plan).await?;
        report.backup.clone_from(&self.record.backup_path);
        report.run = Some(self.record.id.clone());
        self.enter(RunPhase::Apply).await?;
        self.make_agents(plan).await?;
        let mut proven = Vec::new();
        for (at, planned) in plan.sources.iter().enumerate() {
            if planned.action == Action::Import
                && let Some(receipt) = self.import(planned, &mut report.sources[at]).await?
            {
                proven.push((at, receipt));
            }
            if proven.len() % RECEIPTS == RECEIPTS - 1 {
                self.importer
                    .put_receipts(proven.iter().map(|(_, receipt)| receipt.clone()).collect())
                    .await?;
            }
        }
        self.importer
            .put_receipts(proven.iter().map(|(_, receipt)| receipt.clone()).collect())
            .await?;
        self.enter(RunPhase::Verify).await?;
        let mut verified = Vec::new();
        for (at, mut receipt) in proven {
            if self
                .verify(&plan.sources[at], &mut receipt, report, at)
                .await?
            {
                verified.push((at, receipt));
            }
        }
        self.importer
            .put_receipts(
                verified
                    .iter()
                    .map(|(_, receipt)| receipt.clone())
                    .collect(),
            )
            .await?;
        self.enter(RunPhase::Retire).await?;
        self.retire_all(plan, verified, report).await?;
        self.enter(RunPhase::Index).await?;
        for agent in self.importer.unindexed().await? {
            (self.tell)(&format!("indexing agent {agent}"));
            self.importer.index(&agent).await?;
        }
        self.finish(report).await
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
        let Some(archive) =
            safety::archive(self.task, self.importer, plan, &self.record, self.tell).await?
        else {
            return Ok(());
        };
        self.record.backup_path = Some(archive);
        Ok(self.importer.update_run(&self.record).await?)
    }

    async fn make_agents(&self, plan: &Plan) -> Result<(), DoctorError> {
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
                self.importer.ensure_agent(id, *status, *reason).await?;
            }
        }
        Ok(())
    }

    /// Brings one source in; gives its receipt, or `None` when it failed and stays.
    async fn import(
        &self,
        planned: &PlannedSource,
        report: &mut SourceReport,
    ) -> Result<Option<SourceReceipt>, DoctorError> {
        let earlier = self.receipt(planned).await?;
        if let Some(receipt) = earlier.filter(|receipt| receipt.last_run_id == self.record.id) {
            let is_in = matches!(
                receipt.status,
                SourceStatus::Applied | SourceStatus::Verified
            );
            if is_in {
                fill(report, &receipt);
                return Ok(Some(receipt));
            }
        }
        (self.tell)(&format!("importing {}", report.path));
        match self.apply(planned).await {
            Ok(applied) => {
                let receipt = self.receipt_of(planned, &applied);
                report.counts.clone_from(&applied.counts);
                report.refused = refused(&applied.survey.refused);
                report.partial_tails.clone_from(&applied.survey.tails);
                report.quarantine = applied.quarantine;
                report.status = "imported";
                Ok(Some(receipt))
            }
            Err(error) => self.failed(planned, report, &error).await.map(|()| None),
        }
    }

    async fn apply(&self, planned: &PlannedSource) -> Result<Applied, ReadError> {
        let mut applier = Applier::new(self.importer, &self.record.id, planned);
        plan::read(&planned.source, &self.owners, self.scratch, &mut applier).await?;
        applier.finish().await
    }

    /// A source that failed stays as it is; the others go on, unless nothing can be written at all.
    async fn failed(
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

    async fn receipt(&self, planned: &PlannedSource) -> Result<Option<SourceReceipt>, DoctorError> {
        let mut conn = self.importer.read(&Tier::Global).await?;
        Ok(migration::get_source(&mut conn, &planned.source_key)
            .await
            .map_err(ServiceError::from)?)
    }

    fn receipt_of(&self, planned: &PlannedSource, applied: &Applied) -> SourceReceipt {
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
            migration_kind: format!("zeroclaw.{}", planned.source.format.surface()),
            source_path: planned.source.name(),
            target_table: planned.source.format.target_table().to_owned(),
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
                "quarantine": applied.quarantine,
            })
            .to_string(),
        }
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
        (self.tell)(&format!("reading back {}", receipt.source_path));
        let mut verifier = Verifier::new(self.importer);
        let read = plan::read(&planned.source, &self.owners, self.scratch, &mut verifier).await;
        let expected = receipt.total.imported + receipt.total.present;
        let unproven = match read {
            // A source that changed under the import is not the one that was imported.
            Ok(())
                if digest(&planned.source.path, planned.source.format.is_sqlite())?.1
                    != planned.source.sha256 =>
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

    async fn retire_all(
        &self,
        plan: &Plan,
        verified: Vec<(usize, SourceReceipt)>,
        report: &mut Report,
    ) -> Result<(), DoctorError> {
        let aside = self
            .importer
            .service()
            .layout()
            .migrated_run_dir(&self.record.id);
        let root = self.importer.service().root().to_owned();
        let below = |path: &Path| {
            path.strip_prefix(&root)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        let mut settled = Vec::new();
        for (at, mut receipt) in verified {
            let planned = &plan.sources[at];
            if self.task.from.is_some() {
                receipt.status = SourceStatus::Kept;
            } else {
                let target = retire::retire(&planned.source, &aside)?;
                receipt.status = SourceStatus::Retired;
                receipt.removed_source = true;
                receipt.retired_path = Some(below(&target));
                report.sources[at].now_at = below(&target);
            }
            settled.push(receipt);
        }
        for (at, planned) in plan
            .sources
            .iter()
            .enumerate()
            .filter(|(_, planned)| planned.action == Action::Archive)
        {
            let target = retire::retire(&planned.source, &aside)?;
            let source = &mut report.sources[at];
            source.status = "archived";
            source.now_at = below(&target);
            if self.receipt(planned).await?.is_none() {
                let mut receipt = self.receipt_of(planned, &Applied::of_repeated(&planned.survey));
                receipt.status = SourceStatus::Discarded;
                receipt.removed_source = true;
                receipt.retired_path = Some(below(&target));
                receipt.report_json =
                    json!({ "reason": planned.reason, "counts": source.counts }).to_string();
                settled.push(receipt);
            }
        }
        settled.extend(self.finish_cut_off(&settled, &aside, &below).await?);
        Ok(self.importer.put_receipts(settled).await?)
    }

    /// Moves what a cut-off run had proven and begun to move: a log may be left of it.
    async fn finish_cut_off(
        &self,
        settled: &[SourceReceipt],
        aside: &Path,
        below: &dyn Fn(&Path) -> String,
    ) -> Result<Vec<SourceReceipt>, DoctorError> {
        let mut found = Vec::new();
        for mut receipt in self.importer.service().receipts_of(&self.record.id).await? {
            let is_settled = settled
                .iter()
                .any(|other| other.source_key == receipt.source_key);
            if receipt.status != SourceStatus::Verified || is_settled || self.task.from.is_some() {
                continue;
            }
            let source = super::scan::moved(self.task.source_root(), &receipt.source_path);
            let target = retire::retire(&source, aside)?;
            receipt.status = SourceStatus::Retired;
            receipt.removed_source = true;
            receipt.retired_path = Some(below(&target));
            found.push(receipt);
        }
        Ok(found)
    }

    async fn finish(&mut self, report: &mut Report) -> Result<(), DoctorError> {
        report.add_up();
        let failed = report
            .sources
            .iter()
            .any(|source| source.status == "failed");
        let left = report.sources.iter().any(|source| source.status == "left");
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
        let mut total = KindCount::default();
        for receipt in self.importer.service().receipts_of(&self.record.id).await? {
            total.add(&receipt.total);
        }
        self.record.status = match (failed, left || total.refused > 0) {
            (true, _) => MigrationStatus::Failed,
            (false, true) => MigrationStatus::Warning,
            (false, false) => MigrationStatus::Completed,
        };
        self.record.finished_at_ms = Some(self.task.clock.now_ms());
        self.record.report_json = json!({ "total": total }).to_string();
        self.record.phase = RunPhase::Report;
        zeroclaw::fs::fault("doctor-report");
        // With the sign of who holds the root, so that a kill after this leaves none behind.
        Ok(self.importer.finish_run(&self.record, &owner()).await?)
    }
}

async fn rebuild_stale_indexes(
    importer: &Importer,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<(), DoctorError> {
    for agent in importer.agents().await? {
        let check = importer
            .service()
            .check_tier(&Tier::Agent(agent.agent_id.clone()))
            .await?;
        if !check.full_text.is_ok() {
            tell(&format!(
                "rebuilding the full-text index of agent {}",
                agent.agent_id
            ));
            importer.rebuild(&agent.agent_id).await?;
        }
    }
    Ok(())
}

/// Puts what a receipt says into a report.
fn fill(report: &mut SourceReport, receipt: &SourceReceipt) {
    report.status = "imported";
    let said: serde_json::Value = serde_json::from_str(&receipt.report_json).unwrap_or_default();
    if let Ok(counts) = serde_json::from_value(said["counts"].clone()) {
        report.counts = counts;
    }
    report.quarantine = said["quarantine"].as_str().map(str::to_owned);
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

/// What kind of failure it is.
pub(crate) fn kind(error: &DoctorError) -> ErrorKind {
    match error {
        DoctorError::Service(error) => error.kind(),
        DoctorError::Config(_) => ErrorKind::Refused,
        DoctorError::Fs(error) => error.kind().into(),
        DoctorError::Preflight(PreflightError::OldDaemon { .. }) => ErrorKind::Busy,
        DoctorError::Preflight(_) => ErrorKind::NoSpace,
        DoctorError::NoSuchRoot { .. } => ErrorKind::NotFound,
    }
}
