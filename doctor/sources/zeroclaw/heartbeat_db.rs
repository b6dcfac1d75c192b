//! `history.db` of the heartbeat: what it did.
//!
//! Written by: the heartbeat engine since 0.4.3, trimmed to `heartbeat.max_run_history` (100). A row: `(12,
//! 'Water the beds', 'medium', '2026-08-22T21:44:00.5+00:00', '2026-08-22T21:44:03+00:00', 'ok', 'done', 2500)`.
//! Rows name no agent: it is the one the configuration lets heartbeats run as. Row numbers repeat across files, so
//! a run is known by its times and its task.
//!
//! Known faults: a store left behind in the wrong folder by the 0.8 upgrade, never read since.

use serde_json::json;
use sha2::{Digest, Sha256};
use zeroclaw::model::{AgentId, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier};

use super::super::lenient::{Lenient, sidecar};
use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::units::stable_uuid;

const RUN: [&str; 8] = [
    "id",
    "task_text",
    "task_priority",
    "started_at",
    "finished_at",
    "status",
    "output",
    "duration_ms",
];

/// Streams a store's runs.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("heartbeat_runs").await?;
    if !columns.iter().any(|column| column == "task_text") {
        return Err(ReadError::Format {
            reason: "it has no table heartbeat_runs".to_owned(),
        });
    }
    let agent = owners.config().heartbeat_agent.as_deref();
    let agent = agent.and_then(|alias| owners.named(alias).ok());
    let mut out = Batcher::new(sink);
    let wanted = sidecar::with_unknown(&RUN, &columns);
    let table = Table {
        name: "heartbeat_runs",
        wanted: &wanted,
        order: "id",
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::HEARTBEAT_RUN, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let place = format!("table heartbeat_runs, row {}", values.rowid);
        let bytes = values.bytes(6).map_or(0, <[u8]>::len);
        let (run, odd) = match run(&values, &wanted, agent.as_ref()) {
            Ok(taken) => taken,
            Err(reason) => {
                let refusal = Refusal {
                    kind: kind::HEARTBEAT_RUN,
                    place,
                    reason,
                    raw: values.json(&wanted, &[]).into_bytes(),
                };
                return out.push(Item::Refused(refusal), bytes).await;
            }
        };
        let record = Item::Record {
            tier: Tier::Global,
            record: run.into(),
        };
        out.push(record, bytes).await?;
        for message in odd {
            out.push(Item::odd(&place, message), 0).await?;
        }
        Ok(())
    });
    if let Some(reason) = damage.await? {
        let place = "table heartbeat_runs".to_owned();
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    out.flush().await
}

fn run(
    values: &Values,
    wanted: &[&str],
    agent: Option<&AgentId>,
) -> Result<(TaskRun, Vec<String>), String> {
    let task = match values.text(1) {
        Ok(task) => task.ok_or("its task is missing")?.to_owned(),
        Err(_) => return Err("its task is not UTF-8".to_owned()),
    };
    let output = match values.text(6) {
        Ok(output) => output.map(str::to_owned),
        Err(_) => return Err("its output is not UTF-8".to_owned()),
    };
    let mut row = Lenient::of(values, wanted);
    let word = row.text(5).unwrap_or_default();
    let status = match word.as_str() {
        "ok" => TaskStatus::Succeeded,
        _ => TaskStatus::Failed,
    };
    if !matches!(word.as_str(), "ok" | "error") {
        row.odd.push(format!(
            "its status {word:?} is unknown; comes in as failed"
        ));
    }
    let (started_at_ms, ended_at_ms) = (row.time(3), row.time(4));
    let task_id = stable_uuid(&[
        b"heartbeat run",
        values.bytes(3).unwrap_or_default(),
        values.bytes(4).unwrap_or_default(),
        &Sha256::digest(task.as_bytes()),
    ]);
    let mut detail = json!({ "priority": row.text(2) });
    if let Some(unknown) = sidecar::of(values, wanted, RUN.len()) {
        detail["unknown"] = serde_json::from_str(&unknown).unwrap_or_default();
    }
    let run = TaskRun {
        task_id,
        owner_kind: TaskOwnerKind::Heartbeat,
        source_id: None,
        agent_id: agent.cloned(),
        label: Some(task),
        status,
        status_detail: Some(word),
        created_at_ms: started_at_ms.or(ended_at_ms).unwrap_or(0),
        started_at_ms,
        ended_at_ms,
        duration_ms: values.integer(7),
        output,
        error: None,
        detail_json: Some(detail.to_string()),
        origin: TaskOrigin::default(),
    };
    Ok((run, row.odd))
}
