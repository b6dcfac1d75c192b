//! `cron/runs/<job>.jsonl`: how the runs of a job went, one a line, also of jobs that are gone.
//!
//! `{"ts":1796053800710,"jobId":"130a…","action":"finished","status":"ok","summary":"…","runAtMs":…,"durationMs":458}`
//!
//! `status` says how a run went; `delivered` only whether somebody was told.

use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use zeroclaw::model::{AgentId, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier};

use super::super::lines::Lines;
use super::super::objects::{Piece, pieces};
use super::super::{Batcher, ReadError, Sink};
use super::index::{ms, text};
use super::key;
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};
use crate::doctor::units::stable_uuid;

/// Streams the runs of one job.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let job = path.file_stem().and_then(|stem| stem.to_str());
    let job = job.ok_or_else(|| ReadError::Format {
        reason: "its name is no job".to_owned(),
    })?;
    let mut out = Batcher::new(sink);
    let mut lines = Lines::open(path)?;
    while let Some(line) = lines.next()? {
        let is_record = |json: &RawValue| json.get().contains("\"jobId\"");
        for piece in pieces(&line, is_record) {
            let item = match piece {
                Piece::Broken {
                    place,
                    raw,
                    is_tail: true,
                    ..
                } => Item::PartialTail {
                    place,
                    raw: raw.to_vec(),
                },
                Piece::Broken {
                    place, raw, reason, ..
                } => Item::Refused(refusal(place, reason, raw)),
                Piece::Whole { place, json } => {
                    let value = serde_json::from_str::<Value>(json.get()).unwrap_or_default();
                    match run(&value, job, owners) {
                        Ok(Some(run)) => Item::Record {
                            tier: Tier::Global,
                            record: run.into(),
                        },
                        // Begun, or told of otherwise: its end is another line.
                        Ok(None) => Item::Merged {
                            kind: kind::CRON_RUN,
                            count: 1,
                        },
                        Err(reason) => Item::Refused(refusal(place, reason, json.get().as_bytes())),
                    }
                }
            };
            out.push(item, line.bytes.len()).await?;
        }
    }
    out.flush().await
}

fn refusal(place: String, reason: &str, raw: &[u8]) -> Refusal {
    Refusal {
        kind: kind::CRON_RUN,
        place,
        reason: reason.to_owned(),
        raw: raw.to_vec(),
    }
}

/// A run; `None` for a line that tells of no end.
pub(crate) fn run(
    value: &Value,
    job: &str,
    owners: &Owners,
) -> Result<Option<TaskRun>, &'static str> {
    let fields = value.as_object().ok_or("it is no object")?;
    let named = text(fields, "jobId").ok_or("it names no job")?;
    if named != job {
        return Err("it is of another job than its file");
    }
    let at_ms = ms(fields, "ts").ok_or("it has no time")?;
    if text(fields, "action").is_some_and(|action| action != "finished") {
        return Ok(None);
    }
    let word = text(fields, "status");
    let status = match word.as_deref() {
        Some("ok") => TaskStatus::Succeeded,
        Some("skipped") => TaskStatus::Cancelled,
        Some("timeout") => TaskStatus::TimedOut,
        _ => TaskStatus::Failed,
    };
    let started_at_ms = ms(fields, "runAtMs");
    let run_id = text(fields, "runId").unwrap_or_else(|| value.to_string());
    Ok(Some(TaskRun {
        task_id: stable_uuid(&[
            b"openclaw cron run",
            job.as_bytes(),
            at_ms.to_string().as_bytes(),
            run_id.as_bytes(),
        ]),
        owner_kind: TaskOwnerKind::Cron,
        source_id: Some(named),
        agent_id: agent(fields, owners),
        label: None,
        status,
        status_detail: word,
        created_at_ms: started_at_ms.unwrap_or(at_ms),
        started_at_ms,
        ended_at_ms: Some(at_ms),
        duration_ms: ms(fields, "durationMs"),
        output: text(fields, "summary"),
        error: text(fields, "error"),
        detail_json: Some(value.to_string()),
        origin: TaskOrigin::default(),
    }))
}

/// The agent its session is of.
fn agent(fields: &Map<String, Value>, owners: &Owners) -> Option<AgentId> {
    let key = text(fields, "sessionKey")?;
    owners.named(&key::agent_name(key::owner(&key)?)).ok()
}
