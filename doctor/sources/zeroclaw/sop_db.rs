//! `runs.db`: runs of standing procedures (SOPs), their events and proposals.
//!
//! Written by: the SOP engine since 0.8.2, `data/sop/runs.db` or in `sop.run_state_dir`. A run is a row
//! `('run-1756…-0001', 3, 0, '2026-08-22T21:44:00Z', '{"version":1,"revision":3,"run":{…}}')`, an event one
//! of `sop_events` with its own number, a proposal one of `sop_proposals`. A run is an install's, no agent's.
//!
//! Known faults: runs that were under way when the program died (they come in as interrupted), a column
//! `terminal` that disagrees with the status in the JSON (the JSON holds), claims of processes that are
//! gone (counted and dropped). Copies of runs among the memories stay memories.

use serde_json::Value;
use zeroclaw::model::{FlowEvent, FlowProposal, FlowRun, FlowStatus, ProposalStatus, Tier};

use super::super::lenient::{Lenient, sidecar};
use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, stable_id};

const RUN: [&str; 5] = ["run_id", "revision", "terminal", "last_progress_at", "json"];
const EVENT: [&str; 7] = ["seq", "run_id", "ts", "kind", "actor", "reason", "payload"];
const CLAIM: [&str; 1] = ["run_id"];
const PROPOSAL: [&str; 3] = ["id", "status", "json"];

/// The newest form of a run's JSON that is known.
const KNOWN_VERSION: i64 = 1;

/// What stands for a procedure that a run does not name.
const UNNAMED: &str = "unnamed";

type Notes = Vec<(&'static str, String)>;
type Taken = Result<(Record, Notes), String>;

/// A table, and what its rows become.
struct Part {
    table: &'static str,
    columns: &'static [&'static str],
    order: &'static str,
    kind: &'static str,
    take: fn(&Values, Option<String>) -> Taken,
}

const PARTS: [Part; 3] = [
    Part {
        table: "sop_runs",
        columns: &RUN,
        order: "run_id",
        kind: kind::FLOW,
        take: run,
    },
    Part {
        table: "sop_events",
        columns: &EVENT,
        order: "seq",
        kind: kind::FLOW_EVENT,
        take: event,
    },
    Part {
        table: "sop_proposals",
        columns: &PROPOSAL,
        order: "id",
        kind: kind::FLOW_PROPOSAL,
        take: proposal,
    },
];

/// Streams a store's runs, then their events, then proposals; claims are counted.
pub(crate) async fn read<S: Sink>(db: &mut LegacyDb, sink: &mut S) -> Result<(), ReadError> {
    if db.columns("sop_runs").await?.is_empty() {
        return Err(ReadError::Format {
            reason: "it has no table sop_runs".to_owned(),
        });
    }
    let mut out = Batcher::new(sink);
    for part in &PARTS {
        let columns = db.columns(part.table).await?;
        if !columns.is_empty() {
            give(db, part, &columns, &mut out).await?;
        }
    }
    claims(db, &mut out).await?;
    out.flush().await
}

async fn give<S: Sink>(
    db: &mut LegacyDb,
    part: &Part,
    columns: &[String],
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let wanted = sidecar::with_unknown(part.columns, columns);
    let table = Table {
        name: part.table,
        wanted: &wanted,
        order: part.order,
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(part.kind, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let place = format!("table {}, row {}", table.name, values.rowid);
        let bytes = (0..table.wanted.len())
            .map(|column| values.bytes(column).map_or(0, <[u8]>::len))
            .sum();
        let detail = sidecar::of(&values, &wanted, part.columns.len());
        let (record, notes) = match (part.take)(&values, detail) {
            Ok(taken) => taken,
            Err(reason) => {
                let refusal = Refusal {
                    kind: part.kind,
                    place,
                    reason,
                    raw: values.json(table.wanted, &[]).into_bytes(),
                };
                return out.push(Item::Refused(refusal), bytes).await;
            }
        };
        let tier = Tier::Global;
        out.push(Item::Record { tier, record }, bytes).await?;
        for (code, message) in notes {
            let place = place.clone();
            let note = Item::Note {
                code,
                place,
                message,
            };
            out.push(note, 0).await?;
        }
        Ok(())
    });
    if let Some(reason) = damage.await? {
        let place = format!("table {}", table.name);
        out.push(Item::Damage { place, reason }, 0).await?;
    }
    Ok(())
}

/// Claims belong to processes that are gone.
async fn claims<S: Sink>(db: &mut LegacyDb, out: &mut Batcher<'_, S>) -> Result<(), ReadError> {
    if db.columns("sop_claims").await?.is_empty() {
        return Ok(());
    }
    let mut count = 0;
    let table = Table {
        name: "sop_claims",
        wanted: &CLAIM,
        order: "run_id",
    };
    let damage = each_row(db, table, async |_| {
        count += 1;
        Ok(())
    });
    // What is lost of claims is no loss.
    damage.await?;
    if count == 0 {
        return Ok(());
    }
    let kind = kind::FLOW_CLAIM;
    out.push(Item::Merged { kind, count }, 0).await?;
    let note = Item::Note {
        code: "claim-dropped",
        place: "table sop_claims".to_owned(),
        message: format!("{count} claims of processes that are gone are dropped"),
    };
    out.push(note, 0).await
}

fn json_of(values: &Values, column: usize) -> Result<(String, Value), String> {
    let text = match values.text(column) {
        Ok(Some(text)) => text,
        Ok(None) => return Err("its JSON is missing".to_owned()),
        Err(_) => return Err("its JSON is not UTF-8".to_owned()),
    };
    let value: Value = serde_json::from_str(text).map_err(|_| "its JSON is not JSON".to_owned())?;
    if !value.is_object() {
        return Err("its JSON is no object".to_owned());
    }
    Ok((text.to_owned(), value))
}

fn time(value: &Value) -> Option<i64> {
    value
        .as_str()
        .and_then(LegacyTime::parse)
        .map(LegacyTime::ms)
}

fn text(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn run(values: &Values, detail_json: Option<String>) -> Taken {
    let flow_id = values.hint(0).ok_or("its id is missing or not UTF-8")?;
    let (state, whole) = json_of(values, 4)?;
    let mut notes = Notes::new();
    if whole["version"].as_i64().unwrap_or(KNOWN_VERSION) > KNOWN_VERSION {
        let message = "is of a newer form; read as far as it is known, and kept whole".to_owned();
        notes.push(("newer-form", message));
    }
    // The run itself lies inside an envelope; where there is none, it is all there is.
    let run = if whole["run"].is_object() {
        &whole["run"]
    } else {
        &whole
    };
    let word = text(&run["status"]).unwrap_or_default();
    let status = status(&word, &mut notes);
    let ended = matches!(word.as_str(), "completed" | "failed" | "cancelled");
    if values
        .integer(2)
        .is_some_and(|terminal| (terminal != 0) != ended)
    {
        let message = format!("its row and its JSON disagree on whether it ended; {word:?} holds");
        notes.push(("terminal-differs", message));
    }
    let last_ms = values
        .hint(3)
        .and_then(|text| LegacyTime::parse(&text))
        .map(LegacyTime::ms)
        .or_else(|| time(&whole["last_progress_at"]));
    let started_at_ms = time(&run["started_at"]);
    let completed_at_ms = time(&run["completed_at"]);
    let waiting_since_ms = time(&run["waiting_since"]);
    let times = [last_ms, completed_at_ms, waiting_since_ms, started_at_ms];
    let revision = values.integer(1).or_else(|| whole["revision"].as_i64());
    let flow = FlowRun {
        flow_id,
        controller_id: text(&run["sop_name"]).unwrap_or_else(|| UNNAMED.to_owned()),
        revision: revision.unwrap_or(0).max(0),
        status,
        status_detail: Some(word).filter(|word| *word != status.as_str()),
        trigger_source: text(&whole["trigger_source"])
            .or_else(|| text(&run["trigger_event"]["source"])),
        current_step: run["current_step"].as_i64(),
        total_steps: run["total_steps"].as_i64(),
        started_at_ms,
        waiting_since_ms,
        updated_at_ms: times.into_iter().flatten().max().unwrap_or(0),
        ended_at_ms: completed_at_ms,
        state_json: Some(state),
        detail_json,
    };
    Ok((flow.into(), notes))
}

/// Nothing goes on by being imported; what waits for a person goes on waiting.
fn status(word: &str, notes: &mut Notes) -> FlowStatus {
    match word {
        "completed" => FlowStatus::Completed,
        "failed" => FlowStatus::Failed,
        "cancelled" => FlowStatus::Cancelled,
        "waiting_approval" => FlowStatus::WaitingApproval,
        "paused_checkpoint" => FlowStatus::Paused,
        "running" | "pending" => {
            let message = format!("was {word} when its program ended; comes in as interrupted");
            notes.push(("interrupted-run", message));
            FlowStatus::Interrupted
        }
        _ => {
            let message = format!("stands at the unknown {word:?}; comes in as interrupted");
            notes.push(("unknown-status", message));
            FlowStatus::Interrupted
        }
    }
}

fn event(values: &Values, detail_json: Option<String>) -> Taken {
    let mut row = Lenient::of(values, &EVENT);
    let flow_id = values.hint(1).ok_or("its run is missing or not UTF-8")?;
    let event_kind = values.hint(3).ok_or("its kind is missing or not UTF-8")?;
    let payload = match values.text(6) {
        Ok(payload) => payload.unwrap_or("null"),
        Err(_) => return Err("its payload is not UTF-8".to_owned()),
    };
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(payload).is_ok();
    let payload_json = if is_json {
        payload.to_owned()
    } else {
        row.odd
            .push("payload is not JSON; kept as a text".to_owned());
        Value::from(payload).to_string()
    };
    let seq = values.integer(0).unwrap_or(values.rowid);
    let event = FlowEvent {
        event_id: stable_id(&[
            b"sop event",
            flow_id.as_bytes(),
            values.bytes(2).unwrap_or_default(),
            event_kind.as_bytes(),
            &seq.to_le_bytes(),
        ]),
        flow_id,
        seq,
        at_ms: row.time(2),
        kind: event_kind,
        actor: row.text(4),
        reason: row.text(5),
        payload_json,
        detail_json,
    };
    let odd = row.odd.into_iter().map(|message| ("odd-value", message));
    Ok((event.into(), odd.collect()))
}

fn proposal(values: &Values, detail_json: Option<String>) -> Taken {
    let proposal_id = values.hint(0).ok_or("its id is missing or not UTF-8")?;
    let (whole, proposal) = json_of(values, 2)?;
    let mut notes = Notes::new();
    let word = text(&proposal["status"])
        .or_else(|| values.hint(1))
        .unwrap_or_default();
    let status = ProposalStatus::parse(&word).unwrap_or_else(|| {
        let message = format!("stands at the unknown {word:?}; comes in as quarantined");
        notes.push(("unknown-status", message));
        ProposalStatus::Quarantined
    });
    let created_at_ms = time(&proposal["created_at"]);
    let applied_at_ms = time(&proposal["applied_at"]);
    let times = [time(&proposal["updated_at"]), applied_at_ms, created_at_ms];
    let record = FlowProposal {
        proposal_id,
        controller_id: text(&proposal["sop_name"]).unwrap_or_else(|| UNNAMED.to_owned()),
        source_flow_id: text(&proposal["source_run_id"]),
        kind: text(&proposal["kind"]).unwrap_or_default(),
        status,
        status_detail: Some(word).filter(|word| *word != status.as_str()),
        status_reason: text(&proposal["status_reason"]),
        created_at_ms,
        updated_at_ms: times.into_iter().flatten().max().unwrap_or(0),
        applied_at_ms,
        applied_by: text(&proposal["applied_by"]),
        proposal_json: Some(whole),
        detail_json,
    };
    Ok((record.into(), notes))
}
