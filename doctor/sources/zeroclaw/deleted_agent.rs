//! `data/agents/_deleted/<alias>-<YYYYMMDDHHMMSS>/`: what a delete left of an agent, since 0.8.
//!
//! `manifest.json` counts what was exported; `cascade/memory.json`, `cron.json` and `acp.json` are arrays
//! of one object a row, named as the columns but for `timestamp` and with `kind`, `schedule` and
//! `delivery` as JSON and not as text. Runs of jobs and transcripts were never exported. Each archive is
//! an agent of its own, retired, named after the time of its end: a name can have been used again. The
//! workspace beside it stays.
//!
//! Known faults: writes were best effort, so that a file can be missing whose rows the manifest counts.

use std::path::Path;

use serde_json::{Map, Value};
use zeroclaw::model::AgentId;

use super::super::elements::{Element, Elements};
use super::super::sqlite::Values;
use super::super::{Batcher, ReadError, Sink};
use super::acp_db::session::{Told, open};
use super::brain_db::{self, Store, Successor, Whose};
use super::cron_db;
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Owner, Record, Refusal, kind};
use crate::doctor::units::LegacyTime;

/// Files of an archive, the manifest's name of their count, the kind of their records.
const PARTS: [(&str, &str, &str); 3] = [
    ("cascade/memory.json", "memory_rows", kind::MEMORY),
    ("cascade/cron.json", "cron_jobs", kind::CRON_JOB),
    ("cascade/acp.json", "acp_sessions", kind::SESSION),
];

/// Whose archive a file is part of, and when it was made.
struct Archive {
    agent: AgentId,
    alias: String,
    deleted_at_ms: i64,
}

/// Streams one file of an archive.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let refuse = |reason: String| ReadError::Format { reason };
    let is_manifest = path.file_name().is_some_and(|name| name == "manifest.json");
    let folder = if is_manifest {
        path.parent()
    } else {
        path.parent().and_then(Path::parent)
    };
    let folder = folder.ok_or_else(|| refuse("it lies in no folder".to_owned()))?;
    let archive = archive(folder, owners).map_err(refuse)?;
    let mut out = Batcher::new(sink);
    out.push(Item::Agent(archive.agent.clone()), 0).await?;
    if is_manifest {
        manifest(path, folder, &archive, &mut out).await?;
        return out.flush().await;
    }
    let part = PARTS.iter().find(|(name, ..)| path.ends_with(name));
    let (_, _, kind) = part.ok_or_else(|| refuse("it is no part of an archive".to_owned()))?;
    let store = Store {
        whose: Whose::One(archive.agent.clone()),
        aliases: std::collections::HashMap::new(),
        provider: None,
        model: None,
    };
    let mut elements = Elements::open(path)?;
    for number in 1_i64.. {
        let raw = match elements.next()? {
            None => break,
            Some(Element::NoArray) => return Err(refuse("it holds no JSON array".to_owned())),
            Some(Element::Torn(raw)) => {
                let place = format!("element {number}");
                out.push(Item::PartialTail { place, raw }, 0).await?;
                break;
            }
            Some(Element::Text(raw)) => raw,
        };
        let place = format!("element {number}");
        let bytes = raw.len();
        let Ok(object) = serde_json::from_slice::<Map<String, Value>>(&raw) else {
            let reason = "it is no JSON object".to_owned();
            refused(kind, place, reason, raw, &mut out).await?;
            continue;
        };
        match *kind {
            kind::MEMORY => memory(object, number, &store, owners, bytes, &mut out).await?,
            kind::CRON_JOB => job(object, raw, place, &archive, owners, &mut out).await?,
            _ => session(object, raw, place, &archive, &mut out).await?,
        }
    }
    out.flush().await
}

/// By the folder's name.
fn archive(folder: &Path, owners: &Owners) -> Result<Archive, String> {
    let name = folder.file_name().and_then(|name| name.to_str());
    let (alias, stamp) = name
        .and_then(|name| name.rsplit_once('-'))
        .ok_or("its folder is not named after an agent and a time")?;
    let at = chrono::NaiveDateTime::parse_from_str(stamp, "%Y%m%d%H%M%S")
        .map_err(|_| "its folder is not named after a time".to_owned())?;
    let stamp = at.format("%Y%m%dT%H%M%SZ").to_string();
    Ok(Archive {
        agent: owners.deleted(alias, &stamp)?,
        alias: alias.to_owned(),
        deleted_at_ms: at.and_utc().timestamp_millis(),
    })
}

/// Says what the manifest counts and is not there.
async fn manifest<S: Sink>(
    path: &Path,
    folder: &Path,
    archive: &Archive,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let text = std::fs::read(path).map_err(zeroclaw::fs::FsError::at("read", path))?;
    let parsed: Value = serde_json::from_slice(&text).map_err(|_| ReadError::Format {
        reason: "it is no JSON".to_owned(),
    })?;
    let mut said = Vec::new();
    for (name, counted, _) in PARTS {
        let count = parsed[counted].as_u64().unwrap_or(0);
        if count > 0 && !folder.join(name).is_file() {
            let message =
                format!("counts {count} {counted}, and {name} is not there: they are lost");
            said.push(("incomplete-archive", message));
        }
    }
    if parsed["alias"]
        .as_str()
        .is_some_and(|alias| alias != archive.alias)
    {
        let message = "names another agent than its folder, which is believed".to_owned();
        said.push(("other-alias", message));
    }
    for warning in parsed["warnings"].as_array().into_iter().flatten() {
        let warning = warning.as_str().unwrap_or_default();
        said.push((
            "archive-warning",
            format!("the old program said: {warning}"),
        ));
    }
    for (code, message) in said {
        let place = archive.agent.to_string();
        let note = Item::Note {
            code,
            place,
            message,
        };
        out.push(note, 0).await?;
    }
    Ok(())
}

async fn refused<S: Sink>(
    kind: &'static str,
    place: String,
    reason: String,
    raw: Vec<u8>,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let bytes = raw.len();
    let refusal = Refusal {
        kind,
        place,
        reason,
        raw,
    };
    out.push(Item::Refused(refusal), bytes).await
}

async fn memory<S: Sink>(
    mut object: Map<String, Value>,
    number: i64,
    store: &Store,
    owners: &Owners,
    bytes: usize,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    // One time was exported; it stands for both.
    if let Some(time) = object.get("timestamp").cloned() {
        object.entry("created_at").or_insert_with(|| time.clone());
        object.entry("updated_at").or_insert(time);
    }
    let values = Values::of_object(&object, &brain_db::MEMORY, number);
    // What replaced it may stand anywhere in the file: its key or id stays as it is.
    let successor = values.hint(10).map(Successor::Memory);
    for item in brain_db::items(values, store, owners, successor) {
        out.push(item, bytes).await?;
    }
    Ok(())
}

async fn job<S: Sink>(
    object: Map<String, Value>,
    raw: Vec<u8>,
    place: String,
    archive: &Archive,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let values = Values::of_object(&object, &cron_db::JOB, 0);
    match cron_db::job(&values, cron_db::Place::Current, true, owners) {
        Ok((mut job, notes)) => {
            // A name that is used again has jobs of its own, perhaps of the same id.
            job.store_key = format!("deleted:{}", archive.agent);
            job.agent_id = Some(archive.agent.clone());
            job.enabled = false;
            job.disabled_reason = Some("its agent was deleted".to_owned());
            let notes = notes
                .into_iter()
                .filter(|(code, _)| *code == "zone-recorded" || *code == "unknown-output-format")
                .collect();
            cron_db::give_job(job, notes, out).await
        }
        Err(reason) => refused(kind::CRON_JOB, place, reason, raw, out).await,
    }
}

async fn session<S: Sink>(
    object: Map<String, Value>,
    raw: Vec<u8>,
    place: String,
    archive: &Archive,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| object.get(*name)?.as_str());
        found.map(str::to_owned)
    };
    let Some(session_id) = text(&["session_uuid", "session_id", "uuid", "id"]) else {
        let reason = "it names no session".to_owned();
        return refused(kind::SESSION, place, reason, raw, out).await;
    };
    let time = |name: &str| {
        text(&[name])
            .and_then(|text| LegacyTime::parse(&text))
            .map(LegacyTime::ms)
    };
    let created = time("created_at").or_else(|| time("last_activity"));
    let created_at_ms = created.unwrap_or(archive.deleted_at_ms);
    let told = Told {
        session_id,
        alias: None,
        workspace_dir: text(&["workspace_dir", "cwd"]).unwrap_or_default(),
        token_count: object
            .get("token_count")
            .and_then(Value::as_i64)
            .unwrap_or(0)
            .max(0),
        // It cannot be gone on with, however it stood: its transcript was deleted.
        killed_at_ms: Some(time("killed_at").unwrap_or(archive.deleted_at_ms)),
        created_at_ms,
        last_activity_ms: time("last_activity").unwrap_or(created_at_ms),
        entry_json: Value::Object(object.clone()).to_string(),
    };
    let owner = Owner {
        agent: archive.agent.clone(),
        is_fallback: false,
    };
    let opened = open(told, place, Ok(owner), out).await?;
    let Some((tier, session)) = opened.tier.zip(opened.session) else {
        return Ok(());
    };
    let record = Record::Session(session);
    out.push(Item::Record { tier, record }, 256).await
}
