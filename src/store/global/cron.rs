//! Scheduled jobs: `cron_jobs`.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::db::WriteTx;
use crate::model::{
    AgentId, CronJob, CronOrigin, Delivery, PayloadKind, Schedule, ShellOutputFormat,
    TimeZoneOrigin,
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
        job_id: id,
    })
}

/// Inserts a job; says whether it is new. A job of that key that exists is left as it is.
///
/// # Errors
///
/// [`StoreError`] when SQLite fails, or the job breaks a rule (an enabled job without agent, say).
pub async fn insert_new(tx: &mut WriteTx<'_>, job: &CronJob) -> Result<bool, StoreError> {
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
    let done = sqlx::query(
        "INSERT INTO cron_jobs
             (store_key, job_id, name, origin, agent_id, enabled, disabled_reason, delete_after_run,
              schedule_kind, schedule_expr, schedule_tz, schedule_tz_origin, every_ms, anchor_ms, at_ms,
              session_target, payload_kind, payload_message, payload_model, payload_tools_allow_json,
              uses_memory, shell_output_format, delivery_mode, delivery_channel, delivery_to, delivery_thread_id,
              delivery_best_effort, next_run_at_ms, last_run_at_ms, last_run_status, last_output, job_json,
              created_at_ms, updated_at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
              ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34)
         ON CONFLICT (store_key, job_id) DO NOTHING",
    )
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
    .execute(&mut **tx)
    .await?;
    Ok(done.rows_affected() > 0)
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
