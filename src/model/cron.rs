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

/// The set of jobs that this release makes and reconciles.
pub const CRON_STORE: &str = "default";

/// What happens to occurrences that nobody ran when they were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are passed over, with a record.
    Skip,
    /// The last of them runs, the others are passed over with a record.
    Once,
    /// Each runs, in order.
    All,
}

text_enum!(CatchUp { Skip => "skip", Once => "once", All => "all" });

/// How a job is run; `None` is what the configuration, or this release, does by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CronPolicy {
    /// Widest delay of a run, milliseconds; each job has its own place in it, always the same.
    pub stagger_ms: Option<i64>,
    /// What happens to missed occurrences.
    pub catch_up: Option<CatchUp>,
    /// How old a missed occurrence may be to run, milliseconds.
    pub catch_up_window_ms: Option<i64>,
    /// Longest run of a command, milliseconds.
    pub timeout_ms: Option<i64>,
    /// Runs kept; 0 keeps all.
    pub runs_kept: Option<i64>,
    /// Failures in a row from which on somebody is told.
    pub failure_alert_after: Option<i64>,
    /// Channel they are told on; `None` where the job's own delivery is meant.
    pub failure_alert_channel: Option<String>,
    /// Target on that channel.
    pub failure_alert_to: Option<String>,
    /// Shortest time between two alerts, milliseconds.
    pub failure_alert_cooldown_ms: Option<i64>,
}

/// Where a job stands; kept by the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CronState {
    /// Up to which occurrence it was run or passed over.
    pub last_occurrence_at_ms: Option<i64>,
    /// The run it is in.
    pub claim_task_id: Option<String>,
    /// Failures in a row.
    pub consecutive_failures: i64,
    /// When somebody was last told of them.
    pub failure_alerted_at_ms: Option<i64>,
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
    /// How it is run.
    #[serde(flatten)]
    pub policy: CronPolicy,
    /// Where it stands.
    #[serde(flatten)]
    pub state: CronState,
}
