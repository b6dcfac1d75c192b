//! Phase three: brings one source's records in.
//!
//! One transaction a tier, all rows and this tier's share of the receipt in it. A tier that has the
//! share of this very source already is skipped and its counts are taken from there, so that a rerun
//! after a crash ends with the same receipts as an undisturbed run.

use std::collections::BTreeMap;

use zeroclaw::model::{KindCount, Tier, TierReceipt};
use zeroclaw::service::Importer;
use zeroclaw::store::agent::receipt;

use super::plan::{PlannedSource, Survey};
use super::quarantine::Quarantine;
use super::record::{Item, Record};
use super::sources::{ReadError, Sink};
use super::work::TierWork;

/// What bringing a source in gave.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Counts by kind of record.
    pub(crate) counts: BTreeMap<String, KindCount>,
    /// Refused records, tails and notes.
    pub(crate) survey: Survey,
    /// Where the bytes of refused records are, below the root.
    pub(crate) quarantine: Option<String>,
}

impl Applied {
    /// Of a source that only repeats another one.
    pub(crate) fn of_repeated(survey: &Survey) -> Self {
        let counts = survey.counts.iter();
        Self {
            counts: counts
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            ..Self::default()
        }
    }
}

/// A tier's part in an import.
enum Part {
    /// In a transaction that is still open.
    Open(Box<TierWork>),
    /// Committed by an earlier, cut-off run.
    Done(BTreeMap<String, KindCount>),
}

/// Takes a source's records into the tiers.
pub(crate) struct Applier<'a> {
    importer: &'a Importer,
    run_id: &'a str,
    source_key: &'a str,
    sha256: &'a str,
    parts: BTreeMap<Tier, Part>,
    survey: Survey,
    quarantine: Quarantine,
}

impl<'a> Applier<'a> {
    /// For one source of a run.
    pub(crate) fn new(importer: &'a Importer, run_id: &'a str, planned: &'a PlannedSource) -> Self {
        let folder = importer.service().layout().quarantine_dir(run_id);
        Self {
            importer,
            run_id,
            source_key: &planned.source_key,
            sha256: &planned.source.sha256,
            parts: BTreeMap::new(),
            survey: Survey::default(),
            quarantine: Quarantine::new(folder, &planned.source.name()),
        }
    }

    async fn open(&self, tier: &Tier) -> Result<Part, ReadError> {
        if matches!(tier, Tier::Agent(_)) {
            let mut conn = self.importer.read(tier).await?;
            let share = receipt::get(&mut conn, self.source_key)
                .await
                .map_err(zeroclaw::service::ServiceError::from)?;
            if let Some(share) = share.filter(|share| share.source_sha256 == self.sha256) {
                return Ok(Part::Done(share.counts));
            }
        }
        let tx = self.importer.begin(tier).await?;
        Ok(Part::Open(Box::new(
            TierWork::begin(tx, tier.clone()).await?,
        )))
    }

    async fn record(&mut self, tier: Tier, record: Record) -> Result<(), ReadError> {
        if !self.parts.contains_key(&tier) {
            let part = self.open(&tier).await?;
            self.parts.insert(tier.clone(), part);
        }
        match self.parts.get_mut(&tier) {
            Some(Part::Open(work)) => work.record(record).await,
            Some(Part::Done(_)) | None => Ok(()),
        }
    }

    /// Commits every tier, each with its share of the receipt.
    pub(crate) async fn finish(mut self) -> Result<Applied, ReadError> {
        let kept = self.quarantine.finish()?;
        let root = self.importer.service().root().to_owned();
        let mut counts: BTreeMap<String, KindCount> = BTreeMap::new();
        for (kind, count) in &self.survey.counts {
            counts.entry((*kind).to_owned()).or_default().add(count);
        }
        for (tier, part) in self.parts {
            let share = match part {
                Part::Done(share) => share,
                Part::Open(work) => {
                    let finished = work.finish().await?;
                    for (code, notes) in finished.notes {
                        self.survey.notes.entry(code).or_default().extend(notes);
                    }
                    let mut tx = finished.tx;
                    if matches!(tier, Tier::Agent(_)) {
                        let share = TierReceipt {
                            source_key: self.source_key.to_owned(),
                            source_sha256: self.sha256.to_owned(),
                            run_id: self.run_id.to_owned(),
                            imported_at_ms: self.importer.service().clock().now_ms(),
                            counts: finished.counts.clone(),
                        };
                        receipt::upsert(&mut tx.tx(), &share)
                            .await
                            .map_err(zeroclaw::service::ServiceError::from)?;
                    }
                    zeroclaw::fs::fault("doctor-before-commit");
                    tx.commit().await?;
                    zeroclaw::fs::fault("doctor-after-commit");
                    finished.counts
                }
            };
            for (kind, count) in share {
                counts.entry(kind).or_default().add(&count);
            }
        }
        let quarantine = kept.map(|path| {
            path.strip_prefix(&root)
                .unwrap_or(&path)
                .display()
                .to_string()
        });
        Ok(Applied {
            counts,
            survey: self.survey,
            quarantine,
        })
    }
}

impl Sink for Applier<'_> {
    async fn take(&mut self, items: Vec<Item>) -> Result<(), ReadError> {
        for item in items {
            self.survey.remember(&item);
            match item {
                Item::Record { tier, record } => self.record(tier, record).await?,
                Item::Refused(refusal) => {
                    self.quarantine
                        .keep(&refusal.place, &refusal.reason, &refusal.raw)?
                }
                Item::PartialTail { place, raw } => {
                    self.quarantine.keep(&place, "partial tail", &raw)?
                }
                Item::Merged { .. } | Item::Note { .. } => {}
            }
        }
        for part in self.parts.values_mut() {
            if let Part::Open(work) = part {
                work.flush().await?;
            }
        }
        Ok(())
    }
}
