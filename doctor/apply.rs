//! Phase three: brings one source's records in.
//!
//! One transaction a tier, all rows and this tier's share of the receipt in it; the control plane's
//! holds the whole receipt. A tier that has the share of this very source already is skipped and its
//! counts are taken from there, so that a rerun after a crash ends with the same receipts as an
//! undisturbed run.

use std::collections::BTreeMap;

use zeroclaw::model::{KindCount, SourceReceipt, Tier, TierReceipt};
use zeroclaw::service::{ImportTx, Importer, ServiceError};
use zeroclaw::store::agent::receipt;
use zeroclaw::store::global::migration;

use super::plan::PlannedSource;
use super::quarantine::Quarantine;
use super::record::{Item, Record};
use super::sources::{ReadError, Sink};
use super::survey::{Notes, Survey};
use super::work::{Finished, TierWork};

/// Counts by kind of record.
type Counts = BTreeMap<String, KindCount>;

/// What bringing a source in gave.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Counts by kind of record.
    pub(crate) counts: Counts,
    /// Refused records, tails and notes.
    pub(crate) survey: Survey,
    /// What only the rows that were there could tell: clashes, and how they were settled.
    pub(crate) said: Notes,
    /// Where the bytes of refused records are, below the root.
    pub(crate) quarantine: Option<String>,
}

impl Applied {
    /// Of what is known from reading alone.
    pub(crate) fn of_survey(survey: &Survey) -> Self {
        let counts = survey.counts.iter();
        Self {
            counts: counts
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            ..Self::default()
        }
    }

    fn say(&mut self, notes: Notes) {
        for (code, notes) in notes {
            self.said.entry(code).or_default().extend(notes);
        }
    }

    fn add(&mut self, share: &Counts) {
        for (kind, count) in share {
            self.counts.entry(kind.clone()).or_default().add(count);
        }
    }
}

/// A tier's part in an import.
enum Part {
    /// In a transaction that is still open.
    Open(Box<TierWork>),
    /// Committed by an earlier, cut-off run.
    Done(Counts),
}

/// Takes a source's records into the tiers.
pub(crate) struct Applier<'a> {
    importer: &'a Importer,
    run_id: &'a str,
    source_key: &'a str,
    sha256: &'a str,
    open: &'a mut Transactions,
    parts: BTreeMap<Tier, Part>,
    survey: Survey,
    quarantine: Quarantine,
}

/// Open transactions, one a tier; small sources that follow one another share them.
///
/// Dropped, nothing of them remains.
pub(crate) type Transactions = BTreeMap<Tier, ImportTx>;

/// Commits every tier, the control plane last: its receipts speak of all.
pub(crate) async fn commit(mut open: Transactions) -> Result<(), ReadError> {
    let global = open.remove(&Tier::Global);
    for tx in open.into_values().chain(global) {
        zeroclaw::fs::fault("doctor-before-commit");
        tx.commit().await?;
        zeroclaw::fs::fault("doctor-after-commit");
    }
    Ok(())
}

impl<'a> Applier<'a> {
    /// For one source of a run, in the transactions that are `open`.
    pub(crate) fn new(
        importer: &'a Importer,
        run_id: &'a str,
        planned: &'a PlannedSource,
        open: &'a mut Transactions,
    ) -> Self {
        let folder = importer.service().layout().quarantine_dir(run_id);
        Self {
            importer,
            run_id,
            source_key: &planned.source_key,
            sha256: &planned.source.sha256,
            open,
            parts: BTreeMap::new(),
            survey: Survey::default(),
            quarantine: Quarantine::new(folder, &planned.source.name()),
        }
    }

    async fn open(&mut self, tier: &Tier) -> Result<Part, ReadError> {
        let mut tx = match self.open.remove(tier) {
            Some(tx) => tx,
            None => self.importer.begin(tier).await?,
        };
        if matches!(tier, Tier::Agent(_)) {
            let share = receipt::get(&mut tx.tx(), self.source_key)
                .await
                .map_err(ServiceError::from)?;
            // One of another run says nothing of what this run takes: names may be mapped otherwise.
            let is_ours = |share: &TierReceipt| {
                share.run_id == self.run_id && share.source_sha256 == self.sha256
            };
            if let Some(share) = share.filter(is_ours) {
                self.open.insert(tier.clone(), tx);
                return Ok(Part::Done(share.counts));
            }
        }
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

    /// Ends the source: its share of the receipt joins each agent's rows, the whole the control
    /// plane's. The transactions stay open, for [`commit`].
    ///
    /// * `receipt`: makes the receipt of what came in.
    pub(crate) async fn finish(
        mut self,
        receipt: &(dyn Fn(&Applied) -> SourceReceipt + Sync),
    ) -> Result<Applied, ReadError> {
        let mut applied = Applied::of_survey(&self.survey);
        applied.survey = std::mem::take(&mut self.survey);
        applied.quarantine = self.keep_quarantine()?;
        let global = self.parts.remove(&Tier::Global);
        for (tier, part) in std::mem::take(&mut self.parts) {
            let share = match part {
                Part::Done(share) => share,
                Part::Open(work) => {
                    let finished = work.finish().await?;
                    self.put_share(tier, finished, &mut applied).await?
                }
            };
            applied.add(&share);
        }
        if let Some(Part::Open(work)) = global {
            let finished = work.finish().await?;
            applied.add(&finished.counts);
            applied.say(finished.notes);
            let mut tx = finished.tx;
            migration::upsert_source(&mut tx.tx(), &receipt(&applied))
                .await
                .map_err(ServiceError::from)?;
            self.open.insert(Tier::Global, tx);
        }
        Ok(applied)
    }

    /// Puts the bytes of refused records in place; gives where they are, below the root.
    fn keep_quarantine(&mut self) -> Result<Option<String>, ReadError> {
        let root = self.importer.service().root();
        let kept = self.quarantine.finish()?;
        Ok(kept.map(|path| {
            path.strip_prefix(root)
                .unwrap_or(&path)
                .display()
                .to_string()
        }))
    }

    /// Puts one agent's share of the receipt beside its rows.
    async fn put_share(
        &mut self,
        tier: Tier,
        finished: Finished,
        applied: &mut Applied,
    ) -> Result<Counts, ReadError> {
        applied.say(finished.notes);
        let share = TierReceipt {
            source_key: self.source_key.to_owned(),
            source_sha256: self.sha256.to_owned(),
            run_id: self.run_id.to_owned(),
            imported_at_ms: self.importer.service().clock().now_ms(),
            counts: finished.counts,
        };
        let mut tx = finished.tx;
        receipt::upsert(&mut tx.tx(), &share)
            .await
            .map_err(ServiceError::from)?;
        self.open.insert(tier, tx);
        Ok(share.counts)
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
                Item::Agent(_) | Item::Merged { .. } | Item::Damage { .. } | Item::Note { .. } => {}
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
