//! A daemon of 200 agents: how long until it answers, and how much memory it has then and after its first round of upkeep.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use zeroclaw::model::{AgentId, Append, AppendEvent, SessionTarget};
use zeroclaw::service::{Clock, HolderKind, Service};

use crate::Scale;
use crate::measure::{Table, median, ms};

/// Upkeep looks through all agents at the start; after so long it is through.
const SETTLED: Duration = Duration::from_secs(8);
/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon, killed when dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) async fn ready(dir: &Path, scale: Scale, table: &mut Table) {
    let root = dir.join("ready");
    let opened = Service::init(&root, Clock::system(), HolderKind::Cli).await;
    let service = opened.unwrap().0;
    for number in 0..scale.agents {
        let agent = AgentId::new(format!("agent-{number}")).unwrap();
        service.add_agent(&agent).await.unwrap();
        let to = SessionTarget::Key("s".to_owned());
        let events = vec![AppendEvent::message("user", "a heron by the harbour")];
        service
            .append(&agent, Append::new(to, events))
            .await
            .unwrap();
    }
    service.close().await;

    let mut times = Vec::new();
    let (mut at_once, mut settled) = (0, 0);
    for round in 0..scale.rounds {
        let (served, took) = start(&root);
        times.push(took);
        at_once = at_once.max(resident(&served));
        if round == 0 {
            std::thread::sleep(SETTLED);
            call(&root, "sessions.search", r#"{"text":"heron"}"#);
            settled = resident(&served);
        }
    }
    let work = format!("daemon ready, {} agents", scale.agents);
    table.ours(&work, &ms(median(times)), "", "<= 150 ms");
    let mib = |kib: u64| format!("{:.1} MiB", kib as f64 / 1_024.0);
    table.ours("  resident when ready", &mib(at_once), "", "<= 60 MB");
    table.ours(
        "  resident after upkeep and a search of all",
        &mib(settled),
        "",
        "<= 60 MB",
    );
}

/// Starts a daemon; gives it and how long it took to its first answer.
fn start(root: &Path) -> (Served, Duration) {
    let since = Instant::now();
    let child = Command::new(env!("CARGO_BIN_EXE_zeroclaw"))
        .args(["daemon", "--config-dir"])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = Served(child);
    while UnixStream::connect(root.join("state/daemon.sock")).is_err() {
        assert!(since.elapsed() < PATIENCE, "the daemon does not serve");
        std::thread::sleep(Duration::from_millis(1));
    }
    call(root, "health", "{}");
    (served, since.elapsed())
}

fn call(root: &Path, method: &str, params: &str) -> String {
    let mut stream = UnixStream::connect(root.join("state/daemon.sock")).unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1}}"#;
    let asked = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{method}","params":{params}}}"#);
    writeln!(stream, "{hello}\n{asked}").unwrap();
    let answer = BufReader::new(stream).lines().nth(1).unwrap().unwrap();
    assert!(answer.contains("\"result\""), "{answer}");
    answer
}

/// Resident memory, KiB.
fn resident(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.0.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse().unwrap()
}
