//! Scheduled jobs.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// Who owns a job's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CronOrigin {
    /// Its row.
    Runtime,
    /// The configuration file.
    Config,
}

text_enum!(CronOrigin { Runtime => "runtime", Config => "config" });

/// Where a schedule's time zone comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeZoneOrigin {
    /// Stated by the job.
    Job,
    /// Recorded from the host, because the job stated none.
    Host,
}

text_enum!(TimeZoneOrigin { Job => "job", Host => "host" });

/// When a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// By a cron expression in a time zone.
    Cron {
        /// 5, 6 or 7 fields, as written.
        expr: String,
        /// IANA name; `None` where neither job nor host named one.
        tz: Option<String>,
        /// Who named the zone.
        tz_origin: Option<TimeZoneOrigin>,
    },
    /// At a fixed distance.
    Every {
        /// Distance, milliseconds, positive.
        every_ms: i64,
        /// Instant the distances are counted from.
        anchor_ms: Option<i64>,
    },
    /// Once.
    At {
        /// The instant, Unix milliseconds.
        at_ms: i64,
    },
}

impl Schedule {
    /// The form of the `schedule_kind` column.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cron { .. } => "cron",
            Self::Every { .. } => "every",
            Self::At { .. } => "at",
        }
    }
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadKind {
    /// Runs a shell command.
    Shell,
    /// Gives its agent a prompt.
    AgentTurn,
    /// Tells its agent's session something.
    SystemEvent,
}

text_enum!(PayloadKind { Shell => "shell", AgentTurn => "agent_turn", SystemEvent => "system_event" });

/// How a shell job's output is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellOutputFormat {
    /// With a frame that says what ran.
    #[default]
    Wrapped,
    /// As it came.
    Raw,
}

text_enum!(ShellOutputFormat { Wrapped => "wrapped", Raw => "raw" });

/// Where a job's result goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// `none`, `announce` or the writer's own.
    pub mode: String,
    /// Channel reference.
    pub channel: Option<String>,
    /// Target on that channel.
    pub to: Option<String>,
    /// Thread within the target.
    pub thread_id: Option<String>,
    /// Whether a failed delivery leaves the run succeeded.
    pub best_effort: bool,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            mode: "none".to_owned(),
            channel: None,
            to: None,
            thread_id: None,
            best_effort: true,
        }
    }
}

/// A scheduled job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CronJob {
    /// Which set of jobs it belongs to.
    pub store_key: String,
    /// Identity within that set.
    pub job_id: String,
    /// Name for people.
    pub name: String,
    /// Who owns its definition.
    pub origin: CronOrigin,
    /// Who runs it; `None` only while disabled.
    pub agent_id: Option<AgentId>,
    /// Whether it runs.
    pub enabled: bool,
    /// Why it is off although nobody switched it off.
    pub disabled_reason: Option<String>,
    /// Whether it goes after a successful run.
    pub delete_after_run: bool,
    /// When it runs.
    pub schedule: Schedule,
    /// `main`, `isolated` or another target.
    pub session_target: String,
    /// What it does.
    pub payload_kind: PayloadKind,
    /// Command or prompt.
    pub payload_message: String,
    /// Model, where the job names one.
    pub payload_model: Option<String>,
    /// Tools allowed; `None` for no restriction.
    pub tools_allow: Option<Vec<String>>,
    /// Whether the agent may use its memories.
    pub uses_memory: bool,
    /// How output is handed on.
    pub shell_output_format: ShellOutputFormat,
    /// Where the result goes.
    pub delivery: Delivery,
    /// Next run; `None` when none is planned.
    pub next_run_at_ms: Option<i64>,
    /// Last run.
    pub last_run_at_ms: Option<i64>,
    /// Outcome of the last run, in its writer's word.
    pub last_run_status: Option<String>,
    /// Output of the last run, bounded.
    pub last_output: Option<String>,
    /// The definition as it came in.
    pub job_json: String,
    /// When it was made.
    pub created_at_ms: i64,
    /// When it last changed.
    pub updated_at_ms: i64,
}
