//! Generates installs as the old program left them: one function a store.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::DateTime;
use rusqlite::{Connection, params};

use crate::words::Words;

/// A kind of store.
pub(crate) struct Store {
    /// Its name, for `--only`.
    pub(crate) name: &'static str,
    /// Its part of an install, of the sum of all parts.
    share: u64,
    /// Writes about so many bytes of it below a root; gives how many records that are.
    write: fn(&Path, u64, &mut Words) -> u64,
}

/// All stores. A new one is one more line, and its function.
pub(crate) const STORES: [Store; 4] = [
    Store {
        name: "sessions database",
        share: 35,
        write: sessions_database,
    },
    Store {
        name: "session files",
        share: 25,
        write: session_files,
    },
    Store {
        name: "memories",
        share: 35,
        write: memories,
    },
    Store {
        name: "jobs",
        share: 5,
        write: jobs,
    },
];

/// Two agents, and a channel that decides whose each session is.
const CONFIG: &str = "schema_version = 3\n\
    [agents.atlas]\nchannels = ['telegram.main']\n\
    [agents.birch]\nchannels = ['discord.main']\n";
const CHANNELS: [&str; 2] = ["telegram_main", "discord_main"];

const SESSIONS: &str = include_str!("../../tests/fixtures/legacy/zeroclaw/ddl/sessions_v0_8.sql");
const BRAIN: &str = include_str!("../../tests/fixtures/legacy/zeroclaw/ddl/brain_v0_8_3.sql");
const CRON: &str = include_str!("../../tests/fixtures/legacy/zeroclaw/ddl/cron_v0_8_4.sql");

/// Size of one session file, bytes.
const FILE_BYTES: usize = 13_000;
/// Numbers in the vector of a memory.
const DIMS: usize = 384;
/// Runs of one job.
const RUNS: u64 = 500;

/// Writes an install of about `bytes` bytes of these stores below `root`; gives how many records are in it.
pub(crate) fn generate(root: &Path, bytes: u64, stores: &[&Store]) -> u64 {
    fs::write(root.join("config.toml"), CONFIG).unwrap();
    let whole: u64 = stores.iter().map(|store| store.share).sum();
    let mut words = Words::new(19);
    stores
        .iter()
        .map(|store| (store.write)(root, bytes * store.share / whole, &mut words))
        .sum()
}

/// Bytes of all files of an install.
pub(crate) fn bytes(root: &Path) -> u64 {
    let files = walkdir::WalkDir::new(root.join("data")).into_iter();
    files
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(fs::Metadata::is_file)
        .map(|meta| meta.len())
        .sum()
}

fn place(root: &Path, relative: &str) -> PathBuf {
    let path = root.join(relative);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

/// A minute of the past, as the old program wrote it.
fn minute(number: u64) -> String {
    let seconds = 1_760_000_000 + i64::try_from(number).unwrap() * 60;
    DateTime::from_timestamp(seconds, 123_456_789)
        .unwrap()
        .to_rfc3339()
}

fn role(number: u64) -> &'static str {
    match number % 2 {
        0 => "user",
        _ => "assistant",
    }
}

/// Makes a store, and fills it in one transaction. Its full-text index is built at the end: row by row, as the old
/// program did it, takes most of the time and gives the same.
///
/// * `trigger`, `index`: what keeps the index, and its name.
fn store(
    path: &Path,
    ddl: &str,
    trigger_and_index: Option<(&str, &str)>,
    fill: impl FnOnce(&Connection),
) {
    let store = Connection::open(path).unwrap();
    let is_wal = trigger_and_index.is_some();
    let journal = if is_wal { "WAL" } else { "DELETE" };
    store.pragma_update(None, "journal_mode", journal).unwrap();
    store.pragma_update(None, "synchronous", "OFF").unwrap();
    store.execute_batch(ddl).unwrap();
    let trigger = trigger_and_index.map(|(name, _)| {
        let sql = "SELECT sql FROM sqlite_schema WHERE name = ?1";
        let made: String = store.query_row(sql, [name], |row| row.get(0)).unwrap();
        store
            .execute_batch(&format!("DROP TRIGGER {name}"))
            .unwrap();
        made
    });
    store.execute_batch("BEGIN").unwrap();
    fill(&store);
    store.execute_batch("COMMIT").unwrap();
    if let (Some(trigger), Some((_, index))) = (trigger, trigger_and_index) {
        let rebuild = format!("INSERT INTO {index} ({index}) VALUES ('rebuild'); {trigger}");
        store.execute_batch(&rebuild).unwrap();
    }
    store.close().unwrap();
}

/// `sessions.db`: conversations of 20 to 200 messages.
fn sessions_database(root: &Path, bytes: u64, words: &mut Words) -> u64 {
    // Its indexes are about as large as a half of its rows.
    let (mut left, mut records) = (bytes * 10 / 15, 0);
    let path = place(root, "data/sessions/sessions.db");
    let index = Some(("sessions_ai", "sessions_fts"));
    store(&path, SESSIONS, index, |store| {
        let mut message = store
            .prepare("INSERT INTO sessions (session_key, role, content, created_at) VALUES (?1, ?2, ?3, ?4)")
            .unwrap();
        let mut metadata = store
            .prepare(
                "INSERT INTO session_metadata (session_key, created_at, last_activity, message_count)
                 VALUES (?1, ?2, ?3, ?4)",
            )
            .unwrap();
        for session in 0_u64.. {
            if left == 0 {
                break;
            }
            let key = format!("{}_{session}_chat", CHANNELS[words.below(2)]);
            let messages = 20 + words.below(181) as u64;
            for number in 0..messages {
                let text = words.message();
                // What a row has beside its text.
                left = left.saturating_sub(text.len() as u64 + 100);
                let at = minute(session * 200 + number);
                message
                    .execute(params![key, role(number), text, at])
                    .unwrap();
            }
            let (first, last) = (minute(session * 200), minute(session * 200 + messages - 1));
            metadata
                .execute(params![key, first, last, messages.cast_signed()])
                .unwrap();
            records += 1 + messages;
        }
    });
    records
}

/// Session files of 13 KB.
fn session_files(root: &Path, bytes: u64, words: &mut Words) -> u64 {
    let files = bytes.div_ceil(FILE_BYTES as u64);
    let mut records = 0;
    for file in 0..files {
        let channel = CHANNELS[words.below(2)];
        let path = place(root, &format!("data/sessions/{channel}_{file}_file.jsonl"));
        let mut out = BufWriter::new(fs::File::create(path).unwrap());
        let mut written = 0;
        for number in 0.. {
            if written >= FILE_BYTES {
                break;
            }
            let content = words.message();
            let line = serde_json::json!({ "role": role(number), "content": content }).to_string();
            writeln!(out, "{line}").unwrap();
            written += line.len() + 1;
            records += 1;
        }
        out.flush().unwrap();
        records += 1;
    }
    records
}

/// `brain.db`: memories of two agents with vectors of 384 numbers.
fn memories(root: &Path, bytes: u64, words: &mut Words) -> u64 {
    const OWNERS: &str = "INSERT INTO agents VALUES
        ('a0000000-0000-4000-8000-000000000000', 'atlas', '2026-06-01T08:00:00+00:00'),
        ('b0000000-0000-4000-8000-000000000000', 'birch', '2026-06-01T08:00:00+00:00')";
    let (mut left, mut records) = (bytes, 0);
    let path = place(root, "data/memory/brain.db");
    let index = Some(("memories_ai", "memories_fts"));
    store(&path, BRAIN, index, |store| {
        store.execute_batch(OWNERS).unwrap();
        let mut memory = store
            .prepare(
                "INSERT INTO memories (id, key, content, embedding, created_at, updated_at, agent_id)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6)",
            )
            .unwrap();
        while left > 0 {
            let owner = ["a", "b"][words.below(2)];
            let owner = format!("{owner}0000000-0000-4000-8000-000000000000");
            let id = format!("{:08x}-{records:012}", words.below(1 << 32));
            let (key, text) = (format!("note_{records}"), words.message());
            // What a row has beside its text, indexes included.
            left = left.saturating_sub((text.len() + 4 * DIMS) as u64 + 700);
            let vector = words.vector(DIMS);
            let row = params![id, key, text, vector, minute(records), owner];
            memory.execute(row).unwrap();
            records += 1;
        }
    });
    records
}

/// `jobs.db`: jobs, each with 500 runs.
fn jobs(root: &Path, bytes: u64, words: &mut Words) -> u64 {
    let (mut left, mut records) = (bytes * 10 / 13, 0);
    let path = place(root, "data/cron/jobs.db");
    store(&path, CRON, None, |store| {
        let mut job = store
            .prepare(
                "INSERT INTO cron_jobs (id, expression, command, created_at, next_run, agent_alias)
                 VALUES (?1, '0 7 * * *', 'echo report', ?2, ?2, 'atlas')",
            )
            .unwrap();
        let mut run = store
            .prepare(
                "INSERT INTO cron_runs (job_id, started_at, finished_at, status, output, duration_ms)
                 VALUES (?1, ?2, ?3, 'ok', ?4, 59000)",
            )
            .unwrap();
        for number in 0_u64.. {
            if left == 0 {
                break;
            }
            let id = format!("job-{number}");
            job.execute(params![id, minute(number)]).unwrap();
            for place in 0..RUNS {
                let text = words.message();
                // What a row has beside its text, indexes included.
                left = left.saturating_sub(text.len() as u64 + 230);
                let (start, end) = (minute(place * 2), minute(place * 2 + 1));
                run.execute(params![id, start, end, text]).unwrap();
            }
            records += 1 + RUNS;
        }
    });
    records
}
