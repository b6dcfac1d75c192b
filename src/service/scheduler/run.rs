//! One run of a command, from its row to its end.

use std::future::Future;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::shell::{self, Ending, Shell};
use super::{Ended, Scheduler};
use crate::fs::atomic;
use crate::model::{CronJob, TaskRun, TaskStatus};
use crate::service::worker::workspace_of;

/// Longest run of a command that names no bound.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);

impl Scheduler {
    /// Runs a command that was taken; the rows are left to who waits for it.
    pub(super) fn run_of(
        &self,
        job: CronJob,
        task: TaskRun,
    ) -> impl Future<Output = Ended> + Send + use<> {
        let folder = job
            .agent_id
            .as_ref()
            .map(|agent| workspace_of(&self.layout, &self.config, agent));
        let root = self.layout.root().display().to_string();
        let clock = self.clock.clone();
        async move {
            let since = Instant::now();
            let ran = match folder {
                Some(folder) => in_folder(&job, &task, folder, root).await,
                None => failed("no agent runs it"),
            };
            let mut task = task;
            task.output = ran.output;
            (task.status, task.status_detail, task.error) = match ran.ending {
                Ending::Succeeded => (TaskStatus::Succeeded, Some("ok".to_owned()), None),
                Ending::Failed(why) => (TaskStatus::Failed, Some("error".to_owned()), Some(why)),
                Ending::TimedOut(why) => {
                    (TaskStatus::TimedOut, Some("timeout".to_owned()), Some(why))
                }
            };
            task.ended_at_ms = Some(clock.now_ms());
            // By the clock that nobody sets.
            task.duration_ms = i64::try_from(since.elapsed().as_millis()).ok();
            Ended {
                store_key: job.store_key,
                job_id: job.job_id,
                task,
            }
        }
    }
}

fn failed(why: impl Into<String>) -> shell::ShellRun {
    shell::ShellRun {
        ending: Ending::Failed(why.into()),
        output: None,
    }
}

async fn in_folder(
    job: &CronJob,
    task: &TaskRun,
    folder: PathBuf,
    root: String,
) -> shell::ShellRun {
    if !folder.is_dir()
        && let Err(error) = atomic::create_dir_private(&folder)
    {
        return failed(format!("no workspace: {error}"));
    }
    let timeout = job
        .policy
        .timeout_ms
        .and_then(|ms| u64::try_from(ms).ok())
        .map_or(TIMEOUT, Duration::from_millis);
    let mut variables = vec![
        ("ZEROCLAW_CONFIG_DIR", root),
        ("ZEROCLAW_CRON_JOB", job.job_id.clone()),
        ("ZEROCLAW_CRON_RUN", task.task_id.clone()),
    ];
    if let Some(agent) = &job.agent_id {
        variables.push(("ZEROCLAW_AGENT", agent.to_string()));
    }
    if let Some(last) = job.state.last_occurrence_at_ms
        && task.origin.idempotency_key.is_some()
    {
        variables.push(("ZEROCLAW_CRON_OCCURRENCE_MS", last.to_string()));
    }
    shell::run(Shell {
        line: job.payload_message.clone(),
        folder,
        timeout,
        format: job.shell_output_format,
        variables,
    })
    .await
}
