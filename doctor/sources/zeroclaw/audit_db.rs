//! `audit.db` of the memories: who looked at and changed them.
//!
//! Written by: `memory.audit_enabled` since 0.5.7. A row: `(7, 'recall', NULL, 'work', 'gw_1',
//! '2026-08-22T23:44:00.12+02:00', 'query=… agent_alias=atlas')`, its time with the writer's local offset, kept
//! 30 days. Row numbers repeat across files: a row is known by its content.
//!
//! Known faults: a log that the 0.8 upgrade left elsewhere; aliases of agents that were renamed since.

use zeroclaw::model::{AgentId, AuditEvent, Tier};

use super::super::lenient::{Lenient, sidecar};
use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::units::stable_id;

const EVENT: [&str; 7] = [
    "id",
    "operation",
    "key",
    "namespace",
    "session_id",
    "timestamp",
    "metadata",
];

/// What its events are about.
const SUBJECT: &str = "memory";

/// Streams a store's events.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("memory_audit").await?;
    if !columns.iter().any(|column| column == "operation") {
        return Err(ReadError::Format {
            reason: "it has no table memory_audit".to_owned(),
        });
    }
    let mut out = Batcher::new(sink);
    let wanted = sidecar::with_unknown(&EVENT, &columns);
    let table = Table {
        name: "memory_audit",
        wanted: &wanted,
        order: "id",
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::AUDIT_EVENT, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let place = format!("table memory_audit, row {}", values.rowid);
        let (event, odd) = match event(&values, &wanted, owners) {
            Ok(taken) => taken,
            Err(reason) => {
                let refusal = Refusal {
                    kind: kind::AUDIT_EVENT,
                    place,
                    reason,
                    raw: values.json(&wanted, &[]).into_bytes(),
                };
                return out.push(Item::Refused(refusal), 256).await;
            }
        };
        let record = Item::Record {
            tier: Tier::Global,
            record: event.into(),
        };
        out.push(record, 256).await?;
        for message in odd {
            out.push(Item::odd(&place, message), 0).await?;
        }
        Ok(())
    });
    if let Some(reason) = damage.await? {
        let place = "table memory_audit".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    out.flush().await
}

fn event(
    values: &Values,
    wanted: &[&str],
    owners: &Owners,
) -> Result<(AuditEvent, Vec<String>), String> {
    let operation = values
        .hint(1)
        .ok_or("its operation is missing or not UTF-8")?;
    let mut row = Lenient::of(values, wanted);
    let mut parts: Vec<&[u8]> = vec![b"memory audit"];
    for column in 1..EVENT.len() {
        // NULL and nothing are two contents.
        parts.push(values.bytes(column).unwrap_or(b"\0"));
    }
    let metadata = row.text(6);
    let agent_id = metadata.as_deref().and_then(|text| agent_of(text, owners));
    let event = AuditEvent {
        event_id: stable_id(&parts),
        subject: SUBJECT.to_owned(),
        operation,
        subject_key: row.text(2),
        namespace: row.text(3),
        session_hint: row.text(4),
        agent_id,
        at_ms: row.time(5).unwrap_or(0),
        at_text: row.text(5),
        metadata,
        detail_json: sidecar::of(values, wanted, EVENT.len()),
    };
    Ok((event, row.odd))
}

/// The agent that `agent_alias=…` names, as it is called now.
fn agent_of(metadata: &str, owners: &Owners) -> Option<AgentId> {
    let (_, after) = metadata.split_once("agent_alias=")?;
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '&' | '"' | '\'');
    let alias = after.split(is_end).next()?;
    owners.named(alias).ok()
}
