//! Large installs for the tests of time and memory: streamed to disk, the same for the same seed.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use super::legacy::LegacyInstall;
use super::recipe;
use super::rng::Rng;
use super::rows::{json_line, literal};
use super::sqlite::{self, Journal};
use sqlx::Connection as _;

/// Rows written by one statement: few enough to stay far below SQLite's limits, enough to hide the round trip.
const ROWS_PER_INSERT: usize = 200;

/// What a generator wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Sessions, or memories.
    pub(crate) records: usize,
    /// Messages; 0 for memories.
    pub(crate) messages: usize,
    /// Bytes of their contents, vectors included.
    pub(crate) content_bytes: usize,
}

/// How much to write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Bytes of one message's or memory's text, roughly.
    pub(crate) text_bytes: usize,
    /// Numbers in a memory's vector; 0 for none.
    pub(crate) dims: usize,
    /// Where the made-up words start from.
    pub(crate) seed: u64,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            text_bytes: 200,
            dims: 0,
            seed: 1,
        }
    }
}

impl LegacyInstall {
    /// Writes `data/sessions/sessions.db` with `n` sessions of `events_each` messages, keys `telegram_main_<i>_many`,
    /// newest schema, index rebuilt, closed in good order.
    pub(crate) fn many_sessions(&self, n: usize, events_each: usize, scale: Scale) -> Written {
        let mut rng = Rng::new(scale.seed);
        let mut written = Written::default();
        let path = self.new_store("data/sessions/sessions.db");
        sqlite::block_on(async {
            let mut connection = sqlite::open(&path, Journal::Wal).await;
            sqlite::run(&mut connection, &recipe::ddl("sessions_v0_8.sql")).await;
            // Indexed in one pass at the end: row by row it takes most of the time.
            sqlite::run(
                &mut connection,
                "PRAGMA wal_autocheckpoint = 4000; DROP TRIGGER sessions_ai; BEGIN",
            )
            .await;
            for session in 0..n {
                let key = format!("telegram_main_{session}_many");
                let times = minutes(session, events_each);
                for chunk in times.chunks(ROWS_PER_INSERT) {
                    let mut sql = String::from(
                        "INSERT INTO sessions (session_key, role, content, created_at) VALUES ",
                    );
                    for (index, at) in chunk.iter().enumerate() {
                        let text = rng.words(scale.text_bytes);
                        written.content_bytes += text.len();
                        let comma = if index == 0 { "" } else { "," };
                        write!(
                            sql,
                            "{comma}('{key}','{}',{},'{at}')",
                            role(index),
                            literal(&text)
                        )
                        .unwrap();
                    }
                    sqlite::run(&mut connection, &sql).await;
                }
                let last = times.last().cloned().unwrap_or_else(|| minute(session, 0));
                let metadata = super::rows::metadata(&key, &minute(session, 0), &last, events_each);
                sqlite::run(&mut connection, &metadata).await;
                written.records += 1;
                written.messages += events_each;
            }
            sqlite::run(
                &mut connection,
                "COMMIT; INSERT INTO sessions_fts (sessions_fts) VALUES ('rebuild')",
            )
            .await;
            sqlite::run(
                &mut connection,
                &trigger("sessions_v0_8.sql", "sessions_ai"),
            )
            .await;
            connection.close().await.unwrap();
        });
        written
    }

    /// Writes `n` waiting session files of `lines_each` lines, `data/sessions/telegram_main_<i>_file.jsonl`.
    pub(crate) fn many_files(&self, n: usize, lines_each: usize, scale: Scale) -> Written {
        let mut rng = Rng::new(scale.seed);
        let mut written = Written::default();
        for session in 0..n {
            let relative = format!("data/sessions/telegram_main_{session}_file.jsonl");
            self.file(&relative, b"");
            let mut out = BufWriter::new(std::fs::File::create(self.path(&relative)).unwrap());
            for line in 0..lines_each {
                let text = rng.words(scale.text_bytes);
                written.content_bytes += text.len();
                writeln!(out, "{}", json_line(&(role(line).to_owned(), text))).unwrap();
            }
            out.flush().unwrap();
            written.records += 1;
            written.messages += lines_each;
        }
        written
    }

    /// Writes `data/memory/brain.db` with `n` memories of `default`, ids `memory-<i>`, newest schema.
    pub(crate) fn many_memories(&self, n: usize, scale: Scale) -> Written {
        let mut rng = Rng::new(scale.seed);
        let mut written = Written::default();
        let path = self.new_store("data/memory/brain.db");
        sqlite::block_on(async {
            let mut connection = sqlite::open(&path, Journal::Wal).await;
            sqlite::run(&mut connection, &recipe::ddl("brain_v0_8_3.sql")).await;
            sqlite::run(
                &mut connection,
                "PRAGMA wal_autocheckpoint = 4000; DROP TRIGGER memories_ai; BEGIN",
            )
            .await;
            for start in (0..n).step_by(ROWS_PER_INSERT) {
                let mut sql = String::from(
                    "INSERT INTO memories (id, key, content, embedding, created_at, updated_at, agent_id) VALUES ",
                );
                for index in start..n.min(start + ROWS_PER_INSERT) {
                    let text = rng.words(scale.text_bytes);
                    written.content_bytes += text.len() + scale.dims * size_of::<f32>();
                    let vector = match scale.dims {
                        0 => "NULL".to_owned(),
                        dims => format!("X'{}'", recipe::hex(&rng.vector(dims))),
                    };
                    let comma = if index == start { "" } else { "," };
                    let at = minute(index / 1440, index % 1440).replace("+00:00", "+02:00");
                    write!(
                        sql,
                        "{comma}('memory-{index}','key_{index}',{},{vector},'{at}','{at}',\
                         '0d0d0d0d-0000-4000-8000-000000000000')",
                        literal(&text)
                    )
                    .unwrap();
                }
                sqlite::run(&mut connection, &sql).await;
            }
            written.records = n;
            sqlite::run(
                &mut connection,
                "COMMIT; INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')",
            )
            .await;
            sqlite::run(&mut connection, &trigger("brain_v0_8_3.sql", "memories_ai")).await;
            connection.close().await.unwrap();
        });
        written
    }

    /// Makes an empty private file for a store to grow in.
    fn new_store(&self, relative: &str) -> PathBuf {
        self.file(relative, b"");
        self.path(relative)
    }
}

fn role(index: usize) -> &'static str {
    if index.is_multiple_of(2) {
        "user"
    } else {
        "assistant"
    }
}

fn minutes(day: usize, n: usize) -> Vec<String> {
    (0..n).map(|i| minute(day, i)).collect()
}

/// A minute of an imagined 2026: days and minutes beyond their range wrap.
fn minute(day: usize, minute: usize) -> String {
    let (month, day) = (day / 28 % 12 + 1, day % 28 + 1);
    let (hour, minute, nanos) = (minute / 60 % 24, minute % 60, minute % 1_000_000_000);
    format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:00.{nanos:09}+00:00")
}

/// The statement that makes one trigger of a schema text.
fn trigger(ddl_file: &str, name: &str) -> String {
    recipe::triggers(ddl_file)
        .into_iter()
        .find(|statement| statement.contains(&format!("TRIGGER {name} ")))
        .unwrap()
}
