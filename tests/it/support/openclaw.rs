//! Builds homes as OpenClaw left them: lines and indexes from a few words each.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::legacy::LegacyInstall;

/// 2026-01-05T10:00:00Z, Unix milliseconds.
pub(crate) const NOON: i64 = 1_767_607_200_000;

/// `tests/fixtures/legacy/openclaw/sample`.
pub(crate) fn sample_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/legacy/openclaw/sample")
}

/// The header of a transcript.
pub(crate) fn header(id: &str, version: i64) -> Value {
    json!({"type": "session", "version": version, "id": id, "timestamp": stamp(0), "cwd": "/home/demo"})
}

/// A message of version 2 or 3.
pub(crate) fn said(id: &str, parent: Option<&str>, role: &str, text: &str) -> Value {
    json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": stamp(60),
        "message": {"role": role, "content": [{"type": "text", "text": text}], "timestamp": NOON + 60_000},
    })
}

/// A message of version 1: no ids.
pub(crate) fn said_v1(role: &str, text: &str) -> Value {
    json!({"type": "message", "timestamp": stamp(60), "message": {"role": role, "content": text}})
}

/// A time some seconds after [`NOON`], as text.
pub(crate) fn stamp(seconds: u32) -> String {
    format!("2026-01-05T10:{:02}:{:02}.000Z", seconds / 60, seconds % 60)
}

/// Records as lines.
pub(crate) fn lines(records: &[Value]) -> Vec<u8> {
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    lines.concat().into_bytes()
}

/// A transcript of some messages, user and assistant in turn, each after the one before.
pub(crate) fn talk(id: &str, texts: &[&str]) -> Vec<u8> {
    let mut records = vec![header(id, 3)];
    let mut parent: Option<String> = None;
    for (at, text) in texts.iter().enumerate() {
        let role = ["user", "assistant"][at % 2];
        let own = format!("{at:08x}");
        records.push(said(&own, parent.as_deref(), role, text));
        parent = Some(own);
    }
    lines(&records)
}

/// An entry of an index.
pub(crate) fn entry(id: &str, updated: i64) -> Value {
    json!({"sessionId": id, "updatedAt": NOON + updated})
}

/// A home with nothing but a configuration of one agent.
pub(crate) fn home(dir: impl Into<PathBuf>) -> LegacyInstall {
    let install = LegacyInstall::new(dir);
    install.file(
        "openclaw.json",
        br#"{"agents": {"list": [{"id": "main"}]}}"#,
    );
    install
}

/// Writes an agent's index.
pub(crate) fn index(home: &LegacyInstall, agent: &str, entries: &Value) {
    let text = serde_json::to_vec_pretty(entries).unwrap();
    home.file(format!("agents/{agent}/sessions/sessions.json"), &text);
}

/// Writes a transcript.
pub(crate) fn transcript(home: &LegacyInstall, agent: &str, name: &str, bytes: &[u8]) {
    home.file(format!("agents/{agent}/sessions/{name}"), bytes);
}

/// Builds the sample home: every surface that comes in, once, with its edge rows.
pub(crate) fn build_sample(dir: &Path) -> LegacyInstall {
    let install = LegacyInstall::new(dir.join("sample"));
    let config = json!({
        "agents": {"list": [{"id": "main", "default": true}, {"id": "Work Bot", "workspace": "~/.openclaw/workspace-work"}]},
        "bindings": [{"agentId": "Work Bot", "match": {"channel": "telegram", "accountId": "work"}}],
        "session": {"dmScope": "per-channel-peer"},
    });
    install.file(
        "openclaw.json",
        format!("// edited by hand\n{config:#}\n").as_bytes(),
    );
    sample_sessions(&install);
    install.file("update-check.json", b"{}");
    install.file(
        "agents/main/agent/auth-profiles.json",
        b"{\"version\":1,\"profiles\":{}}",
    );
    install.file("workspace/AGENTS.md", b"# Agents\n");
    install
}

fn sample_sessions(install: &LegacyInstall) {
    let mut topic = entry("5e550001-topic", 3_000);
    topic["deliveryContext"] =
        json!({"channel": "telegram", "to": "telegram:-100", "accountId": "work", "threadId": 1});
    topic["sessionFile"] =
        json!("/Users/bob/.clawdbot/agents/main/sessions/5e550001-topic-topic-1.jsonl");
    topic["status"] = json!("running");
    topic["skillsSnapshot"] = json!({"prompt": "long", "skills": []});
    index(
        install,
        "main",
        &json!({
            "agent:main:main": entry("5e550000-main", 5_000),
            "agent:main:telegram:group:-100:topic:1": topic,
            "agent:main:cron:job": entry("5e550002-cron", 4_000),
            "agent:main:cron:job:run:5e550002-cron": entry("5e550002-cron", 4_000),
            "agent:main:gone": {"sessionId": "5e550003-gone", "updatedAt": 7, "sessionFile": "5e550003-gone.jsonl"},
        }),
    );
    transcript(
        install,
        "main",
        "5e550000-main.jsonl",
        &talk(
            "5e550000-main",
            &[
                "plan the garden",
                "with marigolds",
                "and what else",
                "a heptagonal pond",
            ],
        ),
    );
    transcript(
        install,
        "main",
        "5e550001-topic-topic-1.jsonl",
        &talk("5e550001-topic", &["in a topic", "yes"]),
    );
    transcript(
        install,
        "main",
        "5e550002-cron.jsonl",
        &talk("5e550002-cron", &["morning", "brief"]),
    );
    transcript(
        install,
        "main",
        "5e550004-lost.jsonl",
        &talk(
            "5e550004-lost",
            &["nobody points here", "and yet it is found"],
        ),
    );
    transcript(
        install,
        "main",
        "5e550005-old.jsonl.reset.2026-01-04T09-30-00.000Z",
        &talk("5e550005-old", &["before the reset", "noted"]),
    );
    transcript(
        install,
        "main",
        "5e550000-main.trajectory.jsonl",
        b"{\"traceSchema\":\"openclaw-trajectory\"}\n",
    );
    index(
        install,
        "Work Bot",
        &json!({"main": entry("5e550006-work", 1_000)}),
    );
    let old = lines(&[
        header("5e550006-work", 1),
        said_v1("user", "from the first version"),
        said_v1("hookMessage", "hooked"),
    ]);
    transcript(install, "Work Bot", "5e550006-work.jsonl", &old);
    let direct = entry("5e550007-direct", 2_000);
    install.file(
        "sessions/sessions.json",
        json!({"+15550100": direct}).to_string().as_bytes(),
    );
    install.file(
        "sessions/5e550007-direct.jsonl",
        &talk("5e550007-direct", &["from the oldest layout"]),
    );
}
