//! `cron/jobs.json` and `cron/jobs-state.json`: scheduled jobs, and where each of them stands.
//!
//! `{"version":1,"jobs":[{"id":"…","name":"…","enabled":true,"schedule":{"kind":"cron","expr":"0 7 * * 1-5"},…}]}`
//!
//! The second file came later and wins over the state within a job, as long as it speaks of the same schedule. What
//! was running is not; an instant that is past does not come again; the old program's own jobs are not anybody's.

use std::path::Path;

use serde_json::{Map, Value};
use zeroclaw::fs::host_zone;
use zeroclaw::model::{
    AgentId, AgentStatus, CRON_STORE, CatchUp, CronJob, CronOrigin, CronPolicy, CronState,
    Delivery, PayloadKind, Schedule, ShellOutputFormat, Tier, TimeZoneOrigin,
};

use super::super::{Batcher, ReadError, Sink};
use super::cron_shape::{self, Shape, is_on};
use super::home::Home;
use super::index::{ms, text, word};
use super::{key, tolerant};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Record, Refusal, kind};

/// Starts of the names of jobs that the old program made for itself.
const OWN_JOBS: [&str; 3] = ["heartbeat:", "skill-collection-review:", "memory-core:"];

/// What there is to say of a job that comes in.
type Notes = Vec<(&'static str, String)>;

/// Streams the jobs of a store.
pub(crate) async fn read<S: Sink>(
    path: &Path,
    home: &Home,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let format = |reason: String| ReadError::Format { reason };
    let store = tolerant::file(path).map_err(format)?;
    let jobs =
        cron_shape::jobs(&store).ok_or_else(|| format("it is no list of jobs".to_owned()))?;
    let mut out = Batcher::new(sink);
    let beside = path.with_file_name(match path.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) => format!("{stem}-state.json"),
        None => "jobs-state.json".to_owned(),
    });
    let states = match beside.is_file().then(|| tolerant::file(&beside)) {
        None => Value::Null,
        Some(Ok(states)) => states,
        Some(Err(error)) => {
            let place = beside.display().to_string();
            let message = format!("cannot be read: {error}; the state within the jobs holds");
            out.push(
                Item::Note {
                    code: "cron-state",
                    place,
                    message,
                },
                0,
            )
            .await?;
            Value::Null
        }
    };
    for (at, job) in jobs.into_iter().enumerate() {
        give(job, at, &states, home, owners, &mut out).await?;
    }
    out.flush().await
}

/// Gives one job, or why it is none.
pub(crate) async fn give<S: Sink>(
    raw: &Value,
    at: usize,
    states: &Value,
    home: &Home,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let bytes = raw.to_string();
    if let Some(owner) = own_job(raw) {
        out.push(
            Item::Merged {
                kind: kind::CRON_JOB,
                count: 1,
            },
            0,
        )
        .await?;
        let place = format!("job {at}");
        let message = format!("{owner} is a job of the old program itself; left out");
        return out
            .push(
                Item::Note {
                    code: "program-job",
                    place,
                    message,
                },
                0,
            )
            .await;
    }
    let found = cron_shape::shape(raw, at).map_err(str::to_owned);
    match found.and_then(|shape| job(&shape, &bytes, states, home, owners)) {
        Ok((job, notes)) => {
            let place = format!("job {}", job.job_id);
            let record = Record::CronJob(Box::new(job));
            out.push(
                Item::Record {
                    tier: Tier::Global,
                    record,
                },
                bytes.len(),
            )
            .await?;
            for (code, message) in notes {
                let place = place.clone();
                out.push(
                    Item::Note {
                        code,
                        place,
                        message,
                    },
                    0,
                )
                .await?;
            }
            Ok(())
        }
        Err(reason) => {
            let (kind, place) = (kind::CRON_JOB, format!("job {at}"));
            let raw = bytes.into_bytes();
            out.push(
                Item::Refused(Refusal {
                    kind,
                    place,
                    reason,
                    raw,
                }),
                512,
            )
            .await
        }
    }
}

/// The name of a job that the old program made for itself.
fn own_job(raw: &Value) -> Option<&str> {
    let declared = raw["declarationKey"].as_str()?;
    OWN_JOBS
        .iter()
        .any(|start| declared.starts_with(start))
        .then_some(declared)
}

fn job(
    shape: &Shape,
    raw: &str,
    states: &Value,
    home: &Home,
    owners: &Owners,
) -> Result<(CronJob, Notes), String> {
    let mut notes = Notes::new();
    let fields = &shape.fields;
    let (state, is_same_schedule) = state(shape, states);
    let schedule = schedule(&shape.schedule, &mut notes)?;
    let standing = standing(shape, &schedule, &state, home, owners)?;
    notes.extend(standing.note);
    if ms(&state, "runningAtMs").is_some() {
        let message = "was running when its program ended; that run is over".to_owned();
        notes.push(("claim-dropped", message));
    }
    let is_turn = shape.payload["kind"] == "agentTurn";
    let created_at_ms = ms(fields, "createdAtMs")
        .or(ms(fields, "updatedAtMs"))
        .unwrap_or(0);
    let says = shape.payload["says"].as_str().unwrap_or_default();
    let target = text(fields, "sessionTarget");
    let job = CronJob {
        store_key: CRON_STORE.to_owned(),
        job_id: shape.id.clone(),
        name: text(fields, "name").unwrap_or_else(|| says.chars().take(60).collect()),
        origin: CronOrigin::Runtime,
        agent_id: standing.agent,
        enabled: standing.is_enabled,
        disabled_reason: standing.disabled_reason,
        delete_after_run: is_on(fields.get("deleteAfterRun"), false),
        session_target: target
            .unwrap_or_else(|| if is_turn { "isolated" } else { "main" }.to_owned()),
        payload_kind: if is_turn {
            PayloadKind::AgentTurn
        } else {
            PayloadKind::SystemEvent
        },
        payload_message: says.to_owned(),
        payload_model: text(&shape.payload, "model"),
        tools_allow: tools(&shape.payload),
        uses_memory: true,
        shell_output_format: ShellOutputFormat::default(),
        delivery: delivery(&shape.delivery),
        next_run_at_ms: ms(&state, "nextRunAtMs")
            .filter(|_| is_same_schedule && standing.is_enabled),
        last_run_at_ms: ms(&state, "lastRunAtMs"),
        last_run_status: text(&state, "lastRunStatus").or_else(|| text(&state, "lastStatus")),
        last_output: text(&state, "lastError"),
        job_json: raw.to_owned(),
        created_at_ms,
        updated_at_ms: ms(fields, "updatedAtMs")
            .unwrap_or(created_at_ms)
            .max(created_at_ms),
        policy: policy(shape),
        state: CronState {
            consecutive_failures: ms(&state, "consecutiveErrors").unwrap_or(0),
            ..CronState::default()
        },
        schedule,
    };
    Ok((job, notes))
}

/// Where a job stands, and whether that was said of the schedule it has.
fn state(shape: &Shape, states: &Value) -> (Map<String, Value>, bool) {
    let empty = Map::new;
    let inline = shape
        .fields
        .get("state")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_else(empty);
    let Some(beside) = states["jobs"].get(&shape.id) else {
        return (inline, true);
    };
    let state = beside["state"].as_object().cloned().unwrap_or_else(empty);
    let written = beside["scheduleIdentity"]
        .as_str()
        .map(serde_json::from_str::<Value>);
    let is_same = match written {
        Some(Ok(identity)) => {
            let schedule = identity.get("schedule").unwrap_or(&Value::Null);
            Some(schedule) == shape.fields.get("schedule")
        }
        Some(Err(_)) => false,
        None => true,
    };
    (state, is_same)
}

fn schedule(schedule: &Map<String, Value>, notes: &mut Notes) -> Result<Schedule, String> {
    match schedule["kind"].as_str() {
        Some("at") => Ok(Schedule::At {
            at_ms: ms(schedule, "atMs").unwrap_or(0),
        }),
        Some("every") => Ok(Schedule::Every {
            every_ms: ms(schedule, "everyMs").ok_or("its schedule has no distance")?,
            anchor_ms: ms(schedule, "anchorMs"),
        }),
        _ => {
            let stated = text(schedule, "tz");
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
                expr: text(schedule, "expr").ok_or("its schedule has no expression")?,
                tz: Some(tz),
                tz_origin: Some(tz_origin),
            })
        }
    }
}

/// Whether a job may run, and as whom.
struct Standing {
    agent: Option<AgentId>,
    is_enabled: bool,
    disabled_reason: Option<String>,
    note: Option<(&'static str, String)>,
}

/// Nothing is switched on that was off; what has no owner, or whose time is past, is off.
fn standing(
    shape: &Shape,
    schedule: &Schedule,
    state: &Map<String, Value>,
    home: &Home,
    owners: &Owners,
) -> Result<Standing, String> {
    let named = text(&shape.fields, "agentId").map(|name| key::agent_name(&name));
    let of_key = text(&shape.fields, "sessionKey");
    let of_key = of_key.as_deref().and_then(key::owner).map(key::agent_name);
    let name = named
        .or(of_key)
        .unwrap_or_else(|| home.settings.default_agent.clone());
    let agent = owners.named(&name)?;
    let is_known = home.agents.contains_key(&name);
    let is_retired = owners.status(&agent).0 == AgentStatus::Retired;
    // It had its run, or its program died before it: it is not made up for without being asked.
    let is_past = |at_ms: i64| ms(state, "lastRunAtMs").is_some_and(|ran| ran >= at_ms);
    let reason = if !is_known {
        Some((
            "unowned",
            format!("its agent {name} is none that this home has"),
        ))
    } else if is_retired {
        Some((
            "owner-gone",
            format!("its agent {agent} is not in the configuration"),
        ))
    } else {
        match schedule {
            Schedule::At { at_ms } if is_past(*at_ms) => {
                Some(("past-job", "it has had its run".to_owned()))
            }
            _ => None,
        }
    };
    let (is_enabled, disabled_reason) = match &reason {
        Some((_, reason)) => (false, shape.is_enabled.then(|| reason.clone())),
        None => (shape.is_enabled, None),
    };
    Ok(Standing {
        agent: is_known.then_some(agent),
        is_enabled,
        note: reason
            .filter(|_| shape.is_enabled)
            .map(|(code, reason)| (code, format!("{reason}; comes in switched off"))),
        disabled_reason,
    })
}

/// Tools a job is held to. The later program wrote `*` by itself: that is nobody's word.
fn tools(payload: &Map<String, Value>) -> Option<Vec<String>> {
    let listed = payload.get("toolsAllow")?.as_array()?;
    let names: Vec<String> = listed
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect();
    (names != ["*"]).then_some(names)
}

fn delivery(fields: &Map<String, Value>) -> Delivery {
    Delivery {
        mode: text(fields, "mode").unwrap_or_else(|| "none".to_owned()),
        channel: text(fields, "channel"),
        to: word(fields, "to"),
        thread_id: word(fields, "threadId"),
        best_effort: is_on(fields.get("bestEffort"), false),
    }
}

fn policy(shape: &Shape) -> CronPolicy {
    let alert = shape.fields.get("failureAlert").and_then(Value::as_object);
    let of = |name: &str| alert.and_then(|alert| ms(alert, name));
    let seconds = shape.payload.get("timeoutSeconds").and_then(Value::as_f64);
    CronPolicy {
        stagger_ms: ms(&shape.schedule, "staggerMs").filter(|stagger| *stagger > 0),
        // Its times of before the move are the old program's.
        catch_up: Some(CatchUp::Skip),
        timeout_ms: seconds
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| (seconds * 1000.0) as i64),
        failure_alert_after: of("after").filter(|after| *after > 0),
        failure_alert_channel: alert.and_then(|alert| text(alert, "channel")),
        failure_alert_to: alert.and_then(|alert| word(alert, "to")),
        failure_alert_cooldown_ms: of("cooldownMs"),
        ..CronPolicy::default()
    }
}
