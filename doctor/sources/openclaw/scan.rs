//! Finds everything in a home: what readers take, what they do not, and what nobody knows.

use std::path::Path;

use zeroclaw::fs::FsError;

use super::home::{Home, Standing};
use super::surfaces::{Kind, OTHERS, PLACES};
use crate::doctor::finding::{Finding, Level};
use crate::doctor::names::escaped;
use crate::doctor::scan::{Disposition, Scan, is_regular, matching, rest, source};
use crate::doctor::sources::zeroclaw::surfaces::Format;

/// Scans a home.
///
/// # Errors
///
/// [`FsError`] when a file that is there cannot be read.
pub(crate) fn scan(home: &Home) -> Result<Scan, FsError> {
    let mut scan = Scan::default();
    for (relative, _) in &home.indexes {
        add(home, relative, Kind::SessionIndex, &mut scan)?;
    }
    for (relative, transcript) in &home.transcripts {
        let kind = match transcript.standing {
            Standing::Past { .. } => Kind::PastTranscript,
            _ => Kind::Transcript,
        };
        add(home, relative, kind, &mut scan)?;
    }
    for (kind, pattern) in PLACES {
        for relative in matching(&home.root, pattern)? {
            if is_regular(&home.root.join(&relative)) {
                add(home, &relative, *kind, &mut scan)?;
            }
        }
    }
    custom_cron_store(home, &mut scan)?;
    scan.findings.extend(told(home));
    let rows = OTHERS.iter().map(|row| rest::Row {
        surface: row.surface,
        pattern: row.pattern,
        fate: row.fate,
        reason: Some(row.reason),
    });
    rest::find(&home.root, rows, &mut scan)?;
    Ok(scan)
}

/// Jobs in a place of their own, by the configuration.
fn custom_cron_store(home: &Home, scan: &mut Scan) -> Result<(), FsError> {
    let Some(written) = home.settings.text("cron.store") else {
        return Ok(());
    };
    let path = home
        .settings
        .path(&home.root, written, &home.settings.default_agent);
    let relative = path.strip_prefix(&home.root).unwrap_or(&path);
    let is_known = scan
        .sources
        .iter()
        .any(|source| source.relative == relative);
    if !is_known && is_regular(&path) {
        add(home, relative, Kind::CronJobs, scan)?;
    }
    Ok(())
}

fn add(home: &Home, relative: &Path, kind: Kind, scan: &mut Scan) -> Result<(), FsError> {
    let found = source(
        &home.root,
        relative,
        Format::OpenClaw(kind),
        String::new(),
        Disposition::Import,
    )?;
    scan.sources.push(found);
    Ok(())
}

/// What there is to say of the home as a whole.
fn told(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    let settings = &home.settings;
    let config = settings.file.unwrap_or("openclaw.json");
    if let Some(error) = &settings.error {
        let message = format!("cannot be read: {error}; agents are those that have folders");
        let finding = Finding::new("unreadable-config", Level::Warning, config, message);
        findings.push(
            finding
                .with_remedy("set it right in that home, then run `zeroclaw doctor --from` again"),
        );
    }
    for (name, agent) in &home.agents {
        let others: Vec<&str> = agent
            .folders
            .iter()
            .map(String::as_str)
            .filter(|folder| folder != name)
            .collect();
        if agent.folders.len() > 1 || !others.is_empty() {
            let folders: Vec<String> = agent
                .folders
                .iter()
                .map(|folder| escaped(Path::new(folder)))
                .collect();
            let message = format!("folders {} are one agent, {name}", folders.join(", "));
            findings.push(Finding::new(
                "agent-name",
                Level::Advice,
                format!("agents/{name}"),
                message,
            ));
        }
        let has_sessions = !agent.entries.is_empty()
            || home.transcripts.values().any(|found| found.agent == *name);
        if !settings.names(name)
            && settings.file.is_some()
            && settings.error.is_none()
            && has_sessions
        {
            let message = "has sessions and is not in the configuration; comes in as any other";
            findings.push(Finding::new(
                "unlisted-agent",
                Level::Advice,
                format!("agents/{name}"),
                message,
            ));
        }
    }
    let fragment = settings.fragment(home.agents.keys().map(String::as_str));
    let message = format!("agents found; what config.toml would say of them:\n{fragment}");
    let finding = Finding::new("config-fragment", Level::Advice, config, message);
    findings.push(finding.with_remedy(
        "put what you want of it into config.toml yourself: an import never writes there",
    ));
    findings
}
