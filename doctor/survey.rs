//! What reading a source gives, before and beside what comes in: counts, refusals, notes.

use std::collections::BTreeMap;

use zeroclaw::model::{AgentId, KindCount};

use super::record::Item;
use super::sources::{ReadError, Sink};

/// Single records a report names, at most; the counts name all.
pub(crate) const MAX_NAMED: usize = 200;

/// What was said of records that are taken, by the name of the kind of note: place and message.
pub(crate) type Notes = BTreeMap<&'static str, Vec<(String, String)>>;

/// Adds a note, as long as there are not too many of its kind.
pub(crate) fn note(notes: &mut Notes, code: &'static str, place: String, message: String) {
    let of_kind = notes.entry(code).or_default();
    if of_kind.len() < MAX_NAMED {
        of_kind.push((place, message));
    }
}

/// What reading a source gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Survey {
    /// Records by kind; only `records`, `merged` and `refused` are known before an import.
    pub(crate) counts: BTreeMap<&'static str, KindCount>,
    /// Records by agent; `None` is the control plane.
    pub(crate) agents: BTreeMap<Option<AgentId>, u64>,
    /// Refused records, the first ones by name.
    pub(crate) refused: Vec<(String, String)>,
    /// Last lines that never were whole.
    pub(crate) tails: Vec<String>,
    /// Parts that cannot be read: place and reason. The source stays then, whatever comes in.
    pub(crate) damage: Vec<(String, String)>,
    /// What was said of records that are taken.
    pub(crate) notes: Notes,
    /// Why it cannot be read; nothing of it comes in then.
    pub(crate) error: Option<String>,
}

impl Survey {
    /// All records, of whatever kind and fate.
    pub(crate) fn records(&self) -> u64 {
        self.counts.values().map(|count| count.records).sum()
    }

    /// Records that cannot be taken.
    pub(crate) fn refused_count(&self) -> u64 {
        self.counts.values().map(|count| count.refused).sum()
    }

    /// Counts an item that is no record taken, and remembers what it says.
    pub(crate) fn remember(&mut self, item: &Item) {
        match item {
            Item::Record { .. } => {}
            Item::Agent(agent) => {
                self.agents.entry(Some(agent.clone())).or_default();
            }
            Item::Merged { kind, count } => {
                let counts = self.counts.entry(kind).or_default();
                counts.records += count;
                counts.merged += count;
            }
            Item::Refused(refusal) => {
                let counts = self.counts.entry(refusal.kind).or_default();
                counts.records += 1;
                counts.refused += 1;
                if self.refused.len() < MAX_NAMED {
                    self.refused
                        .push((refusal.place.clone(), refusal.reason.clone()));
                }
            }
            Item::PartialTail { place, .. } => self.tails.push(place.clone()),
            Item::Damage { place, reason } => self.damage.push((place.clone(), reason.clone())),
            Item::Note {
                code,
                place,
                message,
            } => {
                note(&mut self.notes, code, place.clone(), message.clone());
            }
        }
    }
}

impl Sink for Survey {
    async fn take(&mut self, items: Vec<Item>) -> Result<(), ReadError> {
        for item in items {
            if let Item::Record { tier, record } = &item {
                self.counts.entry(record.kind()).or_default().records += 1;
                if let Some(agent) = record.agent() {
                    self.agents.entry(Some(agent.clone())).or_default();
                }
                *self.agents.entry(tier.agent_id().cloned()).or_default() += 1;
            }
            self.remember(&item);
        }
        Ok(())
    }
}

/// Counts what a source repeats that another one stands for.
#[derive(Default)]
pub(crate) struct Repeated(Survey);

impl Repeated {
    /// What it repeats.
    pub(crate) fn survey(self) -> Survey {
        self.0
    }
}

impl Sink for Repeated {
    async fn take(&mut self, items: Vec<Item>) -> Result<(), ReadError> {
        for item in items {
            match &item {
                Item::Record { record, .. } => {
                    let counts = self.0.counts.entry(record.kind()).or_default();
                    counts.records += 1;
                    counts.merged += 1;
                }
                // The file itself is kept as it is, its cut-off line with it.
                Item::Note { .. } | Item::PartialTail { .. } => {}
                _ => self.0.remember(&item),
            }
        }
        Ok(())
    }
}
