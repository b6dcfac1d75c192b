//! `state/openclaw.sqlite`: jobs, work, devices and messages of all agents, schemas 1 to 18.
//!
//! A job is its JSON; the columns beside it repeat parts of that, and since schema 13 hardly any is left. Runs of jobs
//! were rows of their own in schema 1 and are tasks since.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zeroclaw::model::{TaskOrigin, TaskOwnerKind, TaskRun, TaskStatus, Tier};

use super::super::sqlite::{LegacyDb, Values};
use super::super::{Batcher, ReadError, Sink};
use super::database::{Read, each, open, tell_columns, tell_others};
use super::home::Home;
use super::{cron, cron_runs, deliveries, devices, key, left};
use crate::doctor::owner::Owners;
use crate::doctor::record::{Item, Refusal, kind};

const JOBS: Read = Read {
    table: "cron_jobs",
    columns: &[
        "job_id",
        "job_json",
        "state_json",
        "schedule_identity",
        "enabled",
        "declaration_key",
        "agent_id",
        "name",
    ],
    order: "sort_order, job_id",
};
const RUNS: Read = Read {
    table: "cron_run_logs",
    columns: &["job_id", "entry_json", "run_at_ms", "ts"],
    order: "job_id, seq",
};
const TASKS: Read = Read {
    table: "task_runs",
    columns: &[
        "task_id",
        "runtime",
        "task_kind",
        "source_id",
        "requester_session_key",
        "child_session_key",
        "parent_task_id",
        "agent_id",
        "requester_agent_id",
        "run_id",
        "label",
        "task",
        "status",
        "created_at",
        "started_at",
        "ended_at",
        "error",
        "progress_summary",
        "terminal_summary",
        "terminal_outcome",
        "detail_json",
    ],
    order: "created_at, task_id",
};
const DEVICES: Read = Read {
    table: "device_pairing_paired",
    columns: &[
        "device_id",
        "public_key",
        "display_name",
        "platform",
        "client_mode",
        "role",
        "remote_ip",
        "tokens_json",
        "created_at_ms",
        "approved_at_ms",
        "last_seen_at_ms",
    ],
    order: "device_id",
};
const MESSAGES: Read = Read {
    table: "delivery_queue_entries",
    columns: &[
        "queue_name",
        "id",
        "status",
        "channel",
        "target",
        "account_id",
        "retry_count",
        "last_attempt_at",
        "last_error",
        "recovery_state",
        "platform_send_started_at",
        "entry_json",
        "enqueued_at",
        "session_key",
    ],
    order: "enqueued_at, id",
};
const TABLES: [Read; 5] = [JOBS, RUNS, TASKS, DEVICES, MESSAGES];

/// Columns that repeat what is read, or that only the old program means something by.
const IGNORED: [&str; 16] = [
    "store_key",
    "sort_order",
    "updated_at",
    "owner_key",
    "scope_kind",
    "delivery_status",
    "notify_policy",
    "last_event_at",
    "cleanup_after",
    "entry_kind",
    "failed_at",
    "payload_kind",
    "runtime_updated_at_ms",
    "parent_flow_id",
    "execution_owner_pid",
    "seq",
];

/// Streams what a state database holds.
pub(super) async fn read<S: Sink>(
    db: &mut LegacyDb,
    home: &Home,
    owners: &Owners,
    sink: &mut S,
) -> Result<(), ReadError> {
    let mut out = Batcher::new(sink);
    open(db, "global", &mut out).await?;
    jobs(db, home, owners, &mut out).await?;
    let logged = runs(db, owners, &mut out).await?;
    each(db, TASKS, "", &[], async |values| {
        let item = match task(&values, owners) {
            Ok(run) if is_logged(&run, &logged) => Item::Merged {
                kind: kind::CRON_RUN,
                count: 1,
            },
            Ok(run) => Item::Record {
                tier: Tier::Global,
                record: run.into(),
            },
            Err(reason) => refused(kind::TASK, TASKS, &values, reason),
        };
        out.push(item, 512).await
    })
    .await?;
    each(db, DEVICES, "", &[], async |values| {
        let name = values.hint(0).unwrap_or_default();
        devices::give(&name, &device(&values), &mut out).await
    })
    .await?;
    each(db, MESSAGES, "", &[], async |values| {
        let item = message(&values, owners);
        out.push(item, 1024).await
    })
    .await?;
    tell_columns(db, &[TASKS, DEVICES, MESSAGES], &IGNORED, &mut out).await?;
    tell_others(db, &TABLES, left::STATE, &mut out).await?;
    out.flush().await
}

fn refused(kind: &'static str, read: Read, values: &Values, reason: &str) -> Item {
    Item::Refused(Refusal {
        kind,
        place: format!("table {}, row {}", read.table, values.rowid),
        reason: reason.to_owned(),
        raw: values.json(read.columns, &[]).into_bytes(),
    })
}

fn object(values: &Values, column: usize) -> Map<String, Value> {
    let json = values
        .hint(column)
        .and_then(|json| serde_json::from_str::<Value>(&json).ok());
    json.and_then(|json| json.as_object().cloned())
        .unwrap_or_default()
}

async fn jobs<S: Sink>(
    db: &mut LegacyDb,
    home: &Home,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<(), ReadError> {
    let mut at = 0;
    each(db, JOBS, "", &[], async |values| {
        let Some(id) = values.hint(0) else {
            return Ok(());
        };
        let mut job = object(&values, 1);
        job.insert("id".to_owned(), json!(id));
        for (name, column) in [("declarationKey", 5), ("agentId", 6), ("name", 7)] {
            if let Some(text) = values.hint(column) {
                job.entry(name).or_insert(json!(text));
            }
        }
        if values.integer(4) == Some(0) {
            job.insert("enabled".to_owned(), json!(false));
        }
        let state = json!({
            "state": object(&values, 2), "scheduleIdentity": values.hint(3),
        });
        let states = json!({ "jobs": { id: state } });
        at += 1;
        cron::give(&Value::Object(job), at, &states, home, owners, out).await
    })
    .await
}

/// When the runs that are logged on their own began, by job.
type Logged = BTreeMap<String, Vec<i64>>;

async fn runs<S: Sink>(
    db: &mut LegacyDb,
    owners: &Owners,
    out: &mut Batcher<'_, S>,
) -> Result<Logged, ReadError> {
    let mut logged = Logged::new();
    each(db, RUNS, "", &[], async |values| {
        let job = values.hint(0).unwrap_or_default();
        let entry = Value::Object(object(&values, 1));
        let item = match cron_runs::run(&entry, &job, owners) {
            Ok(Some(run)) => {
                let began = run.started_at_ms.unwrap_or(run.created_at_ms);
                logged.entry(job).or_default().push(began);
                Item::Record {
                    tier: Tier::Global,
                    record: run.into(),
                }
            }
            Ok(None) => Item::Merged {
                kind: kind::CRON_RUN,
                count: 1,
            },
            Err(reason) => refused(kind::CRON_RUN, RUNS, &values, reason),
        };
        out.push(item, 512).await
    })
    .await?;
    Ok(logged)
}

/// Whether a task is a run that is logged on its own too: of the same job, begun in the same few seconds.
fn is_logged(run: &TaskRun, logged: &Logged) -> bool {
    const NEAR_MS: i64 = 5_000;
    let began = run.started_at_ms.unwrap_or(run.created_at_ms);
    let of_job = run.source_id.as_ref().and_then(|job| logged.get(job));
    run.owner_kind == TaskOwnerKind::Cron
        && of_job.is_some_and(|starts| starts.iter().any(|start| (start - began).abs() <= NEAR_MS))
}

fn task(values: &Values, owners: &Owners) -> Result<TaskRun, &'static str> {
    let task_id = values.hint(0).ok_or("it has no id")?;
    let runtime = values.hint(1).unwrap_or_default();
    let word = values.hint(12).ok_or("it does not say how it stands")?;
    let status = match word.as_str() {
        "succeeded" => TaskStatus::Succeeded,
        "failed" => TaskStatus::Failed,
        "timed_out" => TaskStatus::TimedOut,
        "cancelled" => TaskStatus::Cancelled,
        // Its process is gone, and nobody knows.
        _ => TaskStatus::Lost,
    };
    let agent = values.hint(7).map(|name| key::agent_name(&name));
    let (created, started, ended) = (values.integer(13), values.integer(14), values.integer(15));
    Ok(TaskRun {
        task_id,
        owner_kind: match runtime.as_str() {
            "cron" => TaskOwnerKind::Cron,
            "subagent" => TaskOwnerKind::Subagent,
            _ => TaskOwnerKind::Task,
        },
        source_id: values.hint(3),
        agent_id: agent.and_then(|name| owners.named(&name).ok()),
        label: values
            .hint(10)
            .or_else(|| values.hint(11).map(|task| task.chars().take(200).collect())),
        status,
        status_detail: Some(word),
        created_at_ms: created.or(started).unwrap_or(0),
        started_at_ms: started,
        ended_at_ms: ended,
        duration_ms: started
            .zip(ended)
            .map(|(started, ended)| (ended - started).max(0)),
        output: values.hint(18).or_else(|| values.hint(17)),
        error: values.hint(16),
        detail_json: Some(values.json(TASKS.columns, &[])),
        origin: TaskOrigin {
            task_kind: values.hint(2).or(Some(runtime)),
            parent_task_id: values.hint(6),
            originator_route: values.hint(4),
            ..TaskOrigin::default()
        },
    })
}

/// A device's row in the form its file had.
fn device(values: &Values) -> Value {
    json!({
        "deviceId": values.hint(0), "publicKey": values.hint(1), "displayName": values.hint(2),
        "platform": values.hint(3), "clientMode": values.hint(4), "role": values.hint(5), "remoteIp": values.hint(6),
        "tokens": object(values, 7), "createdAtMs": values.integer(8), "approvedAtMs": values.integer(9),
        "lastSeenAtMs": values.integer(10),
    })
}

fn message(values: &Values, owners: &Owners) -> Item {
    let recovery = values.hint(9);
    if recovery.as_deref() == Some("completed_permanent") {
        // What is left of one that was sent.
        return Item::Merged {
            kind: kind::DELIVERY,
            count: 1,
        };
    }
    let mut fields = object(values, 11);
    let texts = [
        ("id", 1),
        ("channel", 3),
        ("to", 4),
        ("accountId", 5),
        ("lastError", 8),
        ("recoveryState", 9),
        ("sessionKey", 13),
    ];
    for (name, column) in texts {
        if let Some(text) = values.hint(column) {
            fields.insert(name.to_owned(), json!(text));
        }
    }
    let numbers = [
        ("retryCount", 6),
        ("lastAttemptAt", 7),
        ("platformSendStartedAt", 10),
        ("enqueuedAt", 12),
    ];
    for (name, column) in numbers {
        if let Some(number) = values.integer(column) {
            fields.insert(name.to_owned(), json!(number));
        }
    }
    let queue = values.hint(0).unwrap_or_else(|| "outbound".to_owned());
    let has_failed = values.hint(2).as_deref() == Some("failed");
    match deliveries::entry(&fields, &queue, has_failed, owners) {
        Ok(entry) => Item::Record {
            tier: Tier::Global,
            record: entry.into(),
        },
        Err(reason) => refused(kind::DELIVERY, MESSAGES, values, reason),
    }
}
