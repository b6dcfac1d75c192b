//! What readers of old formats give: records in our own terms, and what could not be read.
//!
//! A reader knows a format and nothing of databases of ours; the sink knows those and nothing of
//! formats. This is all that passes between them.

use std::sync::Arc;

use zeroclaw::model::{
    AgentId, Conversation, CronJob, MemoryRecord, NewEvent, SessionRecord, Tier,
};

use super::rows::Row;
use super::units::MessageDigest;

/// Kinds of record, as counts and reports name them.
pub(crate) mod kind {
    pub(crate) const SESSION: &str = "sessions";
    pub(crate) const SESSION_ROUTE: &str = "session routes";
    pub(crate) const BRANCH: &str = "branches";
    pub(crate) const MESSAGE: &str = "messages";
    pub(crate) const EVENT: &str = "events";
    pub(crate) const MEMORY: &str = "memories";
    pub(crate) const CRON_JOB: &str = "cron jobs";
    pub(crate) const CRON_RUN: &str = "cron runs";
    pub(crate) const HEARTBEAT_RUN: &str = "heartbeat runs";
    pub(crate) const TASK: &str = "tasks";
    pub(crate) const TASK_RECORD: &str = "task records";
    pub(crate) const GOAL: &str = "goals";
    pub(crate) const CONTINUATION: &str = "continuations";
    pub(crate) const SETTLEMENT: &str = "settlements";
    pub(crate) const ARTIFACT: &str = "artifacts";
    pub(crate) const DELIVERY: &str = "deliveries";
    pub(crate) const DEVICE: &str = "devices";
    pub(crate) const ACP_SESSION: &str = "ACP sessions";
    pub(crate) const TOOL_ARTIFACT: &str = "tool artifacts";
    pub(crate) const COST: &str = "costs";
    pub(crate) const LOG_EVENT: &str = "log events";
    pub(crate) const CACHED_VECTOR: &str = "cached vectors";
    pub(crate) const FLOW: &str = "flow runs";
    pub(crate) const FLOW_EVENT: &str = "flow events";
    pub(crate) const FLOW_PROPOSAL: &str = "flow proposals";
    pub(crate) const FLOW_CLAIM: &str = "flow claims";
    pub(crate) const KNOWLEDGE_NODE: &str = "knowledge nodes";
    pub(crate) const KNOWLEDGE_EDGE: &str = "knowledge edges";
    pub(crate) const AUDIT_EVENT: &str = "audit events";
    pub(crate) const INDEXED_FILE: &str = "indexed files";
    pub(crate) const RECEIPT: &str = "receipts";
}

/// A session about to come in; the events that follow belong to it.
#[derive(Clone, Debug)]
pub(crate) struct ImportSession {
    /// The session itself; its counts are found from its events.
    pub(crate) record: SessionRecord,
    /// Whom it is with, where the source says so.
    pub(crate) conversation: Option<Conversation>,
    /// The entry it came with.
    pub(crate) entry_json: Option<String>,
    /// Whether its key leads to it, when the key leads nowhere yet.
    pub(crate) takes_route: bool,
    /// All its messages in order, where they have no identity but their place: a session that
    /// exists already is then compared, and only what it lacks is taken.
    pub(crate) sequence: Option<Arc<Vec<MessageDigest>>>,
}

/// A record in our own terms.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// A session.
    Session(Box<ImportSession>),
    /// An event of the session last given for the same tier.
    Event(NewEvent),
    /// A memory.
    Memory(Box<MemoryRecord>),
    /// A scheduled job.
    CronJob(Box<CronJob>),
    /// A row known by its key alone.
    Row(Row),
}

impl<R: Into<Row>> From<R> for Record {
    fn from(row: R) -> Self {
        Self::Row(row.into())
    }
}

impl Record {
    /// The agent that the registry must know for its sake, beside its tier's.
    pub(crate) fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::CronJob(job) => job.agent_id.as_ref(),
            Self::Row(row) => row.agent(),
            Self::Session(_) | Self::Event(_) | Self::Memory(_) => None,
        }
    }

    /// Name of its kind in counts.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Session(_) => kind::SESSION,
            Self::Event(event) => event_kind(event),
            Self::Memory(_) => kind::MEMORY,
            Self::CronJob(_) => kind::CRON_JOB,
            Self::Row(row) => row.kind(),
        }
    }
}

/// What an event counts as: somebody said it, or not.
pub(crate) fn event_kind(event: &NewEvent) -> &'static str {
    if event.role.is_some() {
        kind::MESSAGE
    } else {
        kind::EVENT
    }
}

/// One thing read.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A record and the tier it belongs to.
    Record {
        /// Where it goes.
        tier: Tier,
        /// The record.
        record: Record,
    },
    /// An agent that was, even if nothing else of it came in.
    Agent(AgentId),
    /// A record that another one already stands for.
    Merged {
        /// Its kind.
        kind: &'static str,
        /// How many.
        count: u64,
    },
    /// A record that cannot be taken.
    Refused(Refusal),
    /// A last record that was being written when its program died. Not a record: it never was whole.
    PartialTail {
        /// Where.
        place: String,
        /// Its bytes.
        raw: Vec<u8>,
    },
    /// A part of the source that cannot be read; what can is taken, and the source stays.
    Damage {
        /// Which part.
        place: String,
        /// How.
        reason: String,
    },
    /// Something about a record that was taken all the same.
    Note {
        /// Stable name of the kind of note.
        code: &'static str,
        /// Where.
        place: String,
        /// What.
        message: String,
    },
}

impl Item {
    /// A note on a record of which a part is not as its format promises.
    pub(crate) fn odd(place: &str, message: String) -> Self {
        Self::Note {
            code: "odd-value",
            place: place.to_owned(),
            message,
        }
    }
}

/// A record that cannot be taken, with what there is of it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Row or line.
    pub(crate) place: String,
    /// Why.
    pub(crate) reason: String,
    /// Its bytes, for the quarantine.
    pub(crate) raw: Vec<u8>,
}

impl Refusal {
    /// Of a row on a damaged page, of which there is nothing but its number.
    pub(crate) fn lost(kind: &'static str, table: &str, rowid: i64) -> Self {
        Self {
            kind,
            place: format!("table {table}, row {rowid}"),
            reason: "it is on a damaged page".to_owned(),
            raw: Vec::new(),
        }
    }
}

/// Whose something is, and how that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The agent.
    pub(crate) agent: AgentId,
    /// Whether the source itself said so, or a rule did.
    pub(crate) is_fallback: bool,
}
