//! Runs one command: in a group of its own, for a bounded time, with bounded output and a small environment.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::model::ShellOutputFormat;

/// Most bytes kept of each of the two outputs: half from the beginning, half from the end.
const MAX_STREAM_BYTES: usize = 32 * 1024;

/// What is handed on of the environment. Nothing else is, so that no credential of the scheduler reaches a command.
const ENVIRONMENT: [&str; 9] = [
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR",
];

/// What is searched for programs where the scheduler itself has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How long output is waited for once the command has ended and something it left behind holds it open.
const DRAIN: Duration = Duration::from_millis(500);

/// A command to run.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    pub(super) line: String,
    pub(super) folder: PathBuf,
    pub(super) timeout: Duration,
    pub(super) format: ShellOutputFormat,
    /// What it is told beside [`ENVIRONMENT`].
    pub(super) variables: Vec<(&'static str, String)>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Succeeded,
    Failed(String),
    TimedOut(String),
}

/// How a command ended, and what it said.
#[derive(Clone, Debug)]
pub(super) struct ShellRun {
    pub(super) ending: Ending,
    pub(super) output: Option<String>,
}

/// Beginning and end of a text of any length.
#[derive(Debug, Default)]
struct Bounded {
    head: Vec<u8>,
    tail: Vec<u8>,
    cut: usize,
}

impl Bounded {
    fn push(&mut self, mut bytes: &[u8]) {
        let half = MAX_STREAM_BYTES / 2;
        let room = half - self.head.len();
        let taken = room.min(bytes.len());
        self.head.extend_from_slice(&bytes[..taken]);
        bytes = &bytes[taken..];
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > half {
            let over = self.tail.len() - half;
            self.tail.drain(..over);
            self.cut += over;
        }
    }

    /// As text, with a mark where something is missing.
    fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&self.tail);
        if self.cut == 0 {
            let whole = [&*self.head, &*self.tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        format!("{head}\n… {} bytes left out …\n{tail}", self.cut)
    }
}

async fn drain(mut from: impl AsyncRead + Unpin, into: &mut Bounded) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(read) = from.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        into.push(&buffer[..read]);
    }
}

/// Ends everything a command has started when it is dropped before the command ended by itself.
struct Group(Option<Pid>);

impl Group {
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // It may have ended meanwhile.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command to its end, or to its time.
pub(super) async fn run(shell: Shell) -> ShellRun {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &shell.line])
        .current_dir(&shell.folder)
        .env_clear()
        .env("PATH", USUAL_PATH)
        .envs(
            ENVIRONMENT
                .iter()
                .filter_map(|name| Some((*name, std::env::var_os(name)?))),
        )
        .envs(shell.variables.iter().map(|(name, value)| (*name, value)))
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let folder = shell.folder.display();
            return ShellRun {
                ending: Ending::Failed(format!("cannot start in {folder}: {error}")),
                output: None,
            };
        }
    };
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = Group(id.and_then(Pid::from_raw));
    let (mut stdout, mut stderr) = (Bounded::default(), Bounded::default());
    let status = {
        let pipes = (child.stdout.take(), child.stderr.take());
        let reading = async {
            let (Some(out), Some(err)) = pipes else {
                return;
            };
            tokio::join!(drain(out, &mut stdout), drain(err, &mut stderr));
        };
        tokio::pin!(reading);
        let mut is_read = false;
        let limit = tokio::time::sleep(shell.timeout);
        tokio::pin!(limit);
        let status = loop {
            tokio::select! {
                status = child.wait() => break Some(status),
                () = &mut reading, if !is_read => is_read = true,
                () = &mut limit => break None,
            }
        };
        if status.is_none() {
            group.kill();
            let _ = child.wait().await;
        }
        if !is_read {
            let _ = tokio::time::timeout(DRAIN, &mut reading).await;
        }
        status
    };
    // It ended by itself: what it left running on purpose may run on.
    group.0 = None;
    let status = match status {
        Some(Ok(status)) => Some(status),
        Some(Err(error)) => {
            return ShellRun {
                ending: Ending::Failed(format!("cannot be waited for: {error}")),
                output: None,
            };
        }
        None => None,
    };
    let (stdout, stderr) = (stdout.text(), stderr.text());
    ShellRun {
        ending: ending(status, &stderr, shell.timeout),
        output: Some(framed(shell.format, status, stdout, &stderr)),
    }
}

fn ending(status: Option<ExitStatus>, stderr: &str, timeout: Duration) -> Ending {
    match status {
        None => Ending::TimedOut(format!("took longer than {} s", timeout.as_secs_f64())),
        Some(status) if status.success() => Ending::Succeeded,
        Some(status) => {
            let last = stderr.trim_end().lines().next_back().unwrap_or_default();
            let last: String = last.chars().take(500).collect();
            Ending::Failed(match last.is_empty() {
                true => status.to_string(),
                false => format!("{status}: {last}"),
            })
        }
    }
}

fn framed(
    format: ShellOutputFormat,
    status: Option<ExitStatus>,
    stdout: String,
    stderr: &str,
) -> String {
    match format {
        ShellOutputFormat::Raw => stdout,
        ShellOutputFormat::Wrapped => {
            let status = status.map_or_else(|| "timed out".to_owned(), |status| status.to_string());
            let (out, err) = (stdout.trim_end(), stderr.trim_end());
            format!("status={status}\nstdout:\n{out}\nstderr:\n{err}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(line: &str) -> Shell {
        Shell {
            line: line.to_owned(),
            folder: std::env::temp_dir(),
            timeout: Duration::from_secs(20),
            format: ShellOutputFormat::Raw,
            variables: vec![("ZEROCLAW_CRON_JOB", "j".to_owned())],
        }
    }

    #[tokio::test]
    async fn output_and_status_are_kept_apart() {
        let good = run(shell("echo out; echo err >&2")).await;
        let bad = run(shell("echo out; echo why >&2; exit 3")).await;

        assert_eq!(good.ending, Ending::Succeeded);
        assert_eq!(good.output.as_deref(), Some("out\n"));
        assert_eq!(bad.ending, Ending::Failed("exit status: 3: why".to_owned()));
        let framed = run(Shell {
            format: ShellOutputFormat::Wrapped,
            ..shell("echo a; echo b >&2")
        });
        let framed = framed.await.output.unwrap();
        assert_eq!(framed, "status=exit status: 0\nstdout:\na\nstderr:\nb");
    }

    #[tokio::test]
    async fn the_environment_holds_what_is_listed_and_no_more() {
        let told = run(shell("env")).await.output.unwrap();

        for line in told.lines() {
            let name = line.split('=').next().unwrap();
            let own = ["ZEROCLAW_CRON_JOB", "PWD", "SHLVL", "OLDPWD", "_"];
            let is_known = ENVIRONMENT.contains(&name) || own.contains(&name);
            assert!(is_known, "{line}");
        }
        assert!(told.contains("ZEROCLAW_CRON_JOB=j"));
    }

    #[tokio::test]
    async fn a_time_out_ends_the_children_too() {
        let dir = tempfile::tempdir().unwrap();
        let since = Instant::now();

        let ran = run(Shell {
            folder: dir.path().to_owned(),
            timeout: Duration::from_millis(300),
            ..shell("(sleep 2; touch late) & echo began; sleep 30")
        });
        let ran = ran.await;

        assert!(since.elapsed() < Duration::from_secs(10));
        assert!(matches!(ran.ending, Ending::TimedOut(_)), "{ran:?}");
        assert_eq!(ran.output.as_deref(), Some("began\n"));
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        assert!(!dir.path().join("late").exists());
    }

    #[tokio::test]
    async fn what_it_leaves_running_does_not_hold_the_run() {
        let since = Instant::now();

        let ran = run(shell("sleep 20 & echo done")).await;

        assert!(since.elapsed() < Duration::from_secs(10));
        assert_eq!(ran.ending, Ending::Succeeded);
        assert_eq!(ran.output.as_deref(), Some("done\n"));
    }

    #[tokio::test]
    async fn long_output_keeps_both_ends_and_says_so() {
        let ran = run(shell("echo first; yes | head -c 200000; echo last")).await;

        let output = ran.output.unwrap();
        assert!(output.starts_with("first\n"));
        assert!(output.ends_with("last\n"));
        assert!(output.contains("bytes left out"));
        assert!(output.len() < MAX_STREAM_BYTES + 100);
    }
}
