//! Each schema that a release left behind, with a few rows that show what is special about it.
//!
//! Releases before 0.8 lie in the old layout under `workspace/`, where one implicit agent owned everything: `default`.

use std::path::Path;

use super::{AGENT_ROWS, ATLAS, BIRCH, CONFIG, Case, DEFAULT, NamedCase, OLD_CONFIG, install};
use crate::support::expect::Expected;
use crate::support::rows::{chat, job, memory, owned_memory, run, turns};

const OLD_SESSIONS: &str = "workspace/sessions/sessions.db";
const OLD_JOBS: &str = "workspace/cron/jobs.db";
const OLD_BRAIN: &str = "workspace/memory/brain.db";
const AT: &str = "2025-11-01T09:00:00.500+01:00";

/// The historic shapes of `sessions.db`.
pub(crate) fn sessions_variants() -> Vec<NamedCase> {
    vec![
        ("sessions_v0_4_3", |dir| {
            old_sessions(dir, "sessions_v0_4_3.sql", "")
        }),
        ("sessions_v0_5_9", |dir| {
            old_sessions(
                dir,
                "sessions_v0_5_9.sql",
                "UPDATE session_metadata SET name = 'Лампа 💡' WHERE session_key = 'gw_first';",
            )
        }),
        ("sessions_v0_6_5", |dir| {
            old_sessions(
                dir,
                "sessions_v0_6_5.sql",
                "UPDATE session_metadata SET state = 'running', turn_id = 'turn-7', turn_started_at = '2026-02-01T08:02:00+00:00'
                 WHERE session_key = 'gw_first';",
            )
        }),
        ("sessions_v0_8", sessions_v0_8),
    ]
}

/// Three sessions, one under a key of before the keys were cleaned, one without rows, and rows without metadata.
///
/// One message was edited in place while no trigger kept the index: it still has the word `stale`.
fn old_sessions(dir: &Path, ddl: &str, special: &str) -> Case {
    let install = install(dir, OLD_CONFIG);
    install.sqlite(
        OLD_SESSIONS,
        ddl,
        &[
            &chat("gw_first", "2026-02-01", &turns("first", 3)),
            &chat("telegram_chat:5@lamp", "2026-02-02", &turns("stale", 2)),
            &chat("gw_empty", "2026-02-03", &[]),
            &chat("telegram_6_bare", "2026-02-04", &turns("bare", 3)),
            "DELETE FROM session_metadata WHERE session_key = 'telegram_6_bare';
             UPDATE sessions SET content = 'fresh 2' WHERE content = 'stale 2';",
            special,
        ],
    );

    let mut expected = Expected::default()
        .session("default", "gw_first", 3)
        .session("default", "telegram_chat:5@lamp", 2)
        .session("default", "gw_empty", 0)
        .session("default", "telegram_6_bare", 3);
    expected.found = vec![("default", "fresh", 1), ("default", "stale", 1)];
    (install, expected)
}

/// The current shape: owners by alias, by channel, by key, and one alias that no config knows.
fn sessions_v0_8(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    install.sqlite(
        "data/sessions/sessions.db",
        "sessions_v0_8.sql",
        &[
            &chat("gw_alias", "2026-08-01", &turns("alias", 2)),
            &chat("room", "2026-08-02", &turns("channel", 2)),
            &chat("telegram_main_3_key", "2026-08-03", &turns("key", 2)),
            &chat("gw_gone", "2026-08-04", &turns("gone", 2)),
            "UPDATE session_metadata SET agent_alias = 'birch' WHERE session_key = 'gw_alias';
             UPDATE session_metadata SET channel_id = 'telegram.main', room_id = '2' WHERE session_key = 'room';
             UPDATE session_metadata SET agent_alias = 'cinder' WHERE session_key = 'gw_gone';",
        ],
    );

    let expected = Expected::default()
        .session("birch", "gw_alias", 2)
        .session("atlas", "room", 2)
        .session("atlas", "telegram_main_3_key", 2)
        .session("cinder", "gw_gone", 2);
    (install, expected)
}

/// The historic shapes of `jobs.db`.
///
/// In the old layout nothing names an owner: the one agent is `default`, and whether its jobs may fire again is the
/// importer's to decide and say.
pub(crate) fn cron_variants() -> Vec<NamedCase> {
    vec![
        ("cron_v0_1", cron_v0_1),
        ("cron_v0_1_2", cron_v0_1_2),
        ("cron_v0_8_4", cron_v0_8_4),
    ]
}

fn cron_v0_1(dir: &Path) -> Case {
    let install = install(dir, OLD_CONFIG);
    install.sqlite(
        OLD_JOBS,
        "cron_v0_1.sql",
        &[
            &job("one", "*/5 * * * *", "echo one"),
            &job("two", "0 0 7 * * 2", "echo seconds first"),
            &job("three", "0 9 * * 0", "echo sunday"),
            "UPDATE cron_jobs SET last_run = '2026-02-01T09:00:00+00:00', last_status = 'ok', last_output = 'one' WHERE id = 'one';",
        ],
    );

    let expected = ["one", "two", "three"]
        .into_iter()
        .fold(Expected::default(), |expected, id| {
            expected.job(id, Some("default"), None)
        });
    (install, expected)
}

fn cron_v0_1_2(dir: &Path) -> Case {
    let install = install(dir, OLD_CONFIG);
    install.sqlite(
        OLD_JOBS,
        "cron_v0_1_2.sql",
        &[
            &job("plain", "0 9 * * *", "echo plain"),
            &job("every", "", "echo every"),
            &job("once", "", "echo once"),
            &job("ask", "0 10 * * 7", ""),
            r#"UPDATE cron_jobs SET schedule = '{"kind":"every","every_ms":60000}' WHERE id = 'every';
               UPDATE cron_jobs SET schedule = '{"kind":"at","at":"2035-01-01T09:00:00Z"}', delete_after_run = 1 WHERE id = 'once';
               UPDATE cron_jobs SET job_type = 'Agent', prompt = 'Say it', session_target = 'MAIN', enabled = 0, schedule = '  ' WHERE id = 'ask';"#,
            &run("plain", "2026-02-01", 0, "ok"),
            &run("plain", "2026-02-02", 0, "error"),
            &run("every", "2026-02-02", 1, "ok"),
        ],
    );

    let mut expected = ["plain", "every", "once"]
        .into_iter()
        .fold(Expected::default(), |expected, id| {
            expected.job(id, Some("default"), None)
        })
        .job("ask", Some("default"), Some(false));
    expected.runs = 3;
    (install, expected)
}

/// The current shape: a claimed job, one whose output form is a BLOB, one without owner, one of an unknown agent, one
/// whose source is NULL, and a run of a job that is gone.
fn cron_v0_8_4(dir: &Path) -> Case {
    let install = install(dir, CONFIG);
    install.sqlite(
        "data/cron/jobs.db",
        "cron_v0_8_4.sql",
        &[
            &job("claimed", "0 9 * * *", "echo claimed"),
            &job("garbled", "0 10 * * *", "echo garbled"),
            &job("unowned", "0 11 * * *", "echo unowned"),
            &job("gone", "0 12 * * *", "echo gone"),
            &job("nosource", "0 13 * * *", "echo nosource"),
            "UPDATE cron_jobs SET agent_alias = 'atlas', locked_at = '2026-09-01T09:00:00+00:00' WHERE id = 'claimed';
             UPDATE cron_jobs SET agent_alias = 'birch', shell_output_format = X'00ff' WHERE id = 'garbled';
             UPDATE cron_jobs SET agent_alias = 'cinder' WHERE id = 'gone';
             UPDATE cron_jobs SET agent_alias = 'atlas', source = NULL WHERE id = 'nosource';",
            &run("claimed", "2026-09-01", 0, "ok"),
            &run("garbled", "2026-09-01", 1, "degraded"),
            &run("vanished", "2026-09-01", 2, "error"),
        ],
    );

    let mut expected = Expected::default()
        .job("claimed", Some("atlas"), Some(true))
        .job("garbled", Some("birch"), Some(true))
        .job("unowned", None, Some(false))
        .job("gone", Some("cinder"), Some(false))
        .job("nosource", Some("atlas"), Some(true));
    expected.runs = 3;
    (install, expected)
}

/// The historic shapes of `brain.db`.
pub(crate) fn brain_variants() -> Vec<NamedCase> {
    vec![
        ("brain_v0_1", |dir| old_brain(dir, "brain_v0_1.sql", "")),
        ("brain_v0_1_2", |dir| {
            old_brain(dir, "brain_v0_1_2.sql", VECTORS)
        }),
        ("brain_v0_5_7", |dir| {
            let (install, mut expected) = old_brain(
                dir,
                "brain_v0_5_7.sql",
                "UPDATE memories SET superseded_by = 'm2', importance = NULL WHERE key = 'm1';
                 UPDATE memories SET namespace = 'ops', importance = 0.9 WHERE key = 'm3';
                 UPDATE memories SET superseded_by = 'was purged' WHERE key = 'm4';",
            );
            // What was superseded comes in, and stays superseded: a search shows what holds.
            expected.found = vec![("default", "fern", 2)];
            (install, expected)
        }),
        ("brain_v0_8_0", |dir| {
            owned_brain(dir, "brain_v0_8_0.sql", "")
        }),
        ("brain_v0_8_3", |dir| {
            owned_brain(
                dir,
                "brain_v0_8_3.sql",
                "UPDATE memories SET pinned = 1, kind = '{\"semantic\":\"fact\"}' WHERE id = 'id-a1';
                 UPDATE memories SET kind = 'not json', tenant_id = 'grove' WHERE id = 'id-b1';
                 INSERT INTO memory_meta VALUES ('embedding_model', 'words-2');",
            )
        }),
        ("brain_hydrated", brain_hydrated),
    ]
}

/// Two numbers, seven bytes (no vector: not divisible by four), none, and none.
const VECTORS: &str = "UPDATE memories SET embedding = X'0000803f000000bf' WHERE key = 'm1';
UPDATE memories SET embedding = X'0000803f000000' WHERE key = 'm2';
UPDATE memories SET session_id = 'cli:main' WHERE key = 'm3';";

fn old_brain(dir: &Path, ddl: &str, special: &str) -> Case {
    let install = install(dir, OLD_CONFIG);
    let rows: String = (1..=4)
        .map(|i| memory(&format!("m{i}"), &format!("the fern has {i} fronds"), AT))
        .collect();
    install.sqlite(OLD_BRAIN, ddl, &[&rows, special]);

    let mut expected = Expected::default().memory("default", 4);
    expected.found = vec![("default", "fern", 4)];
    (install, expected)
}

/// The same key under two agents, which is legal, and a row of `default`.
fn owned_brain(dir: &Path, ddl: &str, special: &str) -> Case {
    let install = install(dir, CONFIG);
    let rows = [
        owned_memory("a1", "the fern of atlas", AT, ATLAS).replace("'a1'", "'both'"),
        owned_memory("b1", "the fern of birch", AT, BIRCH).replace("'b1'", "'both'"),
        owned_memory("a2", "another of atlas", AT, ATLAS),
        owned_memory("d1", "one of nobody", AT, DEFAULT),
    ];
    install.sqlite(
        "data/memory/brain.db",
        ddl,
        &[AGENT_ROWS, &rows.concat(), special],
    );

    let mut expected = Expected::default()
        .memory("atlas", 2)
        .memory("birch", 1)
        .memory("default", 1);
    expected.found = vec![("atlas", "fern", 1), ("birch", "fern", 1)];
    (install, expected)
}

/// Re-made from a snapshot and never opened since. The snapshot lies beside it and must not come in a second time.
fn brain_hydrated(dir: &Path) -> Case {
    let install = install(dir, OLD_CONFIG);
    let rows: String = (1..=3)
        .map(|i| {
            let content = format!("the moss is {i} years old");
            memory(&format!("m{i}"), &content, AT)
                + &format!(
                    "INSERT INTO memories_fts (key, content) VALUES ('m{i}', '{content}');\n"
                )
        })
        .collect();
    let snapshot: String = (1..=3)
        .map(|i| format!("### 🔑 `m{i}`\n\nthe moss is {i} years old\n\n*Created: {AT} | Updated: {AT}*\n\n---\n\n"))
        .collect();
    install
        .sqlite(OLD_BRAIN, "brain_hydrated.sql", &[&rows])
        .file("workspace/MEMORY_SNAPSHOT.md", snapshot.as_bytes());

    let mut expected = Expected::default().memory("default", 3);
    expected.found = vec![("default", "moss", 3)];
    (install, expected)
}
