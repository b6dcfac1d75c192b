//! `sessions/<key>.jsonl`: chat sessions, 0.4.0 to now where the old program was told to use files.
//!
//! One object a line: `{"role":"user","content":"hi"}`; unknown keys are ignored by its reader and
//! kept by us. No times, no ids: the file's own time stands in, and a message's identity is its place.
//!
//! Known faults: a last line cut by a crash (it never was whole, so it is no record), lines that are
//! not JSON or not UTF-8, several objects on one line after a lost line end, blank lines, CRLF.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use zeroclaw::fs::FsError;
use zeroclaw::model::{AgentId, NewEvent, SessionRecord, SessionScope, SessionStatus, Tier};

use super::super::lines::{Line, Lines};
use super::super::{Batcher, ReadError, Sink};
use super::sessions_db::session_id;
use crate::doctor::owner::Owners;
use crate::doctor::record::{ImportSession, Item, Record, Refusal, kind};
use crate::doctor::units::{self, message_digest, stable_uuid};

/// How a session file stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// In use.
    Live,
    /// Moved away by the old program; a session of its own, reached by no key.
    Archived,
}

/// A whole message of a line.
struct Message {
    role: String,
    text: String,
    /// The object, where it says more than role and text.
    more: Option<String>,
}

/// What a line holds.
enum Content {
    Messages(Vec<Message>),
    Blank,
    Tail,
    Broken(&'static str),
}

/// Streams the one session of a file. `key` is its name without endings.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    key: &str,
    standing: Standing,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    // The sequence first: a session that exists already is compared before anything is taken.
    let mut sequence = Vec::new();
    let mut first_fault = None;
    for_each(path, |line, content| match content {
        Content::Messages(messages) => {
            let digests = messages
                .iter()
                .map(|message| message_digest(&message.role, &message.text));
            sequence.extend(digests);
        }
        Content::Blank => {}
        Content::Tail => {
            first_fault.get_or_insert((line.place(), "cut off"));
        }
        Content::Broken(reason) => {
            first_fault.get_or_insert((line.place(), reason));
        }
    })?;
    if let Some((place, fault)) = first_fault.filter(|_| sequence.is_empty()) {
        let reason = format!("no line of it is a message; {place}: {fault}");
        return Err(ReadError::Format { reason });
    }
    let owner = owners
        .of_session(None, None, key)
        .map_err(|reason| ReadError::Format { reason })?;
    let mut out = Batcher::new(sink);
    let at_ms = modified_ms(path)?;
    let tier = Tier::Agent(owner.agent.clone());
    let session = session(
        key,
        standing,
        owner.agent.clone(),
        at_ms,
        Arc::new(sequence),
    );
    let record = Record::Session(Box::new(session));
    out.push(
        Item::Record {
            tier: tier.clone(),
            record,
        },
        256,
    )
    .await?;
    if owner.is_fallback {
        let message = format!("names no agent; given to {}", owner.agent);
        out.push(
            Item::Note {
                code: "owner-by-rule",
                place: format!("session {key}"),
                message,
            },
            0,
        )
        .await?;
    }
    events(path, key, standing, &tier, at_ms, &mut out).await?;
    out.flush().await
}

async fn events<S: Sink>(
    path: &Path,
    key: &str,
    standing: Standing,
    tier: &Tier,
    at_ms: i64,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let mut parent = None;
    let mut ordinal = 0_u64;
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        let place = line.place();
        match content(&line) {
            Content::Messages(messages) => {
                for message in messages {
                    let event_id = event_id(key, standing, ordinal, &message);
                    ordinal += 1;
                    let bytes = message.text.len() + message.more.as_ref().map_or(0, String::len);
                    let event = NewEvent {
                        parent_id: parent.replace(event_id.clone()),
                        event_id,
                        event_type: "message".to_owned(),
                        role: Some(message.role),
                        idempotency_key: None,
                        created_at_ms: at_ms,
                        text: message.text,
                        event_json: message.more,
                    };
                    out.push(
                        Item::Record {
                            tier: tier.clone(),
                            record: Record::Event(event),
                        },
                        bytes,
                    )
                    .await?;
                }
            }
            Content::Blank => {}
            Content::Tail => {
                let bytes = line.bytes.len();
                out.push(
                    Item::PartialTail {
                        place,
                        raw: line.bytes,
                    },
                    bytes,
                )
                .await?;
            }
            Content::Broken(reason) => {
                let bytes = line.bytes.len();
                let reason = reason.to_owned();
                let refusal = Refusal {
                    kind: kind::MESSAGE,
                    place,
                    reason,
                    raw: line.bytes,
                };
                out.push(Item::Refused(refusal), bytes).await?;
            }
        }
    }
    Ok(())
}

fn for_each(path: &Path, mut visit: impl FnMut(&Line, &Content)) -> Result<(), ReadError> {
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        let content = content(&line);
        visit(&line, &content);
    }
    Ok(())
}

fn content(line: &Line) -> Content {
    if line.is_too_long {
        return Content::Broken("longer than 256 MiB");
    }
    if line.is_blank() {
        return Content::Blank;
    }
    let broken = |reason| {
        if line.is_ended {
            Content::Broken(reason)
        } else {
            Content::Tail
        }
    };
    if std::str::from_utf8(&line.bytes).is_err() {
        return broken("not UTF-8");
    }
    // Records whose line end was lost stand behind one another on one line.
    let mut messages = Vec::new();
    for value in serde_json::Deserializer::from_slice(&line.bytes).into_iter::<Value>() {
        match value {
            Ok(value) => match message(value) {
                Some(message) => messages.push(message),
                None => return broken("no object with role and content"),
            },
            Err(_) => return broken("not JSON"),
        }
    }
    Content::Messages(messages)
}

fn message(value: Value) -> Option<Message> {
    let object = value.as_object()?;
    let role = object.get("role")?.as_str()?.to_owned();
    let text = object.get("content")?.as_str()?.to_owned();
    let more = (object.len() > 2).then(|| value.to_string());
    Some(Message { role, text, more })
}

fn event_id(key: &str, standing: Standing, ordinal: u64, message: &Message) -> String {
    let place = match standing {
        Standing::Live => "line",
        Standing::Archived => "archived line",
    };
    units::event_id(&[
        key.as_bytes(),
        place.as_bytes(),
        ordinal.to_string().as_bytes(),
        message.role.as_bytes(),
        message.text.as_bytes(),
    ])
}

fn session(
    key: &str,
    standing: Standing,
    agent_id: AgentId,
    at_ms: i64,
    sequence: Arc<Vec<[u8; 16]>>,
) -> ImportSession {
    let (id, archived_at_ms) = match standing {
        Standing::Live => (session_id(key), None),
        Standing::Archived => (
            stable_uuid(&[b"archived session", key.as_bytes()]),
            Some(at_ms),
        ),
    };
    let record = SessionRecord {
        agent_id,
        session_id: id,
        session_key: key.to_owned(),
        session_scope: SessionScope::Conversation,
        status: SessionStatus::Idle,
        chat_type: None,
        channel: None,
        account_id: None,
        primary_conversation_id: None,
        display_name: None,
        model_provider: None,
        model: None,
        event_count: 0,
        message_count: 0,
        created_at_ms: at_ms,
        updated_at_ms: at_ms,
        archived_at_ms,
        has_synthetic_times: true,
    };
    let takes_route = standing == Standing::Live;
    ImportSession {
        record,
        conversation: None,
        entry_json: None,
        takes_route,
        sequence: Some(sequence),
    }
}

fn modified_ms(path: &Path) -> Result<i64, FsError> {
    let modified = std::fs::metadata(path)
        .and_then(|meta| meta.modified())
        .map_err(FsError::at("stat", path))?;
    let since = modified
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: &[u8], is_ended: bool) -> Content {
        content(&Line {
            number: 1,
            offset: 0,
            bytes: bytes.to_vec(),
            is_ended,
            is_too_long: false,
        })
    }

    #[test]
    fn records_glued_by_a_lost_line_end_are_all_taken() {
        let glued = br#"{"role":"user","content":"a"}{"role":"assistant","content":"b","x":1}"#;

        let Content::Messages(messages) = line(glued, true) else {
            panic!("both are whole")
        };

        assert_eq!(messages.len(), 2);
        assert_eq!(messages[0].more, None);
        assert!(
            messages[1]
                .more
                .as_deref()
                .is_some_and(|more| more.contains("\"x\":1"))
        );
    }

    #[test]
    fn a_cut_last_line_is_a_tail_and_a_cut_middle_line_is_broken() {
        assert!(matches!(
            line(br#"{"role":"user","con"#, false),
            Content::Tail
        ));
        assert!(matches!(
            line(br#"{"role":"user","con"#, true),
            Content::Broken("not JSON")
        ));
        assert!(matches!(
            line(b"{\"role\":\"user\",\"content\":\"\xFF\"}", true),
            Content::Broken("not UTF-8")
        ));
        assert!(matches!(
            line(br#"{"role":"user"}"#, true),
            Content::Broken(_)
        ));
        assert!(matches!(line(b" \t", true), Content::Blank));
    }
}
