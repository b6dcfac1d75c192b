//! How a report reads for people.

use std::collections::BTreeMap;

use zeroclaw::model::KindCount;

use crate::cli::output::{Column, Table, or_dash, size};
use crate::cli::{CliError, Context};

use super::finding::{Finding, Level};
use super::plan::Action;
use super::report::{AgentReport, OtherReport, Report, SourceReport};

/// Prints a report: sources, agents, what stays, findings, and the verdict in one line.
pub(crate) fn show(context: &Context, report: &Report) -> Result<(), CliError> {
    let out = &context.out;
    if !report.sources.is_empty() {
        out.table(&source_table(report))?;
        out.text("\n")?;
    }
    if !report.agents.is_empty() {
        out.table(&agent_table(&report.agents))?;
        out.text("\n")?;
    }
    if !report.others.is_empty() {
        out.table(&other_table(&report.others))?;
        out.text("\n")?;
    }
    show_findings(context, &report.findings)?;
    out.heading(&verdict(report))
}

/// Findings of one kind named to people; JSON names all.
const SHOWN: usize = 12;

/// Findings of one kind together, what to do about them once.
fn show_findings(context: &Context, findings: &[Finding]) -> Result<(), CliError> {
    let mut codes: Vec<&str> = Vec::new();
    for finding in findings {
        if !codes.contains(&finding.code) {
            codes.push(finding.code);
        }
    }
    for code in codes {
        let mut remedy = None;
        let same: Vec<&Finding> = findings
            .iter()
            .filter(|finding| finding.code == code)
            .collect();
        for finding in same.iter().take(SHOWN) {
            let level = finding.level.as_str();
            context.out.text(&format!(
                "{level} [{code}] {}: {}\n",
                finding.place, finding.message
            ))?;
            remedy = finding.remedy.as_ref();
        }
        if same.len() > SHOWN {
            let rest = same.len() - SHOWN;
            context.out.text(&format!(
                "    and {rest} more of [{code}]; --json names all\n"
            ))?;
        }
        if let Some(remedy) = remedy {
            context.out.text(&format!("    remedy: {remedy}\n"))?;
        }
    }
    Ok(())
}

/// What was done or waits, what was seen, and what to do next: one line.
fn verdict(report: &Report) -> String {
    let mut text = outcome(report);
    let count = |level| {
        let of_level = report
            .findings
            .iter()
            .filter(|finding| finding.level == level);
        of_level.count()
    };
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let told = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    };
    text.push_str(&format!(
        "; {}, {}, {} advice",
        told(errors, "error"),
        told(warnings, "warning"),
        count(Level::Advice)
    ));
    if let Some(next) = next(report) {
        text.push_str(&format!("; next: {next}"));
    }
    text
}

/// The command to go on with: what waits, else the remedy of the gravest finding that has one.
fn next(report: &Report) -> Option<String> {
    if report.mode == "look" && report.has_pending() {
        return Some("zeroclaw doctor --fix".to_owned());
    }
    let mut findings: Vec<&Finding> = report.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    findings.iter().find_map(|finding| {
        let commands = finding.remedy.as_deref()?.split('`').skip(1).step_by(2);
        let ours = commands.filter(|command| command.starts_with("zeroclaw "));
        ours.map(str::to_owned).next()
    })
}

fn outcome(report: &Report) -> String {
    let total = &report.total;
    if report.mode == "look" {
        let pending = report
            .sources
            .iter()
            .filter(|source| matches!(source.action, Action::Import | Action::Archive))
            .count();
        return if pending == 0 {
            "nothing to import".to_owned()
        } else {
            format!(
                "{} records in {pending} sources wait for `zeroclaw doctor --fix`; nothing was changed",
                total.records
            )
        };
    }
    if !report.changed {
        return "nothing to do; nothing was changed".to_owned();
    }
    let mut text = format!(
        "{} records: {} imported, {} already present, {} merged, {} refused",
        total.records, total.imported, total.present, total.merged, total.refused
    );
    if let Some(run) = &report.run {
        text.push_str(&format!("; run {run}, now in {}", report.root));
    }
    if let Some(backup) = &report.backup {
        text.push_str(&format!("; before that archived in {backup}"));
    }
    text
}

/// Sources of one folder that went alike are shown as one from this number on.
const GROUPED: usize = 8;

/// Sources shown as one row.
struct Group {
    name: String,
    status: String,
    counts: BTreeMap<String, KindCount>,
    now_at: String,
}

fn groups(sources: &[SourceReport]) -> Vec<Group> {
    let folder = |path: &str| {
        path.rsplit_once('/')
            .map_or(String::new(), |(folder, _)| format!("{folder}/"))
    };
    let status = |source: &SourceReport| match &source.reason {
        Some(reason) => format!("{}: {reason}", source.status),
        None => source.status.to_owned(),
    };
    let mut found: Vec<(String, Vec<&SourceReport>)> = Vec::new();
    for source in sources {
        let key = format!(
            "{}\0{}\0{}",
            source.surface,
            folder(&source.path),
            status(source)
        );
        match found.iter_mut().find(|(other, _)| *other == key) {
            Some((_, members)) => members.push(source),
            None => found.push((key, vec![source])),
        }
    }
    let mut groups = Vec::new();
    for (_, members) in found {
        let parts = if members.len() < GROUPED {
            members.chunks(1)
        } else {
            members.chunks(members.len())
        };
        for part in parts {
            let first = part[0];
            let mut counts: BTreeMap<String, KindCount> = BTreeMap::new();
            for (kind, count) in part.iter().flat_map(|source| &source.counts) {
                counts.entry(kind.clone()).or_default().add(count);
            }
            let is_one = part.len() == 1;
            groups.push(Group {
                name: if is_one {
                    first.path.clone()
                } else {
                    format!("{} ({} files)", folder(&first.path), part.len())
                },
                status: status(first),
                counts,
                now_at: if is_one {
                    first.now_at.clone()
                } else {
                    folder(&first.now_at)
                },
            });
        }
    }
    groups
}

fn source_table(report: &Report) -> Table {
    let mut table = Table::new(&[
        Column::text("source"),
        Column::word("records of"),
        Column::number("in"),
        Column::number("imported"),
        Column::number("present"),
        Column::number("merged"),
        Column::number("refused"),
        Column::word("status"),
        Column::text("now at"),
    ]);
    let is_look = report.mode == "look";
    for group in groups(&report.sources) {
        let kinds = if group.counts.is_empty() {
            vec![("-", KindCount::default())]
        } else {
            group
                .counts
                .iter()
                .map(|(kind, count)| (kind.as_str(), *count))
                .collect()
        };
        for (kind, count) in kinds {
            let known = |number: u64| {
                if is_look {
                    "-".to_owned()
                } else {
                    number.to_string()
                }
            };
            table.row([
                group.name.clone(),
                kind.to_owned(),
                count.records.to_string(),
                known(count.imported),
                known(count.present),
                count.merged.to_string(),
                count.refused.to_string(),
                group.status.clone(),
                group.now_at.clone(),
            ]);
        }
    }
    table
}

fn agent_table(agents: &[AgentReport]) -> Table {
    let mut table = Table::new(&[
        Column::word("agent"),
        Column::word("status"),
        Column::text("reason"),
    ]);
    for agent in agents {
        table.row([
            agent.agent.clone(),
            agent.status.to_owned(),
            or_dash(agent.reason),
        ]);
    }
    table
}

fn other_table(others: &[OtherReport]) -> Table {
    let mut table = Table::new(&[
        Column::word("surface"),
        Column::text("path"),
        Column::number("files"),
        Column::number("size"),
        Column::text("what happens"),
    ]);
    for other in others {
        let fate = match (other.fate, other.reason) {
            (_, Some(reason)) => reason,
            ("kept", None) => "stays a file",
            _ => "no state; left in place",
        };
        table.row([
            other.surface.to_owned(),
            other.path.clone(),
            other.files.to_string(),
            size(other.bytes),
            fate.to_owned(),
        ]);
    }
    table
}
