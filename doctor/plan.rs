//! Phase two: what will happen, found by reading every source once and changing nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use zeroclaw::model::{AgentId, AgentStatus, SourceState, SourceStatus, Tier};

use super::finding::{Finding, Level};
use super::owner::Owners;
use super::progress::Progress;
use super::results;
use super::scan::{Disposition, Scan, Source};
use super::sources::openclaw::{self, home::Home};
use super::sources::zeroclaw::brain_db::Whose;
use super::sources::zeroclaw::paired_tokens::PairedTokens;
use super::sources::zeroclaw::session_lines::{self, Standing};
use super::sources::zeroclaw::surfaces::{Fate, Format};
use super::sources::zeroclaw::{
    acp_db, audit_db, brain_db, control_db, costs, cron_db, deleted_agent, devices_db,
    heartbeat_db, knowledge_db, markdown, paired_tokens, result_file, sessions_db, sop_db, trace,
};
use super::sources::{ReadError, Sink, sqlite::LegacyDb};
use super::survey::{Notes, Repeated, Survey};

/// Code of the finding of a source that can be read in part.
pub(crate) const DAMAGED: &str = "damaged-source";

/// What is to happen with one source, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// Its records come in, and it is moved aside after proof (a foreign one stays).
    Import,
    /// It was imported before, or repeats another one: it is moved aside.
    Archive,
    /// Nothing: it was imported before and stays where it is.
    Done,
    /// It stays: it cannot be read, or cannot be judged yet.
    Leave,
}

/// One source with what is to happen.
#[derive(Clone, Debug)]
pub(crate) struct PlannedSource {
    /// The source.
    pub(crate) source: Source,
    /// Its identity in receipts.
    pub(crate) source_key: String,
    /// What is to happen.
    pub(crate) action: Action,
    /// Why, where it is not plain.
    pub(crate) reason: Option<String>,
    /// What reading it gave.
    pub(crate) survey: Survey,
}

impl PlannedSource {
    /// Its bytes and records, for who says how far it is.
    pub(crate) fn measure(&self) -> (u64, u64) {
        (self.source.bytes, self.survey.records())
    }
}

/// All that is to happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// Sources in order.
    pub(crate) sources: Vec<PlannedSource>,
    /// Agents that get a database, and their standing.
    pub(crate) agents: BTreeMap<AgentId, (AgentStatus, Option<&'static str>)>,
    /// What was found and is not touched: surface, path, fate, files, bytes.
    pub(crate) others: Vec<super::scan::Other>,
    /// Findings.
    pub(crate) findings: Vec<Finding>,
}

impl Plan {
    /// Whether anything is to be done.
    pub(crate) fn has_work(&self) -> bool {
        self.sources
            .iter()
            .any(|planned| matches!(planned.action, Action::Import | Action::Archive))
    }

    /// Records of all sources that come in.
    pub(crate) fn import_records(&self) -> u64 {
        let imports = self
            .sources
            .iter()
            .filter(|planned| planned.action == Action::Import);
        imports.map(|planned| planned.survey.records()).sum()
    }

    /// Bytes of all sources that come in.
    pub(crate) fn import_bytes(&self) -> u64 {
        let imports = self
            .sources
            .iter()
            .filter(|planned| planned.action == Action::Import);
        imports.map(|planned| planned.source.bytes).sum()
    }
}

/// What earlier receipts say, by source.
pub(crate) type Earlier = BTreeMap<String, SourceState>;

/// What readers need to know beside their own file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Install<'a> {
    /// The root that is imported from.
    pub(crate) root: &'a Path,
    /// Whose records are.
    pub(crate) owners: &'a Owners,
    /// The home that is imported from, where it is another program's.
    pub(crate) home: Option<&'a Home>,
    /// For private copies.
    pub(crate) scratch: &'a Path,
    /// Hears how far it is.
    pub(crate) progress: &'a Progress,
}

/// Reads one source into `sink`.
pub(crate) async fn read<S: Sink>(
    source: &Source,
    install: Install<'_>,
    sink: &mut S,
) -> Result<(), ReadError> {
    if source.format.about().discarded.is_some() {
        return Ok(());
    }
    if let (Format::OpenClaw(kind), Some(home)) = (source.format, install.home) {
        return openclaw::read(kind, source, home, install, sink).await;
    }
    if source.format.is_sqlite() {
        let mut db = LegacyDb::open(&source.path, install.scratch).await?;
        let read = read_database(source, &mut db, install, sink).await;
        db.close().await;
        return read;
    }
    let owners = install.owners;
    let (path, key) = (&source.path, &source.key);
    match source.format {
        Format::SessionLines => session_lines::read(path, key, Standing::Live, owners, sink).await,
        Format::ArchivedSessionLines => {
            session_lines::read(path, key, Standing::Archived, owners, sink).await
        }
        Format::ResultFile => {
            let alias = key.as_str();
            let standing = result_file::Standing {
                path,
                alias,
                owners,
            };
            result_file::read(standing, sink).await
        }
        Format::Cache | Format::CacheDb | Format::SelfTestDb => Ok(()),
        Format::Costs => costs::read(path, owners, sink).await,
        Format::Trace => trace::read(path, owners, sink).await,
        Format::Markdown => markdown::read(path, &source.relative, owners, sink).await,
        Format::DeletedAgent => deleted_agent::read(path, owners, sink).await,
        Format::PairedTokens => paired_tokens::read(install.root, sink).await,
        _ => Err(not_plain(source)),
    }
}

async fn read_database<S: Sink>(
    source: &Source,
    db: &mut LegacyDb,
    install: Install<'_>,
    sink: &mut S,
) -> Result<(), ReadError> {
    let owners = install.owners;
    match source.format {
        Format::SessionsDb => sessions_db::read(db, owners, sink).await,
        Format::Cache | Format::CacheDb | Format::SelfTestDb => Ok(()),
        Format::AcpDb => acp_db::read(db, owners, sink).await,
        Format::BrainDb => brain_db::read(db, Whose::Rows, owners, sink).await,
        Format::ChannelArchive => brain_db::read_channel(db, "discord", owners, sink).await,
        Format::CronDb => {
            let place = if source.is_current_place {
                cron_db::Place::Current
            } else {
                cron_db::Place::Misplaced
            };
            cron_db::read(db, place, owners, sink).await
        }
        Format::ControlDb => {
            let folders = results::folders(install.root, owners, install.scratch).await?;
            let retired = results::retired(install.root)?;
            let surroundings = control_db::Surroundings {
                owners,
                root: install.root,
                folders: &folders,
                retired: &retired,
            };
            control_db::read(db, surroundings, sink).await
        }
        Format::DevicesDb => {
            let pairing = PairedTokens::load(install.root)?.pairing();
            devices_db::read(db, &pairing, sink).await
        }
        Format::SopDb => sop_db::read(db, sink).await,
        Format::HeartbeatDb => heartbeat_db::read(db, owners, sink).await,
        Format::KnowledgeDb => knowledge_db::read(db, sink).await,
        Format::AuditDb => audit_db::read(db, owners, sink).await,
        Format::SessionLines
        | Format::ArchivedSessionLines
        | Format::ResultFile
        | Format::PairedTokens
        | Format::DeletedAgent
        | Format::Markdown
        | Format::Costs
        | Format::Trace
        | Format::OpenClaw(_) => Err(not_plain(source)),
    }
}

fn not_plain(source: &Source) -> ReadError {
    ReadError::Format {
        reason: format!("{} is read another way", source.format.surface()),
    }
}

/// Decides about every source of a scan.
///
/// * `earlier`: status of receipts by source key, from the control plane.
/// * `is_foreign`: the root is another one's; its files stay.
pub(crate) async fn plan(
    scan: Scan,
    install: Install<'_>,
    earlier: &Earlier,
    root_tag: &str,
    is_foreign: bool,
) -> Plan {
    let owners = install.owners;
    let mut plan = Plan {
        others: scan.others,
        findings: scan.findings,
        ..Plan::default()
    };
    let mut needed = BTreeSet::new();
    let bytes = scan.sources.iter().map(|source| source.bytes).sum();
    install.progress.begin("look", bytes, 0);
    for source in scan.sources {
        if source.format == Format::Markdown && markdown::owner(&source.relative, owners).is_none()
        {
            plan.others.push(kept_text(&source));
            continue;
        }
        let planned = decide(source, install, earlier, root_tag, is_foreign).await;
        if planned.action == Action::Import {
            needed.extend(planned.survey.agents.keys().flatten().cloned());
        }
        install
            .progress
            .advance(planned.source.bytes, planned.survey.records());
        plan.findings.extend(findings(&planned));
        plan.sources.push(planned);
    }
    install.progress.end();
    plan.findings.extend(half_renamed(&needed, install));
    if plan.has_work() {
        for alias in owners.config().agents.keys() {
            match owners.named(alias) {
                Ok(id) => {
                    needed.insert(id);
                }
                Err(reason) => {
                    plan.findings.push(Finding::new(
                        "illegal-agent-name",
                        Level::Warning,
                        "config.toml",
                        reason,
                    ));
                }
            }
        }
    }
    plan.agents = needed
        .into_iter()
        .map(|id| (id.clone(), owners.status(&id)))
        .collect();
    plan
}

/// A file that looks like memories and is text of its agent alone: it stays, and nothing is taken.
fn kept_text(source: &Source) -> super::scan::Other {
    super::scan::Other {
        surface: "agent files",
        relative: source.relative.clone(),
        fate: Fate::Kept,
        reason: None,
        files: 1,
        bytes: source.bytes,
    }
}

/// Agents that look like earlier names of others: a rename writes the configuration and moves the
/// workspace first, and can have died before the rows.
fn half_renamed(needed: &BTreeSet<AgentId>, install: Install<'_>) -> Vec<Finding> {
    let owners = install.owners;
    let has_workspace = |name: &str| {
        let folder = install.root.join("agents").join(name).join("workspace");
        std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
    };
    let agents = owners.config().agents.keys();
    let heirs: Vec<&str> = agents
        .map(String::as_str)
        .filter(|name| needed.iter().all(|id| id.as_str() != *name) && has_workspace(name))
        .collect();
    let is_lost = |id: &&AgentId| {
        let name = id.as_str();
        owners.status(id).0 == AgentStatus::Retired
            && name != "default"
            && !name.contains('@')
            && !has_workspace(name)
    };
    let told = needed.iter().filter(is_lost).filter_map(|id| {
        let heir = heirs.first()?;
        let others = heirs.join(", ");
        let message = format!(
            "has records and no workspace, and {others} a workspace and no records: perhaps one was renamed; comes in as a retired agent of its own"
        );
        let remedy = format!("if it was renamed, run with `--agent-map {id}={heir}` before `--fix` without it");
        let finding = Finding::new("renamed-agent", Level::Advice, id.to_string(), message);
        Some(finding.with_remedy(remedy))
    });
    told.collect()
}

async fn decide(
    source: Source,
    install: Install<'_>,
    earlier: &Earlier,
    root_tag: &str,
    is_foreign: bool,
) -> PlannedSource {
    let source_key = source.source_key(root_tag);
    let settled = earlier.get(&source_key).filter(|state| {
        matches!(
            state.status,
            SourceStatus::Retired | SourceStatus::Kept | SourceStatus::Discarded
        )
    });
    // An index follows its file, also back to what it said before.
    let settled = settled.filter(|state| {
        source.format != Format::Markdown || is_latest(&source_key, state, earlier)
    });
    // What was refused may be taken now: under another name, or by a reader that knows more.
    let mut survey = None;
    let mut was_imported = settled.is_some();
    // One of the root itself that stayed was damaged, and still is; unless it stays by design.
    let is_kept = settled.is_some_and(|state| state.status == SourceStatus::Kept);
    let stays = source.stays();
    let stayed = is_kept && !is_foreign && !stays;
    if let Some(state) = settled.filter(|state| state.refused > 0 || stayed) {
        let found = surveyed(&source, install).await;
        was_imported = found.error.is_some() || found.refused_count() >= state.refused;
        survey = Some(found);
    }
    let aside = if is_foreign || stayed || stays {
        Action::Done
    } else {
        Action::Archive
    };
    let (action, reason) = match &source.disposition {
        _ if was_imported => (aside, Some("imported before, unchanged since".to_owned())),
        Disposition::Discard(reason) => (aside, Some(reason.clone())),
        Disposition::Wait(reason) => (Action::Leave, Some(reason.clone())),
        Disposition::Import => (Action::Import, None),
    };
    let mut planned = PlannedSource {
        source,
        source_key,
        action,
        reason,
        survey: Survey::default(),
    };
    if planned.action == Action::Import {
        planned.survey = match survey {
            Some(survey) => survey,
            None => surveyed(&planned.source, install).await,
        };
        if let Some(error) = &planned.survey.error {
            planned.action = Action::Leave;
            planned.reason = Some(format!("cannot be read: {error}"));
        }
    } else if let Some(survey) = survey {
        planned.survey.damage = survey.damage;
    } else if !was_imported && matches!(planned.source.disposition, Disposition::Discard(_)) {
        let mut repeated = Repeated::default();
        // One of which nothing can be read repeats nothing; it is moved aside all the same.
        let _ = read(&planned.source, install, &mut repeated).await;
        planned.survey = repeated.survey();
    }
    planned
}

/// Whether no other content of the same file came in later.
fn is_latest(source_key: &str, state: &SourceState, earlier: &Earlier) -> bool {
    let place = |key: &str| key.rsplit_once(':').map(|(place, _)| place.to_owned());
    let others = earlier
        .iter()
        .filter(|(key, _)| *key != source_key && place(key) == place(source_key));
    others
        .map(|(_, other)| other.imported_at_ms)
        .all(|at_ms| at_ms < state.imported_at_ms)
}

/// Reads a source for what is in it.
async fn surveyed(source: &Source, install: Install<'_>) -> Survey {
    let mut survey = Survey::default();
    if let Err(error) = read(source, install, &mut survey).await {
        survey.error = Some(error.to_string());
    }
    survey
}

/// What a source's reading is worth saying.
fn findings(planned: &PlannedSource) -> Vec<Finding> {
    let name = planned.source.name();
    let mut findings = Vec::new();
    if let Some(error) = &planned.survey.error {
        let message = format!("cannot be read and stays in place: {error}");
        findings.push(Finding::new("unreadable-source", Level::Error, &name, message).with_remedy(
            "repair or restore the file, then run `zeroclaw doctor --fix` again; nothing of it was taken",
        ));
    } else if planned.action == Action::Leave {
        let message = planned.reason.clone().unwrap_or_default();
        findings.push(Finding::new(
            "waiting-source",
            Level::Warning,
            &name,
            message,
        ));
    }
    for (place, reason) in &planned.survey.damage {
        let place = format!("{name}: {place}");
        let remedy = "what can be read comes in, and the file stays; repair or restore it, then run `zeroclaw doctor --fix` again";
        findings.push(Finding::new(DAMAGED, Level::Error, place, reason).with_remedy(remedy));
    }
    for (place, reason) in &planned.survey.refused {
        findings.push(Finding::new(
            "refused-record",
            Level::Warning,
            format!("{name}: {place}"),
            reason,
        ));
    }
    for place in &planned.survey.tails {
        let message = "a last line cut off while it was written; its bytes are kept in quarantine";
        findings.push(Finding::new(
            "partial-tail",
            Level::Advice,
            format!("{name}: {place}"),
            message,
        ));
    }
    findings.extend(noted(&name, &planned.survey.notes));
    findings
}

/// Notes on records that were taken, one finding a kind.
pub(crate) fn noted(source: &str, notes: &Notes) -> Vec<Finding> {
    let one = |(code, notes): (&&'static str, &Vec<(String, String)>)| {
        let (place, message) = notes.first()?;
        let more = match notes.len() {
            1 => String::new(),
            several => format!(" (and {} more like it)", several - 1),
        };
        let place = format!("{source}: {place}");
        let message = format!("{message}{more}");
        Some(Finding::new(code, Level::Advice, place, message))
    };
    notes.iter().filter_map(one).collect()
}

/// The tiers a plan writes to.
pub(crate) fn tiers(planned: &PlannedSource) -> Vec<Tier> {
    planned
        .survey
        .agents
        .keys()
        .map(|agent| agent.clone().map_or(Tier::Global, Tier::Agent))
        .collect()
}
