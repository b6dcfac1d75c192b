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

use std::collections::{HashMap, HashSet};

use zeroclaw::model::{NewEvent, Tier};

use super::super::lines::Lines;
use super::super::{Batcher, ReadError, Sink};
use super::event::{Header, KNOWN_VERSION, Parsed};
use super::home::{Home, Standing, Transcript};
use super::part::{Part, parts};
use super::session::{Times, of_entry, of_file};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::rows::branch::BranchTip;
use crate::doctor::scan::Source;
use crate::doctor::units::{event_id, message_digest};

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

/// The records of one session as they become events, in order.
struct Events<'s> {
    session_id: &'s str,
    /// Time of the record before, for those that have none.
    at_ms: i64,
    ordinal: u64,
    /// Id and what the record says, for records that stand twice.
    ids: HashMap<String, [u8; 16]>,
    keys: HashSet<String>,
    /// The record before; `None` before the first.
    last: Option<String>,
    /// The record the conversation stands at, where that is not simply the last of a plain list.
    tip: Option<String>,
    is_plain: bool,
}

impl<'s> Events<'s> {
    fn new(session_id: &'s str, at_ms: i64) -> Self {
        Self {
            session_id,
            at_ms,
            ordinal: 0,
            ids: HashMap::new(),
            keys: HashSet::new(),
            last: None,
            tip: None,
            is_plain: true,
        }
    }

    /// Where the conversation stands; `None` where all of it leads there.
    fn tip(self) -> Option<String> {
        self.tip
            .filter(|tip| !self.is_plain && self.ids.contains_key(tip))
    }

    fn made_id(&self) -> String {
        event_id(&[
            b"openclaw record",
            self.session_id.as_bytes(),
            self.ordinal.to_string().as_bytes(),
        ])
    }

    async fn give<S: Sink>(
        &mut self,
        part: Part,
        tier: &Tier,
        out: &mut Batcher<'_, S>,
    ) -> Result<(), ReadError> {
        let (place, parsed, json, is_repaired) = match part {
            Part::Whole {
                place,
                parsed,
                json,
                is_repaired,
            } => (place, *parsed, json, is_repaired),
            Part::Broken {
                place,
                raw,
                is_tail: true,
                ..
            } => {
                return out.push(Item::PartialTail { place, raw }, 0).await;
            }
            Part::Broken {
                place,
                reason,
                raw,
                is_tail: false,
            } => {
                let (kind, reason) = (kind::EVENT, reason.to_owned());
                let bytes = raw.len();
                return out
                    .push(
                        Item::Refused(Refusal {
                            kind,
                            place,
                            reason,
                            raw,
                        }),
                        bytes,
                    )
                    .await;
            }
        };
        self.ordinal += 1;
        let digest = message_digest(&parsed.event_type, &json);
        let mut id = parsed.id.clone().unwrap_or_else(|| self.made_id());
        if is_repaired {
            let message = "holds what is no text; replaced by U+FFFD".to_owned();
            out.push(
                Item::Note {
                    code: "replaced-text",
                    place: place.clone(),
                    message,
                },
                0,
            )
            .await?;
        }
        let kind = if parsed.role.is_some() {
            kind::MESSAGE
        } else {
            kind::EVENT
        };
        match self.ids.get(&id) {
            Some(there) if *there == digest => {
                return out.push(Item::Merged { kind, count: 1 }, 0).await;
            }
            Some(_) => {
                let message = format!("has the id {id} of another record; kept beside it");
                out.push(
                    Item::Note {
                        code: "repeated-id",
                        place,
                        message,
                    },
                    0,
                )
                .await?;
                id = event_id(&[b"openclaw repeated id", id.as_bytes(), &digest]);
                if self.ids.contains_key(&id) {
                    return out.push(Item::Merged { kind, count: 1 }, 0).await;
                }
            }
            None => {}
        }
        let event = self.event(parsed, &id, &json);
        self.ids.insert(id, digest);
        let bytes = event.text.len() + json.len();
        let event = NewEvent {
            event_json: Some(json),
            ..event
        };
        let record = Record::Event(event);
        out.push(
            Item::Record {
                tier: tier.clone(),
                record,
            },
            bytes,
        )
        .await
    }

    /// The event, and what the next one follows.
    fn event(&mut self, parsed: Parsed, id: &str, json: &str) -> NewEvent {
        debug_assert!(!json.is_empty(), "a record has a text");
        self.at_ms = parsed.at_ms.unwrap_or(self.at_ms);
        let is_header = parsed.header.is_some();
        let parent_id = match parsed.parent {
            _ if is_header => None,
            // Nothing comes before the first one in any case.
            Some(parent) if parent.is_empty() && self.last.is_none() => None,
            Some(parent) => Some(parent),
            None => self.last.clone(),
        };
        if !is_header {
            let follows = parent_id.as_deref();
            let is_next = follows.is_none() || follows == self.last.as_deref();
            // A parent that is not there is no going back: what came before it is still the conversation.
            let is_known =
                follows.is_some_and(|parent| parent.is_empty() || self.ids.contains_key(parent));
            self.is_plain &= is_next || !is_known;
            self.tip = match parsed.moves_to {
                Some(target) => {
                    self.is_plain = false;
                    Some(target)
                }
                None => Some(id.to_owned()),
            };
            self.last = Some(id.to_owned());
        }
        NewEvent {
            event_id: id.to_owned(),
            event_type: parsed.event_type,
            role: parsed.role,
            parent_id,
            idempotency_key: parsed
                .idempotency_key
                .filter(|key| self.keys.insert(key.clone())),
            created_at_ms: self.at_ms,
            text: parsed.text,
            event_json: None,
        }
    }
}
