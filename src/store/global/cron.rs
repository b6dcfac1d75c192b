//! Scheduled jobs: `cron_jobs`.

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{
    AgentId, CatchUp, CronJob, CronOrigin, CronPolicy, CronState, Delivery, PayloadKind, Schedule,
    ShellOutputFormat, TaskRun, TimeZoneOrigin,
};
use crate::store::StoreError;
use crate::store::row::{agent_id, decoded, decoded_opt};

const TABLE: &str = "cron_jobs";

fn corrupt(column: &'static str, row: &str) -> StoreError {
    StoreError::Corrupt {
        table: TABLE,
        column,
        row: row.to_owned(),
        found: String::new(),
    }
}

fn read_schedule(row: &SqliteRow, id: &str) -> Result<Schedule, StoreError> {
    let kind: String = row.try_get("schedule_kind")?;
    match kind.as_str() {
        "cron" => Ok(Schedule::Cron {
            expr: row
                .try_get::<Option<String>, _>("schedule_expr")?
                .ok_or_else(|| corrupt("schedule_expr", id))?,
            tz: row.try_get("schedule_tz")?,
            tz_origin: decoded_opt(
                TimeZoneOrigin::parse,
                row.try_get("schedule_tz_origin")?,
                TABLE,
                "schedule_tz_origin",
                id,
            )?,
        }),
        "every" => Ok(Schedule::Every {
            every_ms: row
                .try_get::<Option<i64>, _>("every_ms")?
                .ok_or_else(|| corrupt("every_ms", id))?,
            anchor_ms: row.try_get("anchor_ms")?,
        }),
        "at" => Ok(Schedule::At {
            at_ms: row
                .try_get::<Option<i64>, _>("at_ms")?
                .ok_or_else(|| corrupt("at_ms", id))?,
        }),
        _ => Err(corrupt("schedule_kind", id)),
    }
}

fn read(row: &SqliteRow) -> Result<CronJob, StoreError> {
    let id: String = row.try_get("job_id")?;
    let text = |column: &str| row.try_get::<String, _>(column);
    let flag = |column: &str| row.try_get::<i64, _>(column).map(|value| value != 0);
    let tools: Option<String> = row.try_get("payload_tools_allow_json")?;
    let tools = tools
        .map(|json| {
            serde_json::from_str(&json).map_err(|_| corrupt("payload_tools_allow_json", &id))
        })
        .transpose()?;
    Ok(CronJob {
        store_key: text("store_key")?,
        name: text("name")?,
        origin: decoded(CronOrigin::parse, &text("origin")?, TABLE, "origin", &id)?,
        agent_id: decoded_opt(agent_id, row.try_get("agent_id")?, TABLE, "agent_id", &id)?,
        enabled: flag("enabled")?,
        disabled_reason: row.try_get("disabled_reason")?,
        delete_after_run: flag("delete_after_run")?,
        schedule: read_schedule(row, &id)?,
        session_target: text("session_target")?,
        payload_kind: decoded(
            PayloadKind::parse,
            &text("payload_kind")?,
            TABLE,
            "payload_kind",
            &id,
        )?,
        payload_message: text("payload_message")?,
        payload_model: row.try_get("payload_model")?,
        tools_allow: tools,
        uses_memory: flag("uses_memory")?,
        shell_output_format: decoded(
            ShellOutputFormat::parse,
            &text("shell_output_format")?,
            TABLE,
            "shell_output_format",
            &id,
        )?,
        delivery: Delivery {
            mode: text("delivery_mode")?,
            channel: row.try_get("delivery_channel")?,
            to: row.try_get("delivery_to")?,
            thread_id: row.try_get("delivery_thread_id")?,
            best_effort: flag("delivery_best_effort")?,
        },
        next_run_at_ms: row.try_get("next_run_at_ms")?,
        last_run_at_ms: row.try_get("last_run_at_ms")?,
        last_run_status: row.try_get("last_run_status")?,
        last_output: row.try_get("last_output")?,
        job_json: text("job_json")?,
        created_at_ms: row.try_get("created_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        policy: read_policy(row, &id)?,
        state: CronState {
            last_occurrence_at_ms: row.try_get("last_occurrence_at_ms")?,
            claim_task_id: row.try_get("claim_task_id")?,
            consecutive_failures: row.try_get("consecutive_failures")?,
            failure_alerted_at_ms: row.try_get("failure_alerted_at_ms")?,
        },
        job_id: id,
    })
}

fn read_policy(row: &SqliteRow, id: &str) -> Result<CronPolicy, StoreError> {
    Ok(CronPolicy {
        stagger_ms: row.try_get("stagger_ms")?,
        catch_up: decoded_opt(
            CatchUp::parse,
            row.try_get("catch_up")?,
            TABLE,
            "catch_up",
            id,
        )?,
        catch_up_window_ms: row.try_get("catch_up_window_ms")?,
        timeout_ms: row.try_get("timeout_ms")?,
        runs_kept: row.try_get("runs_kept")?,
        failure_alert_after: row.try_get("failure_alert_after")?,
        failure_alert_channel: row.try_get("failure_alert_channel")?,
        failure_alert_to: row.try_get("failure_alert_to")?,
        failure_alert_cooldown_ms: row.try_get("failure_alert_cooldown_ms")?,
    })
}

type Bound<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

/// Binds all columns of a job in the order of the statements below.
fn bind<'q>(query: Bound<'q>, job: &'q CronJob) -> Bound<'q> {
    let (expr, tz, tz_origin, every_ms, anchor_ms, at_ms) = match &job.schedule {
        Schedule::Cron {
            expr,
            tz,
            tz_origin,
        } => (Some(expr), tz.as_ref(), *tz_origin, None, None, None),
        Schedule::Every {
            every_ms,
            anchor_ms,
        } => (None, None, None, Some(*every_ms), *anchor_ms, None),
        Schedule::At { at_ms } => (None, None, None, None, None, Some(*at_ms)),
    };
    let tools = job
        .tools_allow
        .as_ref()
        .map(|tools| serde_json::Value::from(tools.clone()).to_string());
    query
        .bind(&job.store_key)
        .bind(&job.job_id)
        .bind(&job.name)
        .bind(job.origin.as_str())
        .bind(job.agent_id.as_ref().map(AgentId::as_str))
        .bind(i64::from(job.enabled))
        .bind(&job.disabled_reason)
        .bind(i64::from(job.delete_after_run))
        .bind(job.schedule.kind())
        .bind(expr)
        .bind(tz)
        .bind(tz_origin.map(TimeZoneOrigin::as_str))
        .bind(every_ms)
        .bind(anchor_ms)
        .bind(at_ms)
        .bind(&job.session_target)
        .bind(job.payload_kind.as_str())
        .bind(&job.payload_message)
        .bind(&job.payload_model)
        .bind(tools)
        .bind(i64::from(job.uses_memory))
        .bind(job.shell_output_format.as_str())
        .bind(&job.delivery.mode)
        .bind(&job.delivery.channel)
        .bind(&job.delivery.to)
        .bind(&job.delivery.thread_id)
        .bind(i64::from(job.delivery.best_effort))
        .bind(job.next_run_at_ms)
        .bind(job.last_run_at_ms)
        .bind(&job.last_run_status)
        .bind(&job.last_output)
        .bind(&job.job_json)
        .bind(job.created_at_ms)
        .bind(job.updated_at_ms)
        .bind(job.policy.stagger_ms)
        .bind(job.state.last_occurrence_at_ms)
        .bind(&job.state.claim_task_id)
        .bind(job.policy.catch_up.map(CatchUp::as_str))
        .bind(job.policy.catch_up_window_ms)
        .bind(job.policy.timeout_ms)
        .bind(job.policy.runs_kept)
        .bind(job.state.consecutive_failures)
        .bind(job.policy.failure_alert_after)
        .bind(&job.policy.failure_alert_channel)
        .bind(&job.policy.failure_alert_to)
        .bind(job.policy.failure_alert_cooldown_ms)
        .bind(job.state.failure_alerted_at_ms)
}

/// Inserts a job; says whether it is new. A job of that key that exists is left as it is.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or the job breaks a rule (an enabled job without agent, say).
pub async fn insert_new(tx: &mut WriteTx<'_>, job: &CronJob) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "INSERT INTO cron_jobs
             (store_key, job_id, name, origin, agent_id, enabled, disabled_reason, delete_after_run,
              schedule_kind, schedule_expr, schedule_tz, schedule_tz_origin, every_ms, anchor_ms, at_ms,
              session_target, payload_kind, payload_message, payload_model, payload_tools_allow_json,
              uses_memory, shell_output_format, delivery_mode, delivery_channel, delivery_to,
              delivery_thread_id, delivery_best_effort, next_run_at_ms, last_run_at_ms, last_run_status,
              last_output, job_json, created_at_ms, updated_at_ms, stagger_ms, last_occurrence_at_ms,
              claim_task_id, catch_up, catch_up_window_ms, timeout_ms, runs_kept, consecutive_failures,
              failure_alert_after, failure_alert_channel, failure_alert_to, failure_alert_cooldown_ms,
              failure_alerted_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
              ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40,
              ?41, ?42, ?43, ?44, ?45, ?46, ?47)
         ON CONFLICT (store_key, job_id) DO NOTHING",
    );
    let done = bind(query, job).execute(&mut **tx).await?;
    Ok(done.rows_affected() > 0)
}

/// Writes all of a job over the one of its key. Says whether there is one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or the job breaks a rule.
pub async fn update(tx: &mut WriteTx<'_>, job: &CronJob) -> Result<bool, StoreError> {
    let query = sqlx::query(
        "UPDATE cron_jobs SET
             name = ?3, origin = ?4, agent_id = ?5, enabled = ?6, disabled_reason = ?7, delete_after_run = ?8,
             schedule_kind = ?9, schedule_expr = ?10, schedule_tz = ?11, schedule_tz_origin = ?12,
             every_ms = ?13, anchor_ms = ?14, at_ms = ?15, session_target = ?16, payload_kind = ?17,
             payload_message = ?18, payload_model = ?19, payload_tools_allow_json = ?20, uses_memory = ?21,
             shell_output_format = ?22, delivery_mode = ?23, delivery_channel = ?24, delivery_to = ?25,
             delivery_thread_id = ?26, delivery_best_effort = ?27, next_run_at_ms = ?28, last_run_at_ms = ?29,
             last_run_status = ?30, last_output = ?31, job_json = ?32, created_at_ms = ?33,
             updated_at_ms = ?34, stagger_ms = ?35, last_occurrence_at_ms = ?36, claim_task_id = ?37,
             catch_up = ?38, catch_up_window_ms = ?39, timeout_ms = ?40, runs_kept = ?41,
             consecutive_failures = ?42, failure_alert_after = ?43, failure_alert_channel = ?44,
             failure_alert_to = ?45, failure_alert_cooldown_ms = ?46, failure_alerted_at_ms = ?47
         WHERE store_key = ?1 AND job_id = ?2",
    );
    let done = bind(query, job).execute(&mut **tx).await?;
    Ok(done.rows_affected() == 1)
}

/// Removes a job. Says whether there was one.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn delete(
    tx: &mut WriteTx<'_>,
    store_key: &str,
    job_id: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query("DELETE FROM cron_jobs WHERE store_key = ?1 AND job_id = ?2")
        .bind(store_key)
        .bind(job_id)
        .execute(&mut **tx)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Jobs that are due and in no run, the longest due first, at most `limit`; none of a retired agent.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn due(
    conn: &mut SqliteConnection,
    now_ms: i64,
    limit: u32,
) -> Result<Vec<CronJob>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM cron_jobs
         WHERE enabled = 1 AND next_run_at_ms IS NOT NULL AND next_run_at_ms <= ?1 AND claim_task_id IS NULL
           AND NOT EXISTS (SELECT 1 FROM agent_databases
                           WHERE agent_databases.agent_id = cron_jobs.agent_id AND status = 'retired')
         ORDER BY next_run_at_ms, job_id LIMIT ?2",
    )
    .bind(now_ms)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}

/// Jobs that are in a run.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn claimed(conn: &mut SqliteConnection) -> Result<Vec<CronJob>, StoreError> {
    let rows = sqlx::query("SELECT * FROM cron_jobs WHERE claim_task_id IS NOT NULL")
        .fetch_all(conn)
        .await?;
    rows.iter().map(read).collect()
}

/// Jobs that are on and in no run, and have no next time, or stand at an occurrence behind `future_ms`.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn unplanned(
    conn: &mut SqliteConnection,
    future_ms: i64,
) -> Result<Vec<CronJob>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM cron_jobs WHERE enabled = 1 AND claim_task_id IS NULL
             AND (next_run_at_ms IS NULL OR last_occurrence_at_ms > ?1)",
    )
    .bind(future_ms)
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}

/// Whether an occurrence has a run, under the key of its run.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn has_run(
    conn: &mut SqliteConnection,
    job_id: &str,
    key: &str,
) -> Result<bool, StoreError> {
    let found: Option<i64> = sqlx::query_scalar(
        "SELECT 1 FROM task_runs WHERE owner_kind = 'cron' AND source_id = ?1 AND idempotency_key = ?2",
    )
    .bind(job_id)
    .bind(key)
    .fetch_optional(conn)
    .await?;
    Ok(found.is_some())
}

/// Ends a run that has not ended; says whether this did it.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn settle(tx: &mut WriteTx<'_>, run: &TaskRun) -> Result<bool, StoreError> {
    let done = sqlx::query(
        "UPDATE task_runs SET status = ?2, status_detail = ?3, ended_at_ms = ?4, duration_ms = ?5, output = ?6, error = ?7
         WHERE task_id = ?1 AND status IN ('pending', 'running', 'waiting')",
    )
    .bind(&run.task_id)
    .bind(run.status.as_str())
    .bind(&run.status_detail)
    .bind(run.ended_at_ms)
    .bind(run.duration_ms)
    .bind(&run.output)
    .bind(&run.error)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes ended runs of a job but for the newest `kept`; gives how many went.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn trim_runs(tx: &mut WriteTx<'_>, job_id: &str, kept: i64) -> Result<u64, StoreError> {
    let done = sqlx::query(
        "DELETE FROM task_runs WHERE owner_kind = 'cron' AND source_id = ?1
             AND status NOT IN ('pending', 'running', 'waiting')
             AND task_id NOT IN (SELECT task_id FROM task_runs WHERE owner_kind = 'cron' AND source_id = ?1
                                 ORDER BY started_at_ms DESC, task_id LIMIT ?2)",
    )
    .bind(job_id)
    .bind(kept)
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected())
}

/// The job of that key.
///
/// # Errors
///
/// [`StoreError`] when the row cannot be read.
pub async fn get(
    conn: &mut SqliteConnection,
    store_key: &str,
    job_id: &str,
) -> Result<Option<CronJob>, StoreError> {
    let row = sqlx::query("SELECT * FROM cron_jobs WHERE store_key = ?1 AND job_id = ?2")
        .bind(store_key)
        .bind(job_id)
        .fetch_optional(conn)
        .await?;
    row.as_ref().map(read).transpose()
}

/// Switches off every job of an agent that is on; gives their ids.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails.
pub async fn disable_of(
    tx: &mut WriteTx<'_>,
    agent: &AgentId,
    reason: &str,
    now_ms: i64,
) -> Result<Vec<String>, StoreError> {
    let jobs = sqlx::query_scalar(
        "UPDATE cron_jobs SET enabled = 0, disabled_reason = ?2, next_run_at_ms = NULL, updated_at_ms = ?3
         WHERE agent_id = ?1 AND enabled = 1
         RETURNING job_id",
    );
    let mut jobs: Vec<String> = jobs
        .bind(agent.as_str())
        .bind(reason)
        .bind(now_ms)
        .fetch_all(&mut **tx)
        .await?;
    jobs.sort();
    Ok(jobs)
}

/// All jobs, or one agent's: what is due first comes first, jobs without a next run last.
///
/// Listing changes nothing.
///
/// # Errors
///
/// [`StoreError`] when a row cannot be read.
pub async fn list(
    conn: &mut SqliteConnection,
    agent: Option<&AgentId>,
) -> Result<Vec<CronJob>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM cron_jobs WHERE ?1 IS NULL OR agent_id = ?1
         ORDER BY enabled DESC, next_run_at_ms IS NULL, next_run_at_ms, store_key, job_id",
    )
    .bind(agent.map(AgentId::as_str))
    .fetch_all(conn)
    .await?;
    rows.iter().map(read).collect()
}
