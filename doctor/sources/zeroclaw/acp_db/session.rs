//! The sessions of an ACP store: who owns them, whether they ended, their plan.

use std::collections::BTreeMap;

use serde_json::Value;
use zeroclaw::model::{AcpSession, AcpState, SessionRecord, SessionScope, SessionStatus, Tier};

use super::super::super::rows::{Found, Table, each_row};
use super::super::super::sqlite::{LegacyDb, Values};
use super::super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{ImportSession, Item, Owner, Refusal, kind};
use crate::doctor::units::LegacyTime;

/// Columns of every release, in an order of our own.
const SESSION: [&str; 9] = [
    "id",
    "session_uuid",
    "agent_alias",
    "workspace_dir",
    "token_count",
    "killed_at",
    "created_at",
    "last_activity",
    "plan_json",
];

/// A session that has not come up yet.
pub(in crate::doctor::sources::zeroclaw) struct Opened {
    /// `None` when it cannot be taken.
    pub(in crate::doctor::sources::zeroclaw) tier: Option<Tier>,
    pub(in crate::doctor::sources::zeroclaw) session_id: String,
    pub(in crate::doctor::sources::zeroclaw) created_at_ms: i64,
    pub(in crate::doctor::sources::zeroclaw) session: Option<Box<ImportSession>>,
}

/// What a store says of a session, whichever shape it has.
pub(in crate::doctor::sources::zeroclaw) struct Told {
    pub(in crate::doctor::sources::zeroclaw) session_id: String,
    pub(in crate::doctor::sources::zeroclaw) alias: Option<String>,
    pub(in crate::doctor::sources::zeroclaw) workspace_dir: String,
    pub(in crate::doctor::sources::zeroclaw) token_count: i64,
    pub(in crate::doctor::sources::zeroclaw) killed_at_ms: Option<i64>,
    pub(in crate::doctor::sources::zeroclaw) created_at_ms: i64,
    pub(in crate::doctor::sources::zeroclaw) last_activity_ms: i64,
    pub(in crate::doctor::sources::zeroclaw) entry_json: String,
}

/// All sessions by their number, and what of them is damaged. Their rows of the control plane are
/// given at once.
pub(super) async fn read_all<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(BTreeMap<i64, Opened>, Option<String>), ReadError> {
    let columns = db.columns("acp_sessions").await?;
    // What a later release adds is kept with the entry.
    let more = columns
        .iter()
        .map(String::as_str)
        .filter(|column| !SESSION.contains(column));
    let wanted: Vec<&str> = SESSION.into_iter().chain(more).collect();
    let table = Table {
        name: "acp_sessions",
        wanted: &wanted,
        order: "id",
    };
    let mut all = BTreeMap::new();
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::SESSION, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let place = format!("table acp_sessions, row {}", values.rowid);
        let id = values.integer(0).unwrap_or(values.rowid);
        let opened = match told(&values, &wanted, &place, out).await? {
            Some(told) => {
                let owner = owners.of_alias(told.alias.as_deref());
                open(told, place, owner, out).await?
            }
            None => cannot_be_taken(&values),
        };
        all.insert(id, opened);
        Ok(())
    });
    let damage = damage.await?;
    Ok((all, damage))
}

fn cannot_be_taken(values: &Values) -> Opened {
    Opened {
        tier: None,
        session_id: format!("row {}", values.rowid),
        created_at_ms: 0,
        session: None,
    }
}

/// Takes a row apart; one without identity is refused.
async fn told<S: Sink>(
    values: &Values,
    wanted: &[&str],
    place: &str,
    out: &mut Batcher<'_, S>,
) -> Result<Option<Told>, ReadError> {
    let Some(session_id) = values.hint(1) else {
        let refusal = Refusal {
            kind: kind::SESSION,
            place: place.to_owned(),
            reason: "its session_uuid is missing or not UTF-8".to_owned(),
            raw: values.json(wanted, &[]).into_bytes(),
        };
        out.push(Item::Refused(refusal), 256).await?;
        return Ok(None);
    };
    let time = |column| {
        values
            .hint(column)
            .and_then(|text| LegacyTime::parse(&text))
            .map(LegacyTime::ms)
    };
    let created = time(6).or_else(|| time(7));
    let mut entry: Value = serde_json::from_str(&values.json(wanted, &[])).unwrap_or_default();
    let mut notes = Vec::new();
    match values.hint(8).map(|plan| serde_json::from_str(&plan)) {
        Some(Ok(plan)) => entry["plan"] = plan,
        Some(Err(_)) => notes.push(("unreadable-plan", "its plan is not JSON; kept as text")),
        None => entry["plan"] = Value::Null,
    }
    if let (Some(fields), true) = (entry.as_object_mut(), notes.is_empty()) {
        fields.remove("plan_json");
    }
    let killed_at = values.bytes(5).map(|_| time(5));
    if killed_at == Some(None) {
        notes.push((
            "unreadable-time",
            "the time of its end cannot be read; its last activity stands in",
        ));
    }
    if created.is_none() {
        notes.push(("unreadable-time", "its time cannot be read; 1970 stands in"));
    }
    for (code, message) in notes {
        let (place, message) = (place.to_owned(), message.to_owned());
        let note = Item::Note {
            code,
            place,
            message,
        };
        out.push(note, 0).await?;
    }
    let created_at_ms = created.unwrap_or(0);
    let last_activity_ms = time(7).unwrap_or(created_at_ms);
    Ok(Some(Told {
        session_id,
        alias: values.hint(2),
        workspace_dir: values.hint(3).unwrap_or_default(),
        token_count: values.integer(4).unwrap_or(0).max(0),
        killed_at_ms: killed_at.map(|at| at.unwrap_or(last_activity_ms)),
        created_at_ms,
        last_activity_ms,
        entry_json: entry.to_string(),
    }))
}

/// Gives the row of the control plane, and makes the session.
pub(in crate::doctor::sources::zeroclaw) async fn open<S: Sink>(
    told: Told,
    place: String,
    owner: Result<Owner, String>,
    out: &mut Batcher<'_, S>,
) -> Result<Opened, ReadError> {
    let owner = match owner {
        Ok(owner) => owner,
        Err(reason) => {
            let refusal = Refusal {
                kind: kind::SESSION,
                place,
                reason,
                raw: told.entry_json.into_bytes(),
            };
            out.push(Item::Refused(refusal), 256).await?;
            return Ok(Opened {
                tier: None,
                session_id: told.session_id,
                created_at_ms: told.created_at_ms,
                session: None,
            });
        }
    };
    if owner.is_fallback {
        let note = Item::Note {
            code: "owner-by-rule",
            place: format!("session {}", told.session_id),
            message: format!("names no agent; given to {}", owner.agent),
        };
        out.push(note, 0).await?;
    }
    let session_key = format!("acp:{}", told.session_id);
    let row = AcpSession {
        agent_id: owner.agent.clone(),
        session_id: told.session_id.clone(),
        session_key: session_key.clone(),
        cwd: told.workspace_dir,
        state: told
            .killed_at_ms
            .map_or(AcpState::Open, |_| AcpState::Ended),
        token_count: told.token_count,
        created_at_ms: told.created_at_ms,
        last_activity_at_ms: told.last_activity_ms,
        ended_at_ms: told.killed_at_ms,
    };
    let item = Item::Record {
        tier: Tier::Global,
        record: row.into(),
    };
    out.push(item, 256).await?;
    let record = SessionRecord {
        agent_id: owner.agent.clone(),
        session_id: told.session_id.clone(),
        session_key,
        session_scope: SessionScope::Conversation,
        status: match told.killed_at_ms {
            Some(_) => SessionStatus::Killed,
            None => SessionStatus::Idle,
        },
        chat_type: None,
        channel: Some("acp".to_owned()),
        account_id: None,
        primary_conversation_id: None,
        display_name: None,
        model_provider: None,
        model: None,
        event_count: 0,
        message_count: 0,
        created_at_ms: told.created_at_ms,
        updated_at_ms: told.last_activity_ms,
        archived_at_ms: told.killed_at_ms,
        has_synthetic_times: false,
    };
    Ok(Opened {
        tier: Some(Tier::Agent(owner.agent)),
        session_id: told.session_id,
        created_at_ms: told.created_at_ms,
        session: Some(Box::new(ImportSession {
            takes_route: told.killed_at_ms.is_none(),
            record,
            conversation: None,
            entry_json: Some(told.entry_json),
            sequence: None,
        })),
    })
}
