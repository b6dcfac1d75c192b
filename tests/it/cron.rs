//! Scheduled jobs: when they are due, and that each time they are they run once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{change, rows};

mod clock;
mod commands;
mod declared;
mod life;
mod race;
mod zones;

const HOUR_MS: i64 = 60 * 60 * 1_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// A root with the agent `atlas`, and commits that a kill of the process does not lose.
fn home() -> Sandbox {
    let home = Sandbox::in_memory();
    home.zeroclaw(&["init"]).exits(0);
    home.zeroclaw(&["agents", "create", "atlas"]).exits(0);
    config(&home, "");
    home
}

/// Writes a configuration with `more` behind what every test has.
fn config(home: &Sandbox, more: &str) {
    let text = format!(
        "schema_version = 3\n[state]\ndurability = \"normal\"\n[agents.atlas]\n[scheduler]\nmax_concurrent = 8\n\
         timezone = \"UTC\"\n{more}"
    );
    std::fs::write(home.root().join("config.toml"), text).unwrap();
}

fn global(home: &Sandbox) -> PathBuf {
    home.root().join("state/state.sqlite")
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A shell job as SQL: its schedule, policy and next time as columns and values.
fn plant(home: &Sandbox, id: &str, command: &str, more: &[(&str, String)]) {
    let columns: String = more.iter().map(|(name, _)| format!(", {name}")).collect();
    let values: String = more.iter().map(|(_, value)| format!(", {value}")).collect();
    let command = command.replace('\'', "''");
    change(
        &global(home),
        &format!(
            "INSERT INTO cron_jobs (store_key, job_id, name, origin, agent_id, enabled, session_target, payload_kind,
                 payload_message, job_json, created_at_ms, updated_at_ms{columns})
             VALUES ('default', '{id}', '{id}', 'runtime', 'atlas', 1, 'isolated', 'shell', '{command}', '{{}}', 0, 0{values});"
        ),
    );
}

fn at(at_ms: i64) -> Vec<(&'static str, String)> {
    vec![
        ("schedule_kind", "'at'".to_owned()),
        ("at_ms", at_ms.to_string()),
        ("next_run_at_ms", at_ms.to_string()),
    ]
}

fn every(every_ms: i64, next_ms: i64) -> Vec<(&'static str, String)> {
    vec![
        ("schedule_kind", "'every'".to_owned()),
        ("every_ms", every_ms.to_string()),
        ("anchor_ms", next_ms.to_string()),
        ("next_run_at_ms", next_ms.to_string()),
        ("catch_up", "'all'".to_owned()),
        ("runs_kept", "0".to_owned()),
    ]
}

/// A command that leaves a line with its job and occurrence in a file.
fn witness(file: &Path) -> String {
    let file = file.display();
    format!("echo \"$ZEROCLAW_CRON_JOB $ZEROCLAW_CRON_OCCURRENCE_MS\" >> '{file}'")
}

/// The lines of a witness and how often each is there.
fn seen(file: &Path) -> BTreeMap<String, usize> {
    let mut seen = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        *seen.entry(line.to_owned()).or_default() += 1;
    }
    seen
}

/// Job, occurrence and status of each run of an occurrence.
fn runs(home: &Sandbox) -> Vec<(String, String)> {
    let found = rows(
        &global(home),
        "SELECT source_id || ' ' || substr(idempotency_key, instr(idempotency_key, '@') + 1), status FROM task_runs
         WHERE owner_kind = 'cron' AND idempotency_key IS NOT NULL ORDER BY 1",
    );
    let pairs = found
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()));
    pairs.collect()
}
