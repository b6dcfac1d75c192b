//! `cron/jobs.db`: scheduled jobs and their runs, since 0.1; rollback journal, not WAL.
//!
//! `cron_jobs` grew columns up to 0.8.4 and is read by name. `schedule` is JSON, for example
//! `{"kind":"cron","expr":"15 7 * * 1-5","tz":"Europe/Berlin"}`; NULL means `expression` without zone,
//! and no zone means the local zone of the machine that ran it, which is recorded at import.
//!
//! Known faults: jobs without owner (before 0.8 there was none; later the old scheduler skipped
//! them), jobs left behind in the wrong folder by the 0.8 upgrade (dead since, so they come in
//! switched off), a claim left by a crash (dropped), run ids that repeat across files.

use std::collections::HashMap;

use serde_json::Value;
use zeroclaw::fs::host_zone;
use zeroclaw::model::{
    AgentId, AgentStatus, CRON_STORE, CronJob, CronOrigin, CronPolicy, CronState, Delivery,
    PayloadKind, Schedule, ShellOutputFormat, TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier,
    TimeZoneOrigin,
};

use super::super::rows::{Found, Table, each_row};
use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};
use crate::doctor::units::{LegacyTime, stable_uuid};

pub(super) const JOB: [&str; 23] = [
    "id",
    "expression",
    "command",
    "schedule",
    "job_type",
    "prompt",
    "name",
    "session_target",
    "model",
    "enabled",
    "delivery",
    "delete_after_run",
    "allowed_tools",
    "created_at",
    "next_run",
    "last_run",
    "last_status",
    "last_output",
    "source",
    "uses_memory",
    "agent_alias",
    "locked_at",
    "shell_output_format",
];
const RUN: [&str; 7] = [
    "id",
    "job_id",
    "started_at",
    "finished_at",
    "status",
    "output",
    "duration_ms",
];

/// Whether the old program still read the place a store was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It did.
    Current,
    /// The 0.8 upgrade had put it where nothing looks.
    Misplaced,
}

/// Streams a store's jobs, then their runs.
pub(crate) async fn read<S: Sink>(
    db: &mut LegacyDb,
    place: Place,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let columns = db.columns("cron_jobs").await?;
    if !columns.iter().any(|column| column == "expression") {
        return Err(ReadError::Format {
            reason: "it has no table cron_jobs".to_owned(),
        });
    }
    let has_owners = columns.iter().any(|column| column == "agent_alias");
    let mut out = Batcher::new(sink);
    let mut agents = HashMap::new();
    let table = Table {
        name: "cron_jobs",
        wanted: &JOB,
        order: "id",
    };
    let damage = each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::CRON_JOB, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        match job(&values, place, has_owners, owners) {
            Ok((job, notes)) => {
                agents.insert(job.job_id.clone(), job.agent_id.clone());
                give_job(job, notes, &mut out).await
            }
            Err(reason) => {
                let refusal = Refusal {
                    kind: kind::CRON_JOB,
                    place: format!("table cron_jobs, row {}", values.rowid),
                    reason,
                    raw: values.json(&JOB, &[]).into_bytes(),
                };
                out.push(Item::Refused(refusal), 512).await
            }
        }
    });
    let damage = damage.await?;
    let runs_damage = runs(db, &agents, &mut out).await?;
    for (name, damage) in [("cron_jobs", damage), ("cron_runs", runs_damage)] {
        if let Some(reason) = damage {
            let place = format!("table {name}");
            out.push(Item::Damage { place, reason }, 0).await?;
        }
    }
    out.flush().await
}

pub(super) async fn give_job<S: Sink>(
    job: CronJob,
    notes: Notes,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let place = format!("job {}", job.job_id);
    let record = Record::CronJob(Box::new(job));
    let tier = Tier::Global;
    out.push(Item::Record { tier, record }, 512).await?;
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
}

/// Streams the runs; says what of them is damaged.
async fn runs<S: Sink>(
    db: &mut LegacyDb,
    agents: &HashMap<String, Option<AgentId>>,
    out: &mut Batcher<'_, S>,
) -> Result<Option<String>, ReadError> {
    if db.columns("cron_runs").await?.is_empty() {
        return Ok(None);
    }
    let table = Table {
        name: "cron_runs",
        wanted: &RUN,
        order: "id",
    };
    each_row(db, table, async |found| {
        let values = match found {
            Found::Row(values) => values,
            Found::Lost { rowid } => {
                let lost = Refusal::lost(kind::CRON_RUN, table.name, rowid);
                return out.push(Item::Refused(lost), 0).await;
            }
        };
        let bytes = values.bytes(5).map_or(0, <[u8]>::len);
        let item = match run(&values, agents) {
            Ok(run) => Item::Record {
                tier: Tier::Global,
                record: run.into(),
            },
            Err(reason) => Item::Refused(Refusal {
                kind: kind::CRON_RUN,
                place: format!("table cron_runs, row {}", values.rowid),
                reason,
                raw: values.json(&RUN, &[]).into_bytes(),
            }),
        };
        out.push(item, bytes).await
    })
    .await
}

pub(super) type Notes = Vec<(&'static str, String)>;

pub(super) fn job(
    values: &Values,
    place: Place,
    has_owners: bool,
    owners: &Owners,
) -> Result<(CronJob, Notes), String> {
    let mut notes = Notes::new();
    let job_id = values.hint(0).ok_or("its id is missing or not UTF-8")?;
    let schedule = schedule(values, &mut notes)?;
    let time = |column| {
        values
            .hint(column)
            .and_then(|text| LegacyTime::parse(&text))
            .map(LegacyTime::ms)
    };
    let (payload_kind, payload_message) = match values.hint(4).as_deref().unwrap_or("shell") {
        kind if kind.eq_ignore_ascii_case("shell") => (PayloadKind::Shell, values.hint(2)),
        kind if kind.eq_ignore_ascii_case("agent") => (
            PayloadKind::AgentTurn,
            values.hint(5).or_else(|| values.hint(2)),
        ),
        other => return Err(format!("job type {other:?} is neither shell nor agent")),
    };
    let origin = match values.hint(18).as_deref() {
        Some("declarative") => CronOrigin::Config,
        _ => CronOrigin::Runtime,
    };
    let tools_allow = match values.hint(12) {
        None => None,
        Some(json) => Some(
            serde_json::from_str(&json)
                .map_err(|_| "allowed_tools is no list of names".to_owned())?,
        ),
    };
    let stands = standing(values, &job_id, origin, place, has_owners, owners)?;
    notes.extend(stands.note);
    let format = values.hint(22).unwrap_or_else(|| "wrapped".to_owned());
    let shell_output_format = ShellOutputFormat::parse(&format).unwrap_or_else(|| {
        notes.push((
            "unknown-output-format",
            "its output format is unknown; taken as wrapped".to_owned(),
        ));
        ShellOutputFormat::Wrapped
    });
    if values.hint(21).is_some() {
        notes.push((
            "claim-dropped",
            "was running when its program died; the claim is dropped".to_owned(),
        ));
    }
    let created_at_ms = time(13).unwrap_or(0);
    let job = CronJob {
        store_key: CRON_STORE.to_owned(),
        name: values.hint(6).unwrap_or_else(|| job_id.clone()),
        job_id,
        origin,
        agent_id: stands.agent,
        enabled: stands.enabled,
        disabled_reason: stands.disabled_reason,
        delete_after_run: values.integer(11).unwrap_or(0) != 0,
        schedule,
        session_target: match values.hint(7) {
            Some(target) if target.eq_ignore_ascii_case("main") => "main".to_owned(),
            _ => "isolated".to_owned(),
        },
        payload_kind,
        payload_message: payload_message.unwrap_or_default(),
        payload_model: values.hint(8),
        tools_allow,
        uses_memory: values.integer(19).unwrap_or(1) != 0,
        shell_output_format,
        delivery: delivery(values.hint(10).as_deref())?,
        next_run_at_ms: time(14).filter(|_| place == Place::Current),
        last_run_at_ms: time(15),
        last_run_status: values.hint(16),
        last_output: values.hint(17),
        job_json: values.json(&JOB, &["last_output"]),
        created_at_ms,
        updated_at_ms: time(15).unwrap_or(created_at_ms).max(created_at_ms),
        policy: CronPolicy::default(),
        state: CronState::default(),
    };
    Ok((job, notes))
}

fn schedule(values: &Values, notes: &mut Notes) -> Result<Schedule, String> {
    let json = values.hint(3).filter(|json| !json.trim().is_empty());
    let parsed: Value = match &json {
        Some(json) => {
            serde_json::from_str(json).map_err(|_| "its schedule is not JSON".to_owned())?
        }
        None => serde_json::json!({ "kind": "cron", "expr": values.hint(1) }),
    };
    match parsed["kind"].as_str() {
        Some("cron") => {
            let expr = parsed["expr"]
                .as_str()
                .map(str::to_owned)
                .filter(|expr| !expr.trim().is_empty());
            let expr = expr.ok_or("its schedule has no expression")?;
            let stated = parsed["tz"]
                .as_str()
                .filter(|tz| !tz.is_empty())
                .map(str::to_owned);
            let tz_origin = if stated.is_some() {
                TimeZoneOrigin::Job
            } else {
                TimeZoneOrigin::Host
            };
            let tz = stated.unwrap_or_else(|| {
                let zone = host_zone();
                notes.push((
                    "zone-recorded",
                    format!("names no time zone; this host's, {zone}, is recorded"),
                ));
                zone
            });
            Ok(Schedule::Cron {
                expr,
                tz: Some(tz),
                tz_origin: Some(tz_origin),
            })
        }
        Some("every") => {
            let every_ms = parsed["every_ms"].as_i64().filter(|every| *every > 0);
            let every_ms = every_ms.ok_or("its schedule has no positive every_ms")?;
            Ok(Schedule::Every {
                every_ms,
                anchor_ms: None,
            })
        }
        Some("at") => {
            let at = parsed["at"]
                .as_str()
                .and_then(LegacyTime::parse)
                .ok_or("its schedule has no readable time")?;
            Ok(Schedule::At { at_ms: at.ms() })
        }
        _ => Err("its schedule is of no known kind".to_owned()),
    }
}

/// Whether a job may run, and as whom.
struct Standing {
    agent: Option<AgentId>,
    enabled: bool,
    disabled_reason: Option<String>,
    note: Option<(&'static str, String)>,
}

/// Nothing is switched on that was off, and what has no owner, or lay where nothing looked, is off.
fn standing(
    values: &Values,
    job_id: &str,
    origin: CronOrigin,
    place: Place,
    has_owners: bool,
    owners: &Owners,
) -> Result<Standing, String> {
    let was_enabled = values.integer(9).unwrap_or(1) != 0;
    let mut agent = owners.of_job(&values.hint(20).unwrap_or_default(), job_id)?;
    if agent.is_none() && !has_owners {
        // Before there were agents every job belonged to the one there was.
        agent = Some(owners.fallback()?.agent);
    }
    let retired = agent
        .as_ref()
        .filter(|agent| owners.status(agent).0 == AgentStatus::Retired);
    let reason = if place == Place::Misplaced {
        Some((
            "recovered",
            "lay where the old program did not look since its 0.8 upgrade".to_owned(),
        ))
    } else if agent.is_none() {
        Some(("unowned", "no agent claims it".to_owned()))
    } else if let Some(retired) = retired {
        Some((
            "owner-gone",
            format!("its agent {retired} is not in the configuration"),
        ))
    } else if origin == CronOrigin::Config && !owners.config().cron.contains_key(job_id) {
        Some((
            "not-declared",
            "the configuration no longer declares it".to_owned(),
        ))
    } else {
        None
    };
    let Some((code, reason)) = reason else {
        return Ok(Standing {
            agent,
            enabled: was_enabled,
            disabled_reason: None,
            note: None,
        });
    };
    let note = (code, format!("{reason}; comes in switched off"));
    Ok(Standing {
        agent,
        enabled: false,
        disabled_reason: was_enabled.then_some(reason),
        note: Some(note),
    })
}

fn delivery(json: Option<&str>) -> Result<Delivery, String> {
    let Some(json) = json.filter(|json| !json.trim().is_empty()) else {
        return Ok(Delivery::default());
    };
    let parsed: Value =
        serde_json::from_str(json).map_err(|_| "its delivery is not JSON".to_owned())?;
    let text = |name: &str| parsed[name].as_str().map(str::to_owned);
    Ok(Delivery {
        mode: text("mode").unwrap_or_else(|| "none".to_owned()),
        channel: text("channel"),
        to: text("to"),
        thread_id: text("thread_id"),
        best_effort: parsed["best_effort"].as_bool().unwrap_or(true),
    })
}

fn run(values: &Values, agents: &HashMap<String, Option<AgentId>>) -> Result<TaskRun, String> {
    let job_id = values.hint(1).ok_or("its job is missing or not UTF-8")?;
    let (started, finished) = (
        values.hint(2).unwrap_or_default(),
        values.hint(3).unwrap_or_default(),
    );
    let started_at_ms = LegacyTime::parse(&started).map(LegacyTime::ms);
    let ended_at_ms = LegacyTime::parse(&finished).map(LegacyTime::ms);
    let word = values.hint(4).unwrap_or_default();
    let status = match word.as_str() {
        "ok" | "degraded" => TaskStatus::Succeeded,
        "timeout" => TaskStatus::TimedOut,
        "skipped" | "cancelled" => TaskStatus::Cancelled,
        _ => TaskStatus::Failed,
    };
    let output = match values.text(5) {
        Ok(output) => output.map(str::to_owned),
        Err(_) => return Err("its output is not UTF-8".to_owned()),
    };
    let task_id = stable_uuid(&[
        b"cron run",
        job_id.as_bytes(),
        started.as_bytes(),
        finished.as_bytes(),
        word.as_bytes(),
        output.as_deref().unwrap_or("\0").as_bytes(),
    ]);
    Ok(TaskRun {
        task_id,
        owner_kind: TaskOwnerKind::Cron,
        agent_id: agents.get(&job_id).cloned().flatten(),
        source_id: Some(job_id),
        label: None,
        status,
        status_detail: Some(word),
        created_at_ms: started_at_ms.or(ended_at_ms).unwrap_or(0),
        started_at_ms,
        ended_at_ms,
        duration_ms: values.integer(6),
        output,
        error: None,
        detail_json: None,
        origin: TaskOrigin::default(),
    })
}
