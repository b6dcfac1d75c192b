//! What a look or a run found and did: the value behind both the table and the JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use zeroclaw::model::{KindCount, Tier};

use super::finding::{Finding, Level};
use super::names::escaped;
use super::plan::{Action, Plan, PlannedSource, tiers};
use super::sources::zeroclaw::surfaces::Fate;

/// A record that was not taken.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RefusedRecord {
    /// Where in its source.
    pub(crate) place: String,
    /// Why.
    pub(crate) reason: String,
}

/// One source.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SourceReport {
    /// Path below its root.
    pub(crate) path: String,
    /// Surface it belongs to.
    pub(crate) surface: &'static str,
    /// Size, bytes.
    pub(crate) bytes: u64,
    /// What is to happen, or happened.
    pub(crate) action: Action,
    /// Why, where it is not plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// `planned`, `imported`, `archived`, `done`, `left` or `failed`.
    pub(crate) status: &'static str,
    /// Where its rows go: `global` or agents.
    pub(crate) tiers: Vec<String>,
    /// Counts by kind of record.
    pub(crate) counts: BTreeMap<String, KindCount>,
    /// Records not taken.
    pub(crate) refused: Vec<RefusedRecord>,
    /// Last lines that never were whole.
    pub(crate) partial_tails: Vec<String>,
    /// Where the bytes of those are, below the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) quarantine: Option<String>,
    /// Where the source is now, below its root.
    pub(crate) now_at: String,
}

impl SourceReport {
    /// Of a source that is only planned.
    pub(crate) fn planned(planned: &PlannedSource) -> Self {
        let survey = &planned.survey;
        Self {
            path: planned.source.name(),
            surface: planned.source.format.surface(),
            bytes: planned.source.bytes,
            action: planned.action,
            reason: planned.reason.clone(),
            status: match planned.action {
                Action::Leave => "left",
                Action::Done => "done",
                Action::Import | Action::Archive => "planned",
            },
            tiers: tiers(planned).iter().map(Tier::to_string).collect(),
            counts: survey
                .counts
                .iter()
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            refused: refused(&survey.refused),
            partial_tails: survey.tails.clone(),
            quarantine: None,
            now_at: planned.source.name(),
        }
    }

    /// All kinds together.
    pub(crate) fn total(&self) -> KindCount {
        self.counts
            .values()
            .fold(KindCount::default(), |mut total, count| {
                total.add(count);
                total
            })
    }
}

pub(crate) fn refused(named: &[(String, String)]) -> Vec<RefusedRecord> {
    let one = |(place, reason): &(String, String)| RefusedRecord {
        place: place.clone(),
        reason: reason.clone(),
    };
    named.iter().map(one).collect()
}

/// An agent that has, or gets, a database.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AgentReport {
    /// Its name.
    pub(crate) agent: String,
    /// `active` or `retired`.
    pub(crate) status: &'static str,
    /// Why it is retired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
}

/// Files that no reader takes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OtherReport {
    /// Surface they belong to.
    pub(crate) surface: &'static str,
    /// Where, below the root.
    pub(crate) path: String,
    /// `kept`, `ignored` or `discarded`.
    pub(crate) fate: &'static str,
    /// Why, where that is worth saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'static str>,
    /// How many.
    pub(crate) files: u64,
    /// Their size, bytes.
    pub(crate) bytes: u64,
}

/// A whole look or run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The root that is imported into.
    pub(crate) root: String,
    /// The root that is imported from, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// `look` or `fix`.
    pub(crate) mode: &'static str,
    /// Identity of the run, when there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// Whether anything was changed.
    pub(crate) changed: bool,
    /// Archive of what there was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<String>,
    /// Sources, in order.
    pub(crate) sources: Vec<SourceReport>,
    /// Agents.
    pub(crate) agents: Vec<AgentReport>,
    /// What no reader takes.
    pub(crate) others: Vec<OtherReport>,
    /// Findings.
    pub(crate) findings: Vec<Finding>,
    /// All sources together.
    pub(crate) total: KindCount,
}

impl Report {
    /// Of a plan that is not carried out.
    pub(crate) fn planned(
        root: &std::path::Path,
        from: Option<&std::path::Path>,
        plan: &Plan,
    ) -> Self {
        let others = plan.others.iter().map(|other| OtherReport {
            surface: other.surface,
            path: escaped(&other.relative),
            fate: match other.fate {
                Fate::Kept => "kept",
                Fate::Ignored => "ignored",
                Fate::Discarded => "discarded",
            },
            reason: other.reason,
            files: other.files,
            bytes: other.bytes,
        });
        let agents = plan
            .agents
            .iter()
            .map(|(id, (status, reason))| AgentReport {
                agent: id.to_string(),
                status: status.as_str(),
                reason: *reason,
            });
        let mut report = Self {
            root: root.display().to_string(),
            from: from.map(|from| from.display().to_string()),
            mode: "look",
            run: None,
            changed: false,
            backup: None,
            sources: plan.sources.iter().map(SourceReport::planned).collect(),
            agents: agents.collect(),
            others: others.collect(),
            findings: plan.findings.clone(),
            total: KindCount::default(),
        };
        report.add_up();
        report
    }

    /// Totals over all sources.
    pub(crate) fn add_up(&mut self) {
        self.total = self
            .sources
            .iter()
            .fold(KindCount::default(), |mut total, source| {
                total.add(&source.total());
                total
            });
    }

    /// The gravest finding.
    pub(crate) fn gravest(&self) -> Option<Level> {
        self.findings.iter().map(|finding| finding.level).max()
    }

    /// Whether something waits for `--fix`.
    pub(crate) fn has_pending(&self) -> bool {
        self.sources.iter().any(|source| source.status == "planned")
    }
}
