//! `<session>.jsonl`: a header, then records that name what they follow; a tree, written only at its end.
//!
//! `{"type":"session","version":3,"id":"0b…","timestamp":"2026-01-05T10:15:00.000Z","cwd":"/home/me"}`
//! `{"type":"message","id":"1a2b3c4d","parentId":null,"timestamp":"…","message":{"role":"user","content":[…]}}`
//!
//! Version 1 was a plain list without ids: they are made from the place, so that they are the same at each reading.
//! Where the conversation stands is the last record, unless a `leaf` record says otherwise; records that were left
//! behind by going back stay, beside the branch.
//!
//! Known faults: no header (a file cut to its last lines), two headers, ids that occur twice, parents that are not
//! there, half characters, bytes that are no UTF-8, a last line cut by a crash, broken lines in the middle.

use zeroclaw::model::Tier;

use super::super::lines::Lines;
use super::super::{Batcher, ReadError, Sink};
use super::event::{Header, KNOWN_VERSION};
use super::events::Events;
use super::home::{Home, Standing, Transcript};
use super::part::{Part, parts};
use super::session::{Times, of_entry, of_file};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record};
use crate::doctor::rows::branch::BranchTip;
use crate::doctor::scan::Source;

/// What a first reading tells of a transcript as a whole.
#[derive(Debug, Default)]
struct Outline {
    header: Option<Header>,
    headers: u64,
    records: u64,
    times: Times,
    fault: Option<(String, &'static str)>,
}

/// Streams the session of a transcript.
pub(crate) async fn read<S: Sink>(
    source: &Source,
    home: &Home,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let format = |reason: String| ReadError::Format { reason };
    let transcript = home
        .transcripts
        .get(&source.relative)
        .ok_or_else(|| format("it is no transcript of this home".to_owned()))?;
    let outline = outline(source)?;
    if outline.records == 0 {
        return match outline.fault {
            Some((place, fault)) => Err(format(format!(
                "no line of it is a record; {place}: {fault}"
            ))),
            // Nothing was ever written: its key, if it has one, is in the index.
            None => Ok(()),
        };
    }
    let version = outline.header.as_ref().map_or(1, |header| header.version);
    if version > KNOWN_VERSION && transcript.standing != Standing::Routed {
        let reason =
            format!("version {version} is newer than this release knows, and no key leads to it");
        return Err(format(reason));
    }
    let agent = owners.named(&transcript.agent).map_err(format)?;
    let tier = Tier::Agent(agent.clone());
    let known = &home.agents[&transcript.agent];
    let entry = known
        .entries
        .get(&transcript.key)
        .filter(|_| transcript.standing == Standing::Routed);
    let session = match entry {
        Some(entry) => of_entry(home, agent, &transcript.key, entry, outline.times),
        None => of_file(agent, transcript, outline.times),
    };
    let mut out = Batcher::new(sink);
    let record = Record::Session(Box::new(session));
    out.push(
        Item::Record {
            tier: tier.clone(),
            record,
        },
        256,
    )
    .await?;
    for (code, message) in oddities(transcript, &outline, version) {
        let place = format!("session {}", transcript.session_id);
        out.push(
            Item::Note {
                code,
                place,
                message,
            },
            0,
        )
        .await?;
    }
    let mut events = Events::new(&transcript.session_id, outline.times.last_ms.unwrap_or(0));
    let mut lines = Lines::open(&source.path)?;
    while let Some(line) = lines.next()? {
        for part in parts(&line) {
            events.give(part, &tier, &mut out).await?;
        }
    }
    if let Some(event_id) = events.tip() {
        let tip = BranchTip {
            session_id: transcript.session_id.clone(),
            event_id,
        };
        out.push(
            Item::Record {
                tier,
                record: tip.into(),
            },
            64,
        )
        .await?;
    }
    out.flush().await
}

/// When the first and the last record of a file were written; the file's own time where none says so.
pub(crate) fn times(path: &std::path::Path) -> Result<Times, ReadError> {
    let mut lines = Lines::open(path)?;
    let mut times = Times {
        first_ms: None,
        last_ms: Some(super::modified_ms(path)?),
    };
    if let Some(line) = lines.next()? {
        let first = parts(&line).into_iter().find_map(|part| match part {
            Part::Whole { parsed, .. } => parsed.at_ms,
            Part::Broken { .. } => None,
        });
        times.first_ms = first;
    }
    Ok(times)
}

fn outline(source: &Source) -> Result<Outline, ReadError> {
    let mut outline = Outline::default();
    let mut last_ms = None;
    let mut lines = Lines::open(&source.path)?;
    while let Some(line) = lines.next()? {
        for part in parts(&line) {
            match part {
                Part::Whole { parsed, .. } => {
                    outline.records += 1;
                    outline.times.first_ms = outline.times.first_ms.or(parsed.at_ms);
                    last_ms = last_ms.max(parsed.at_ms);
                    if let Some(header) = parsed.header {
                        outline.headers += 1;
                        if outline.records == 1 {
                            outline.header = Some(header);
                        }
                    }
                }
                Part::Broken { place, reason, .. } => {
                    outline.fault.get_or_insert((place, reason));
                }
            }
        }
    }
    outline.times.last_ms = Some(match last_ms {
        Some(last) => last,
        None => super::modified_ms(&source.path)?,
    });
    Ok(outline)
}

/// What is odd about a transcript as a whole.
fn oddities(
    transcript: &Transcript,
    outline: &Outline,
    version: i64,
) -> Vec<(&'static str, String)> {
    let mut odd = Vec::new();
    let mut say = |code, message: String| odd.push((code, message));
    match &outline.header {
        None => say(
            "header-missing",
            "has no header; its records are taken as they are".to_owned(),
        ),
        Some(header) => {
            let named = header.id.as_deref().filter(|id| *id != transcript.named_id);
            if let Some(id) = named {
                say(
                    "header-differs",
                    format!("its header names session {id}; its key and its name hold"),
                );
            }
            if version > KNOWN_VERSION {
                say(
                    "newer-transcript",
                    format!(
                        "version {version} is newer than this release knows; read as far as it is known"
                    ),
                );
            }
        }
    }
    if outline.headers > 1 {
        say(
            "two-headers",
            format!(
                "has {} headers; all behind the first are kept as events",
                outline.headers
            ),
        );
    }
    match transcript.standing {
        Standing::Lost => say(
            "recovered-session",
            format!(
                "no key leads to it; archived under the key {}",
                transcript.key
            ),
        ),
        Standing::Unindexed => say(
            "recovered-session",
            format!(
                "its index cannot be read; reached by the key {}",
                transcript.key
            ),
        ),
        Standing::Routed | Standing::Past { .. } => {}
    }
    odd
}
