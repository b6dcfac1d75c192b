//! Events of an ACP session: what was said, what tools did, what the client did.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zeroclaw::model::{NewEvent, Tier, ToolArtifact, ToolArtifactKind};

use super::super::super::sqlite::Values;
use super::super::super::{Batcher, ReadError, Sink};
use crate::doctor::record::{Item, Record};
use crate::doctor::units::hex;

/// Longest payload of a tool in a transcript, bytes: a page of a transcript is read as a whole.
const MAX_INLINE: usize = 64 * 1024;
/// How much of a longer one stays in the transcript, to be seen and found, bytes.
const SHOWN: usize = 4 * 1024;

/// What an event says, before it has a place.
#[derive(Clone)]
pub(super) struct Given {
    event_type: String,
    role: Option<String>,
    text: String,
    more: Map<String, Value>,
    tool: Option<ToolArtifactKind>,
}

impl Given {
    pub(super) fn message(role: String, text: String, reasoning: Option<&str>) -> Self {
        let mut more = Map::new();
        if let Some(reasoning) = reasoning {
            more.insert("reasoning_content".to_owned(), reasoning.into());
        }
        Self {
            event_type: "message".to_owned(),
            role: Some(role),
            text,
            more,
            tool: None,
        }
    }

    /// What a tool was given (`in`) or gave (`out`); `None` when it cannot be read.
    pub(super) fn tool_call(values: &Values) -> Option<Self> {
        let payload = values.text(5).ok().flatten()?.to_owned();
        let word = values.hint(4);
        let mut more = Map::new();
        for (name, column) in [("tool_call_id", 2), ("tool_name", 3), ("outcome", 6)] {
            if let Some(value) = values.hint(column) {
                more.insert(name.to_owned(), value.into());
            }
        }
        let kind = match word.as_deref() {
            Some("in") => ToolArtifactKind::Arguments,
            Some("out") => ToolArtifactKind::Result,
            // A word of a later release: kept with what it says.
            word => {
                more.insert("event_kind".to_owned(), word.into());
                ToolArtifactKind::Result
            }
        };
        Some(Self::tool(kind, payload, more))
    }

    pub(super) fn tool(kind: ToolArtifactKind, payload: String, more: Map<String, Value>) -> Self {
        let event_type = match kind {
            ToolArtifactKind::Arguments => "tool_call",
            ToolArtifactKind::Result => "tool_result",
        };
        Self {
            event_type: event_type.to_owned(),
            role: None,
            text: payload,
            more,
            tool: Some(kind),
        }
    }

    /// What the client or its session did; `None` when it cannot be read.
    pub(super) fn session_event(values: &Values) -> Option<Self> {
        let action = values.text(2).ok().flatten()?.to_owned();
        let payload = values.text(4).ok()?.map(str::to_owned);
        let mut more = Map::new();
        more.insert("action".to_owned(), action.into());
        more.insert("outcome".to_owned(), values.hint(3).into());
        if let Some(payload) = payload {
            more.insert("payload".to_owned(), payload.into());
        }
        Some(Self {
            event_type: "session_event".to_owned(),
            role: None,
            text: String::new(),
            more,
            tool: None,
        })
    }
}

/// The events of one session, each behind the one before.
pub(super) struct Chain {
    session_id: String,
    last_at_ms: i64,
    parent: Option<String>,
}

impl Chain {
    pub(super) fn new(session_id: String, created_at_ms: i64) -> Self {
        Self {
            session_id,
            last_at_ms: created_at_ms,
            parent: None,
        }
    }

    pub(super) fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Gives an event; a payload that is too large goes beside it.
    pub(super) async fn give<S: Sink>(
        &mut self,
        tier: Tier,
        event_id: String,
        at_ms: Option<i64>,
        mut given: Given,
        place: String,
        out: &mut Batcher<'_, S>,
    ) -> Result<(), ReadError> {
        if at_ms.is_none() {
            let note = Item::Note {
                code: "unreadable-time",
                place,
                message: "its time cannot be read; the time of what was before stands in"
                    .to_owned(),
            };
            out.push(note, 0).await?;
        }
        let created_at_ms = at_ms.unwrap_or(self.last_at_ms);
        self.last_at_ms = created_at_ms;
        let artifact = given
            .tool
            .filter(|_| given.text.len() > MAX_INLINE)
            .map(|kind| self.artifact(kind, &event_id, created_at_ms, &mut given));
        let bytes = given.text.len();
        let event = NewEvent {
            parent_id: self.parent.replace(event_id.clone()),
            event_id,
            event_type: given.event_type,
            role: given.role,
            idempotency_key: None,
            created_at_ms,
            text: given.text,
            event_json: (!given.more.is_empty()).then(|| Value::Object(given.more).to_string()),
        };
        let record = Record::Event(event);
        let item = Item::Record {
            tier: tier.clone(),
            record,
        };
        out.push(item, bytes).await?;
        if let Some(artifact) = artifact {
            let bytes = artifact.blob.len();
            let record = artifact.into();
            out.push(Item::Record { tier, record }, bytes).await?;
        }
        Ok(())
    }

    /// Takes the payload out of an event, which names it from now on and keeps its beginning.
    fn artifact(
        &self,
        kind: ToolArtifactKind,
        event_id: &str,
        created_at_ms: i64,
        given: &mut Given,
    ) -> ToolArtifact {
        let metadata_json = Value::Object(given.more.clone()).to_string();
        let end = given.text.floor_char_boundary(SHOWN);
        let shown = given.text[..end].to_owned();
        let blob = std::mem::replace(&mut given.text, shown).into_bytes();
        let sha256 = hex(&Sha256::digest(&blob));
        let size_bytes = i64::try_from(blob.len()).unwrap_or(i64::MAX);
        given.more.insert(
            "artifact".to_owned(),
            json!({
                "run_id": self.session_id,
                "artifact_id": event_id,
                "size_bytes": size_bytes,
                "sha256": sha256,
            }),
        );
        ToolArtifact {
            run_id: self.session_id.clone(),
            artifact_id: event_id.to_owned(),
            session_id: Some(self.session_id.clone()),
            kind,
            metadata_json,
            sha256,
            size_bytes,
            created_at_ms,
            blob,
        }
    }
}
