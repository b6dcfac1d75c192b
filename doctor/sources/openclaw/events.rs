//! The records of one session as they become events: ids that are unique, what follows what, where it stands.

use std::collections::{HashMap, HashSet};

use zeroclaw::model::{NewEvent, Tier};

use super::super::{Batcher, ReadError, Sink};
use super::event::Parsed;
use super::part::Part;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{event_id, message_digest};

/// The records of one session as they become events, in order.
pub(super) struct Events<'s> {
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
    /// Of a session; `at_ms` stands in where no record has a time.
    pub(super) fn new(session_id: &'s str, at_ms: i64) -> Self {
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
    pub(super) fn tip(self) -> Option<String> {
        self.tip
            .filter(|tip| !self.is_plain && self.ids.contains_key(tip))
    }

    /// The id of a record without one: by its place and what it says. Another copy of the session may have another record
    /// there, a header of a later day for example; both stay then.
    fn made_id(&self, digest: &[u8]) -> String {
        event_id(&[
            b"openclaw record",
            self.session_id.as_bytes(),
            self.ordinal.to_string().as_bytes(),
            digest,
        ])
    }

    /// Gives a record as an event, or says what is the matter with it.
    pub(super) async fn give<S: Sink>(
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
        let mut id = parsed.id.clone().unwrap_or_else(|| self.made_id(&digest));
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
