//! Brings the jobs that the configuration declares in line with it; jobs of its own kind alone, by their ids.
//!
//! The configuration owns what such a job is; the row owns how it went. A job that the configuration no longer declares is
//! switched off and stays to be seen. Nothing is switched on here that somebody, or an import, has switched off.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::claim::set_next;
use super::{Ground, Scheduler};
use crate::config::Config;
use crate::model::{
    AgentId, CRON_STORE, CatchUp, CronJob, CronOrigin, CronPolicy, CronState, Delivery,
    PayloadKind, Schedule, ShellOutputFormat, TimeZoneOrigin, Timetable,
};
use crate::service::ServiceError;
use crate::service::error::InDb;
use crate::store::StoreError;
use crate::store::global::cron;

/// Reasons that this file gives, and takes back.
const GONE: &str = "the configuration no longer declares it";
const OFF: &str = "the configuration switches it off";
const UNOWNED: &str = "no agent of the configuration runs it";

/// Reasons that end with the schedule they come from.
const ENDS: [&str; 3] = ["done", "skipped", "never due again"];

/// What reconciliation changed, by job id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reconciled {
    /// New ones.
    pub added: Vec<String>,
    /// Ones whose definition changed.
    pub changed: Vec<String>,
    /// Ones that the configuration no longer declares; they are off now.
    pub gone: Vec<String>,
    /// Ones that cannot be taken as they are, and why; what there was of them stays as it was.
    pub refused: Vec<String>,
}

#[derive(Debug, Default)]
struct Changes {
    told: Reconciled,
    insert: Vec<CronJob>,
    update: Vec<CronJob>,
}

impl Scheduler {
    /// Makes, changes and switches off declared jobs as the configuration says; does nothing where it has not changed, or
    /// where there is none.
    ///
    /// # Errors
    ///
    /// [`ServiceError`] when SQLite fails.
    pub async fn reconcile(&self) -> Result<Reconciled, ServiceError> {
        if !self.has_config {
            return Ok(Reconciled::default());
        }
        let now_ms = self.clock.now_ms();
        let mut conn = self.global.read().await?;
        let stored = cron::list(&mut conn, None).await.in_db(&self.global)?;
        drop(conn);
        let found = changes(stored, &self.config, &self.ground, now_ms);
        if found.insert.is_empty() && found.update.is_empty() {
            return Ok(found.told);
        }
        let (config, ground) = (self.config.clone(), self.ground.clone());
        self.global
            .write(move |tx| {
                Box::pin(async move {
                    // Another scheduler may have done it meanwhile.
                    let stored = cron::list(tx, None).await?;
                    let found = changes(stored, &config, &ground, now_ms);
                    for job in &found.insert {
                        cron::insert_new(tx, job).await?;
                    }
                    for job in &found.update {
                        cron::update(tx, job).await?;
                    }
                    Ok::<_, StoreError>(found.told)
                })
            })
            .await
            .in_db(&self.global)
    }
}

fn changes(stored: Vec<CronJob>, config: &Config, ground: &Ground, now_ms: i64) -> Changes {
    let mut found = Changes::default();
    let mut stored: BTreeMap<String, CronJob> = stored
        .into_iter()
        .filter(|job| job.store_key == CRON_STORE)
        .map(|job| (job.job_id.clone(), job))
        .collect();
    for (id, table) in &config.cron {
        let old = stored.remove(id);
        if old
            .as_ref()
            .is_some_and(|job| job.origin == CronOrigin::Runtime)
        {
            let reason = "a job that is not declared has its id";
            found.told.refused.push(format!("{id}: {reason}"));
            continue;
        }
        let (declared, is_on) = match declared(id, table, config, ground, now_ms) {
            Ok(declared) => declared,
            Err(reason) => {
                found.told.refused.push(format!("{id}: {reason}"));
                continue;
            }
        };
        match old {
            None => {
                let mut job = declared;
                switch(&mut job, is_on);
                if job.enabled {
                    set_next(ground, &mut job, now_ms);
                }
                found.told.added.push(id.clone());
                found.insert.push(job);
            }
            Some(old) => {
                let job = merged(&old, declared, is_on, ground, now_ms);
                if job != old {
                    found.told.changed.push(id.clone());
                    found.update.push(CronJob {
                        updated_at_ms: now_ms,
                        ..job
                    });
                }
            }
        }
    }
    let declared_once = stored
        .into_values()
        .filter(|job| job.origin == CronOrigin::Config && job.enabled);
    for mut job in declared_once {
        found.told.gone.push(job.job_id.clone());
        job.enabled = false;
        job.disabled_reason = Some(GONE.to_owned());
        job.next_run_at_ms = None;
        job.updated_at_ms = now_ms;
        found.update.push(job);
    }
    found
}

fn switch(job: &mut CronJob, is_on: bool) {
    job.enabled = is_on && job.agent_id.is_some();
    job.disabled_reason = match (job.enabled, is_on) {
        (true, _) => None,
        (false, true) => Some(UNOWNED.to_owned()),
        (false, false) => Some(OFF.to_owned()),
    };
}

/// The definition of one, the state of the other.
fn merged(old: &CronJob, new: CronJob, is_on: bool, ground: &Ground, now_ms: i64) -> CronJob {
    let is_rescheduled =
        old.schedule != new.schedule || old.policy.stagger_ms != new.policy.stagger_ms;
    let mut job = CronJob {
        enabled: old.enabled,
        disabled_reason: old.disabled_reason.clone(),
        next_run_at_ms: old.next_run_at_ms,
        last_run_at_ms: old.last_run_at_ms,
        last_run_status: old.last_run_status.clone(),
        last_output: old.last_output.clone(),
        created_at_ms: old.created_at_ms,
        updated_at_ms: old.updated_at_ms,
        state: old.state.clone(),
        ..new
    };
    let reason = old.disabled_reason.as_deref();
    let is_ours = old.enabled || reason.is_some_and(|why| [GONE, OFF, UNOWNED].contains(&why));
    let has_ended = reason.is_some_and(|why| ENDS.iter().any(|end| why.starts_with(end)));
    if is_ours || (has_ended && is_rescheduled) {
        switch(&mut job, is_on);
    }
    if !job.enabled {
        job.next_run_at_ms = None;
    } else if is_rescheduled || !old.enabled {
        set_next(ground, &mut job, now_ms);
    }
    job
}

/// A job as its table declares it, and whether that switches it on.
fn declared(
    id: &str,
    table: &Table,
    config: &Config,
    ground: &Ground,
    now_ms: i64,
) -> Result<(CronJob, bool), String> {
    let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    let seconds = |key: &str| {
        let value = table.get(key).and_then(Value::as_integer);
        value.filter(|value| *value > 0).map(|value| value * 1_000)
    };
    let (payload_kind, message) = match text("job_type").as_deref().unwrap_or("shell") {
        kind if kind.eq_ignore_ascii_case("shell") => (PayloadKind::Shell, text("command")),
        kind if kind.eq_ignore_ascii_case("agent") => (PayloadKind::AgentTurn, text("prompt")),
        kind if kind.eq_ignore_ascii_case("system_event") => {
            (PayloadKind::SystemEvent, text("prompt"))
        }
        other => {
            return Err(format!(
                "job_type {other:?} is not shell, agent or system_event"
            ));
        }
    };
    let tools_allow = table.get("allowed_tools").and_then(Value::as_array);
    let job = CronJob {
        store_key: CRON_STORE.to_owned(),
        job_id: id.to_owned(),
        name: text("name").unwrap_or_else(|| id.to_owned()),
        origin: CronOrigin::Config,
        agent_id: owner(id, table, config),
        enabled: false,
        disabled_reason: None,
        delete_after_run: false,
        schedule: schedule(table, ground)?,
        session_target: text("session_target").unwrap_or_else(|| "isolated".to_owned()),
        payload_kind,
        payload_message: message.ok_or("neither command nor prompt says what it does")?,
        payload_model: text("model"),
        tools_allow: tools_allow.map(|tools| {
            let names = tools.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        }),
        uses_memory: table
            .get("uses_memory")
            .and_then(Value::as_bool)
            .unwrap_or(true),
        shell_output_format: text("shell_output_format")
            .and_then(|format| ShellOutputFormat::parse(&format))
            .unwrap_or_default(),
        delivery: delivery(table),
        next_run_at_ms: None,
        last_run_at_ms: None,
        last_run_status: None,
        last_output: None,
        job_json: serde_json::to_string(table).unwrap_or_else(|_| "{}".to_owned()),
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        policy: CronPolicy {
            stagger_ms: seconds("stagger_s"),
            catch_up: match text("catch_up") {
                None => None,
                Some(word) => Some(
                    CatchUp::parse(&word)
                        .ok_or_else(|| format!("catch_up {word:?} is not skip, once or all"))?,
                ),
            },
            catch_up_window_ms: seconds("catch_up_window_s"),
            timeout_ms: seconds("timeout_s"),
            ..CronPolicy::default()
        },
        state: CronState::default(),
    };
    Timetable::new(&job.schedule, &ground.zone, now_ms).map_err(|error| error.to_string())?;
    let enabled = table.get("enabled").and_then(Value::as_bool);
    Ok((job, enabled.unwrap_or(true)))
}

/// The agent that lists the job, else the one it names, else the only one there is.
fn owner(id: &str, table: &Table, config: &Config) -> Option<AgentId> {
    let mut listed = config
        .agents
        .iter()
        .filter(|(_, agent)| agent.enabled && agent.cron_jobs.iter().any(|job| job == id));
    let named = table.get("agent").and_then(Value::as_str);
    let mut enabled = config.agents.iter().filter(|(_, agent)| agent.enabled);
    let only = match (enabled.next(), enabled.next()) {
        (Some((only, _)), None) => Some(only.as_str()),
        _ => None,
    };
    let name = listed
        .next()
        .map(|(agent, _)| agent.as_str())
        .or(named)
        .or(only)?;
    AgentId::new(name).ok()
}

fn schedule(table: &Table, ground: &Ground) -> Result<Schedule, String> {
    let schedule = table
        .get("schedule")
        .and_then(Value::as_table)
        .ok_or("it has no schedule")?;
    let text = |key: &str| schedule.get(key).and_then(Value::as_str);
    match text("kind").unwrap_or("cron") {
        "cron" => {
            let expr = text("expr").ok_or("its schedule has no expr")?.to_owned();
            let tz = text("tz").filter(|tz| !tz.is_empty());
            Ok(Schedule::Cron {
                expr,
                tz: Some(tz.unwrap_or(&ground.zone).to_owned()),
                tz_origin: Some(match tz {
                    Some(_) => TimeZoneOrigin::Job,
                    None => TimeZoneOrigin::Host,
                }),
            })
        }
        "every" => {
            let every = schedule.get("every_ms").and_then(Value::as_integer);
            Ok(Schedule::Every {
                every_ms: every.ok_or("its schedule has no every_ms")?,
                anchor_ms: schedule.get("anchor_ms").and_then(Value::as_integer),
            })
        }
        "at" => {
            let at = schedule.get("at").ok_or("its schedule has no at")?;
            let at = match at.as_datetime() {
                Some(at) => at.to_string(),
                None => at.as_str().unwrap_or_default().to_owned(),
            };
            let at = chrono::DateTime::parse_from_rfc3339(&at)
                .map_err(|_| "its schedule's at is no time with its offset")?;
            Ok(Schedule::At {
                at_ms: at.timestamp_millis(),
            })
        }
        other => Err(format!(
            "its schedule's kind {other:?} is not cron, every or at"
        )),
    }
}

fn delivery(table: &Table) -> Delivery {
    let usual = Delivery::default();
    let Some(delivery) = table.get("delivery").and_then(Value::as_table) else {
        return usual;
    };
    let text = |key: &str| delivery.get(key).and_then(Value::as_str).map(str::to_owned);
    Delivery {
        mode: text("mode").unwrap_or(usual.mode),
        channel: text("channel"),
        to: text("to"),
        thread_id: text("thread_id"),
        best_effort: delivery
            .get("best_effort")
            .and_then(Value::as_bool)
            .unwrap_or(usual.best_effort),
    }
}
